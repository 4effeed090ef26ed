"""The app of a conversation, and the messages of one of its turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from arq_graph.errors import InputError

App = Any
"""An object with `invoke` or `ainvoke` that takes `{"messages": […]}` and a config, and returns messages."""


class AppTurn:
    """The messages of one turn: the app's, and the questions that it asks the user in between, each once.

    An app that asks within its turn may have question and answer among its messages, or not.
    """

    def __init__(self, messages: list[BaseMessage], user_message: HumanMessage) -> None:
        self.user_message = user_message
        self.has_questions = False
        self._messages = messages
        self._added = 0  # the number of the app's messages that have been looked at
        self._expected_questions: list[str] = []  # which may still follow among the app's messages

    def add_app_messages(self, messages: list[BaseMessage]) -> None:
        """Add what is new in the app's messages."""
        new_messages = self._after_user_message(messages)
        for message in new_messages[self._added :]:
            question = next((text for text in self._expected_questions if _says(message, text)), None)
            if question is not None:
                self._expected_questions.remove(question)
            elif not (self.has_questions and message.type == "human"):
                self._messages.append(message)
        self._added = len(new_messages)

    def add_question(self, text: str) -> None:
        """Add a question that the app asks the user within the turn."""
        self.has_questions = True
        if not _says(self._messages[-1], text):
            self._messages.append(AIMessage(text))
            self._expected_questions.append(text)

    def _after_user_message(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        """Return the messages after the user's; all of them if the app returns only new ones."""
        index_by_id = index_by_text = None
        for index, message in enumerate(messages):
            if message.id == self.user_message.id:
                index_by_id = index
            if message.type == "human" and message.text == self.user_message.text:
                index_by_text = index
        last_index = index_by_text if index_by_id is None else index_by_id
        return messages if last_index is None else messages[last_index + 1 :]


def parse_app_output(output: Any) -> list[BaseMessage]:
    """Return the messages of what an app returned.

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
            f"the app answered with {content!r:.80}; it must give {{'messages': […]}}, messages, or text"
        ) from error


def _says(message: BaseMessage, text: str) -> bool:
    is_speech = message.type == "ai" and not getattr(message, "tool_calls", None)
    return is_speech and message.text.strip() == text.strip()
