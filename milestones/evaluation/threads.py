"""Threads for what is not async, and may hang: nobody waits for one that was given up."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
    """Call a function in a thread of its own, with the caller's context.

    The interpreter does not wait for it when it ends, as it waits for the threads of `asyncio.to_thread`.
    """
    call: Future[T] = Future()
    _begin(call, partial(copy_context().run, function, *args, **kwargs))
    return asyncio.wrap_future(call)


class DaemonThreads(ThreadPoolExecutor):
    """An executor whose calls may be given up while they run: their place goes to the next.

    A call that is cancelled goes on in its thread, since no thread can be stopped; but it holds up neither another
    call nor the end of the program.

    Args:
        most: How many calls run at once that somebody waits for.
    """

    # An event loop takes no other executor than a ThreadPoolExecutor; none of its threads is ever made.
    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._most = most
        self._guard = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._under_way = 0
        self._is_over = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function in a thread once there is room.

        Raises:
            RuntimeError: It is shut down.
        """
        call: Future[T] = Future()
        with self._guard:
            if self._is_over:
                raise RuntimeError("no further call is taken: these threads are shut down")
            self._waiting.append((call, partial(fn, *args, **kwargs)))
        self._go_on()
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further call, and give up those that have not begun. It waits for none."""
        with self._guard:
            self._is_over = True
            given_up = [call for call, _ in self._waiting]
            self._waiting.clear()
        for call in given_up:
            call.cancel()

    def _go_on(self) -> None:
        begun = []
        with self._guard:
            while self._waiting and self._under_way < self._most:
                call, work = self._waiting.popleft()
                if not call.cancelled():
                    self._under_way += 1
                    begun.append((call, work))
        for call, work in begun:
            call.add_done_callback(self._ended)
            _begin(call, work)

    def _ended(self, _: Future[Any]) -> None:
        with self._guard:
            self._under_way -= 1
        self._go_on()


def _begin(call: Future[Any], work: Callable[[], Any]) -> None:
    # The call stays pending while it runs, and so can be cancelled: that is how it is given up.
    threading.Thread(target=_run, args=(call, work), name="arq_graph", daemon=True).start()


def _run(call: Future[Any], work: Callable[[], Any]) -> None:
    if call.cancelled():
        return
    try:
        given = work()
    except (StopIteration, GeneratorExit) as error:
        # asyncio takes no StopIteration for an answer, and whoever awaits it would wait for ever. A GeneratorExit would
        # close all coroutines that wait for it, and none of them could catch it.
        _fail(call, RuntimeError(f"{type(error).__name__} was raised: {error}"))
    except BaseException as error:
        _fail(call, error)
    else:
        with suppress(InvalidStateError):
            call.set_result(given)


def _fail(call: Future[Any], error: BaseException) -> None:
    with suppress(InvalidStateError):
        call.set_exception(error)
