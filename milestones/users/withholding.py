"""Numbers and identifiers kept back: what a perturbed user knows of and does not say (ReSpAct, B.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from arq_graph.models.offline.dates import dates_in, times_in
from arq_graph.models.offline.shapes import emails_in, money_in
from arq_graph.models.offline.wanted import Wanted

_TOKEN = re.compile(r"\S+")
_PUNCTUATION = ".,;:!?\"'”’)]}"
_DIGITS = re.compile(r"\d+")
_SPELLED = {
    "zero": "0", "oh": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9",
}  # fmt: skip
_DIGIT_WORD = "|".join(_SPELLED)
_DIGIT_WORDS = re.compile(rf"\b(?:{_DIGIT_WORD})(?:[\s,-]+(?:{_DIGIT_WORD}))+\b", re.IGNORECASE)


def is_kept_back(name: str, value: object) -> bool:
    """Whether a perturbed user keeps a value back: a number, a date, an address of mail, an identifier.

    Args:
        name: What the value is called: `order_id`.
        value: The value.
    """
    if isinstance(value, bool):
        return False
    text = str(value)
    return (
        any(map(str.isnumeric, text)) or "@" in text or Wanted(name).kind in ("identifier", "email", "phone")
    )


def leaked(text: str, facts: Iterable[tuple[str, object]]) -> list[str]:
    """What of the values kept back is in a text: the values themselves, their digits, their digits as words.

    Args:
        text: What is about to be said.
        facts: Names and values that the user knows.
    """
    said = _joined(text)
    numbers = {*_DIGITS.findall(text), *map(_as_digits, _DIGIT_WORDS.findall(text))}
    found = []
    for name, value in facts:
        if not is_kept_back(name, value):
            continue
        digits = set(_DIGITS.findall(str(value)))
        whole = "".join(_DIGITS.findall(str(value)))
        if digits & numbers or (whole and whole in numbers) or _is_said(_joined(str(value)), said):
            found.append(str(value))
    return found


def without_identifiers(text: str, facts: Iterable[tuple[str, object]]) -> str:
    """A text with nothing in it that a perturbed user keeps back.

    Args:
        text: What is to be said.
        facts: Names and values that the user knows; those without a digit are found by them.
    """
    for name, value in sorted(facts, key=lambda fact: -len(str(fact[1]))):
        if is_kept_back(name, value):
            text = re.sub(rf"(?<!\w){re.escape(str(value))}(?!\w)", _PLACE, text, flags=re.IGNORECASE)
    spans = [(each.start, each.end, "my email address") for each in emails_in(text)]
    spans += [(each.start, each.end, "that day") for each in dates_in(text) if _has_digit(each.said)]
    spans += [(each.start, each.end, "that time") for each in times_in(text) if _has_digit(each.said)]
    spans += [(each.start, each.end, "that much") for each in money_in(text)]
    text = _replaced(text, spans)
    text = _DIGIT_WORDS.sub(_PLACE, text)
    text = _TOKEN.sub(lambda match: _without_digits(match, text), text)
    return _tidied(text)


_PLACE = "\ue000"  # a private character, so that what was taken out can be told from what was written


def _without_digits(match: re.Match[str], text: str) -> str:
    token = match[0]
    if not any(map(str.isnumeric, token)):
        return token
    end = token[len(token.rstrip(_PUNCTUATION)) :]
    counts = token.isdigit() and re.match(r"\s+[a-z]", text[match.end() :])
    return "some" if counts else f"{_PLACE}{end}"


def _tidied(text: str) -> str:
    text = re.sub(rf"(?:^|(?<=[.!?] ))\W*{_PLACE}[\s{_PLACE}]*([.,;!?]|$)", "I do not have it at hand.", text)
    text = re.sub(rf"\b(is|are|was|number|id)\s*:?\s*{_PLACE}", r"\1 not at hand", text, flags=re.IGNORECASE)
    text = re.sub(
        rf"(?:\s+(?:on|at|for|by|from|to|until|with|is|and|or|number|no\.|#))?\s*{_PLACE}", "", text
    )
    text = " ".join(text.replace(_PLACE, " ").split())
    return re.sub(r"\s+([.,;:!?])", r"\1", text)


def _replaced(text: str, spans: list[tuple[int, int, str]]) -> str:
    reach = len(text) + 1
    for start, end, instead in sorted(spans, reverse=True):
        if end <= reach:
            text, reach = text[:start] + instead + text[end:], start
    return text


def _joined(text: str) -> str:
    """A text without what separates: `ORD-1002` and "ord 1002" are the same."""
    return re.sub(r"[\W_]+", "", text).lower()


def _is_said(value: str, said: str) -> bool:
    return len(value) >= 3 and value in said


def _as_digits(words: str) -> str:
    return "".join(_SPELLED[word] for word in re.findall(r"[a-z]+", words.lower()))


def _has_digit(text: str) -> bool:
    return any(map(str.isnumeric, text))
