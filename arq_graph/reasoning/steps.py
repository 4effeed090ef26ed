"""Run a generator that yields steps: its logic serves sync and async code, which differ in who performs a step.

Also run a coroutine, such as an async tool or condition of the user's, from sync code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar, cast

S = TypeVar("S")
T = TypeVar("T")


def perform_steps(steps: Generator[S, Any, T], perform: Callable[[S], Any]) -> T:
    """Perform each step that a generator yields, send it the result or throw the error, and return what it returns."""
    try:
        step = next(steps)
        while True:
            try:
                result = perform(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as finished:
        return cast(T, finished.value)
    finally:
        steps.close()


async def aperform_steps(steps: Generator[S, Any, T], perform: Callable[[S], Awaitable[Any]]) -> T:
    """Do what `perform_steps` does, without blocking."""
    try:
        step = next(steps)
        while True:
            try:
                result = await perform(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as finished:
        return cast(T, finished.value)
    finally:
        steps.close()


def run_awaitable(awaitable: Awaitable[T]) -> T:
    """Run a coroutine, or anything else that can be awaited, to its end from sync code.

    It gets a thread and an event loop of its own, because a loop may already run in this thread.
    """

    async def wait() -> T:
        return await awaitable

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(copy_context().run, asyncio.run, wait()).result()
