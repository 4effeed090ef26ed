"""Wrong values that look right: of the same shape as a true one, or of the same sort."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from random import Random

from arq_graph.models.offline.wanted import ValueKind, Wanted
from arq_graph.models.offline.words import in_words

_TRIES = 40
_POOLS = (
    ("Ann", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Irene", "Jonas"),
    ("Berlin", "Paris", "London", "Madrid", "Vienna", "Oslo", "Rome", "Dublin", "Prague"),
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    ("red", "blue", "green", "black", "white", "yellow", "grey", "brown"),
    ("small", "medium", "large", "extra large"),
    ("morning", "afternoon", "evening"),
    ("standard", "express", "overnight"),
    ("economy", "business", "first"),
    ("card", "cash", "invoice"),
)
_SURNAMES = ("Miller", "Weber", "Rossi", "Novak", "Jensen", "Silva", "Moreau", "Keller")
_BY_KIND: dict[ValueKind, int] = {"person": 0, "place": 1}
_BY_WORD = {"day": 2, "weekday": 2, "colour": 3, "color": 3, "size": 4, "shipping": 6, "payment": 8}


def wrong_value(
    name: str, value: str | int | float | bool, chance: Random, true_values: Iterable[object]
) -> str | int | float | bool | None:
    """A value that is wrong and plausible; None where nothing of the sort is known.

    Args:
        name: What the value is called.
        value: The true one, whose shape is kept.
        chance: Where it is drawn from.
        true_values: What it must not be.
    """
    if isinstance(value, bool):
        return not value
    taken = {str(each).casefold() for each in (*true_values, value)}
    for _ in range(_TRIES):
        invented = _invented(name, value, chance)
        if invented is None:
            return None
        if str(invented).casefold() not in taken:
            return invented
    return None


def _invented(name: str, value: str | int | float, chance: Random) -> str | int | float | None:
    if isinstance(value, int):
        return chance.randint(max(1, abs(value) // 2), abs(value) * 2 + 5)
    if isinstance(value, float):
        return round(abs(value) * chance.uniform(0.3, 3) + 1, 2)
    text = value.strip()
    if "@" in text:
        return f"{chance.choice(_POOLS[0]).lower()}.{chance.choice(_SURNAMES).lower()}@example.com"
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return _other_day(text, chance)
    if re.fullmatch(r"[012]?\d:[0-5]\d", text):
        return f"{chance.randint(8, 18):02}:{text[-2:]}"
    if any("0" <= character <= "9" for character in text):
        return _other_digits(text, chance)
    return _other_word(name, text, chance)


def _other_day(text: str, chance: Random) -> str | None:
    try:
        return (date.fromisoformat(text) + timedelta(days=chance.randint(1, 20))).isoformat()
    except (ValueError, OverflowError):
        return _other_digits(text, chance)


def _other_digits(text: str, chance: Random) -> str:
    return re.sub(
        r"[0-9]+",
        lambda run: str(chance.randint(1, 9)) + "".join(str(chance.randint(0, 9)) for _ in run[0][1:]),
        text,
    )


def _other_word(name: str, text: str, chance: Random) -> str | None:
    known = next((pool for pool in _POOLS if text.lower() in {word.lower() for word in pool}), None)
    if known is None:
        kind = Wanted(name).kind
        by_word = next((at for word, at in _BY_WORD.items() if word in in_words(name).split()), None)
        index = _BY_KIND.get(kind, by_word)
        if kind == "identifier" and text.isalnum():
            return "".join(chance.choice("ABCDEFGHJKLMNPRSTUVWXYZ") for _ in text)
        if index is None:
            return None
        known = _POOLS[index]
    word = chance.choice(known)
    if known is _POOLS[0]:
        return f"{word} {chance.choice(_SURNAMES)}" if " " in text else word
    return word.capitalize() if text[:1].isupper() else word


def alternatives(text: str) -> tuple[str, ...]:
    """What may stand in the place of a word of a known sort: other colours for a colour, other sizes for a size.

    Args:
        text: The word; people and places are of no such sort, for there are too many.
    """
    pools = (pool for pool in _POOLS[2:] if text.lower() in pool)
    return tuple(word for word in next(pools, ()) if word != text.lower())


def without_truth(text: str, true_values: Iterable[object]) -> str:
    """A text in which each true value has given way to a vague word.

    Args:
        text: What is to be said.
        true_values: What must not be in it; yes and no are not looked for.
    """
    truths = sorted({str(each) for each in true_values if not isinstance(each, bool)}, key=len, reverse=True)
    lowered = {truth.casefold() for truth in truths}
    vague = next((word for word in ("something", "that one", "whatever") if word not in lowered), "")
    for truth in truths:
        if truth.strip():
            text = re.sub(rf"(?<!\w){re.escape(truth)}(?!\w)", lambda _: vague, text, flags=re.IGNORECASE)
    return text
