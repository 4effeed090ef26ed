"""Questions in a row: how many there were since something was last done, and whether one comes again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from arq_graph.agent.spec import FALLBACK, Agent
from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.yes import asks as asks_something

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"[^.!?。？؟\n]++[.!?。？؟]*+")
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
        last: What the agent said last, whatever was done since; empty before that.
    """

    asked: tuple[str, ...]
    limit: int
    last: str = ""

    @property
    def left(self) -> int:
        """How many more may follow."""
        return max(0, self.limit - len(self.asked))

    @cached_property
    def _before(self) -> set[str]:
        return {each for text in self.asked for each in _plain_questions(text)}

    def faults(self, text: str, *, asks: bool) -> list[str]:
        """Why a text cannot be said now: it comes again, politeness and punctuation aside, or asks too often.

        Args:
            text: The text.
            asks: Whether it asks something, or waits for an answer.
        """
        wrong = []
        if not self._before.isdisjoint(_plain_questions(text)) or _plain(text) == _plain(self.last) != "":
            wrong.append(
                "this was just asked: act on the answer, ask something else, or say what is not possible"
            )
        if asks and self.left < 1:
            wrong.append(
                f"{len(self.asked)} questions in a row are enough: act, or say how things stand without a question"
            )
        return wrong


def question_row(messages: Sequence[BaseMessage], limit: int) -> QuestionRow:
    """The questions at the end of a thread."""
    said = (m.text for m in reversed(messages) if isinstance(m, AIMessage) and m.text)
    return QuestionRow(tuple(_asked(messages)), limit, next(said, ""))


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
    return bool(speech_of(message).get("asks")) or asks_something(message.text)


def speech_of(message: BaseMessage) -> Mapping[str, Any]:
    """What the speaker knows of an utterance: its `category`, whether it `asks`, whether it `waits`."""
    kept = message.response_metadata.get(SPEECH)
    return kept if isinstance(kept, Mapping) else {}


def fallback_statement(agent: Agent) -> str:
    """The agent's fallback, or the library's where that one asks something."""
    return FALLBACK if asks_something(agent.fallback) else agent.fallback


def task_messages(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """The messages since the task was given: answers to the agent's utterances begin no new one."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, HumanMessage) and ANSWERS not in message.response_metadata:
            return messages[index:]
    return messages


def _plain_questions(text: str) -> set[str]:
    return {plain for each in _questions_in(text) if (plain := _plain(each))}


def _questions_in(text: str) -> list[str]:
    return [each for each in _SENTENCE.findall(text) if asks_something(each)] or [text]


def _plain(text: str) -> str:
    return " ".join(word for word in _WORD.findall(text.casefold()) if word not in _FILLING)


def question_for(insights: Sequence[ToolInsight], labels: Mapping[str, Mapping[str, str]]) -> str | None:
    """A question that code asks where the model finds no acceptable one; None if there is nothing to ask.

    Args:
        insights: What a refused call lacks.
        labels: Words for each argument, by tool.
    """
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
