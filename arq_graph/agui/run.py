"""Run a turn of an app, and yield it as AG-UI's events."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from ag_ui import core as agui
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from arq_graph.agui.client_view import ClientView
from arq_graph.agui.request import RequestError, make_graph_input
from arq_graph.apps.resuming import App, require_thread, take_steps
from arq_graph.errors import InputError, describe_error

_log = logging.getLogger("arq_graph.agui")

_RUN_FAILED = "The run failed. Please try again."


async def agui_events(
    app: App,
    input: agui.RunAgentInput,
    config: RunnableConfig | None = None,
    *,
    variables: Mapping[str, Any] | None = None,
    shows_tools: bool = True,
    shows_internals: bool = False,
    **kwargs: Any,
) -> AsyncGenerator[agui.BaseEvent, None]:
    """Run a turn, and yield it as AG-UI's events.

    The thread is that of the input's `thread_id`. It holds the conversation, so of the input's messages only those are
    read that the user has written since the last reply. A turn that a crash left unfinished is finished first, and a
    request that is sent again gets the reply that the thread holds, as with `resume_or_invoke`.

    A button that agrees to code's question sends the question's id as `agrees_to` in `forwarded_props`; the answers to
    interrupts come in `resume`. If the run fails, the last event is a `RUN_ERROR` that says no more than that, and
    the error is logged. A client that leaves ends the run; the thread's next request finishes the turn.

    Args:
        app: A compiled graph with a checkpointer that works without blocking.
        input: The request. Check before that its `thread_id` is one of the user's own.
        config: As for `astream`.
        variables: Values of the agent's variables that are `settable`.
        shows_tools: False leaves out the calls of tools, with their results.
        shows_internals: True is for the agent's developers. Each event of `arq_graph.nodes.events` but `ReplyDelta`
            also comes as a `CUSTOM` event with its type as name and all its fields as value, before what a user sees
            of it, and a `RUN_ERROR` has the error's text.
        **kwargs: As for `astream`; `durability="sync"` stores every finished step.

    Raises:
        InputError: The app has no checkpointer.
    """
    thread = merge_configs(config, {"configurable": {"thread_id": input.thread_id}})
    require_thread(app, thread)
    view = ClientView(input, shows_tools=shows_tools, shows_internals=shows_internals)
    yield agui.RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    try:
        snapshot = await app.aget_state(thread)
        graph_input = make_graph_input(input, snapshot.interrupts, variables)
        async with aclosing(_run_turn(app, graph_input, thread, kwargs)) as turn:
            async for event in turn:
                for agui_event in view.translate(event):
                    yield agui_event
        snapshot = await app.aget_state(thread)
    except Exception as error:
        # A client may read what it did wrong; the text of other errors is for the log.
        if isinstance(error, RequestError) or (isinstance(error, InputError) and input.resume):
            last_events = view.fail(str(error), "InputError")
        else:
            _log.exception("the run %s failed", input.run_id)
            message = describe_error(error) if shows_internals else _RUN_FAILED
            last_events = view.fail(message, type(error).__name__)
    else:
        last_events = view.finish(snapshot)
    for agui_event in last_events:
        yield agui_event


@dataclass(frozen=True)
class _Invocation:
    """A request of `take_steps` to run the app with an input."""

    input: Any


async def _run_turn(
    app: App, graph_input: Any, config: RunnableConfig, kwargs: Mapping[str, Any]
) -> AsyncGenerator[Any, None]:
    """Yield what the app writes to `stream_mode="custom"` while it does what `resume_or_invoke` does."""
    steps = take_steps(app, graph_input, partial(app.aget_state, config), _Invocation)
    result: Any = None
    error: Exception | None = None
    while True:
        try:
            call = steps.throw(error) if error else steps.send(result)
        except StopIteration:
            return
        result = error = None
        request = call()
        try:
            if isinstance(request, _Invocation):
                stream: Any = app.astream(request.input, config, stream_mode="custom", **kwargs)
                async with aclosing(stream):
                    async for event in stream:
                        yield event
            else:
                result = await request
        except Exception as raised:
            error = raised
