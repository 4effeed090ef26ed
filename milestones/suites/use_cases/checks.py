"""What the milestones of the five use cases ask of code: whether what is said is what the tools have shown.

Each function is asked at every event, with the events before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.milestones.transcript import Call, Event, Message, Result

_NUMERALS = {"once": 1, "one": 1, "twice": 2, "two": 2, "three": 3, "four": 4, "five": 5}


def not_found(event: Event, earlier: Sequence[Event]) -> bool:
    """A tool does not find the name or the number that the customer has given."""
    if not isinstance(event, Result):
        return False
    said = " ".join(
        _words(each.text) for each in earlier if isinstance(each, Message) and each.speaker == "user"
    )
    if unknown := re.search(r"there is no ((?:KC|FN|GFT|QB|HP)-\w+)", event.text):
        return _words(unknown[1]).replace(" ", "") in said.replace(" ", "")
    call = earlier[event.call - 1] if event.call else None
    name = _words(str(call.arguments.get("name", ""))) if isinstance(call, Call) else ""
    return bool(re.search(r"found\W+false", event.text) and name and {*name.split()} <= {*said.split()})


def balance_told(event: Event, earlier: Sequence[Event]) -> bool:
    """The customer hears the balance of the card."""
    return _says_number(event, _shown(earlier, r"balance\W+([\d.]+)"))


def rest_told(event: Event, earlier: Sequence[Event]) -> bool:
    """The customer hears what is still to pay."""
    return _says_number(event, _shown(earlier, r"still_to_pay\W+([\d.]+)"))


def extra_told(event: Event, earlier: Sequence[Event]) -> bool:
    """The customer hears how many further downloads are allowed."""
    return _says_number(event, _shown(earlier, r"(\d+) further downloads"))


def downloads_told(event: Event, earlier: Sequence[Event]) -> bool:
    """The customer hears how often the purchase was downloaded."""
    return _says_number(event, _shown(earlier, r"downloads_used\W+(\d+)"))


def expected_told(event: Event, earlier: Sequence[Event]) -> bool:
    """The customer hears the day, or the hours, at which something is expected."""
    parts = re.findall(r"\w+day|\d\d:\d\d", _shown(earlier, r"expected\W+([^\"']+)"))
    return any(each.casefold() in _said(event).casefold() for each in parts)


def time_told(event: Event, earlier: Sequence[Event]) -> bool:
    """The customer hears the day and the hour that a tool has settled."""
    day, _, hour = _shown(earlier, r"\bon (\w+day \d\d):\d\d").partition(" ")
    hours = rf"\b(?:{hour}|0?{int(hour) % 12 or 12})\b" if hour else "(?!)"
    said = _said(event).replace("noon", "12")
    return day in said and re.search(hours, said) is not None


def code_told(event: Event, earlier: Sequence[Event]) -> bool:
    """The customer hears the number of the case, the link or the key."""
    code = _shown(earlier, r"(?:case|link|license_key)\W+(?:https://)?([\w./-]+)")
    return bool(code) and code in _said(event)


def _said(event: Event) -> str:
    return event.text if isinstance(event, Message) and event.speaker == "agent" else ""


def _shown(earlier: Sequence[Event], pattern: str) -> str:
    """What the last result in which the pattern occurs has in its place; nothing where there is none."""
    results = (each.text for each in reversed(earlier) if isinstance(each, Result))
    return next((found[1] for found in (re.search(pattern, text) for text in results) if found), "")


def _says_number(event: Event, number: str) -> bool:
    said = _said(event).casefold()
    numbers = [float(each.replace(",", ".")) for each in re.findall(r"\d+(?:[.,]\d+)?", said)]
    numbers += [_NUMERALS[word] for word in re.findall(r"\w+", said) if word in _NUMERALS]
    return bool(number) and float(number) in numbers


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
