"""Performing what a generator asks for: sync and async share the driver and differ in who performs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

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
        result: T = finished.value
        return result
    finally:
        steps.close()


def perform_steps(steps: Generator[S, Any, T], perform: Callable[[S], Any]) -> T:
    """The same without an event loop: where nothing is waited for, a coroutine ends as soon as it begins."""

    async def at_once(step: S) -> Any:
        return perform(step)

    try:
        aperform_steps(steps, at_once).send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    raise AssertionError("a step was awaited in a sync run")
