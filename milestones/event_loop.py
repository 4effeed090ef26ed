"""Run coroutines from code that isn't async, in an event loop that serves later calls, too.

| function | loop | if a loop runs already in this thread |
|---|---|---|
| `run_in_loop`, and functions from `make_sync` | that of this thread | an error that says what to await |
| `run_in_any_thread` | that of this thread | a thread of its own |
| `run_in_background` | one in a background thread, shared by all threads of the process | the same |
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from arq_graph.errors import InputError
from arq_graph.reasoning.steps import run_awaitable

P = ParamSpec("P")
T = TypeVar("T")

_thread_state = threading.local()
# By process id: a fork inherits this dict, but not the threads of its loops.
_background_loops: dict[int, asyncio.AbstractEventLoop] = {}
_background_lock = threading.Lock()


def run_in_loop(coroutine: Coroutine[Any, Any, T], async_name: str) -> T:
    """Run a coroutine to its end in this thread's loop.

    The loop is reused: clients have connections that belong to the loop in which they were made.

    Args:
        coroutine: The coroutine.
        async_name: The name of the async function, which the error advises to await.

    Raises:
        InputError: A loop runs already.
    """
    if _is_loop_running():
        coroutine.close()
        raise InputError(f"an event loop runs already, as in a notebook: `await {async_name}(…)` instead")
    return _run_in_this_thread(coroutine)


def run_in_any_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in this thread's loop, or in another thread if a loop runs already."""
    if _is_loop_running():
        return run_awaitable(coroutine)
    return _run_in_this_thread(coroutine)


def make_sync(function: Callable[P, Coroutine[Any, Any, T]], name: str) -> Callable[P, T]:
    """Return a function of the same signature that runs an async one to its end, from code that isn't async.

    It raises InputError if an event loop runs already.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_in_loop(function(*args, **kwargs), function.__name__)

    run.__name__ = run.__qualname__ = name
    return run


def run_in_background(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in this process's background loop.

    All threads share that loop, and so can share what belongs to a loop, such as a client's connections.
    """
    # Context variables of the caller, or from before a fork, are not meant for the coroutine.
    context = Context()
    return context.run(asyncio.run_coroutine_threadsafe, coroutine, _get_background_loop()).result()


def is_cancelled_from_outside(error: BaseException) -> bool:
    """Return whether the current task was cancelled; other code may raise the same error for reasons of its own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_this_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    runner = _get_runner()
    try:
        return runner.run(coroutine, context=copy_context())
    except (KeyboardInterrupt, SystemExit):
        runner.close()  # else the tasks that it interrupted would continue in the next run
        del _thread_state.runner
        raise


def _get_runner() -> asyncio.Runner:
    if not hasattr(_thread_state, "runner"):
        _thread_state.runner = asyncio.Runner()
        loop = _thread_state.runner.get_loop()
        loop.set_default_executor(_DaemonThreadExecutor())
        # At the end of the thread or of Python. The runner's own close would start a thread, which is too late then on
        # Python 3.12.
        weakref.finalize(_thread_state.runner, loop.close)
    runner: asyncio.Runner = _thread_state.runner
    return runner


def _get_background_loop() -> asyncio.AbstractEventLoop:
    with _background_lock:
        loop = _background_loops.get(os.getpid())
        if loop is None:
            loop = asyncio.new_event_loop()
            loop.set_default_executor(_DaemonThreadExecutor())
            threading.Thread(target=loop.run_forever, name="arq_graph loop", daemon=True).start()
            _background_loops[os.getpid()] = loop
        return loop


class _DaemonThreadExecutor(ThreadPoolExecutor):
    """Runs each call in a new daemon thread. The call may hang, and the interpreter doesn't wait for it at its exit.

    An event loop takes no other executor than a `ThreadPoolExecutor`.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        future.set_running_or_notify_cancel()
        threading.Thread(target=run, name="arq_graph", daemon=True).start()
        return future
