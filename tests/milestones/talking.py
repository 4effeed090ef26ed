"""Simulated users in conversation with an agent that says what it is told to."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage

from arq_graph.milestones import AgendaUser, UserSpec, converse

Line = str | tuple[str, ...]
"""What an agent says in a turn, in one message or in several."""

ORDER: dict[str, Any] = {
    "intents": [
        {
            "request": "Where is my parcel?",
            "slots": {"order_id": "ORD-1002"},
            "fallback": "Then a refund, please.",
        }
    ],
    "knowledge": {"email": "ann.lee@example.org"},
}


class Lines:
    """An app that says these lines, one a turn, and then the last one for ever."""

    def __init__(self, *lines: Line) -> None:
        self.lines = list(lines)

    def invoke(self, given: Any, config: Any = None) -> dict[str, Any]:
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        return {"messages": [AIMessage(text) for text in ([line] if isinstance(line, str) else line)]}


def talk(user: Any, *lines: Line) -> list[str]:
    """What a user says to an agent that says these lines, until the user leaves."""
    held = converse(Lines(*lines), user)
    return [message.text for message in held.messages if message.type == "human"]


def said(domain: dict[str, Any], *lines: Line, seed: int = 0, **changes: Any) -> list[str]:
    """What the user of a domain says to such an agent, without a model."""
    return talk(AgendaUser(UserSpec.model_validate(domain | changes), seed=seed), *lines)


def speaking(message: str, *, finished: bool = False, knows: bool = True) -> dict[str, Any]:
    """An answer to all queries of the blueprint."""
    known = {"what_i_know_of_it": [], "what_i_may_say": [], "tells_what_is_not_known": False}
    asked = {"what_the_agent_asked": [], "what_the_agent_got_wrong": None, "what_is_open": []}
    said = {"message": message, "finished": finished, "one_message_of_the_user": True}
    return asked | (known if knows else {"what_seems_plausible": []}) | said
