"""Which of the things that a user knows a question asks for, and whether a message has one of them wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from arq_graph.models.offline.dates import dates_in, times_in
from arq_graph.models.offline.shapes import all_numbers, emails_in
from arq_graph.models.offline.wanted import ValueKind, Wanted
from arq_graph.models.offline.words import in_words, likeness, overlap, stem, words

ASKED_FROM = 0.6
"""From this score on, a question is taken to ask for a fact."""

_NEARLY = 0.5
_TELLING = 3
_IDENTIFIER_WORD = re.compile(
    r"\b(?:id|ids|identifier|number|no\.|nr|code|reference|ref|numbers|which|what)\b", re.IGNORECASE
)
_JUST_A_NUMBER = re.compile(
    r"(?:(?:can|could|may|please|i|you|have|give|tell|me|what|is|s|and|the|your|that|a|it|need|know|confirm|check|repeat"
    r"|id|number|code|reference|again)\b\W*)+",
    re.IGNORECASE,
)
_BY_QUESTION: tuple[tuple[ValueKind, str, float], ...] = (
    ("moment", r"when|what time|date and time", 0.7),
    ("date", r"when|(?:what|which) (?:day|date)|(?:a|the|preferred) (?:date|day)", 0.65),
    ("time", r"what time|at what hour|which time|a time|preferred time|time of day|when", 0.65),
    ("place", r"where|(?:which|what) (?:city|town|branch|location|place|address|country)", 0.65),
    (
        "person",
        r"your (?:full |first |last )?name|who am i (?:speaking|talking)|who is (?:this|it for)",
        0.75,
    ),
    ("email", r"e-?mail", 0.8),
    ("phone", r"phone|mobile|telephone|cell|(?:reach|call) you", 0.7),
    ("money", r"how much|budget|price range|what price|amount", 0.65),
    (
        "text",
        r"why|reason|what(?: is|'s)? (?:wrong|the (?:problem|issue|matter))|what happened|describe",
        0.65,
    ),
)
_PATTERNS = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.IGNORECASE), sure) for kind, words, sure in _BY_QUESTION
)
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_SHAPED = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d]+")


@dataclass(frozen=True)
class Fact:
    """Something that a user knows.

    Args:
        name: What it is called: `order_id`.
        value: The value.
        synonyms: Other words for the name.
    """

    name: str
    value: str | int | float | bool
    synonyms: tuple[str, ...] = ()

    @cached_property
    def wanted(self) -> Wanted:
        """The name, read for what sort of value it has."""
        kind = (
            "boolean" if isinstance(self.value, bool)
            else "number" if isinstance(self.value, int | float)
            else "string"
        )  # fmt: skip
        return Wanted(self.name, kind)

    @cached_property
    def label(self) -> str:
        """The name as it is said."""
        return re.sub(r"\b(id|isbn|sku|pin|url)\b", lambda match: match[0].upper(), in_words(self.name))

    @cached_property
    def text(self) -> str:
        """The value as it is said."""
        return ("yes" if self.value else "no") if isinstance(self.value, bool) else str(self.value)

    def asked_in(self, question: str) -> float:
        """How surely a question asks for it: 0 to 1."""
        phrases = (in_words(self.name), *self.synonyms)
        score = max(_met(phrase, question) for phrase in phrases)
        kind = self.wanted.kind
        if kind == "identifier":
            named = _has_all(self.wanted.objects, question)
            number = _IDENTIFIER_WORD.search(question) is not None
            score = max(score, 0.85 if named and number else 0.0)
            if _JUST_A_NUMBER.fullmatch(question.strip()):
                score = max(score, _NEARLY)
        if kind == "number" and _HOW_MANY.search(question):
            score = max(score, _NEARLY, 0.8 if _has_any(self.wanted.objects, question) else 0.0)
        for other, pattern, sure in _PATTERNS:
            if kind == other and pattern.search(question):
                score = max(score, sure)
        return min(score, 1.0)

    def is_in(self, text: str) -> bool:
        """Whether a text says the value."""
        if isinstance(self.value, bool):
            return False
        if isinstance(self.value, int | float):
            return any(number == self.value for number, *_ in all_numbers(text))
        if re.search(rf"(?<!\w){re.escape(self.value)}(?!\w)", text, re.IGNORECASE):
            return True
        return self.text in self._others(text, self.value)

    def is_told_in(self, text: str) -> bool:
        """Whether who says a text has said the value with it, and has not used the same word for something else."""
        if not self.is_in(text):
            return False
        is_plain = isinstance(self.value, str) and len(self.value) >= _TELLING
        return is_plain or _met(in_words(self.name), text) >= ASKED_FROM

    def others_in(self, text: str, *, confirming: bool) -> frozenset[str]:
        """The values that a text has where this one should be.

        Args:
            text: What the agent said.
            confirming: The text asks to confirm; only then are dates, times, addresses and numbers compared.
        """
        if isinstance(self.value, bool) or self.is_in(text):
            return frozenset()
        if isinstance(self.value, str) and (shape := _shape(self.value, self.wanted)):
            return frozenset(match[0] for match in shape.finditer(text))
        if not confirming:
            return frozenset()
        if isinstance(self.value, int | float):
            said = all_numbers(text) if _met(in_words(self.name), text) >= ASKED_FROM else []
            return frozenset(f"{number:g}" for number, *_ in said)
        return frozenset(self._others(text, self.value))

    @staticmethod
    def _others(text: str, value: str) -> Sequence[str]:
        """Values of the same sort in a text; none where the value is of no known sort."""
        if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            return [each.value for each in dates_in(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", each.value)]
        if re.fullmatch(r"[012]\d:[0-5]\d", value):
            return [each.value for each in times_in(text)]
        if "@" in value:
            return [str(each.value).lower() for each in emails_in(text)]
        return []


def facts_of(
    values: Mapping[str, str | int | float | bool], synonyms: Mapping[str, Sequence[str]]
) -> tuple[Fact, ...]:
    """What a user knows, as facts."""
    return tuple(Fact(name, value, tuple(synonyms.get(name, ()))) for name, value in values.items())


def asked_for(question: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts that a question asks for, in the order in which the user knows them; few rather than many.

    Args:
        question: The question.
        facts: What the user knows; those of the intent at hand first.
    """
    scores = [(fact.asked_in(question), fact) for fact in facts]
    sure = [(score, fact) for score, fact in scores if score >= ASKED_FROM]
    if sure:
        best = max(score for score, _ in sure)
        return tuple(fact for score, fact in sure if score >= best - 0.4)
    near = [fact for score, fact in scores if score >= _NEARLY]
    return tuple(near) if len(near) == 1 else ()


def _met(phrase: str, question: str) -> float:
    return overlap(phrase, question) if words(phrase) else float(phrase.lower() in question.lower())


def _has_all(sought: frozenset[str], text: str) -> bool:
    return bool(sought) and all(_is_among(each, text) for each in sought)


def _has_any(sought: frozenset[str], text: str) -> bool:
    return any(_is_among(each, text) for each in sought)


def _is_among(sought: str, text: str) -> bool:
    return any(likeness(sought, stem(word)) >= 0.7 for word in re.findall(r"[a-z]+", text.lower()))


def _shape(value: str, wanted: Wanted) -> re.Pattern[str] | None:
    """What else would look like an identifier of this kind; None for what is no identifier."""
    parts = _SHAPED.findall(value)
    has_letters = any(part.isalpha() for part in parts)
    has_digits = any(part.isdigit() for part in parts)
    if (
        not has_digits
        or " " in value
        or "@" in value
        or (re.fullmatch(r"[\d\W]+", value) and not value.isdigit())
    ):
        return None
    if not has_letters and (wanted.kind != "identifier" or len(value) < 4):
        return None
    return re.compile(r"(?<![\w-])" + "".join(_like(parts, has_letters)) + r"(?![\w-])", re.IGNORECASE)


def _like(parts: Sequence[str], has_letters: bool) -> Iterator[str]:
    for part in parts:
        if part.isdigit():
            yield r"\d+" if has_letters else rf"\d{{{len(part)}}}"
        else:
            yield re.escape(part)
