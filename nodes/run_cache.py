"""Results that the nodes of one run share: each is computed once, and all are forgotten when the run ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.messages import BaseMessage
from langgraph.config import get_stream_writer
from langgraph.runtime import Runtime

from arq_graph.reasoning.history import History

R = TypeVar("R")

_MAX_ENTRIES = 32
"""The state of a conversation changes a few times in a turn; a run may hold several conversations."""


class RunCache:
    """The results computed in one run of a graph; each is used for equal inputs only, so that no node gets a stale one.

    Threads may use it at the same time: at worst, two of them compute the same result.
    """

    def __init__(self) -> None:
        self._histories: deque[History] = deque(maxlen=_MAX_ENTRIES)
        self._derived: deque[tuple[Any, list[Any], Any]] = deque(maxlen=_MAX_ENTRIES)

    def number_messages(self, messages: Sequence[BaseMessage]) -> History:
        """Return messages as a history; only those that no earlier history of the run has are numbered anew."""
        for history in list(self._histories):
            if extended := history.extend(messages):
                if extended is not history:
                    self._histories.appendleft(extended)
                return extended
        history = History(messages)
        self._histories.appendleft(history)
        return history

    def derive(self, key: object, inputs: Sequence[Any], make: Callable[[], R]) -> R:
        """Return the result of `make`, which depends on the inputs, and on what the key distinguishes."""
        result: R
        for stored_key, stored_inputs, result in list(self._derived):
            if stored_key == key and stored_inputs == inputs:
                return result
        result = make()
        self._derived.appendleft((key, list(inputs), result))
        return result


_caches: WeakKeyDictionary[Any, RunCache] = WeakKeyDictionary()
_lock = Lock()


def get_run_cache() -> RunCache:
    """Return the cache of the run that this is called in; outside a graph, a new one.

    LangGraph makes a stream writer for each run, which its nodes share and nothing else holds.
    """
    try:
        writer = get_stream_writer()
        if writer is Runtime().stream_writer:  # the default, which isn't made for a run
            return RunCache()
        with _lock:
            return _caches.setdefault(writer, RunCache())
    except (RuntimeError, KeyError, TypeError):
        return RunCache()
