"""The messages of one turn of an app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from arq_graph.errors import InputError


class AppTurn:
    """Adds the messages of one turn to a conversation: the app's, and the questions that it asks within the turn.

    An app may return such a question and the user's answer among its messages, or leave them out. The conversation has
    each of them once. An app doesn't speak for the user: its other `HumanMessage`s, such as the feedback of a
    reflection node, are left out, too.
    """

    def __init__(self, messages: list[BaseMessage], user_message: HumanMessage) -> None:
        self.user_message = user_message
        self.has_questions = False
        self._messages = messages
        self._seen_count = 0  # of the messages after the user's, if the app returns those before, too
        self._unseen_questions: list[str] = []  # added already, and perhaps among the app's next messages

    def add_app_messages(self, messages: list[BaseMessage]) -> None:
        """Add what is new in the app's messages; all of them are if the user's message isn't among them."""
        user_position = self._find_user_message(messages)
        if user_position is not None:
            turn_messages = messages[user_position + 1 :]
            messages = turn_messages[self._seen_count :]
            self._seen_count = len(turn_messages)
        for message in messages:
            question = self._find_unseen_question(message)
            if question is not None:
                self._unseen_questions.remove(question)
            elif message.type != "human":
                self._messages.append(message)

    def add_question(self, text: str) -> None:
        """Add a question that the app asks the user within the turn."""
        self.has_questions = True
        if not _is_agent_text(self._messages[-1], text):
            self._messages.append(AIMessage(text))
            self._unseen_questions.append(text)

    def _find_unseen_question(self, message: BaseMessage) -> str | None:
        for text in self._unseen_questions:
            if _is_agent_text(message, text):
                return text
        return None

    def _find_user_message(self, messages: list[BaseMessage]) -> int | None:
        position_of_id = None
        position_of_text = None
        for position, message in enumerate(messages):
            if message.id == self.user_message.id:
                position_of_id = position
            if message.type == "human" and message.text == self.user_message.text:
                position_of_text = position
        return position_of_text if position_of_id is None else position_of_id


def parse_app_output(output: Any) -> list[BaseMessage]:
    """Return the messages in the output of an app.

    Raises:
        InputError: The output is neither `{"messages": […]}`, nor messages, nor a text.
    """
    content = output.get("messages") if isinstance(output, Mapping) else output
    if isinstance(content, str):
        return [AIMessage(content)]
    messages: Any = content if isinstance(content, list | tuple) else [content]
    try:
        return convert_to_messages(messages)
    except Exception as error:
        raise InputError(
            f"the app answered with {content!r:.80}; it must return {{'messages': […]}}, messages, or text"
        ) from error


def _is_agent_text(message: BaseMessage, text: str) -> bool:
    is_speech = message.type == "ai" and not getattr(message, "tool_calls", None)
    return is_speech and message.text.strip() == text.strip()
