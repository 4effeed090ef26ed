"""The messages of one turn: what an app answered, and what it asked the user on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from arq_graph.errors import InputError


class Turn:
    """The messages of one turn: what the app did, and in between what it asked the user, each once.

    An app that asks within its turn may keep question and answer among its messages, or not.
    """

    def __init__(self, messages: list[BaseMessage], opening: HumanMessage) -> None:
        messages.append(opening)
        self.opening = opening
        self.has_asked = False
        self._messages = messages
        self._begins = len(messages)  # here stands what the app did since the user spoke last
        self._new: list[BaseMessage] = []
        self._told = 0  # so many of the app's messages stand before that
        self._unsaid: list[str] = []  # questions that the app may still say among its messages
        self._still = self._unsaid

    def take(self, new: list[BaseMessage]) -> None:
        """What the app did since the turn began."""
        self._new, self._still = new, list(self._unsaid)
        self._messages[self._begins :] = [each for each in new[self._told :] if not self._is_known(each)]

    def ask(self, spoken: str) -> None:
        """The app asks the user something."""
        self.has_asked = True
        self._unsaid = self._still
        if not _says(self._messages[-1], spoken):
            self._messages.append(AIMessage(spoken))
            self._unsaid = [*self._still, spoken]

    def answer(self, text: str) -> None:
        """The user answers what was asked last."""
        self._messages.append(HumanMessage(text))
        self._begins, self._told, self._still = len(self._messages), len(self._new), self._unsaid

    def _is_known(self, message: BaseMessage) -> bool:
        asked = next((each for each in self._still if _says(message, each)), None)
        if asked is not None:
            self._still.remove(asked)
        return asked is not None or (self.has_asked and message.type == "human")


def _says(message: BaseMessage, spoken: str) -> bool:
    is_speech = message.type == "ai" and not getattr(message, "tool_calls", None)
    return is_speech and message.text.strip() == spoken.strip()


def new_messages(answer: Any, opening: HumanMessage) -> list[BaseMessage]:
    """What came after the message that a turn began with; all, where the app gives only what is new.

    Raises:
        InputError: The answer is neither `{"messages": […]}`, nor messages, nor text.
    """
    held = answer.get("messages") if isinstance(answer, Mapping) else answer
    if not isinstance(held, str | BaseMessage | Sequence):
        raise InputError(
            f"the app answered with {type(answer).__name__}; it must give {{'messages': […]}}, messages, or text"
        )
    listed = [AIMessage(held)] if isinstance(held, str) else [held] if isinstance(held, BaseMessage) else held
    try:
        messages = convert_to_messages(listed)
    except Exception as error:
        raise InputError(f"the app answered with messages that are none: {error}") from error
    same_id = [at for at, each in enumerate(messages) if each.id == opening.id]
    same_words = [
        at for at, each in enumerate(messages) if each.type == "human" and each.text == opening.text
    ]
    openings = same_id or same_words
    return messages[openings[-1] + 1 :] if openings else messages
