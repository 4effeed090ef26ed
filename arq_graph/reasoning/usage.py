"""What model calls cost, by the module that made them and by the model that answered them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

from arq_graph.reasoning.replies import message_from, sum_of, usage_of


class CallLimitReached(Exception):
    """As many model calls as `track_usage` allows were made; raised in place of another one."""


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
        return f"{calls}, {self.usage['input_tokens']:,} tokens read, {self.usage['output_tokens']:,} written"


@dataclass
class _Call:
    module: str
    model: str
    usage: UsageMetadata | None = None
    failure: BaseException | None = None


class UsageTracker(BaseCallbackHandler):
    """Counts model calls and their tokens; `track_usage` makes one and listens with it."""

    run_inline = True  # in async runs, too: it only counts, and a thread for each event would cost more
    raise_error = True  # the call beyond the limit must not be made

    def __init__(self, max_calls: int | None = None) -> None:
        self._max_calls = max_calls
        self._outer: UsageTracker | None = None
        self._lock = threading.Lock()
        self._calls: dict[UUID, _Call] = {}

    @contextmanager
    def listening(self) -> Iterator[Self]:
        """Count what is called inside the block; a tracker that listens around it counts that, too."""
        around = _tracker.get()
        if around is not self:
            self._outer = around
        token = _tracker.set(self)
        try:
            yield self
        finally:
            _tracker.reset(token)

    @property
    def calls(self) -> int:
        """Requests made, failed and repeated ones included."""
        return len(self._calls)

    @property
    def total(self) -> UsageMetadata:
        """Tokens of all calls that report them."""
        spent = sum_of(call.usage for call in list(self._calls.values()))
        return spent or UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)

    @property
    def failures(self) -> list[BaseException]:
        """What calls raised, so that a model's lost connection can be told from another's."""
        return [call.failure for call in list(self._calls.values()) if call.failure]

    def __str__(self) -> str:
        """A line for each module, and one for all: calls and tokens."""
        total = ModuleUsage(
            self.calls, self.total if any(each.usage for each in self._calls.values()) else None
        )
        return "\n".join(f"{name}: {part}" for name, part in [*self.by_module.items(), ("all", total)])

    @property
    def by_module(self) -> dict[str, ModuleUsage]:
        """Calls and tokens by the reasoner's `module`; calls that no reasoner made are under "other"."""
        return self._by("module")

    @property
    def by_model(self) -> dict[str, ModuleUsage]:
        """Calls and tokens by the model's name, as its answer tells it if there is one ("": not known)."""
        return self._by("model")

    def _by(self, key: str) -> dict[str, ModuleUsage]:
        groups: dict[str, list[UsageMetadata | None]] = {}
        for call in list(self._calls.values()):
            groups.setdefault(getattr(call, key), []).append(call.usage)
        return {name: ModuleUsage(len(usages), sum_of(usages)) for name, usages in groups.items()}

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: Any,
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
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

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call."""
        firsts = [batch[0] for batch in response.generations if batch]
        messages = [first.message for first in firsts if isinstance(first, ChatGeneration)]
        named = [response.llm_output or {}, *(message.response_metadata for message in messages)]
        if call := self._calls.get(run_id):
            call.usage = sum_of(map(usage_of, messages))
            call.model = next(
                (str(each["model_name"]) for each in named if each.get("model_name")), call.model
            )

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call whose answer was cut off or filtered."""
        if call := self._calls.get(run_id):
            call.failure = error
            if hidden := message_from(error):
                call.usage = usage_of(hidden)


_tracker: ContextVar[UsageTracker | None] = ContextVar("arq_graph_usage", default=None)
register_configure_hook(_tracker, inheritable=True)


@contextmanager
def track_usage(*, max_calls: int | None = None) -> Iterator[UsageTracker]:
    """Count all model calls made inside the `with` block, in its threads and tasks too.

    Blocks may be nested; the outer one counts what the inner one counts.

    Args:
        max_calls: How many calls may be made in the block; another one raises `CallLimitReached`. None: any number.

    Example:
        ```python
        with track_usage() as used:
            app.invoke(...)
        print(used)  # a line for each module, and one for all
        print(used.calls, used.total["total_tokens"], used.by_module["matcher"].calls)
        ```
    """
    with UsageTracker(max_calls).listening() as tracker:
        yield tracker
