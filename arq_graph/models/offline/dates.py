"""Dates and times as customers write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH = (
    r"(?P<{}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_DATE = re.compile(
    r"\b(?:(?P<iso>\d{4}-\d{1,2}-\d{1,2})"
    r"|(?P<numeric>\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?)(?!\d)"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH.format('month')}(?:,? (?P<year>\d{{4}}))?"
    rf"|{_MONTH.format('month2')} (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year2>\d{{4}}))?(?!\d|:)"
    rf"|(?P<relative>the day after tomorrow|today|tonight|tomorrow|(?:(?:next|this|coming) )?{_WEEKDAY}\b"
    r"|(?:next|this) (?:week(?:end)?|month)|in (?:a|an|one|two|three|four|five|six|\d+) (?:days?|weeks?"
    r"|months?))"
    r")(?!\w)",
    re.IGNORECASE,
)
_RANGE_OF_DAYS = re.compile(
    rf"\b(?:from )?(?P<first>\d{{1,2}})(?:st|nd|rd|th)?\s*(?:-|–|to|until"
    rf"|till)\s*(?P<last>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?\s"
    rf"{_MONTH.format('month')}(?:,? (?P<year>\d{{4}}))?|\b{_MONTH.format('month2')} "
    rf"(?P<first2>\d{{1,2}})(?:st|nd|rd|th)?\s*(?:-|–|to)\s*"
    rf"(?P<last2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year2>\d{{4}}))?",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))? ?(?P<half>a\.?m\b|p\.?m\b)\.?|(?P<hour24>[01]?\d"
    r"|2[0-3]):(?P<minute24>[0-5]\d)\b"
    r"|(?P<word>noon|midnight)\b|(?P<clock>\d{1,2}) o'?clock\b)",
    re.IGNORECASE,
)
_SMALL = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


@dataclass(frozen=True)
class Span:
    """A date or a time in a text.

    Args:
        value: As it is best passed on: 2030-12-31 or 19:00 where it is known, else the customer's own words.
        start: Where it begins.
        end: Where it ends.
        said: The customer's own words.
    """

    value: str
    start: int
    end: int
    said: str


def dates_in(text: str, today: date | None = None) -> list[Span]:
    """The dates of a text, in order.

    Args:
        text: What was said.
        today: The current date, where the prompt tells it: it turns "tomorrow" and "March 3" into full dates.
    """
    found = list(_ranges(text, today))
    taken = [(span.start, span.end) for span in found]
    for match in _DATE.finditer(text):
        if any(start <= match.start() < end for start, end in taken):
            continue
        if match["relative"] and match["relative"].lower() in ("sun", "sat", "mon", "wed", "may"):
            continue
        found.append(Span(_value(match, today), match.start(), match.end(), match[0]))
    return sorted(found, key=lambda span: span.start)


def _ranges(text: str, today: date | None) -> Iterator[Span]:
    for match in _RANGE_OF_DAYS.finditer(text):
        month = match["month"] or match["month2"]
        year = match["year"] or match["year2"]
        turn = match.start("last") if match["last"] else match.start("last2")
        for name, at, end in (("first", match.start(), turn), ("last", turn, match.end())):
            day = match[name] or match[f"{name}2"]
            said = f"{day} {month}{f' {year}' if year else ''}"
            yield Span(_in_full(day, month, year, today) or said, at, end, said)


def _value(match: re.Match[str], today: date | None) -> str:
    if match["iso"]:
        year, month, day = (int(part) for part in match["iso"].split("-"))
        return _iso(year, month, day) or match[0]
    if match["numeric"]:
        return _numeric(match["numeric"]) or match[0]
    if match["relative"]:
        return _relative(match["relative"].lower(), today) or match[0]
    number, name = match["day"] or match["day2"], match["month"] or match["month2"]
    return _in_full(number, name, match["year"] or match["year2"], today) or match[0]


def _numeric(text: str) -> str | None:
    parts = [int(part) for part in re.split(r"[./]", text)]
    if len(parts) < 3:
        return None
    first, second, year = parts
    year += 2000 if year < 100 else 0
    if first > 12:
        return _iso(year, second, first)
    # 03/04 may be either; only a day above 12 tells which is which.
    return _iso(year, first, second) if second > 12 else None


def _in_full(day: str, month: str, year: str | None, today: date | None) -> str | None:
    number = next(i for i, name in enumerate(_MONTHS, start=1) if name.startswith(month.lower()[:3]))
    if year:
        return _iso(int(year), number, int(day))
    if today is None:
        return None
    this_year = _iso(today.year, number, int(day))
    if this_year and this_year >= today.isoformat():
        return this_year
    return _iso(today.year + 1, number, int(day))


def _iso(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def _relative(said: str, today: date | None) -> str | None:
    if today is None:
        return None
    if said in ("today", "tonight"):
        return today.isoformat()
    if "tomorrow" in said:
        return (today + timedelta(days=2 if "after" in said else 1)).isoformat()
    for index, name in enumerate(_DAYS):
        if re.search(rf"\b{name[:3]}", said):
            return (today + timedelta(days=(index - today.weekday() - 1) % 7 + 1)).isoformat()
    ahead = re.match(r"in (\w+) (day|week)", said)
    if ahead:
        number = _SMALL.get(ahead[1]) or (int(ahead[1]) if ahead[1].isdigit() and len(ahead[1]) < 4 else 0)
        if number:
            return (today + timedelta(days=number * (7 if ahead[2] == "week" else 1))).isoformat()
    return None


def times_in(text: str) -> list[Span]:
    """The times of day of a text, as 19:00."""
    found = []
    for match in _TIME.finditer(text):
        if match["word"]:
            value = "12:00" if match["word"].lower() == "noon" else "00:00"
        elif match["hour24"]:
            value = f"{int(match['hour24']):02}:{match['minute24']}"
        elif match["clock"]:
            value = f"{int(match['clock']):02}:00"
        else:
            hour = int(match["hour"]) % 12 + (12 if match["half"].lower().startswith("p") else 0)
            value = f"{hour:02}:{match['minute'] or '00'}"
        found.append(Span(value, match.start(), match.end(), match[0]))
    return found


def kind_of_moment(text: str) -> Literal["date", "time", "moment"] | None:
    """What a text is that holds nothing but a date, a time of day, or both; None for any other text."""
    text = spaced(text)
    days = [span for span in dates_in(text) if not re.fullmatch(r"\d+[./]\d+", span.said)]
    clocks = times_in(text)
    rest = "".join(
        character
        for index, character in enumerate(text)
        if not any(span.start <= index < span.end for span in (*days, *clocks))
    )
    if re.search(r"\w", re.sub(r"\bat\b", "", rest)):
        return None
    return "moment" if days and clocks else "date" if days else "time" if clocks else None


def spaced(text: str) -> str:
    """A text with a space for the T within 2030-12-31T19:00."""
    return re.sub(r"(?<=\d-\d\d)T(?=\d\d:)", " ", text)


def date_named(text: str) -> date | None:
    """The first full date of a text."""
    match = re.search(r"\b(\d{4})-(\d{2})-(\d{2})", text)
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
