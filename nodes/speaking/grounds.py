"""What an argument may rest on, found by code: somebody said it, and the customer agreed or does not care.

Values are looked for as the measure looks for invented ones. What customers say is read as everyday English: a plain
no is one whatever the model says, and where code cannot tell, the model's word is taken.
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
from arq_graph.reasoning.sections import as_json

_WORDS = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_NO = re.compile(
    r"\W*(?:(?:oh|um|hm+|well|sorry|actually|wait)\W+)*"
    r"(?:no(?!\W+(?:problem|worries|doubt))|nope|nah|never|not\b|stop|wait|cancel that|hold on|don['’]?t(?! mind)"
    r"|do not(?! mind)|please (?:don['’]?t|do not)|(?:i|we)(?:['’]d| would)? (?:do(?: not|n['’]t)(?! mind)"
    r"|rather not|changed my mind))\b",
    re.IGNORECASE,
)
_YES = re.compile(
    r"\W*(?:(?:oh|um|hm+|well|ok(?:ay)?|great|perfect|thanks|thank you)\W+)*"
    r"(?:yes|yep|yeah|yup|sure|ok(?:ay)?|please do|go ahead|do it|correct|right|exactly|of course|confirmed?"
    r"|absolutely|certainly|that['’]?s (?:right|correct|fine)|sounds good|i (?:agree|confirm))\b",
    re.IGNORECASE,
)
_PLAIN_YES = re.compile(
    r"\W*(?:yes|yep|yeah|yup|please do|go ahead|do it|i confirm|confirmed?)\b", re.IGNORECASE
)
_AGAINST = re.compile(
    r"\b(?:no(?! (?:problem|worries|doubt|rush))|(?<!why )not|don['’]?t(?! (?:mind|worry))|do not(?! (?:mind|worry))"
    r"|but|wait|stop|never|hold on|instead|rather)\b",
    re.IGNORECASE,
)
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

    @property
    def _customer_texts(self) -> list[str]:
        return [line.message.text for line in self.conversation.lines if line.speaker == "customer"]


def unsaid(tool: str, arguments: Mapping[str, Any], texts: Iterable[str]) -> list[str]:
    """The names of the arguments with a value that none of the texts says.

    True, false and null are decisions, not values. Several words without a digit need not stand together; a
    reference, a number or a date must be there as one.
    """
    grounding = Grounding()
    words: set[str] = set()
    for text in texts:
        grounding.hear(Message("user", text))
        words.update(_words(text))
    found = []
    for name, value in arguments.items():
        paths = grounding.invented(Call(tool, {name: value}))
        if paths and not _is_put_together(value, words):
            found.append(name)
    return found


def _is_put_together(value: Any, words: set[str]) -> bool:
    own = _words(value) if isinstance(value, str) else []
    return len(own) > 1 and not _DIGIT.search(value) and words.issuperset(own)


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())


def refuses(text: str) -> bool:
    """Whether a message is no agreement, as far as English words tell: a no, a yes with a but, a question instead."""
    if _YES.match(text):
        return not agrees(text)
    return not text.strip() or _NO.match(text) is not None or "?" in text


def agrees(text: str) -> bool:
    """Whether a message begins with a yes and takes nothing of it back, as far as English words tell.

    Beside a question of the customer's own, "ok" and "right" are no yes yet.
    """
    if not _YES.match(text) or _AGAINST.search(text):
        return False
    return "?" not in text or _PLAIN_YES.match(text) is not None


def in_words(arguments: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Arguments as a customer reads them."""
    return ", ".join(
        f"{labels.get(name, name)}: {value if isinstance(value, str) else as_json(value)}"
        for name, value in arguments.items()
        if value is not None
    )
