"""Run many coroutines, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")


async def run_concurrently(
    work: Iterable[tuple[Key, Coroutine[Any, Any, Result]]], concurrency: int
) -> AsyncGenerator[list[tuple[Key, Result]], None]:
    """Run coroutines, at most `concurrency` at once, and yield each result with its key as it comes.

    Results that come at the same time are yielded together, so that none is lost if the caller stops at one of them. An
    exception of a coroutine cancels the others.
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
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            finished = [task for task in running if task.done()]
            failed = []
            results = []
            for task in finished:
                key = running.pop(task)
                if task.cancelled() or task.exception() is not None:
                    failed.append(task)
                else:
                    results.append((key, task.result()))
            if results:
                yield results
            for task in failed:
                task.result()  # raises its error
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def gather_concurrently(coroutines: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Run coroutines at once, and return their results in order; an exception of one of them cancels the others."""
    results: dict[int, Result] = {}
    async with aclosing(run_concurrently(enumerate(coroutines), len(coroutines))) as finished:
        async for numbered_results in finished:
            results.update(numbered_results)
    return [results[number] for number in range(len(coroutines))]
