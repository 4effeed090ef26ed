"""The messages of one turn: what an app answered, and what it asked the user on the way."""

from __future__ import annotations

from collections.abc import Mapping
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
        self._taken = 0
        self._unsaid: list[str] = []  # questions that the app may still say among its messages

    def take(self, new: list[BaseMessage]) -> None:
        """What the app did since the turn began; what is new of it is added."""
        for message in new[self._taken :]:
            if asked := [each for each in self._unsaid if _says(message, each)]:
                self._unsaid.remove(asked[0])
            elif not (self.has_asked and message.type == "human"):
                self._messages.append(message)
        self._taken = len(new)

    def ask(self, spoken: str) -> None:
        """The app asks the user something."""
        self.has_asked = True
        if not _says(self._messages[-1], spoken):
            self._messages.append(AIMessage(spoken))
            self._unsaid.append(spoken)

    def answer(self, text: str) -> None:
        """The user answers what was asked last."""
        self._messages.append(HumanMessage(text))


def _says(message: BaseMessage, spoken: str) -> bool:
    is_speech = message.type == "ai" and not getattr(message, "tool_calls", None)
    return is_speech and message.text.strip() == spoken.strip()


def new_messages(answer: Any, opening: HumanMessage) -> list[BaseMessage]:
    """What came after the message that a turn began with; all, where the app gives only what is new.

    Raises:
        InputError: The answer is neither `{"messages": […]}`, nor messages, nor text.
    """
    held = answer.get("messages") if isinstance(answer, Mapping) else answer
    listed: Any = (
        held if isinstance(held, list | tuple) else [AIMessage(held) if isinstance(held, str) else held]
    )
    try:
        messages = convert_to_messages(listed)
    except Exception as error:
        raise InputError(
            f"the app answered with {held!r:.80}; it must give {{'messages': […]}}, messages, or text"
        ) from error
    same_id = [at for at, each in enumerate(messages) if each.id == opening.id]
    same_words = [
        at for at, each in enumerate(messages) if each.type == "human" and each.text == opening.text
    ]
    openings = same_id or same_words
    return messages[openings[-1] + 1 :] if openings else messages
