"""Runs of many pieces of work: several at once, each result stored as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from arq_graph.errors import ModelUnavailableError

Item = TypeVar("Item")
Key = TypeVar("Key")
Result = TypeVar("Result")

MAX_UNREACHABLE = 3
"""The number of results in a row without a model that end a run: the others would fare no better."""


async def run_batches(
    batches: Iterable[tuple[Sequence[Item], Coroutine[Any, Any, Sequence[Result]]]],
    concurrency: int,
    on_result: Callable[[Item, Result], None],
    find_model_error: Callable[[Result], str | None] = lambda _: None,
) -> None:
    """Run batches of items concurrently, and hand over the result of each item as soon as its batch is done.

    Args:
        batches: The items of each batch, and a coroutine that returns their results in the same order. The next batch
            is asked for when there is room for it, so an iterator can stop a run early.
        concurrency: The number of batches that run at the same time.
        on_result: Called with each item and its result, for example to store it.
        find_model_error: Returns why a model was out of reach for a result, or None.

    Raises:
        ModelUnavailableError: Models were out of reach for several results in a row; those have been handed over.
    """
    unreachable = 0
    async with aclosing(run_concurrently(batches, concurrency)) as finished:
        async for items, results in finished:
            for item, result in zip(items, results, strict=True):
                on_result(item, result)
            for result in results:
                model_error = find_model_error(result)
                unreachable = unreachable + 1 if model_error else 0
                if unreachable >= MAX_UNREACHABLE:
                    raise ModelUnavailableError(
                        f"a model was out of reach in {unreachable} conversations in a row, so the run ends here; "
                        f"the last: {model_error}"
                    )


async def run_concurrently(
    work: Iterable[tuple[Key, Coroutine[Any, Any, Result]]], concurrency: int
) -> AsyncGenerator[tuple[Key, Result], None]:
    """Yield the results of coroutines as they come, each with its key; so many run at the same time.

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
