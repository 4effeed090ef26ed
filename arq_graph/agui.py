"""Front ends that speak AG-UI: a run of an app as AG-UI's events.

Nothing internal goes out, because each event is made of one of the typed events that a user may see. AG-UI's text can't
be taken back, so a partial reply that is not accepted is removed by a snapshot of the messages without it.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.types import Command, Interrupt, StateSnapshot
from pydantic_core import to_jsonable_python

from arq_graph.apps.resuming import App, require_thread, take_steps
from arq_graph.errors import InputError
from arq_graph.nodes import events
from arq_graph.nodes.agreement import AGREES_TO
from arq_graph.nodes.approval import HITLResponse

try:
    from ag_ui import core as agui
except ImportError as error:
    raise ImportError(
        'arq_graph.agui needs AG-UI\'s Python package, which is not installed: pip install "arq_graph[agui]"'
    ) from error

__all__ = ["agui_events"]

_log = logging.getLogger(__name__)

_BUTTON = "(button)"
"""The text of a message that a button sends without one; no words, since words could agree to another question."""

_RUN_FAILED = "The run failed. Please try again."
_CALL_FAILED = "The call failed."
_BLOCK_TYPES = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_SOURCE_KEYS = {"data": "base64", "url": "url", "file": "file_id"}


async def agui_events(
    app: App,
    input: agui.RunAgentInput,
    config: RunnableConfig | None = None,
    *,
    variables: Mapping[str, Any] | None = None,
    shows_tools: bool = True,
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
        **kwargs: As for `astream`; `durability="sync"` stores every finished step.

    Raises:
        InputError: The app has no checkpointer.
    """
    thread = merge_configs(config, {"configurable": {"thread_id": input.thread_id}})
    require_thread(app, thread)
    view = _ClientView(input, shows_tools)
    yield agui.RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    try:
        snapshot = await app.aget_state(thread)
        graph_input = _make_graph_input(input, snapshot.interrupts, variables)
        async with aclosing(_run_turn(app, graph_input, thread, kwargs)) as turn:
            async for event in turn:
                for agui_event in view.translate(event):
                    yield agui_event
        snapshot = await app.aget_state(thread)
    except Exception as error:
        # A client may read what it did wrong; the text of other errors is for the log.
        if isinstance(error, _RequestError) or (isinstance(error, InputError) and input.resume):
            last_events = view.fail(str(error), "InputError")
        else:
            _log.exception("the run %s failed", input.run_id)
            last_events = view.fail(_RUN_FAILED, type(error).__name__)
    else:
        last_events = view.finish(snapshot)
    for agui_event in last_events:
        yield agui_event


class _RequestError(InputError):
    """The client's request cannot be served; the message is for the client."""


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


# --- what comes in


def _make_graph_input(
    input: agui.RunAgentInput, interrupts: Sequence[Interrupt], variables: Mapping[str, Any] | None
) -> Any:
    """Return the app's input: the user's new messages, or the answers to the interrupts."""
    if input.tools or input.context:
        message = "`tools` and `context` of AG-UI are ignored: the agent has those of its specification"
        warnings.warn(message, stacklevel=2)
    if input.resume:
        return Command(resume=_make_answers(input.resume, interrupts))
    if interrupts:
        ids = ", ".join(interrupt.id for interrupt in interrupts)
        raise _RequestError(f"the thread waits for answers to {ids}: send them as `resume`")
    graph_input: dict[str, Any] = {"messages": _make_messages(input)}
    if variables:
        graph_input["variables"] = dict(variables)
    return graph_input


def _make_answers(resume: Sequence[agui.ResumeEntry], interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    requests = {interrupt.id: _get_requests(interrupt) for interrupt in interrupts}
    answers: dict[str, Any] = {}
    for entry in resume:
        id = entry.interrupt_id
        if id not in requests:
            raise _RequestError(f"`resume`: the thread waits for no answer to {id!r}")
        answers[id] = entry.payload
        if entry.status == "cancelled":
            if not requests[id]:
                raise _RequestError(f"`resume`: {id!r} cannot be cancelled, only resolved")
            answers[id] = {"decisions": [{"type": "reject"} for _ in requests[id]]}
    if missing := sorted(requests.keys() - answers):
        raise _RequestError(f"`resume` lacks answers to {', '.join(missing)}")
    return answers


def _make_messages(input: agui.RunAgentInput) -> list[HumanMessage]:
    """Return what the user has written since the last reply."""
    agrees_to = None
    if isinstance(input.forwarded_props, Mapping):
        agrees_to = input.forwarded_props.get(AGREES_TO)
    if not isinstance(agrees_to, str | None):
        raise _RequestError(f"`forwardedProps`: `{AGREES_TO}` must be a question's id, not {agrees_to!r:.60}")
    messages: list[HumanMessage] = []
    for message in input.messages:
        if isinstance(message, agui.UserMessage):
            messages.append(HumanMessage(_read_content(message), id=message.id, name=message.name))
        elif isinstance(message, agui.AssistantMessage) and message.content:
            messages = []
    if agrees_to is not None and not messages:
        messages = [HumanMessage(_BUTTON, id=f"button-{input.run_id}")]
    if not messages:
        raise _RequestError("`messages`: the user has written nothing since the last reply")
    if agrees_to is not None:
        messages[-1].additional_kwargs[AGREES_TO] = agrees_to
    return messages


def _read_content(message: agui.UserMessage) -> Any:
    if isinstance(message.content, str):
        return message.content
    blocks: list[dict[str, Any]] = []
    for part in message.content:
        if part.type == "text":
            blocks.append({"type": "text", "text": part.text})
            continue
        source: Any = getattr(part, "source", None)
        source_key = _SOURCE_KEYS.get(getattr(source, "type", ""))
        if part.type not in _BLOCK_TYPES or source_key is None:
            raise _RequestError(f"`messages`: {message.id!r} has a part of the unknown kind {part.type!r}")
        block = {"type": _BLOCK_TYPES[part.type], source_key: source.value}
        if source.mime_type:
            block["mime_type"] = source.mime_type
        blocks.append(block)
    return blocks


# --- what goes out


class _ClientView:
    """The client's view of the run: its messages with those of this run, its state, and the part of a reply."""

    def __init__(self, input: agui.RunAgentInput, shows_tools: bool) -> None:
        self._messages: list[Any] = list(input.messages)
        self._run_ids = {"thread_id": input.thread_id, "run_id": input.run_id}
        self._state = dict(input.state) if isinstance(input.state, Mapping) else {}
        self._shows_tools = shows_tools
        self._replies: list[str] = []
        self._partial_id = ""
        self._partial_text = ""
        self._revision: int | None = None
        self._received_text = ""

    def translate(self, event: Any) -> Iterator[agui.BaseEvent]:
        """Yield the AG-UI events for an event; none if it isn't one of this library's, or not for the user."""
        match event:
            case events.ReplyDelta():
                yield from self._add_delta(event)
            case events.ReplySent():
                yield from self._show_reply(event.content)
            case events.ConfirmationAsked():
                calls = [{"tool": call.tool, "arguments": call.arguments} for call in event.calls]
                value = {"id": event.id, "question": event.question, "calls": calls}
                yield agui.CustomEvent(name=event.type, value=to_jsonable_python(value, fallback=str))
            case events.ToolCalled() if self._shows_tools:
                yield from self._show_call(event)
            case events.ProgressMade():
                fields = {"journey", "reached", "goal_completed", "progress_rate", "progress_range"}
                self._state["progress"] = event.progress.model_dump(mode="json", include=fields)
                yield agui.StateSnapshotEvent(snapshot=dict(self._state))

    def fail(self, message: str, code: str) -> Iterator[agui.BaseEvent]:
        """End the run with an error."""
        yield from self._take_back()
        yield agui.RunErrorEvent(message=message, code=code)

    def finish(self, snapshot: StateSnapshot) -> Iterator[agui.BaseEvent]:
        """End the run, with the thread's last reply if no event had it, or with what the thread waits for."""
        messages = snapshot.values.get("messages")
        last = messages[-1] if messages else None
        interrupts = [_make_interrupt(interrupt) for interrupt in snapshot.interrupts]
        if isinstance(last, AIMessage) and not interrupts and last.text not in self._replies:
            yield from self._show_reply(last.text)
        yield from self._take_back()
        outcome = None
        if interrupts:
            yield agui.MessagesSnapshotEvent(messages=list(self._messages))
            outcome = agui.RunFinishedInterruptOutcome(interrupts=interrupts)
        yield agui.RunFinishedEvent(**self._run_ids, outcome=outcome)

    def _add_delta(self, event: events.ReplyDelta) -> Iterator[agui.BaseEvent]:
        if event.revision != self._revision:
            yield from self._take_back()
            self._revision = event.revision
        self._received_text += event.text
        # White space at its end may not be part of the accepted reply.
        yield from self._write(self._received_text.strip())

    def _show_reply(self, content: str) -> Iterator[agui.BaseEvent]:
        if not content:
            return
        if not content.startswith(self._partial_text):
            yield from self._take_back()
        yield from self._write(content)
        yield agui.TextMessageEndEvent(message_id=self._partial_id)
        self._messages.append(agui.AssistantMessage(id=self._partial_id, content=content))
        self._replies.append(content)
        self._partial_id = self._partial_text = self._received_text = ""

    def _take_back(self) -> Iterator[agui.BaseEvent]:
        """Remove a partial reply."""
        if self._partial_id:
            yield agui.TextMessageEndEvent(message_id=self._partial_id)
            yield agui.MessagesSnapshotEvent(messages=list(self._messages))
        self._partial_id = self._partial_text = self._received_text = ""

    def _write(self, text: str) -> Iterator[agui.BaseEvent]:
        """Write what a text adds to the partial reply."""
        new_text = text[len(self._partial_text) :]
        if not new_text:
            return
        if not self._partial_id:
            self._partial_id = str(uuid4())
            yield agui.TextMessageStartEvent(message_id=self._partial_id, role="assistant")
        yield agui.TextMessageContentEvent(message_id=self._partial_id, delta=new_text)
        self._partial_text = text

    def _show_call(self, event: events.ToolCalled) -> Iterator[agui.BaseEvent]:
        message_id, result_id = str(uuid4()), str(uuid4())
        id = str(uuid4())  # a provider's id may occur twice in a thread
        arguments = json.dumps(event.arguments, ensure_ascii=False, default=str)
        # The text of an error is for the model: it may hold anything.
        result = event.result if event.status == "success" else _CALL_FAILED
        yield agui.ToolCallStartEvent(
            tool_call_id=id, tool_call_name=event.tool, parent_message_id=message_id
        )
        yield agui.ToolCallArgsEvent(tool_call_id=id, delta=arguments)
        yield agui.ToolCallEndEvent(tool_call_id=id)
        yield agui.ToolCallResultEvent(message_id=result_id, tool_call_id=id, content=result, role="tool")
        call = agui.ToolCall(id=id, function=agui.FunctionCall(name=event.tool, arguments=arguments))
        self._messages.append(agui.AssistantMessage(id=message_id, tool_calls=[call]))
        self._messages.append(agui.ToolMessage(id=result_id, content=result, tool_call_id=id))


def _make_interrupt(interrupt: Interrupt) -> agui.Interrupt:
    descriptions = [str(request.get("description") or "") for request in _get_requests(interrupt)]
    message = "\n\n".join(filter(None, descriptions))
    if isinstance(interrupt.value, str):
        message = interrupt.value
    return agui.Interrupt(
        id=interrupt.id,
        reason="input_required",
        message=message or None,
        response_schema=HITLResponse.model_json_schema() if descriptions else None,
        metadata={"request": to_jsonable_python(interrupt.value, fallback=str)},
    )


def _get_requests(interrupt: Interrupt) -> Sequence[Mapping[str, Any]]:
    """Return the calls that an interrupt in LangChain's shape asks about; none of another interrupt."""
    value = interrupt.value if isinstance(interrupt.value, Mapping) else {}
    requests = value.get("action_requests")
    return [request for request in requests or () if isinstance(request, Mapping)]
