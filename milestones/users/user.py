"""A user in a conversation: what it says next, and when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.spec import Deviation, UserSpec

EXIT = "Exit."
"""What a user says who has nothing left to say (ReSpAct, E.4); it is not sent to the agent."""

_DEVIATIONS: tuple[Deviation, ...] = ("off_topic", "incorrect", "partial", "asr")


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What a user says.

    Args:
        text: The words.
        ends: The conversation is over: the words are `Exit.`, and nothing is sent to the agent.
        deviation: How the words depart from the happy path; None where they do not.
    """

    text: str
    ends: bool = False
    deviation: Deviation | None = None


class User(Protocol):
    """A user of one conversation. Each conversation needs one of its own."""

    def speak(self, said: Sequence[Message]) -> UserTurn:
        """What the user says next.

        Args:
            said: The messages of user and agent so far, oldest first; none of them asks for the opening.
        """
        ...

    async def aspeak(self, said: Sequence[Message]) -> UserTurn:
        """What the user says next; all is as in `speak`."""
        ...


def last_words(said: Sequence[Message]) -> str:
    """What the agent said since the user last spoke."""
    words: list[str] = []
    for message in reversed(said):
        if message.speaker == "user":
            break
        if message.speaker == "agent" and message.text.strip():
            words.insert(0, message.text)
    return "\n".join(words)


def drawn_deviation(spec: UserSpec, seed: int, turn: int) -> Deviation | None:
    """How a turn departs from the happy path, by chance; the first one only through the recogniser of speech."""
    for kind in _DEVIATIONS if turn > 1 else _DEVIATIONS[-1:]:
        if Random(f"{seed}/deviation/{kind}/{turn}").random() < spec.deviations.get(kind, 0.0):
            return kind
    return None
