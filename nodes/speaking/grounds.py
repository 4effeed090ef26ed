"""What an argument may rest on, found by code: somebody said it, or the customer does not care.

Values are looked for as the measure looks for invented ones. What customers say is read as everyday English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.transcript import Call, Message
from arq_graph.reasoning.conversation import Conversation

_WORDS = re.compile(r"[^\W_]+")
_LONG_WORD = 4
# Between a value and a script that is written without spaces: "注文A-1を" says A-1.
_SCRIPT = r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_UNSPACED = re.compile(rf"(?<={_SCRIPT})(?=[0-9A-Za-z])|(?<=[0-9A-Za-z])(?={_SCRIPT})")
_MINUS = re.compile(r"[-−–]\s*[.\d]|\b(?:minus|negative|below)\b", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
# Numbers that belong together: a date, a time of day, a reference.
_JOINED = re.compile(r"\d+(?:[-/:]\d+)+|\d+\.\d+\.\d+")
_PARTS_OF_TIME = frozenset(("year", "month", "week", "day", "date", "time", "hour", "minute", "second"))
_DONT_CARE = re.compile(
    r"\b(?:any|anything|anywhere|anytime|whatever|whichever|either|don['’]?t (?:care|mind)|do not (?:care|mind)"
    r"|no(?: particular)? preference|doesn['’]?t matter|does not matter|not (?:important|picky)|(?:all the )?same to me"
    r"|up to you|you (?:choose|decide|pick))\b",
    re.IGNORECASE,
)
_PICK = re.compile(
    r"\b(?:just (?:pick|choose|take|book|give me)|pick (?:one|any|for me)|any (?:one )?(?:of them|will do|is fine)"
    r"|(?:you|up to you to) (?:choose|decide|pick)|choose (?:one|for me)|surprise me|whichever|first one)\b",
    re.IGNORECASE,
)
PLACEHOLDERS = ("any", "dontcare", "don't care", "do not care", "no preference", "either", "all", "*")


@dataclass(frozen=True)
class Grounds:
    """What was said and found in a conversation before a move.

    Args:
        conversation: The thread.
        known: Further texts that tell values: the profile, variables.
    """

    conversation: Conversation
    known: tuple[str, ...] = ()

    @cached_property
    def _told(self) -> list[str]:
        said = [line.message.text for line in self.conversation.lines if line.speaker in ("customer", "tool")]
        return [*self.known, *said]

    def unfounded(self, tool: str, arguments: Mapping[str, Any]) -> list[str]:
        """The arguments that hold a value which no customer and no tool has told."""
        return unsaid(tool, arguments, self._told)

    @cached_property
    def said_any_will_do(self) -> bool:
        """Whether the customer has said of something that it does not matter."""
        return any(_DONT_CARE.search(text) for text in self._customer_texts)

    @cached_property
    def told_to_pick(self) -> bool:
        """Whether the customer's last message leaves the choice to the agent."""
        line = self.conversation.last_customer_line
        return line is not None and _PICK.search(line.message.text) is not None

    def speaks_of(self, text: str) -> bool:
        """Whether the customer has said a word that begins like one of a text."""
        said = {start for each in self._customer_texts for start in beginnings(each)}
        return not said.isdisjoint(beginnings(text.replace("_", " ")))

    @property
    def _customer_texts(self) -> list[str]:
        return [line.message.text for line in self.conversation.lines if line.speaker == "customer"]


def unsaid(tool: str, arguments: Mapping[str, Any], texts: Iterable[str]) -> list[str]:
    """The names of the arguments with a value that none of the texts says.

    True, false and null are decisions, not values. Several words without a digit need not stand together; a
    reference, a number or a date must be there as one, and the 3 of "2026-03-05" is no number.
    """
    grounding, numbers = Grounding(), Grounding()
    words: set[str] = set()
    texts = [_UNSPACED.sub(" ", text) for text in texts]
    for text in texts:
        grounding.hear(Message("user", text))
        words.update(_words(text))
    if any(map(is_number, arguments.values())):  # a long conversation is not read twice for nothing
        for text in texts:
            numbers.hear(Message("user", _JOINED.sub(" ", text)))
    found = []
    for name, value in arguments.items():
        told = numbers if is_number(value) and _PARTS_OF_TIME.isdisjoint(_words(name)) else grounding
        paths = told.invented(Call(tool, {name: value}))
        if (paths and not _is_put_together(value, words)) or _lacks_its_sign(value, texts):
            found.append(name)
    return found


def beginnings(text: str) -> set[str]:
    """The first letters of the words of a text that are long enough to tell something."""
    return {word[:_LONG_WORD] for word in _words(text) if len(word) >= _LONG_WORD}


def _lacks_its_sign(value: Any, texts: Iterable[str]) -> bool:
    """Whether a number is below zero, and nobody said so."""
    return is_number(value) and value < 0 and not any(_MINUS.search(text) for text in texts)


def is_number(value: Any) -> bool:
    """Whether a value is a number: true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_put_together(value: Any, words: set[str]) -> bool:
    own = _words(value) if isinstance(value, str) else []
    return len(own) > 1 and not _DIGIT.search(value) and words.issuperset(own)


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())
