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
"""Enough for a run of several conversations, each of which changes a few times."""


class RunCache:
    """The results computed in one run of a graph. Each is returned for equal inputs only, so that none is stale.

    Threads may use it at the same time: at worst, two of them compute the same result.
    """

    def __init__(self) -> None:
        self._histories: deque[History] = deque(maxlen=_MAX_ENTRIES)
        self._derived: deque[tuple[Any, Any, Any]] = deque(maxlen=_MAX_ENTRIES)

    def number_messages(self, messages: Sequence[BaseMessage]) -> History:
        """Return messages as a history. Those that an earlier history of the run begins with aren't numbered again."""
        for history in list(self._histories):
            if extended := history.extend(messages):
                if extended is not history:
                    self._histories.appendleft(extended)
                return extended
        history = History(messages)
        self._histories.appendleft(history)
        return history

    def derive(self, key: object, input: Any, compute: Callable[[], R]) -> R:
        """Return the result of `compute`, which depends on nothing but the key and the input."""
        result: R
        for stored_key, stored_input, result in list(self._derived):
            if stored_key == key and stored_input == input:
                return result
        stored_input = _copy_json(input)  # a node may change the rows of a channel in place
        result = compute()
        self._derived.appendleft((key, stored_input, result))
        return result


def _copy_json(value: Any) -> Any:
    """Copy lists and dicts at any depth, several times faster than `deepcopy`; whatever else there is can't change."""
    if isinstance(value, dict):
        copied = value.copy()
        for key, item in value.items():
            if isinstance(item, (dict, list)):
                copied[key] = _copy_json(item)
        return copied
    if isinstance(value, list):
        return [_copy_json(item) for item in value]
    return value


_caches: WeakKeyDictionary[Any, RunCache] = WeakKeyDictionary()
_lock = Lock()


def get_run_cache() -> RunCache:
    """Return the cache of the run that this is called in; outside a graph, a new one.

    A run is recognized by its stream writer: LangGraph makes one for each run, and only the run's nodes hold it.
    """
    try:
        writer = get_stream_writer()
        if writer is Runtime().stream_writer:  # the default, which isn't made for a run
            return RunCache()
        with _lock:
            return _caches.setdefault(writer, RunCache())
    except (RuntimeError, KeyError, TypeError):
        return RunCache()
