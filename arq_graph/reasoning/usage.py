"""What model calls cost, by the module that made them and by the model that answered them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

from arq_graph.reasoning.replies import extract_message, sum_usage


class CallLimitReached(Exception):
    """As many model calls as a `UsageTracker` allows were made; raised in place of another one."""


@dataclass(frozen=True)
class ModuleUsage:
    """What the calls of one module, or of one model, cost.

    Args:
        calls: Requests made, failed and repeated ones included.
        usage: Tokens of all calls that report them; None if none does.
    """

    calls: int
    usage: UsageMetadata | None

    def __str__(self) -> str:
        """Calls and tokens in words."""
        calls = f"{self.calls:,} call{'' if self.calls == 1 else 's'}"
        if not self.usage:
            return calls
        cached = self.usage.get("input_token_details", {}).get("cache_read") or 0
        told = f", {cached:,} of them from the cache" if cached else ""
        read, written = self.usage["input_tokens"], self.usage["output_tokens"]
        return f"{calls}, {read:,} tokens read{told}, {written:,} written"


@dataclass
class _Call:
    module: str
    model: str
    usage: UsageMetadata | None = None
    failure: BaseException | None = None
    is_answered: bool = False


def _cost_of(calls: Collection[_Call]) -> ModuleUsage:
    return ModuleUsage(len(calls), sum_usage(call.usage for call in calls))


class UsageTracker(BaseCallbackHandler):
    """Counts model calls and their tokens; `track_usage` makes one and listens with it.

    Args:
        max_calls: How many calls may be made; another one raises `CallLimitReached`. None: any number.
    """

    run_inline = True  # in async runs, too: it only counts, and a thread for each event would cost more
    raise_error = True  # the call beyond the limit must not be made

    def __init__(self, max_calls: int | None = None) -> None:
        self._max_calls = max_calls
        self._outer: UsageTracker | None = None
        self._lock = threading.Lock()
        self._calls: dict[UUID, _Call] = {}

    @contextmanager
    def listen(self) -> Iterator[Self]:
        """Count what is called inside the block; a tracker that listens around it counts that, too."""
        around = _tracker.get()
        if around is not self:
            self._outer = around
        token = _tracker.set(self)
        try:
            yield self
        finally:
            _tracker.reset(token)

    def include(self, other: UsageTracker) -> None:
        """Count what another one has counted, too."""
        self._calls |= other._calls

    @property
    def trackers(self) -> Iterator[UsageTracker]:
        """Itself, and those that listen around it, outwards."""
        tracker: UsageTracker | None = self
        while tracker:
            yield tracker
            tracker = tracker._outer

    @property
    def calls(self) -> int:
        """Requests made, failed and repeated ones included."""
        return len(self._calls)

    @property
    def total(self) -> UsageMetadata:
        """Tokens of all calls that report them."""
        spent = _cost_of(list(self._calls.values())).usage
        return spent or UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)

    @property
    def failures(self) -> list[BaseException]:
        """What calls raised, so that a model's lost connection can be told from another's."""
        return [call.failure for call in list(self._calls.values()) if call.failure]

    @property
    def answers(self) -> list[tuple[str, UsageMetadata | None]]:
        """The model and the tokens of each call that was answered, or was cut off and tells its tokens."""
        calls = list(self._calls.values())
        return [(call.model, call.usage) for call in calls if call.is_answered or call.usage]

    def __str__(self) -> str:
        """A line for each module, and one for all: calls and tokens."""
        parts = {**self.by_module, "all": _cost_of(list(self._calls.values()))}
        return "\n".join(f"{name}: {part}" for name, part in parts.items())

    @property
    def by_module(self) -> dict[str, ModuleUsage]:
        """Calls and tokens by the reasoner's `module`; calls that no reasoner made are under "other"."""
        return self._by("module")

    @property
    def by_model(self) -> dict[str, ModuleUsage]:
        """Calls and tokens by the model's name, as its answer tells it if there is one ("": not known)."""
        return self._by("model")

    def _by(self, key: str) -> dict[str, ModuleUsage]:
        groups: dict[str, list[_Call]] = {}
        for call in list(self._calls.values()):
            groups.setdefault(getattr(call, key), []).append(call)
        return {name: _cost_of(calls) for name, calls in groups.items()}

    def on_chat_model_start(self, *given: Any, run_id: UUID, metadata: Any = None, **kwargs: Any) -> None:
        """Count a call, or raise CallLimitReached if it would be one too many."""
        labels = metadata or {}
        call = _Call(labels.get("arq_module") or "other", str(labels.get("ls_model_name") or ""))
        for tracker in self.trackers:  # of a call that is one too many, too
            tracker.begun(run_id, given[1], kwargs.get("invocation_params") or {}, labels)
        for tracker in self.trackers:
            with tracker._lock:
                if tracker._max_calls is not None and tracker.calls >= tracker._max_calls:
                    raise CallLimitReached
                tracker._calls[run_id] = call

    on_llm_start = on_chat_model_start  # of a model that completes texts

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call; of one that completes a text none are known."""
        call, answers = self._calls.get(run_id), response.generations[0]
        message = answers[0].message if answers and isinstance(answers[0], ChatGeneration) else None
        if call:
            call.is_answered = True
        if call and isinstance(message, AIMessage):
            call.usage = message.usage_metadata
            call.model = str(message.response_metadata.get("model_name") or call.model)
            for tracker in self.trackers:
                tracker.answered(run_id, message)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call whose answer was cut off or filtered."""
        if call := self._calls.get(run_id):
            call.failure = error
            if hidden := extract_message(error):
                call.usage = hidden.usage_metadata
            for tracker in self.trackers:
                tracker.failed(run_id, error)

    def begun(self, run: UUID, messages: Any, arguments: Any, labels: Any) -> None:
        """Hear of a call, what is bound to its model and its metadata; for those who want to know more than costs."""

    def answered(self, run: UUID, message: AIMessage) -> None:
        """Hear of its answer."""

    def failed(self, run: UUID, error: BaseException) -> None:
        """Hear of its failure."""


_tracker: ContextVar[UsageTracker | None] = ContextVar("arq_graph_usage", default=None)
register_configure_hook(_tracker, inheritable=True)


def track_usage() -> AbstractContextManager[UsageTracker]:
    """Count all model calls made inside a `with` block, in its threads and tasks too.

    Blocks may be nested; the outer one counts what the inner one counts.

    Example:
        ```python
        with track_usage() as used:
            app.invoke(...)
        print(used)  # a line for each module, and one for all
        print(used.calls, used.total["total_tokens"], used.by_module["matcher"].calls)
        ```
    """
    return UsageTracker().listen()
