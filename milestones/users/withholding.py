"""Numbers and identifiers kept back: what a perturbed user knows of and does not say (ReSpAct, B.1)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import date

from arq_graph.milestones.users.spoken_numbers import in_digits
from arq_graph.models.offline.dates import dates_in, times_in
from arq_graph.models.offline.shapes import emails_in, money_in
from arq_graph.models.offline.wanted import Wanted

_TOKEN = re.compile(r"\S+")
_PUNCTUATION = ".,;:!?\"'”’)]}"
_DIGITS = re.compile(r"\d+")
_LONG_NUMBER = re.compile(r"\d(?:[\s()./-]*\d){5,}")
_INVISIBLE = re.compile("(?<=\\w)[\u00ad\u200b-\u200d\u2060\ufeff]+(?=\\w)")
_FULL_STOP = re.compile(r"\.(?=\s*$|\s+[A-Z])")  # and none of an abbreviated month
_END = 6  # so many digits at its end tell a phone number, whatever stands for the country or the trunk
_LEAP_YEAR = date(2000, 1, 1)  # a day without a year is compared by its month and day


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
    """What of the values kept back is in a text.

    A value counts as said in full-width and other forms of the same characters; as its digits, in whatever grouping;
    as English number words (see `in_digits`); as a day or time written in another way; and, from six digits on, with
    or without the code of its country. Not covered are number words of other languages, hints (`two more than two
    hundred`), an address of mail read out, letters by their names (`Sierra Lima`), an hour in words (`seven pm` for
    19:00), and the last digits of a number that is written without a gap before them.

    Args:
        text: What is about to be said.
        facts: Names and values that the user knows.
    """
    kept = [_text(value) for name, value in facts if is_kept_back(name, value)]
    text = _written(text, kept)
    said, moments = _joined(text), _moments(text)
    numbers, ends = set(_DIGITS.findall(text)), _long_numbers(text)
    return [
        value
        for value in kept
        if {*_DIGITS.findall(value), "".join(_DIGITS.findall(value))} & numbers
        or _is_said(_joined(value), said)
        or _moments(value) & moments
        or any(_same_end(one, other) for one in _long_numbers(value) for other in ends)
    ]


def without_identifiers(text: str, facts: Iterable[tuple[str, object]]) -> str:
    """A text with nothing in it that a perturbed user keeps back, and without any other number.

    Args:
        text: What is to be said.
        facts: Names and values that the user knows; those without a digit are found by them.
    """
    kept = [_text(value) for name, value in facts if is_kept_back(name, value)]
    text = _written(text, kept)
    for value in sorted(kept, key=len, reverse=True):
        if joined := _joined(value):
            apart = r"[\W_]*".join(map(re.escape, joined)) if len(joined) >= _SHORTEST else re.escape(value)
            text = re.sub(rf"(?<!\w)[+#(]*{apart}(?!\w)", _PLACE, text, flags=re.IGNORECASE)
    spans = [(each.start, each.end, "my email address") for each in emails_in(text)]
    spans += [
        (each.start, each.end - bool(_FULL_STOP.match(text, each.end - 1)), "that day")
        for each in dates_in(text)
        if _has_digit(each.said)
    ]
    spans += [(each.start, each.end, "that time") for each in times_in(text) if _has_digit(each.said)]
    spans += [(each.start, each.end, "that much") for each in money_in(text)]
    text = _replaced(text, spans)
    text = re.sub(r"\bthe (?=that (?:day|time)\b)", "", text, flags=re.IGNORECASE)
    text = _TOKEN.sub(lambda match: _without_digits(match, text), text)
    return _tidied(text)


_SHORTEST = 3
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
        rf"(?:\s+(?:on the|on|at|for|by|from|to|until|with|is|and|or|number|no\.|#))?\s*{_PLACE}", "", text
    )
    text = " ".join(text.replace(_PLACE, " ").split())
    return re.sub(r"\s+([.,;:!?])", r"\1", text)


def _replaced(text: str, spans: list[tuple[int, int, str]]) -> str:
    reach = len(text)
    for start, end, instead in sorted(spans, reverse=True):
        if end <= reach:
            text, reach = text[:start] + instead + text[end:], start
    return text


def _joined(text: str) -> str:
    """A text without what separates: `ORD-1002` and "ord 1002" are the same."""
    return re.sub(r"[\W_]+", "", text).lower()


def _is_said(value: str, said: str) -> bool:
    return len(value) >= _SHORTEST and value in said


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "".join(map(_plain, str(value)))


def _written(text: str, kept: Iterable[str]) -> str:
    """A text as it is compared: in plain characters, its numbers in digits without commas."""
    text = _INVISIBLE.sub("", "".join(map(_plain, text)))
    days = {day for value in kept for day in _moments(value)}
    numbers = {number for value in kept if not _moments(value) for number in _DIGITS.findall(value)}
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", in_digits(text, numbers, days))


def _plain(character: str) -> str:
    """The ASCII character of which this is another form; any other stays."""
    if character.isascii():
        return character
    plain = unicodedata.normalize("NFKC", character)
    digit = unicodedata.decimal(plain, None) if len(plain) == 1 else None
    return str(digit) if digit is not None else plain if len(plain) == 1 and plain.isascii() else character


def _moments(text: str) -> set[str]:
    """The days (`03-04`) and times (`19:00`) of a text that are written with digits."""
    found = {span.value for span in times_in(text) if _has_digit(span.said)}
    for span in dates_in(text, _LEAP_YEAR):
        if not _has_digit(span.said) or span.said.lower().startswith("in "):
            continue
        if re.fullmatch(r"\d{4}-\d\d-\d\d", span.value):
            found.add(span.value[5:])
        elif parts := re.match(r"(\d{1,2})[./](\d{1,2})", span.said):
            found |= {f"{parts[1]:0>2}-{parts[2]:0>2}", f"{parts[2]:0>2}-{parts[1]:0>2}"}
    return found


def _long_numbers(text: str) -> list[str]:
    return ["".join(_DIGITS.findall(match[0])) for match in _LONG_NUMBER.finditer(text)]


def _same_end(one: str, other: str) -> bool:
    return one[-_END:] in other or other[-_END:] in one


def _has_digit(text: str) -> bool:
    return any(map(str.isnumeric, text))
