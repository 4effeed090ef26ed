"""Short ways to make a conversation in a test."""

from typing import Any

from arq_graph.milestones import Call, Message, Result, Transcript


def user(text: str) -> list[Any]:
    return [Message("user", text)]


def agent(text: str) -> list[Any]:
    return [Message("agent", text)]


def called(tool: str, result: str = "ok", **arguments: Any) -> list[Any]:
    """Return a call and its result: two events."""
    return [Call(tool, arguments), result]


def conversation(*parts: list[Any], **fields: Any) -> Transcript:
    """Return a transcript of these parts, one after the other; a text after a call is its result."""
    events: list[Any] = []
    for part in parts:
        for event in part:
            if isinstance(event, str):
                call = events[-1]
                assert isinstance(call, Call)
                events.append(Result(len(events), call.tool, event))
            else:
                events.append(event)
    return Transcript(tuple(events), **fields)
