"""What went wrong in a conversation: whose failure it is, and how it is said."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import Any

from arq_graph.errors import ArqGraphError, ModelRequestError, ModelUnavailableError
from arq_graph.reasoning.failures import read_failure


def outlive(error: BaseException, task: asyncio.Task[Any] | None = None) -> None:
    """Let go on whoever caught what code of others raised, unless somebody wants the run to end.

    A run outlives whatever there is, `sys.exit` in a tool and the panic of an extension in another language too;
    only Ctrl-C it does not, alone or in a group of errors.

    Args:
        error: What was caught.
        task: The task whose coroutine caught it, where that awaited something: it may have been cancelled, or its
            coroutine closed, which is no failure of others.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        CancelledError: The task was cancelled.
        GeneratorExit: The coroutine is closed.
    """
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error
    if isinstance(error, GeneratorExit) and _is_closed(task):
        raise error
    if any(isinstance(each, KeyboardInterrupt) for each in _members(error)):
        raise KeyboardInterrupt from error


def _is_closed(task: asyncio.Task[Any] | None) -> bool:
    if task is None:
        return False
    try:
        return asyncio.current_task() is not task
    except RuntimeError:  # no loop runs any more
        return True


def _members(error: BaseException) -> Iterator[BaseException]:
    still = [error]
    while still:
        one = still.pop()
        yield one
        if isinstance(one, BaseExceptionGroup):
            still += one.exceptions


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that led to it, each once; the members of a group are among them."""
    seen: set[int] = set()
    still = [error]
    while still:
        one = still.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        still.append(one.__cause__ or one.__context__)
        if isinstance(one, BaseExceptionGroup):
            still += reversed(one.exceptions)


def is_out_of_reach(error: BaseException | None, of_models: Collection[BaseException] = ()) -> bool:
    """Whether a model or the way to it failed, which says nothing about the app: it is worth another try.

    A lost connection alone does not say so: it may be that of the app's own database.

    Args:
        error: What was raised.
        of_models: What calls of models raised, as a `CallCounter` heard it.
    """
    heard = {id(each) for each in of_models}
    for one in causes(error):
        if isinstance(one, ModelRequestError | ModelUnavailableError):
            return True
        if isinstance(one, ArqGraphError):
            return False  # it says what it is
        if id(one) in heard and isinstance(one, Exception) and read_failure(one).from_provider:
            return True
    return False


def told(error: BaseException) -> str:
    """An error in words."""
    name, said = type(error).__name__, str(error)
    return said if isinstance(error, ArqGraphError) and said else f"{name}: {said}" if said else name
