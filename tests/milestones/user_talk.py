"""A conversation between a simulated user and an agent that says what it is told to."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.spec import UserSpec, read_user
from arq_graph.milestones.users.user import User, UserTurn, make_user

SHOP: dict[str, Any] = {
    "intents": [
        {
            "request": "Where is my order?",
            "slots": {"order_id": "ORD-1002"},
            "answers": {"expedited shipping": "Expedited is fine with me."},
        },
        {
            "request": "I also want to return a jacket.",
            "slots": {"order_id": "ORD-2417", "reason": "it is too small"},
            "fallback": "Then please exchange it for a larger one.",
        },
    ],
    "knowledge": {"email": "ann.lee@example.org", "phone": "555-0187"},
}
CLINIC: dict[str, Any] = {
    "intents": [
        {
            "request": "I would like to book an appointment.",
            "slots": {
                "doctor": "Dr. Weber",
                "date": "2030-05-06",
                "time": "10:30",
                "patient_name": "Ann Lee",
                "insured": True,
            },
            "fallback": "Any other doctor will do.",
        }
    ]
}
LIBRARY: dict[str, Any] = {
    "intents": [
        {
            "request": "I want to renew a book.",
            "slots": {"card_number": "88213", "title": "The Left Hand of Darkness", "weeks": 3},
            "refuses": ["reminder by mail"],
        }
    ],
    "synonyms": {"card_number": ["membership"], "title": ["which book"]},
}


def spec(domain: dict[str, Any], **changes: Any) -> UserSpec:
    """A user of that domain, with changes."""
    return read_user({**domain, **changes})


def talk(user: User, *agent: str, then: str | None = None, most: int = 80) -> list[UserTurn]:
    """What the user says to an agent that says these lines, and then one line for ever; without: until they end."""
    lines: Iterable[str] = chain(agent, repeat(then)) if then is not None else agent
    said: list[Message] = []
    turns = [user.speak(said)]
    for line in lines:
        if turns[-1].ends or len(turns) > most:
            break
        said += [Message("user", turns[-1].text), Message("agent", line)]
        turns.append(user.speak(said))
    return turns


def answer_to(question: str, domain: dict[str, Any], *, seed: int = 0, **changes: Any) -> str:
    """What a user of that domain answers to the agent's first words."""
    return talk(make_user(spec(domain, **changes), seed=seed), question)[-1].text
