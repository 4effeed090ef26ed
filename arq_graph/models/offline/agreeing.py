"""What makes a yes no plain one: a condition, a doubt, a wish to think, or another value than the one that was put."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from arq_graph.models.offline.lexicon import listed

_POLITE = re.compile(
    r"\bif (?:you|i) (?:would|could|can|may|please|don['’]?t mind|wouldn['’]?t mind|like|want|insist)"
    r"(?: be so \w+| please)?"
    r"|\bif (?:possible|that['’]?s (?:ok(?:ay)?|possible|fine|all right))|\bif it['’]?s (?:no trouble|possible)"
    r"|\b(?:no|not an?|without) (?:problem|worries|doubt|rush|issue|objection)s?\b"
    r"|\b(?:do not|don['’]?t) (?:mind|worry)\b|\bwhy not\b|\b(?:see|talk to) you later\b"
    r"|\b(?:tell|notify|inform|text|e-?mail|let) (?:me|us)(?: know)?(?: please)? (?:if|when|once|whether|as soon as)\b",
    re.IGNORECASE,
)
"""Sounds like a condition or a no, and is none."""
_HEDGE = re.compile(
    r"\b(?:if|unless|until|till|after|before|once|when|whenever|while|except|as soon as"
    r"|provid(?:ed|ing) (?:that|it|there|you|the|we|i|my)|assuming|supposing|(?:as|so) long as|on condition"
    r"|depend(?:s|ing)|maybe|perhaps|possibly|probably|might|think(?:ing)?|guess|suppose|wonder(?:ing)?"
    r"|unsure|(?:not|hardly) (?:quite )?(?:sure|certain)|let me(?! know)|let us (?:see|think)|sleep on it"
    r"|(?<!you )later|some ?day|another time|next time|prefer|cannot|cant|wont|dont|keep|leave (?:it|that)"
    r"|(?:the |an)other(?: one)?|a different|next (?:week|month|year))\b",
    re.IGNORECASE,
)
_ASKED_ABOUT = re.compile(r"keep|leave (?:it|that)", re.IGNORECASE)
"""Hedges only where the question was not about just that."""
_AFFIRMING = listed(
    "yes yep yeah yup y please do it that so this go ahead for proceed course of confirm confirmed absolutely"
    " certainly definitely agreed agree is that's sounds good works me i you very much the my then now just kindly"
    " thing all by means with a lot again too as well alright oh um hm hmm great perfect thanks thank wonderful"
    " excellent lovely super cool ok okay sure right correct exactly fine would be nice love like i'd let's us"
    " appreciate need want indeed accept am happy"
)
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ADDRESS = re.compile(r"\S+@\S+|https?://\S+")
_CODE = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[^\W\d])[\w-]+")
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[\w,;:(] )[A-Z][^\W\d_]+")
_DAY = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PARTS_OF_DAYS = listed("today tonight tomorrow morning noon afternoon evening night midnight")
_TIMES = _PARTS_OF_DAYS.union(_WEEKDAYS, _MONTHS) - {"may"}
_NUMBERS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip


def without_politeness(text: str) -> str:
    """A text without what sounds like a condition or a no and is none: "if you would be so kind", "no problem"."""
    return _POLITE.sub("", text)


def is_hedged(text: str, put: str = "") -> bool:
    """Whether a condition, a doubt or a wish to think is in it.

    Args:
        text: The text.
        put: The question before it: "keep it" is no doubt where that is what was asked.
    """
    asked = put.casefold()
    return any(
        not (_ASKED_ABOUT.fullmatch(found[0]) and found[0].casefold() in asked)
        for found in _HEDGE.finditer(without_politeness(text))
    )


def only_affirms(text: str, put: str = "") -> bool:
    """Whether every word of it affirms, or stands in the question before it."""
    return _words(text) <= _AFFIRMING | _words(put)


def repeats(text: str, put: str) -> bool:
    """Whether it says again what was put, and nothing else: "Cancel A-1, please" to "Shall I cancel A-1?"."""
    said = _words(text) - _AFFIRMING
    return bool(said) and "?" not in text and not is_hedged(text, put) and said <= _words(put)


def names_another(text: str, put: str, *, alike: bool = False) -> bool:
    """Whether it names a number, a reference, a day or a name that was not put.

    Args:
        text: What the customer answers.
        put: What was put to them.
        alike: Look only at the kinds of value that were put: "Yes, for Friday" names no other table.
    """
    known, told = _values(put), told_values(put)
    told = told.union(word for each in _DAY.finditer(put) for word in _of_day(each))
    return any(values - told and (known[kind] or not alike) for kind, values in _values(text).items())


def named_values(text: str) -> frozenset[str]:
    """The numbers, references, days and names in a text."""
    return frozenset[str]().union(*_values(text).values())


def told_values(text: str) -> frozenset[str]:
    """All in a text that a value may be: its words besides."""
    return named_values(text) | _words(text)


def _values(text: str) -> dict[str, frozenset[str]]:
    """The values in a text, by their kind."""
    text = _ADDRESS.sub(" ", text)
    words = _words(text)
    numbers = {each.lstrip("0") or "0" for each in _NUMBER.findall(text)}
    numbers |= {number for word, number in _NUMBERS.items() if word in words}
    names = {each.casefold() for each in _NAME.findall(text)}
    return {
        "reference": frozenset(each.casefold() for each in _CODE.findall(text) if not _DAY.fullmatch(each)),
        "number": frozenset(numbers),
        "time": words & _TIMES,
        "name": frozenset(names - _AFFIRMING - _TIMES - {"may"}),
    }


def _of_day(found: re.Match[str]) -> Iterable[str]:
    """The words for a day: its month, and its day of the week."""
    year, month, day = map(int, found.groups())
    try:
        weekday = date(year, month, day).weekday()
    except ValueError:
        return ()
    return (_MONTHS[month - 1], _WEEKDAYS[weekday])


def _words(text: str) -> frozenset[str]:
    return frozenset(word.replace("’", "'") for word in _TOKEN.findall(text.casefold()))
