"""Keep the time limit of a model call, whatever its client does.

A sync client limits each read, not the call: an answer of which a byte comes now and then would take for ever. An async
client that waits for each chunk with `asyncio.wait_for` can swallow a cancellation on Python 3.11.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

MAX_ABANDONED = 64
"""Calls of one endpoint that may still run after their time was up."""


class DeadlineThreads:
    """Runs the sync calls of an endpoint, each in a daemon thread that is abandoned when its time is up.

    Nothing can stop a thread that waits for bytes. It ends when the server ends the answer, or pauses for longer than
    the client waits. Until then it counts, so that only so many can be open.
    """

    def __init__(self) -> None:
        self._abandoned: list[threading.Thread] = []

    def run(self, function: Callable[[], T], seconds: float) -> T:
        """Call a function and return what it returns.

        Raises:
            TimeoutError: It takes longer than so many seconds, or too many earlier calls haven't ended.
        """
        self._require_room()
        future: Future[T] = Future()

        def work() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        thread = threading.Thread(target=copy_context().run, args=(work,), name="arq_graph-call", daemon=True)
        thread.start()
        try:
            with suppress(TimeoutError):
                future.exception(seconds)
        finally:  # also after Ctrl-C
            if not future.done():
                self._abandoned.append(thread)
        if not future.done():
            raise TimeoutError(f"the answer was not complete after {seconds:.3g} s")
        return future.result()

    def _require_room(self) -> None:
        for thread in self._abandoned.copy():
            if not thread.is_alive():
                with suppress(ValueError):  # another thread was faster
                    self._abandoned.remove(thread)
        if len(self._abandoned) >= MAX_ABANDONED:
            raise TimeoutError(
                f"{len(self._abandoned)} earlier calls were still being answered when their time was up, and have not"
                " ended yet"
            )


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
