"""Resuming a thread that was interrupted, before it takes a new input."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from operator import call
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph import START, add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from arq_graph.errors import InputError
from arq_graph.nodes.messages import find_unanswered_calls
from arq_graph.nodes.takeover import TAKEN_OVER
from arq_graph.reasoning.steps import aperform_steps, perform_steps

App = CompiledStateGraph[Any, Any, Any, Any]


def resume_or_invoke(app: App, input: Any, config: RunnableConfig, **kwargs: Any) -> Any:
    """Finish the turn that a crash or Ctrl-C left unfinished, then invoke the app with the input.

    An input whose messages the thread holds already, with the same ids and texts, is a request that is sent again
    because its answer was lost: it gets no second reply, and is treated as None.

    Args:
        app: A compiled graph with a checkpointer.
        input: The new message as `{"messages": [...]}`; a `Command(resume=...)` that answers an interrupt, which runs
            the turn to its reply also if the agent has since lost the tool; or None to finish only.
        config: With a `thread_id`.
        **kwargs: As for `invoke`; `durability="sync"` stores every finished step.

    Returns:
        The state after the input, or after the resumed turn where `input` is None; with `__interrupt__` if that
        waits for an answer.

    Raises:
        InputError: The thread waits for an answer to an interrupt, and the input is something else; or the input is
            such an answer, and nothing waits for it; or the app has no checkpointer, or the config no `thread_id`.
    """
    require_thread(app, config)
    get_state = partial(app.get_state, config)
    invoke = partial(app.invoke, config=config, **kwargs)
    return perform_steps(take_steps(app, input, get_state, invoke), call)


async def aresume_or_invoke(app: App, input: Any, config: RunnableConfig, **kwargs: Any) -> Any:
    """Finish an unfinished turn, then invoke the app with the input, like `resume_or_invoke`, without blocking."""
    require_thread(app, config)
    get_state = partial(app.aget_state, config)
    invoke = partial(app.ainvoke, config=config, **kwargs)
    return await aperform_steps(take_steps(app, input, get_state, invoke), call)


def require_thread(app: App, config: RunnableConfig) -> None:
    """Raise InputError if the app has no checkpointer, or the config no thread."""
    if not app.checkpointer or "thread_id" not in merge_configs(app.config, config)["configurable"]:
        raise InputError("give the app a checkpointer, and `configurable` a thread_id")


def take_steps(
    app: App, input: Any, get_state: Callable[[], Any], invoke: Callable[[Any], Any]
) -> Generator[Callable[[], Any], Any, Any]:
    """Yield what is to be called, sync or async, and return the state; `invoke` is given the app's input."""
    snapshot = yield get_state
    if _has_unfinished_turn(snapshot, input):
        is_new = _is_new(input, snapshot)
        try:
            state = yield partial(invoke, None)
        except InputError:  # about the message that opened the turn: it would be raised each time
            if not is_new:
                raise
        else:
            if not is_new:
                return state
        snapshot = yield get_state
    if not _is_new(input, snapshot):
        return _get_state_values(app, snapshot)
    if _answers_removed_step(input, snapshot):
        first_nodes = [target for source, target in app.builder.edges if source == START]
        for branch in app.builder.branches[START].values():
            first_nodes += [str(target) for target in branch.ends or () if target != TAKEN_OVER]
        return (yield partial(invoke, Command(goto=first_nodes)))
    _require_expected_input(input, snapshot)
    return (yield partial(invoke, input))


def _has_unfinished_turn(snapshot: StateSnapshot, input: Any) -> bool:
    """Return whether a turn broke off and has to be finished first; a turn that waits for an answer does not."""
    if snapshot.interrupts or isinstance(input, Command):
        return False
    for task in snapshot.tasks:
        # An input that was refused is in no channel, and would be refused again.
        is_refused_input = task.name == START and task.error
        # `next` leaves out tasks whose results are saved: it is empty after a crash between the last result of a
        # step and the step's checkpoint, too.
        if not is_refused_input:
            return True
    return False


def _answers_removed_step(input: Any, snapshot: StateSnapshot) -> bool:
    """Return whether an answer is for a step that the app no longer has, so that the turn would end without a reply.

    That is so if the agent was changed while a person's approval was awaited: no task waits, but calls do.
    """
    is_answer = isinstance(input, Command) and input.resume is not None
    waits_for_nothing = not snapshot.tasks and not snapshot.interrupts
    if not (is_answer and waits_for_nothing):
        return False
    messages = snapshot.values.get("messages", [])
    return bool(messages and find_unanswered_calls(messages))


def _is_new(input: Any, snapshot: StateSnapshot) -> bool:
    """Return whether the input holds anything that the thread doesn't hold already."""
    if not isinstance(input, Mapping) or not input.get("messages"):
        return input is not None
    messages = add_messages([], snapshot.values.get("messages", []))
    return add_messages(messages, input["messages"]) != messages


def _get_state_values(app: App, snapshot: StateSnapshot) -> dict[str, Any]:
    """Return the state in the form that `invoke` returns it."""
    values = {name: value for name, value in snapshot.values.items() if name in app.output_channels}
    if snapshot.interrupts:
        values["__interrupt__"] = list(snapshot.interrupts)
    return values


def _require_expected_input(input: Any, snapshot: StateSnapshot) -> None:
    """Raise InputError if an interrupt waits and the input is no answer, or the other way round."""
    is_answer = isinstance(input, Command)
    if snapshot.interrupts and not is_answer:
        raise InputError(
            "the thread waits for an answer to an interrupt: resume it with Command(resume=...), or invoke the app "
            "itself with the new message to abandon what waits"
        )
    if is_answer and input.resume is not None and not snapshot.tasks:
        raise InputError(
            "nothing waits for this answer: it was given before, or a new message abandoned the call"
        )
