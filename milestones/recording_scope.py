"""The conversation to which the requests of a recording belong."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from uuid import uuid4


class RecordingScope:
    """A conversation to which requests belong, and the number of equal ones so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.attempt = uuid4().hex[:8]
        self._counts: Counter[tuple[Path, str]] = Counter()
        self._lock = threading.Lock()

    def count_request(self, file: Path, digest: str) -> int:
        """Return the number of equal requests before this one, and count it."""
        with self._lock:
            self._counts[file, digest] += 1
            return self._counts[file, digest] - 1


_scope: ContextVar[RecordingScope | None] = ContextVar("arq_graph_recording_scope", default=None)


def join_names(*names: str) -> str:
    """Return the names of a suite, a scenario and so on as one, which no other names have: a `/` in them is doubled."""
    return " / ".join(name.replace("/", "//") for name in names)


@contextmanager
def recording_scope(*names: str) -> Iterator[None]:
    """Record and replay the requests inside the block under these names, after those of the blocks around it."""
    outer = _scope.get()
    name = join_names(*names)
    token = _scope.set(RecordingScope(f"{outer.name} / {name}" if outer else name))
    try:
        yield
    finally:
        _scope.reset(token)


def get_recording_scope() -> RecordingScope | None:
    """Return the scope of the block that this is called in, if there is one."""
    return _scope.get()
