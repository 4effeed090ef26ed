"""Performing what a generator asks for: the sync and the async side share the generator and differ in who performs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def perform_steps(steps: Generator[S, Any, T], perform: Callable[[S], Any]) -> T:
    """Perform each step that a generator yields, and return what it returns.

    Args:
        steps: Yields steps; is sent what came of each, or has the error thrown in.
        perform: Performs one step.
    """
    try:
        step = next(steps)
        while True:
            try:
                given = perform(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(given)
    except StopIteration as finished:
        result: T = finished.value
        return result
    finally:
        steps.close()


async def aperform_steps(steps: Generator[S, Any, T], perform: Callable[[S], Awaitable[Any]]) -> T:
    """Perform each step that a generator yields without blocking; see `perform_steps`."""
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
