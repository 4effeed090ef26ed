"""Coroutines: run from code that is not async, in a loop that stays, and several of them at once."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, TypeVar

from arq_graph.errors import InputError
from arq_graph.reasoning.steps import run_awaitable

K = TypeVar("K")
T = TypeVar("T")
_kept = threading.local()
_background: dict[int, asyncio.AbstractEventLoop] = {}  # by process: a fork has none of its own
_making = threading.Lock()


def run_in_loop(coroutine: Coroutine[Any, Any, T], instead: str = "") -> T:
    """Run a coroutine to its end in the thread's loop.

    The loop is kept: clients keep connections that belong to the loop they were made in.

    Raises:
        InputError: An event loop runs already; `instead` is what is awaited there. Without it, a thread runs the
            coroutine.
    """
    if _in_a_loop():
        if not instead:
            return run_awaitable(coroutine)
        coroutine.close()
        raise InputError(f"an event loop runs already, as in a notebook: `await {instead}(…)` instead")
    if not hasattr(_kept, "runner"):
        _kept.runner = asyncio.Runner()
        loop = _kept.runner.get_loop()
        loop.set_default_executor(_DaemonThreads())
        atexit.register(loop.close)  # the runner's own close would begin a thread, too late for Python 3.12
    runner: asyncio.Runner = _kept.runner
    try:
        return runner.run(coroutine, context=copy_context())
    except (KeyboardInterrupt, SystemExit):
        runner.close()  # what is under way would otherwise go on in the next run
        del _kept.runner
        raise


def _in_a_loop() -> bool:
    with suppress(RuntimeError):
        return asyncio.get_running_loop() is not None
    return False


def run_in_background(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in the one loop that this process has for such, whichever thread asks.

    What belongs to a loop, such as a client's connections, can then be shared by all that runs there.
    """
    with _making:
        if (loop := _background.get(os.getpid())) is None:
            _background[os.getpid()] = loop = asyncio.new_event_loop()
            loop.set_default_executor(_DaemonThreads())
            threading.Thread(target=loop.run_forever, name="arq_graph loop", daemon=True).start()
    # Context variables of the caller, or from before a fork, are not meant for it.
    return Context().run(asyncio.run_coroutine_threadsafe, coroutine, loop).result()


async def run_concurrently(
    works: Iterable[tuple[K, Coroutine[Any, Any, T]]], most: int
) -> AsyncGenerator[tuple[K, T], None]:
    """Yield the results of coroutines as they come, each with its key; at most `most` run at once."""
    remaining = iter(works)
    running: dict[asyncio.Task[T], K] = {}
    try:
        while True:
            while len(running) < most and (work := next(remaining, None)) is not None:
                about, coroutine = work
                running[asyncio.create_task(coroutine)] = about
            if not running:
                return
            finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            # What is done is handed on before an error ends the rest.
            for task in sorted(finished, key=lambda task: task.exception() is not None):
                yield running.pop(task), task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each call, which the interpreter does not wait for when it ends: the call may hang.

    An event loop takes no other executor than a `ThreadPoolExecutor`.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call: Future[Any] = Future()

        def run() -> None:
            try:
                call.set_result(fn(*args, **kwargs))
            except BaseException as error:
                call.set_exception(error)

        call.set_running_or_notify_cancel()
        threading.Thread(target=run, name="arq_graph", daemon=True).start()
        return call
