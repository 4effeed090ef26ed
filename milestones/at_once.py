"""Several things at once, each handed on as it finishes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import Any, TypeVar

K = TypeVar("K")
T = TypeVar("T")


async def at_once(
    works: Iterable[tuple[K, Coroutine[Any, Any, T]]], most: int
) -> AsyncGenerator[tuple[K, T], None]:
    """The results of coroutines as they come, each with what it is about."""
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
