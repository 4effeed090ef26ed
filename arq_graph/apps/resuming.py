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
    unfinished = _unfinished(app.get_state(config), input)
    if unfinished:
        state = app.invoke(None, config, **kwargs)
        if input is None or "__interrupt__" in state:
            return _finished(state, input)
    return app.invoke(input, config, **kwargs) if input is not None else app.get_state(config).values


async def aresume_or_invoke(
    app: CompiledStateGraph[Any, Any, Any, Any], input: Any, config: RunnableConfig, **kwargs: Any
) -> Any:
    """Finish an unfinished turn, then invoke the app with the input; as `resume_or_invoke`, without blocking."""
    unfinished = _unfinished(await app.aget_state(config), input)
    if unfinished:
        state = await app.ainvoke(None, config, **kwargs)
        if input is None or "__interrupt__" in state:
            return _finished(state, input)
    return (
        await app.ainvoke(input, config, **kwargs)
        if input is not None
        else (await app.aget_state(config)).values
    )


def _unfinished(snapshot: StateSnapshot, input: Any) -> bool:
    """Whether a turn has to be finished first."""
    # `next` leaves out tasks whose results are saved: it is empty after a crash between the last result of a step
    # and the step's checkpoint, too.
    if not snapshot.tasks or isinstance(input, Command):
        return False
    if snapshot.interrupts and input is not None:
        raise InputError(_WAITING)
    return True


def _finished(state: Any, input: Any) -> Any:
    if input is not None:
        raise InputError(_WAITING)
    return state


_WAITING = (
    "the thread waits for an answer to an interrupt: resume it with Command(resume=...), or invoke the app itself "
    "with the new message to abandon what waits"
)
