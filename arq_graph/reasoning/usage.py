"""What model calls cost, by the module that made them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

from arq_graph.reasoning.replies import message_from, usage_of

OTHER = "other"
"""The module under which calls are counted that no reasoner made."""


@dataclass(frozen=True)
class ModuleUsage:
    """What one module's calls cost.

    Args:
        calls: Requests made, failed and repeated ones included.
        usage: Tokens of all calls that report them; None if none does.
    """

    calls: int = 0
    usage: UsageMetadata | None = None


class UsageTracker(BaseCallbackHandler):
    """Counts chat model calls and their tokens; `track_usage` makes one and listens with it."""

    run_inline = True  # in async runs, too: it only counts, and a thread for each event would cost more

    def __init__(self, outer: UsageTracker | None = None) -> None:
        self._outer = outer
        self._lock = threading.Lock()
        self._modules: dict[str, ModuleUsage] = {}
        self._running: dict[UUID, str] = {}

    @property
    def calls(self) -> int:
        """Requests made, failed and repeated ones included."""
        return sum(module.calls for module in self.by_module.values())

    @property
    def total(self) -> UsageMetadata:
        """Tokens of all calls that report them."""
        total = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
        for module in self.by_module.values():
            total = add_usage(total, module.usage)
        return total

    @property
    def by_module(self) -> dict[str, ModuleUsage]:
        """Calls and tokens by the reasoner's `module`; calls that no reasoner made are under "other"."""
        with self._lock:
            return dict(self._modules)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Count a call."""
        module = str((metadata or {}).get("arq_module") or OTHER)
        with self._lock:
            self._running[run_id] = module
        self._add(module, calls=1)
        if self._outer:
            self._outer.on_chat_model_start(serialized, messages, run_id=run_id, metadata=metadata, **kwargs)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call."""
        generations = [batch[0] for batch in response.generations if batch]
        self._end(
            run_id, *(usage_of(each.message) for each in generations if isinstance(each, ChatGeneration))
        )
        if self._outer:
            self._outer.on_llm_end(response, run_id=run_id, **kwargs)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call whose answer was cut off or filtered."""
        hidden = message_from(error) if isinstance(error, Exception) else None
        self._end(run_id, usage_of(hidden) if hidden else None)
        if self._outer:
            self._outer.on_llm_error(error, run_id=run_id, **kwargs)

    def _end(self, run_id: UUID, *usages: UsageMetadata | None) -> None:
        with self._lock:
            module = self._running.pop(run_id, OTHER)
        for usage in usages:
            self._add(module, usage=usage)

    def _add(self, module: str, *, calls: int = 0, usage: UsageMetadata | None = None) -> None:
        with self._lock:
            known = self._modules.get(module, ModuleUsage())
            spent = add_usage(known.usage, usage) if known.usage or usage else None
            self._modules[module] = ModuleUsage(known.calls + calls, spent)


_tracker: ContextVar[UsageTracker | None] = ContextVar("arq_graph_usage", default=None)
register_configure_hook(_tracker, inheritable=True)


@contextmanager
def track_usage() -> Iterator[UsageTracker]:
    """Count all chat model calls made inside the `with` block, in its threads and tasks too.

    Blocks may be nested; the outer one counts what the inner one counts.

    Example:
        ```python
        with track_usage() as used:
            app.invoke(...)
        print(used.calls, used.total["total_tokens"], used.by_module["matcher"].calls)
        ```
    """
    tracker = UsageTracker(outer=_tracker.get())
    token = _tracker.set(tracker)
    try:
        yield tracker
    finally:
        _tracker.reset(token)
