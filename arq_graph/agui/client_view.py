"""A client's view of a run: its messages and its state, and the events that change them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from ag_ui import core as agui
from langchain_core.messages import AIMessage
from langgraph.types import Interrupt, StateSnapshot
from pydantic_core import to_jsonable_python

from arq_graph.agui.request import get_requests
from arq_graph.nodes import events
from arq_graph.nodes.approval import HITLResponse

_CALL_FAILED = "The call failed."


class ClientView:
    """The client's view of the run: its messages with those of this run, its state, and the part of a reply."""

    def __init__(self, input: agui.RunAgentInput, *, shows_tools: bool, shows_internals: bool) -> None:
        self._messages: list[Any] = list(input.messages)
        self._run_ids = {"thread_id": input.thread_id, "run_id": input.run_id}
        self._state = dict(input.state) if isinstance(input.state, Mapping) else {}
        self._shows_tools = shows_tools
        self._shows_internals = shows_internals
        self._replies: list[str] = []
        self._partial_id = ""
        self._partial_text = ""
        self._revision: int | None = None
        self._received_text = ""

    def translate(self, event: Any) -> Iterator[agui.BaseEvent]:
        """Yield the AG-UI events for an event; none if it isn't one of this library's, or not for the user."""
        if self._shows_internals and isinstance(event, events.Event):
            yield from _show_internals(event)
        match event:
            case events.ReplyDelta():
                yield from self._add_delta(event)
            case events.ReplySent():
                yield from self._show_reply(event.content)
            case events.HandedOver() if not self._shows_internals:
                yield agui.CustomEvent(name=event.type, value={})  # who, why and what was done are internal
            case events.ConfirmationAsked() if not self._shows_internals:
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


def _show_internals(event: events.Event) -> Iterator[agui.BaseEvent]:
    """Yield an event with all its fields; a delta is in the text anyway."""
    if not isinstance(event, events.ReplyDelta):
        value = to_jsonable_python(event, fallback=str)
        yield agui.CustomEvent(name=event.type, value=value)  # type: ignore[attr-defined]


def _make_interrupt(interrupt: Interrupt) -> agui.Interrupt:
    descriptions = [str(request.get("description") or "") for request in get_requests(interrupt)]
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
