"""Keep the time limit of a model call, whatever its client does.

A sync client limits each read, not the call: an answer of which a byte comes now and then would take for ever. An async
client that waits for each chunk with `asyncio.wait_for` can swallow a cancellation on Python 3.11.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MAX_ABANDONED = 64
"""Calls of one endpoint that may still run after their time was up."""


class TimedCall(Generic[T]):
    """A call in a daemon thread of its own. Nothing can stop it, but it can be abandoned.

    Args:
        function: What is called.
        pause: Seconds to wait before it.
        seconds: Seconds that it may take after the pause.
        on_end: Called in the thread when the call has ended.
    """

    def __init__(
        self, function: Callable[[], T], *, pause: float, seconds: float, on_end: Callable[[], None]
    ) -> None:
        self.deadline = time.monotonic() + pause + seconds
        self._seconds = seconds
        self._function = function
        self._pause = pause
        self._on_end = on_end
        self._future: Future[T] = Future()
        self._is_abandoned = False
        self.thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="arq_graph-call", daemon=True
        )
        self.thread.start()

    @property
    def has_ended(self) -> bool:
        """True if the function has returned or raised an error."""
        return self._future.done()

    def get_result(self) -> T:
        """Return what the function returned, or raise its error; TimeoutError if it hasn't ended."""
        if not self.has_ended:
            raise TimeoutError(f"the answer was not complete after {self._seconds:.3g} s")
        return self._future.result()

    def abandon(self) -> None:
        """Wait for it no longer; if it pauses, its function isn't called any more."""
        self._is_abandoned = True

    def _run(self) -> None:
        if self._pause:
            time.sleep(self._pause)
            if self._is_abandoned:
                return
        try:
            self._future.set_result(self._function())
        except BaseException as error:
            self._future.set_exception(error)
        self._on_end()


class DeadlineThreads:
    """The threads of an endpoint's sync calls, with a bound on those that were abandoned when their time was up.

    A thread that waits for bytes ends when the server ends the answer, or pauses for longer than the client waits.
    Until then it counts, so that only so many can be open.
    """

    def __init__(self) -> None:
        self._abandoned: list[threading.Thread] = []

    def start(
        self, function: Callable[[], T], *, pause: float, seconds: float, on_end: Callable[[], None]
    ) -> TimedCall[T]:
        """Start a call; the arguments are those of `TimedCall`.

        Raises:
            TimeoutError: Too many earlier calls haven't ended.
        """
        for thread in self._abandoned.copy():
            if not thread.is_alive():
                with suppress(ValueError):  # another thread was faster
                    self._abandoned.remove(thread)
        if len(self._abandoned) >= MAX_ABANDONED:
            raise TimeoutError(
                f"{len(self._abandoned)} earlier calls were still being answered when their time was up, and have not"
                " ended yet"
            )
        return TimedCall(function, pause=pause, seconds=seconds, on_end=on_end)

    def abandon(self, call: TimedCall[Any]) -> None:
        """Wait no longer for a call."""
        call.abandon()
        if not call.has_ended:
            self._abandoned.append(call.thread)


class CancellationWatch:
    """Notices that the current task was cancelled since the watch was made, even if a client swallowed that."""

    def __init__(self) -> None:
        self._earlier_count = self._count_cancellations()

    def check(self) -> None:
        """Raise CancelledError if the task was cancelled."""
        if self._count_cancellations() > self._earlier_count:
            raise asyncio.CancelledError

    @staticmethod
    def _count_cancellations() -> int:
        task = asyncio.current_task()
        return task.cancelling() if task else 0
