"""The speaker of a chat message, and what an agent of this library notes in its messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arq_graph.agent.journey_progress import DONE_STEPS
from arq_graph.milestones.transcripts.parts import as_fields
from arq_graph.reasoning.sections import COLLEAGUE

SPEAKERS: dict[str, Any] = {
    "human": "user",
    "user": "user",
    "ai": "agent",
    "assistant": "agent",
    "model": "agent",
    "bot": "agent",
    "agent": "agent",
    "tool_calls": "agent",
    "tool_call_invocation": "agent",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "tool_call_result": "tool",
}
"""By the role or type of a message, who speaks in it."""


def get_speaker(fields: Mapping[str, Any]) -> Any:
    """Return who speaks in a message; None if its role or type isn't known.

    A person who has taken the conversation over is neither the agent nor the user, and so counts as the system.
    """
    if "response_metadata" in fields and as_fields(fields["response_metadata"]).get(COLLEAGUE):
        return "system"
    speaker = _find_speaker(fields.get("type")) if "content" in fields else None
    return speaker or _find_speaker(fields.get("role"))


def is_of_langchain(fields: Mapping[str, Any]) -> bool:
    """Return whether a message has the form of LangChain's."""
    return "content" in fields and _find_speaker(fields.get("type")) is not None


def _find_speaker(name: Any) -> Any:
    if not isinstance(name, str):
        return None
    return SPEAKERS.get(name) or SPEAKERS.get(name.removesuffix("Chunk").removesuffix("Message").lower())


def read_done_steps(fields: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the steps of journeys that were done, as agents note it in a message; None if it has no such note."""
    notes = as_fields(fields.get("response_metadata")).get(DONE_STEPS)
    if not isinstance(notes, Mapping):
        return None
    steps: list[str] = []
    for ids in notes.values():
        if isinstance(ids, list | tuple):
            steps += [id for id in ids if isinstance(id, str)]
    return tuple(steps)
