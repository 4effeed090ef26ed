"""Performing what a generator asks for: sync and async share the driver and differ in who performs.

And running a coroutine, such as a user's tool or condition, from code that is not async.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar, cast

S = TypeVar("S")
T = TypeVar("T")


async def aperform_steps(steps: Generator[S, Any, T], perform: Callable[[S], Awaitable[Any]]) -> T:
    """Perform each step that a generator yields, and return what it returns."""
    try:
        step = next(steps)
        while True:
            try:
                given = await perform(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(given)
    except StopIteration as finished:
        return cast(T, finished.value)
    finally:
        steps.close()


def perform_steps(steps: Generator[S, Any, T], perform: Callable[[S], Any]) -> T:
    """The same without an event loop: where nothing is waited for, a coroutine ends as soon as it begins."""

    async def at_once(step: S) -> Any:
        return perform(step)

    try:
        aperform_steps(steps, at_once).send(None)
    except StopIteration as finished:
        return cast(T, finished.value)
    raise AssertionError("a step was awaited in a sync run")


def run_awaitable(awaitable: Awaitable[T]) -> T:
    """Run a coroutine, or what else can be awaited, to its end from code that is not async.

    Each has a thread and a loop of its own: an event loop may run in this thread, and what is run may run others.
    """

    async def awaited() -> T:
        return await awaitable

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, awaited()).result()
