"""Going on with a thread that was interrupted, before it takes up something new."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph import START, add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from arq_graph.errors import InputError
from arq_graph.reasoning.steps import aperform_steps, perform_steps

_STATE = object()


def resume_or_invoke(
    app: CompiledStateGraph[Any, Any, Any, Any], input: Any, config: RunnableConfig, **kwargs: Any
) -> Any:
    """Finish the turn that a crash or Ctrl-C left unfinished, then invoke the app with the input.

    An input whose messages the thread holds already, with the same ids and the same words, is a request that is sent
    again because its answer was lost: it gets no second reply, and is treated as None.

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
        InputError: The thread waits for an answer to an interrupt, and the input is something else; or the input is
            such an answer, and nothing waits for it; or no thread is named, or kept.
    """
    return perform_steps(
        _steps(app, input, config),
        lambda given: app.get_state(config) if given is _STATE else app.invoke(given, config, **kwargs),
    )


async def aresume_or_invoke(
    app: CompiledStateGraph[Any, Any, Any, Any], input: Any, config: RunnableConfig, **kwargs: Any
) -> Any:
    """Finish an unfinished turn, then invoke the app with the input; as `resume_or_invoke`, without blocking."""
    return await aperform_steps(
        _steps(app, input, config),
        lambda given: app.aget_state(config) if given is _STATE else app.ainvoke(given, config, **kwargs),
    )


def _steps(
    app: CompiledStateGraph[Any, Any, Any, Any], input: Any, config: RunnableConfig
) -> Generator[Any, Any, Any]:
    """Yields `_STATE` for the thread's state, and else what the app is invoked with."""
    if not app.checkpointer or "thread_id" not in merge_configs(app.config, config)["configurable"]:
        raise InputError("give the app a checkpointer, and `configurable` a thread_id")
    snapshot = yield _STATE
    is_answer = isinstance(input, Command)
    # `next` leaves out tasks whose results are saved: it is empty after a crash between the last result of a step
    # and the step's checkpoint, too.
    # An input that was refused is in no channel, and would be refused again.
    unfinished = [task for task in snapshot.tasks if not (task.name == START and task.error)]
    if unfinished and not snapshot.interrupts and not is_answer:
        try:
            finished = yield None
        except InputError:  # about the message that opened the turn, and would be raised each time
            if not _is_new(input, snapshot):
                raise
        else:
            if not _is_new(input, snapshot):
                return finished
        snapshot = yield _STATE
    if not _is_new(input, snapshot):  # the state as it is, in the form that `invoke` gives it
        waiting = {"__interrupt__": list(snapshot.interrupts)} if snapshot.interrupts else {}
        return {
            **{name: value for name, value in snapshot.values.items() if name in app.output_channels},
            **waiting,
        }
    if snapshot.interrupts and not is_answer:
        raise InputError(
            "the thread waits for an answer to an interrupt: resume it with Command(resume=...), or invoke the app "
            "itself with the new message to abandon what waits"
        )
    if is_answer and input.resume is not None and not snapshot.tasks:
        raise InputError(
            "nothing waits for this answer: it was given before, or a new message abandoned the call"
        )
    return (yield input)


def _is_new(input: Any, snapshot: StateSnapshot) -> bool:
    """Whether an input has anything to take up; not so with messages that the thread holds already, as they are."""
    if not isinstance(input, Mapping) or not input.get("messages"):
        return input is not None
    held = add_messages([], snapshot.values.get("messages", []))
    return add_messages(held, input["messages"]) != held
