"""Playing a user: saying its wishes one after the other, and answering what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.sections import Prompt
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.wording import joined, sentence
from arq_graph.models.offline.words import in_words, overlap, stems

_SPEAKS_OF = 0.6
_MOST_ANSWERS = 2


def play_user(prompt: Prompt) -> dict[str, Any]:
    """What the user says next, from the sections `wishes`, `known`, `closing` and `talk`."""
    message = _Scene(prompt).message()
    return {
        "message": message or "Exit.",
        "finished": not message,
        "one_message_of_the_user": True,
        "tells_what_is_not_known": False,
    }


@dataclass(frozen=True)
class _Scene:
    prompt: Prompt

    def message(self) -> str:
        """The next message; empty where there is nothing more to say."""
        closing = str(self.prompt.sections.get("closing") or "")
        if (dialogue.takes_leave(self._last) and self._said) or (closing and closing in self._said):
            return ""
        answer = self._answer()
        if answer and self._said.count(answer) < _MOST_ANSWERS:
            return answer
        return next((wish for wish in self._requests if wish not in self._said), closing)

    @cached_property
    def _said(self) -> list[str]:
        return [str(entry.get("text")) for entry in self._talk if entry.get("from") == "you"]

    @cached_property
    def _last(self) -> str:
        last = self._talk[-1] if self._talk else {}
        return str(last.get("text")) if last.get("from") == "agent" else ""

    @cached_property
    def _talk(self) -> list[dict[str, Any]]:
        return self.prompt.entries("talk")

    @cached_property
    def _requests(self) -> list[str]:
        return [str(wish["request"]) for wish in self.prompt.entries("wishes") if wish.get("request")]

    def _answer(self) -> str:
        question = dialogue.question_in(self._last)
        if not question or not self._said:
            return ""
        wishes = self.prompt.entries("wishes")
        spoken = [wish for wish in wishes if wish.get("request") in self._said]
        for wish in reversed(spoken):
            for topic, said in _mapping(wish.get("answers")).items():
                if overlap(topic, question) >= _SPEAKS_OF:
                    return str(said)
        known = [_mapping(wish.get("slots")) for wish in reversed(spoken)] + [
            _mapping(self.prompt.sections.get("known"))
        ]
        for facts in known:
            if told := list(_told(facts, question)):
                return sentence(joined(told))
        if any(overlap(question, str(wish.get("request"))) >= _SPEAKS_OF for wish in spoken):
            return "Yes, please."
        return "I am not sure." if not any(known) else "I do not know that."


def _told(facts: dict[str, Any], question: str) -> Iterator[str]:
    for name, value in facts.items():
        is_named = Wanted(name).objects <= stems(question)
        if is_named or overlap(in_words(name), question) >= _SPEAKS_OF:
            yield f"the {in_words(name)} is {value}"


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
