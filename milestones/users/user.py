"""A user in a conversation: what it says next, and when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.spec import Deviation, UserSpec

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig

    from arq_graph.reasoning.reasoner import Reasoner

EXIT = "Exit."
"""What a user says who has nothing left to say (ReSpAct, E.4); it is not sent to the agent."""


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What a user says.

    Args:
        text: The words.
        ends: The conversation is over: the words are `Exit.`, and nothing is sent to the agent.
        intent: The intent that it is about: its index from 0; None for what belongs to none, and where
            a model plays.
        deviation: How the words depart from the happy path; None where they do not.
    """

    text: str
    ends: bool = False
    intent: int | None = None
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


def make_user(
    spec: UserSpec,
    *,
    seed: int,
    model: BaseChatModel | str | Reasoner | None = None,
    template: str | Path | None = None,
    config: RunnableConfig | None = None,
) -> User:
    """A user for one conversation.

    Args:
        spec: Who it is.
        seed: What chance depends on: the same seed and the same words of the agent give the same user.
        model: Who plays it: a chat model, a model string or a `Reasoner`. None: an `AgendaUser`, which needs none.
        template: A replacement for the shipped prompt, where a model plays.
        config: LangChain's configuration of the model's runs, such as callbacks that count them.

    Raises:
        InputError: The model is none.
        PromptError: The template cannot be read or lacks a block.
    """
    if model is None:
        from arq_graph.milestones.users.agenda import AgendaUser

        return AgendaUser(spec, seed=seed)
    from arq_graph.milestones.users.simulated import SimulatedUser

    return SimulatedUser(spec, model, seed=seed, template=template, config=config)


def last_words(said: Sequence[Message]) -> str:
    """What the agent said since the user last spoke."""
    words: list[str] = []
    for message in reversed(said):
        if message.speaker == "user":
            break
        if message.speaker == "agent" and message.text.strip():
            words.insert(0, message.text)
    return "\n".join(words)
