"""Reads what a client of AG-UI sends: the user's new messages, a button's question, or the answers to interrupts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui import core as agui
from langchain_core.messages import HumanMessage
from langgraph.types import Command, Interrupt

from arq_graph.errors import InputError
from arq_graph.nodes.agreement import AGREES_TO

_BUTTON = "(button)"
"""The text of a message that a button sends without one; no words, since words could agree to another question."""

_BLOCK_TYPES = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_SOURCE_KEYS = {"data": "base64", "url": "url", "file": "file_id"}


class RequestError(InputError):
    """The client's request cannot be served; the message is for the client."""


def make_graph_input(
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
        raise RequestError(f"the thread waits for answers to {ids}: send them as `resume`")
    graph_input: dict[str, Any] = {"messages": _make_messages(input)}
    if variables:
        graph_input["variables"] = dict(variables)
    return graph_input


def _make_answers(resume: Sequence[agui.ResumeEntry], interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    requests = {interrupt.id: get_requests(interrupt) for interrupt in interrupts}
    answers: dict[str, Any] = {}
    for entry in resume:
        id = entry.interrupt_id
        if id not in requests:
            raise RequestError(f"`resume`: the thread waits for no answer to {id!r}")
        answers[id] = entry.payload
        if entry.status == "cancelled":
            if not requests[id]:
                raise RequestError(f"`resume`: {id!r} cannot be cancelled, only resolved")
            answers[id] = {"decisions": [{"type": "reject"} for _ in requests[id]]}
    if missing := sorted(requests.keys() - answers):
        raise RequestError(f"`resume` lacks answers to {', '.join(missing)}")
    return answers


def _make_messages(input: agui.RunAgentInput) -> list[HumanMessage]:
    """Return what the user has written since the last reply."""
    agrees_to = None
    if isinstance(input.forwarded_props, Mapping):
        agrees_to = input.forwarded_props.get(AGREES_TO)
    if not isinstance(agrees_to, str | None):
        raise RequestError(f"`forwardedProps`: `{AGREES_TO}` must be a question's id, not {agrees_to!r:.60}")
    messages: list[HumanMessage] = []
    for message in input.messages:
        if isinstance(message, agui.UserMessage):
            messages.append(HumanMessage(_read_content(message), id=message.id, name=message.name))
        elif isinstance(message, agui.AssistantMessage) and message.content:
            messages = []
    if agrees_to is not None and not messages:
        messages = [HumanMessage(_BUTTON, id=f"button-{input.run_id}")]
    if not messages:
        raise RequestError("`messages`: the user has written nothing since the last reply")
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
            raise RequestError(f"`messages`: {message.id!r} has a part of the unknown kind {part.type!r}")
        block = {"type": _BLOCK_TYPES[part.type], source_key: source.value}
        if source.mime_type:
            block["mime_type"] = source.mime_type
        blocks.append(block)
    return blocks


def get_requests(interrupt: Interrupt) -> Sequence[Mapping[str, Any]]:
    """Return the calls that an interrupt in LangChain's shape asks about; none of another interrupt."""
    value = interrupt.value if isinstance(interrupt.value, Mapping) else {}
    requests = value.get("action_requests")
    return [request for request in requests or () if isinstance(request, Mapping)]
