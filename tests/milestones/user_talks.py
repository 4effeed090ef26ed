"""Conversations of simulated users with an agent that has its lines."""

from typing import Any

from langchain_core.messages import AIMessage

from arq_graph.milestones import AgendaUser, UserSpec, converse

Line = str | tuple[str, ...]
"""The agent's words in a turn, in one message or in several."""

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


class ScriptedApp:
    """An app that says these lines, one a turn, and repeats the last one for ever."""

    def __init__(self, *lines: Line) -> None:
        self.lines = list(lines)

    def invoke(self, state: Any, config: Any = None) -> dict[str, Any]:
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        texts = [line] if isinstance(line, str) else line
        return {"messages": [AIMessage(text) for text in texts]}


def list_user_texts(user: Any, *lines: Line) -> list[str]:
    """Return what a user says to an agent with these lines, until the user leaves."""
    conversation = converse(ScriptedApp(*lines), user)
    return [message.text for message in conversation.messages if message.type == "human"]


def list_agenda_texts(spec: dict[str, Any], *lines: Line, seed: int = 0, **changes: Any) -> list[str]:
    """Return what an `AgendaUser` says to such an agent."""
    return list_user_texts(AgendaUser(UserSpec.model_validate(spec | changes), seed=seed), *lines)


def make_user_answer(message: str, *, finished: bool = False) -> dict[str, Any]:
    """Return an answer to all queries of `UserSpeaking`."""
    return {
        "what_the_agent_asked": [],
        "what_the_agent_got_wrong": None,
        "what_is_open": [],
        "what_i_know_of_it": [],
        "what_i_may_say": [],
        "message": message,
        "finished": finished,
        "one_message_of_the_user": True,
        "tells_what_is_not_known": False,
    }
