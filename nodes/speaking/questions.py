"""Questions in a row: how many there were since something was last done, and whether one comes again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.speaking.grounds import in_words

_QUESTION = re.compile(r"[^.!?\n]*\?")
_WORD = re.compile(r"[^\W_]+")
_FILLING = frozenset({"please", "kindly", "again", "sorry", "and", "so", "then", "ok", "okay", "just"})

SPEECH = "speech"
"""Key of a message's `response_metadata` under which the speaker keeps what it knows of an utterance."""

ANSWERS = "answers"
"""Key of a message's `response_metadata`: the id of the utterance that the customer answers within a task."""


@dataclass(frozen=True)
class QuestionRow:
    """The agent's last utterances that asked something, with nothing done in between.

    Args:
        asked: Their texts, the newest first.
        limit: How many there may be.
    """

    asked: tuple[str, ...]
    limit: int

    @property
    def left(self) -> int:
        """How many more may follow."""
        return max(0, self.limit - len(self.asked))

    @cached_property
    def _before(self) -> set[str]:
        return {each for text in self.asked for each in _plain_questions(text)}

    def repeats(self, text: str) -> bool:
        """Whether a text asks again what was asked in this row, politeness and punctuation aside."""
        return not self._before.isdisjoint(_plain_questions(text))


def question_row(messages: Sequence[BaseMessage], limit: int) -> QuestionRow:
    """The questions at the end of a thread."""
    return QuestionRow(tuple(_asked(messages)), limit)


def _asked(messages: Sequence[BaseMessage]) -> Iterator[str]:
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            return
        if isinstance(message, AIMessage) and message.text:
            if not asks(message):
                return
            yield message.text


def asks(message: BaseMessage) -> bool:
    """Whether an utterance asked something: as it was labelled, or by its question mark."""
    return bool(speech_of(message).get("asks")) or "?" in message.text


def speech_of(message: BaseMessage) -> Mapping[str, Any]:
    """What the speaker knows of an utterance: its `category`, whether it `asks`, whether it `waits`."""
    kept = message.response_metadata.get(SPEECH)
    return kept if isinstance(kept, Mapping) else {}


def task_messages(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """The messages since the task was given: answers to the agent's utterances begin no new one."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, HumanMessage) and ANSWERS not in message.response_metadata:
            return messages[index:]
    return messages


def _plain_questions(text: str) -> set[str]:
    found = [match.group() for match in _QUESTION.finditer(text)] or [text]
    plain = (
        " ".join(word for word in _WORD.findall(each.casefold()) if word not in _FILLING) for each in found
    )
    return {each for each in plain if each}


def question_for(insights: Sequence[ToolInsight], labels: Mapping[str, Mapping[str, str]]) -> str | None:
    """A question that code asks where the model finds no acceptable one; None if there is nothing to ask.

    Args:
        insights: What a refused call lacks, or what has to be put to the customer.
        labels: Words for each argument, by tool.
    """
    confirm = next((insight for insight in reversed(insights) if insight.kind == "confirm"), None)
    if confirm is not None:
        given = in_words(confirm.arguments, labels.get(confirm.tool, {}))
        return (
            f"Before I go on, please confirm this: {given}. Shall I go ahead?"
            if given
            else "Shall I go ahead?"
        )
    wanted = [
        labels.get(insight.tool, {}).get(insight.argument, insight.argument).strip()
        for insight in insights
        if insight.kind in ("missing", "invalid") and insight.argument
    ]
    named = list(dict.fromkeys(wanted))
    if not named:
        return None
    listed = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    return f"To go on I need this from you: {listed}. Could you tell me?"
