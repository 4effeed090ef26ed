"""Checks of the milestones of the five use cases: what is said must be what the tools have returned.

Each function is called for every event, with the events before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.milestones.transcript import Call, Event, Message, Result
from arq_graph.milestones.users.agent_message import split_into_words

_NUMERALS = {"once": 1, "one": 1, "twice": 2, "two": 2, "three": 3, "four": 4, "five": 5}


def reports_unknown_customer(event: Event, earlier: Sequence[Event]) -> bool:
    """Return True if a tool does not find the name or the number that the customer has given."""
    if not isinstance(event, Result):
        return False
    customer_words = []
    for previous in earlier:
        if isinstance(previous, Message) and previous.speaker == "user":
            customer_words.extend(split_into_words(previous.text))
    if unknown := re.search(r"there is no ((?:KC|FN|GFT|QB|HP)-\w+)", event.text):
        return "".join(split_into_words(unknown[1])) in "".join(customer_words)
    call = earlier[event.call - 1] if event.call else None
    if not isinstance(call, Call) or not re.search(r"found\W+false", event.text):
        return False
    name_words = set(split_into_words(str(call.arguments.get("name", ""))))
    return bool(name_words) and name_words <= set(customer_words)


def tells_balance(event: Event, earlier: Sequence[Event]) -> bool:
    """Return True if the customer hears the balance of the card."""
    return _says_number(event, _find_in_results(earlier, r"balance\W+([\d.]+)"))


def tells_amount_to_pay(event: Event, earlier: Sequence[Event]) -> bool:
    """Return True if the customer hears what is still to pay."""
    return _says_number(event, _find_in_results(earlier, r"still_to_pay\W+([\d.]+)"))


def tells_extra_downloads(event: Event, earlier: Sequence[Event]) -> bool:
    """Return True if the customer hears how many further downloads are allowed."""
    return _says_number(event, _find_in_results(earlier, r"(\d+) further downloads"))


def tells_downloads_used(event: Event, earlier: Sequence[Event]) -> bool:
    """Return True if the customer hears how often the purchase was downloaded."""
    return _says_number(event, _find_in_results(earlier, r"downloads_used\W+(\d+)"))


def tells_expected_time(event: Event, earlier: Sequence[Event]) -> bool:
    """Return True if the customer hears the day, or an hour, at which something is expected."""
    expected = _find_in_results(earlier, r"expected\W+([^\"']+)")
    reply = _agent_text(event).casefold()
    return any(part in reply for part in re.findall(r"\w+day|\d\d:\d\d", expected.casefold()))


def tells_booked_time(event: Event, earlier: Sequence[Event]) -> bool:
    """Return True if the customer hears the day and the hour of a visit or a delivery."""
    booked = _find_in_results(earlier, r"\bon (\w+day \d\d):\d\d")
    if not booked:
        return False
    day, _, hour = booked.partition(" ")
    hour_on_a_clock = int(hour) % 12 or 12
    reply = _agent_text(event).replace("noon", "12")
    return day in reply and re.search(rf"\b(?:{hour}|0?{hour_on_a_clock})\b", reply) is not None


def tells_code(event: Event, earlier: Sequence[Event]) -> bool:
    """Return True if the customer hears the number of the case, the link or the key."""
    code = _find_in_results(earlier, r"(?:case|link|license_key)\W+(?:https://)?([\w./-]+)")
    return bool(code) and code in _agent_text(event)


def _agent_text(event: Event) -> str:
    return event.text if isinstance(event, Message) and event.speaker == "agent" else ""


def _find_in_results(events: Sequence[Event], pattern: str) -> str:
    """Return the group of a pattern in the last result in which it occurs, or an empty text."""
    for event in reversed(events):
        if isinstance(event, Result) and (match := re.search(pattern, event.text)):
            return match[1]
    return ""


def _says_number(event: Event, number: str) -> bool:
    reply = _agent_text(event).casefold()
    numbers = {float(digits.replace(",", ".")) for digits in re.findall(r"\d+(?:[.,]\d+)?", reply)}
    for word in _NUMERALS.keys() & split_into_words(reply):
        numbers.add(_NUMERALS[word])
    return bool(number) and float(number) in numbers
