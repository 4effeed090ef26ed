"""Run many coroutines, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import Any, TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")


async def run_concurrently(
    work: Iterable[tuple[Key, Coroutine[Any, Any, Result]]], concurrency: int
) -> AsyncGenerator[tuple[Key, Result], None]:
    """Run coroutines, at most `concurrency` at once, and yield each result with its key as it comes.

    An exception of one of them cancels the others.
    """
    remaining = iter(work)
    running: dict[asyncio.Task[Result], Key] = {}
    try:
        while True:
            while len(running) < concurrency and (next_work := next(remaining, None)) is not None:
                key, coroutine = next_work
                running[asyncio.create_task(coroutine)] = key
            if not running:
                return
            finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            # Results are yielded before an error ends the run.
            for task in sorted(finished, key=lambda task: task.exception() is not None):
                yield running.pop(task), task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
