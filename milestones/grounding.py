"""Grounded arguments: is every value of a call found in what the user or a tool said before it?

Words are compared without case and punctuation, numbers by value ("1,200.50", "$1200.5", "three"). Of a date
("2024-05-20") the day has to be said: year and month are often left out, or said in words of whatever language. What
is not found may still be right (derived, translated): a call is marked as possibly invented, no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from unicodedata import normalize

from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: str(number) for number, word in enumerate(_SMALL.split())}
NUMBER_WORDS |= {word: str(10 * number) for number, word in enumerate(_TENS.split(), 3)}
"""The digits of a number that is written as one word."""

_DIGITS = re.compile(r"\d+")
_DATE = re.compile(r"\d{4}-\d{2}-(\d{2})")
# A number, unless it is part of a word: the 136 of "HAT136" is none.
_TOKEN = re.compile(r"(?<![^\W_])\d++(?![^\W_])(?:,\d{3}(?![^\W_]))*+(?:\.\d++(?![^\W_]))?+|[^\W_]+")

# Where a spelling is compared without any separator, it must be long enough not to arise by chance.
SHORTEST_SQUEEZED = 6
LONGEST_TEXT = 4_000_000
"""So many characters are read of one text, said or given as an argument: more than a model reads at once."""


class Grounding:
    """What the user and the tools of one conversation said so far."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._words = " "
        self._squeezed = ""
        self._numbers: set[str] = set()
        self._digits: set[str] = set()
        # How much of what was said each of the two has taken in: most values need the words alone.
        self._in_words = self._in_squeezed = 0

    def hear(self, event: Event) -> None:
        """Take in an event of a conversation; only what the agent was told by it grounds a value."""
        text = told_by(event)
        if text is not None:
            self.tell(text)

    def tell(self, text: str) -> None:
        """Take in a text that the agent was told: a customer's message, a tool's result, a variable's value."""
        self._said.append(text[:LONGEST_TEXT])

    def invented(self, call: Call) -> tuple[str, ...]:
        """The arguments of a call, as paths like `passengers[0].dob`, whose value nobody said before it.

        True, false, null and empty texts are decisions, not facts, and are never marked. Of each text the
        first `LONGEST_TEXT` characters are read.
        """
        return tuple(path for path, value in _leaves(call.arguments) if not self._is_known(value))

    def _is_known(self, value: str | float) -> bool:
        self._read_words()
        if not isinstance(value, str):
            return _number(str(value)) in self._numbers
        text = _plain(value[:LONGEST_TEXT])
        tokens = _tokens(text)
        if not tokens or f" {' '.join(tokens)} " in self._words:
            return True
        if date := _DATE.fullmatch(text):
            return date[1].lstrip("0") in self._digits
        squeezed = _squeezed(text)
        if len(squeezed) < SHORTEST_SQUEEZED or not any(map(str.isdigit, squeezed)):
            return False
        self._read_squeezed()
        return squeezed in self._squeezed

    def _read_words(self) -> None:
        for said in self._said[self._in_words :]:
            tokens = _tokens(_plain(said))
            self._words += " ".join(tokens) + " "
            self._numbers.update(token for token in set(tokens) if token[0].isdigit())
            self._digits.update(each.lstrip("0") for each in _DIGITS.findall(said))
        self._in_words = len(self._said)

    def _read_squeezed(self) -> None:
        for said in self._said[self._in_squeezed :]:
            # A mark between two utterances keeps the end of one from running into the next.
            self._squeezed += "|" + _squeezed(_plain(said))
        self._in_squeezed = len(self._said)


def told_by(event: Event) -> str | None:
    """What an event tells the agent: the user's words and the tools' results; None for what it says or does itself."""
    if isinstance(event, Result) or (isinstance(event, Message) and event.speaker == "user"):
        return event.text
    return None


def invented_arguments(transcript: Transcript) -> dict[int, tuple[str, ...]]:
    """The possibly invented arguments of each call that has some, by event number; see `Grounding.invented`.

    Cost linear in the characters of the conversation, times the values of its calls.
    """
    grounding = Grounding()
    found: dict[int, tuple[str, ...]] = {}
    for number, event in transcript.numbered():
        if isinstance(event, Call):
            invented = grounding.invented(event)
            if invented:
                found[number] = invented
        grounding.hear(event)
    return found


def _leaves(arguments: Any) -> Iterator[tuple[str, str | float]]:
    # No recursion: arguments may be nested deeper than Python's stack.
    ahead: list[tuple[str, Any]] = [("", arguments)]
    while ahead:
        path, value = ahead.pop()
        if isinstance(value, Mapping):
            inner = [(f"{path}.{key}" if path else str(key), each) for key, each in value.items()]
            ahead.extend(reversed(inner))
        elif isinstance(value, list | tuple):
            ahead.extend((f"{path}[{index}]", value[index]) for index in reversed(range(len(value))))
        elif not isinstance(value, bool) and isinstance(value, str | int | float):
            yield path, value


def _plain(text: str) -> str:
    return normalize("NFKC", text).casefold()


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text))


class _Spellings(dict[str, str]):
    """The one spelling of each token; a long text says few of them many times."""

    def __missing__(self, token: str) -> str:
        known = _number(token) if token[0].isdigit() else NUMBER_WORDS.get(token, token)
        self[token] = known
        return known


def _tokens(text: str) -> list[str]:
    spelled = _Spellings()
    return [spelled[token] for token in _TOKEN.findall(text)]


def _number(text: str) -> str:
    digits = text.lstrip("-").replace(",", "")
    whole, _, decimals = digits.partition(".")
    if not (whole.isdigit() and (not decimals or decimals.isdigit())):
        return text
    whole = whole.lstrip("0") or "0"
    decimals = decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole
