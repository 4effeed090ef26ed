"""Count model calls and their tokens, by the module that made them and by the model that answered them."""

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
    """A `UsageTracker` doesn't allow another model call."""


@dataclass(frozen=True)
class ModuleUsage:
    """The calls of one module, or of one model, and their tokens.

    Args:
        calls: Requests made, including failed and repeated ones.
        usage: Tokens of all calls that report them; None if none does.
    """

    calls: int
    usage: UsageMetadata | None

    def __str__(self) -> str:
        """Format calls and tokens, such as "2 calls, 1,200 tokens read, 80 written"."""
        calls = f"{self.calls:,} call{'' if self.calls == 1 else 's'}"
        if not self.usage:
            return calls
        read = f"{self.usage['input_tokens']:,} tokens read"
        if cached := self.usage.get("input_token_details", {}).get("cache_read"):
            read += f", {cached:,} of them from the cache"
        return f"{calls}, {read}, {self.usage['output_tokens']:,} written"


@dataclass
class _Call:
    module: str
    model: str
    usage: UsageMetadata | None = None
    failure: BaseException | None = None
    is_answered: bool = False


def _sum_calls(calls: Collection[_Call]) -> ModuleUsage:
    return ModuleUsage(len(calls), sum_usage(call.usage for call in calls))


class UsageTracker(BaseCallbackHandler):
    """Counts model calls and their tokens; `track_usage` makes one and listens with it.

    Args:
        max_calls: How many calls may be made; another one raises `CallLimitReached`. None: any number.
    """

    run_inline = True  # also in async runs: it only counts, and a thread for each event would cost more
    raise_error = True  # the call beyond the limit must not be made

    def __init__(self, max_calls: int | None = None) -> None:
        self._max_calls = max_calls
        self._outer: UsageTracker | None = None
        self._lock = threading.Lock()
        self._calls: dict[UUID, _Call] = {}

    @contextmanager
    def listen(self) -> Iterator[Self]:
        """Count the calls inside the block; a tracker that listens around it counts them, too."""
        outer = _current_tracker.get()
        if outer is not self:
            self._outer = outer
        token = _current_tracker.set(self)
        try:
            yield self
        finally:
            _current_tracker.reset(token)

    def include(self, other: UsageTracker) -> None:
        """Also count what another tracker has counted."""
        self._calls |= other._calls

    @property
    def calls(self) -> int:
        """Requests made, including failed and repeated ones."""
        return len(self._calls)

    @property
    def total(self) -> UsageMetadata:
        """Tokens of all calls that report them."""
        usage = _sum_calls(self._copy_calls()).usage
        return usage or UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)

    @property
    def failures(self) -> list[BaseException]:
        """The exceptions of calls, so that a model's lost connection can be told from another's."""
        return [call.failure for call in self._copy_calls() if call.failure]

    @property
    def answers(self) -> list[tuple[str, UsageMetadata | None]]:
        """The model and the tokens of each call that was answered, or that was cut off and reports its tokens."""
        calls = self._copy_calls()
        return [(call.model, call.usage) for call in calls if call.is_answered or call.usage]

    @property
    def by_module(self) -> dict[str, ModuleUsage]:
        """Calls and tokens by the reasoner's `module`; calls that no reasoner made are under "other"."""
        return self._sum_usage("module")

    @property
    def by_model(self) -> dict[str, ModuleUsage]:
        """Calls and tokens by the model's name, that of its answer if there is one; "" if it isn't known."""
        return self._sum_usage("model")

    def __str__(self) -> str:
        """Format calls and tokens in a line for each module, and one for all."""
        lines = [f"{module}: {usage}" for module, usage in self.by_module.items()]
        lines.append(f"all: {_sum_calls(self._copy_calls())}")
        return "\n".join(lines)

    def _sum_usage(self, attribute: str) -> dict[str, ModuleUsage]:
        groups: dict[str, list[_Call]] = {}
        for call in self._copy_calls():
            groups.setdefault(getattr(call, attribute), []).append(call)
        return {name: _sum_calls(calls) for name, calls in groups.items()}

    def _copy_calls(self) -> list[_Call]:
        return list(self._calls.values())  # other threads may add calls meanwhile

    def on_chat_model_start(self, *args: Any, run_id: UUID, metadata: Any = None, **kwargs: Any) -> None:
        """Count a call, or raise CallLimitReached if it would be one too many."""
        labels = metadata or {}
        call = _Call(labels.get("arq_module") or "other", str(labels.get("ls_model_name") or ""))
        tracker: UsageTracker | None = self
        while tracker:
            with tracker._lock:
                if tracker._max_calls is not None and tracker.calls >= tracker._max_calls:
                    raise CallLimitReached
                tracker._calls[run_id] = call
            tracker = tracker._outer

    on_llm_start = on_chat_model_start  # of a model that completes texts

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call, which are not known for models that complete texts."""
        call = self._calls.get(run_id)
        if call is None:
            return
        call.is_answered = True
        answers = response.generations[0]
        if not answers or not isinstance(answers[0], ChatGeneration):
            return
        message = answers[0].message
        if isinstance(message, AIMessage):
            call.usage = message.usage_metadata
            call.model = str(message.response_metadata.get("model_name") or call.model)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the failure of a call, and the tokens of an answer that was cut off or filtered."""
        if call := self._calls.get(run_id):
            call.failure = error
            if message := extract_message(error):
                call.usage = message.usage_metadata


_current_tracker: ContextVar[UsageTracker | None] = ContextVar("arq_graph_usage", default=None)
register_configure_hook(_current_tracker, inheritable=True)


def track_usage() -> AbstractContextManager[UsageTracker]:
    """Count all model calls made inside a `with` block, including those in its threads and tasks.

    Blocks may be nested; the outer one counts what the inner one counts.

    Example:
        ```python
        with track_usage() as usage:
            app.invoke(...)
        print(usage)  # a line for each module, and one for all
        print(usage.calls, usage.total["total_tokens"], usage.by_module["matcher"].calls)
        ```
    """
    return UsageTracker().listen()
