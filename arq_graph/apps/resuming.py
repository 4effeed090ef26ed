"""Going on with a thread that was interrupted, before it takes up something new."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from arq_graph.errors import InputError


def resume_or_invoke(
    app: CompiledStateGraph[Any, Any, Any, Any], input: Any, config: RunnableConfig, **kwargs: Any
) -> Any:
    """Finish the turn that a crash or Ctrl-C left unfinished, then invoke the app with the input.

    Args:
        app: A compiled graph with a checkpointer.
        input: The new message as `{"messages": [...]}`; a `Command(resume=...)` that answers an interrupt;
            or None to finish only.
        config: With a `thread_id`.
        **kwargs: As for `invoke`; `durability="sync"` keeps every finished step.

    Returns:
        The state after the input, or after the resumed turn where `input` is None; with `__interrupt__` if that
        waits for an answer.

    Raises:
        InputError: The thread waits for an answer to an interrupt, and the input is something else.
    """
    snapshot = app.get_state(config)
    if _is_unfinished(snapshot, input):
        finished = app.invoke(None, config, **kwargs)
        if input is None:
            return finished
        snapshot = app.get_state(config)
    if input is None:
        return _as_it_is(snapshot)
    return app.invoke(_new(snapshot, input), config, **kwargs)


async def aresume_or_invoke(
    app: CompiledStateGraph[Any, Any, Any, Any], input: Any, config: RunnableConfig, **kwargs: Any
) -> Any:
    """Finish an unfinished turn, then invoke the app with the input; as `resume_or_invoke`, without blocking."""
    snapshot = await app.aget_state(config)
    if _is_unfinished(snapshot, input):
        finished = await app.ainvoke(None, config, **kwargs)
        if input is None:
            return finished
        snapshot = await app.aget_state(config)
    if input is None:
        return _as_it_is(snapshot)
    return await app.ainvoke(_new(snapshot, input), config, **kwargs)


def _is_unfinished(snapshot: StateSnapshot, input: Any) -> bool:
    """Whether a turn has to be finished first."""
    # `next` leaves out tasks whose results are saved: it is empty after a crash between the last result of a step
    # and the step's checkpoint, too.
    return bool(snapshot.tasks) and not snapshot.interrupts and not isinstance(input, Command)


def _new(snapshot: StateSnapshot, input: Any) -> Any:
    """The input, if the thread is ready for it."""
    if snapshot.interrupts and not isinstance(input, Command):
        raise InputError(_WAITING)
    return input


def _as_it_is(snapshot: StateSnapshot) -> Any:
    """The state of a thread with nothing to finish, in the form that `invoke` gives it."""
    if not snapshot.interrupts:
        return snapshot.values
    return {**snapshot.values, "__interrupt__": list(snapshot.interrupts)}


_WAITING = (
    "the thread waits for an answer to an interrupt: resume it with Command(resume=...), or invoke the app itself "
    "with the new message to abandon what waits"
)
