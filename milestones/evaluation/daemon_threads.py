"""Threads for what is not async and may hang: the program does not wait for them when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class DaemonThreads(ThreadPoolExecutor):
    """An executor that begins a thread for each call; one that hangs keeps nobody waiting.

    An event loop takes no other executor than a `ThreadPoolExecutor`, whose own threads the interpreter joins.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function in a thread of its own."""
        call: Future[T] = Future()

        def run() -> None:
            try:
                given = fn(*args, **kwargs)
            except (StopIteration, GeneratorExit) as error:  # who awaits a future could not be told of these
                call.set_exception(RuntimeError(f"{type(error).__name__} was raised: {error}"))
            except BaseException as error:
                call.set_exception(error)
            else:
                call.set_result(given)

        call.set_running_or_notify_cancel()
        threading.Thread(target=run, name="arq_graph", daemon=True).start()
        return call
