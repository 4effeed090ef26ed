"""A developer's functions and Runnables, such as retrievers and checks, called side by side on one text.

Each has its time, and what models write in them is hidden from users' streams.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    run_in_executor,
    set_config_context,
)
from langgraph.errors import GraphBubbleUp

from arq_graph.reasoning.asking import hide_config
from arq_graph.reasoning.deadlines import DeadlineThreads, TimedCall
from arq_graph.reasoning.steps import run_awaitable

SideCall: TypeAlias = tuple[Any, float]
"""A function of a text, sync or async, or a Runnable, and the seconds that it may take."""


def call_side_by_side(
    calls: Sequence[SideCall], text: str, threads: DeadlineThreads, config: RunnableConfig | None = None
) -> list[Any]:
    """Return what each call returned, or its error; `threads` bounds how many may hang."""
    hidden = hide_config(config, get_callback_manager_for_config)
    with set_config_context(hidden) as context:
        timed_calls = [context.run(_start, threads, call, text, hidden) for call in calls]
    return [_wait(threads, timed_call) for timed_call in timed_calls]


async def acall_side_by_side(
    calls: Sequence[SideCall], text: str, config: RunnableConfig | None = None
) -> list[Any]:
    """Return what each call returned, or its error, without blocking."""
    hidden = hide_config(config, get_async_callback_manager_for_config)
    tasks: list[asyncio.Task[Any]] = []
    with set_config_context(hidden) as context:
        for call in calls:
            tasks.append(asyncio.create_task(_acall_in_time(call, text, hidden), context=context.copy()))
        return await asyncio.gather(*tasks)


def _start(
    threads: DeadlineThreads, call: SideCall, text: str, config: RunnableConfig
) -> TimedCall[Any] | Exception:
    function, seconds = call
    try:
        call_function = partial(_call, function, text, config)
        return threads.start(call_function, pause=0, seconds=seconds, on_end=lambda: None)
    except TimeoutError as error:  # too many earlier calls haven't ended
        return error


def _wait(threads: DeadlineThreads, call: TimedCall[Any] | Exception) -> Any:
    if isinstance(call, Exception):
        return call
    call.thread.join(max(0, call.deadline - time.monotonic()))
    try:
        return call.get_result()
    except GraphBubbleUp:  # LangGraph's own, such as an interrupt
        raise
    except Exception as error:
        return error
    finally:
        threads.abandon(call)


async def _acall_in_time(call: SideCall, text: str, config: RunnableConfig) -> Any:
    """Return what a call returned, or its error; its task isn't waited for once its time is up."""
    function, seconds = call
    task = asyncio.ensure_future(_acall(function, text, config))
    try:
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            return TimeoutError(f"the answer was not complete after {seconds:.3g} s")
        if task.cancelled():
            return RuntimeError("its task was cancelled")
        return task.result()
    except GraphBubbleUp:
        raise
    except Exception as error:
        return error
    finally:
        task.cancel()


def _call(function: Any, text: str, config: RunnableConfig) -> Any:
    if isinstance(function, Runnable):
        return function.invoke(text, config)
    result = function(text)
    return run_awaitable(result) if isawaitable(result) else result


async def _acall(function: Any, text: str, config: RunnableConfig) -> Any:
    if isinstance(function, Runnable):
        return await function.ainvoke(text, config)
    result = await run_in_executor(None, function, text)
    return await result if isawaitable(result) else result
