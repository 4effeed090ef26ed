"""What each kind of user lets out: all it knows, nothing with a number, or nothing true; and how speech is misheard."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import date, timedelta
from random import Random

from arq_graph.milestones.users.hearing import NAMES_OF_IDENTIFIERS, words_of
from arq_graph.milestones.users.spec import Kind

Value = str | int | float | bool
Facts = Iterable[tuple[str, Value]]

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_READ_OUT = re.compile(rf"\b(?:{'|'.join((*_DIGITS, 'oh'))})\b")
_NOT_AT_HAND = "I do not have that at hand."


def is_kept_back(name: str, value: Value) -> bool:
    """Whether a perturbed user keeps a value back: a number, a date, an address of mail, an identifier."""
    if isinstance(value, bool):
        return False
    text = str(value)
    identifies = not NAMES_OF_IDENTIFIERS.isdisjoint(words_of(name))
    return identifies or "@" in text or any(map(str.isnumeric, text))


def leaks(text: str, kind: Kind, facts: Facts) -> bool:
    """Whether a text says what this kind of user does not say.

    A perturbed user says no digit of any script; no user who keeps a value back says it with other separators, or
    read out digit by digit. Number words beyond that ("two hundred and four") are not found.
    """
    if kind == "helpful":
        return False
    plain = _plain(text)
    if kind == "perturbed" and any(map(str.isnumeric, plain)):
        return True
    joined = _joined(_READ_OUT.sub(_digit, plain))
    for name, value in facts:
        if isinstance(value, bool) or (kind == "perturbed" and not is_kept_back(name, value)):
            continue
        said = _plain(str(value))
        digits = "".join(re.findall(r"\d", said))
        if re.search(rf"(?<!\w){re.escape(said)}(?!\w)", plain):
            return True
        if is_kept_back(name, value) and any(
            len(each) > 2 and each in joined for each in (_joined(said), digits)
        ):
            return True
    return False


def let_out(text: str, kind: Kind, facts: Facts, seed: object = 0) -> str:
    """A text as this kind of user says it: without numbers, or with wrong values for the true ones."""
    if kind == "helpful":
        return text
    known = [(name, value) for name, value in facts if not isinstance(value, bool)]
    for name, value in sorted(known, key=lambda each: -len(str(each[1]))):
        if kind == "perturbed" and not is_kept_back(name, value):
            continue
        wrong = None if kind == "perturbed" else wrong_value(value, seed, known)
        instead = "" if kind == "perturbed" else "something" if wrong is None else str(wrong)
        whole = rf"(?<!\w){re.escape(str(value))}(?!\w)"
        text = re.sub(whole, lambda _, said=instead: said, text, flags=re.IGNORECASE)  # type: ignore[misc]
    said = text
    if kind == "perturbed":
        said = " ".join(word for word in text.split(" ") if not any(map(str.isnumeric, word.rstrip(".!?"))))
    sentences = re.split(r"(?<=[.!?])\s+", said)
    kept = [_NOT_AT_HAND if leaks(each, kind, known) else each for each in sentences]
    left = re.sub(r"\s+([.,;:!?])", r"\1", " ".join(" ".join(dict.fromkeys(kept)).split()))
    return left or (_NOT_AT_HAND if text.strip() else "")


def wrong_value(value: Value, seed: object, truths: Facts) -> Value | None:
    """A value of the same form that is wrong; None where the form does not tell how, as of a name."""
    if isinstance(value, bool):
        return not value
    chance = Random(f"{seed}/{value}")
    taken = {_plain(str(each)) for _, each in truths} | {_plain(str(value))}
    for _ in range(20):
        wrong = _changed(value, chance)
        if wrong is None or _plain(str(wrong)) not in taken:
            return wrong
    return None


def misheard(text: str, chance: Random) -> str:
    """A text as a speech recogniser may write it down: no capitals, no points, digits spelt, short words lost."""
    heard: list[str] = []
    for word in re.findall(r"\d|[^\W\d_]+|-(?=\w)|@", text.casefold()):
        draw = chance.random()
        if word.isdecimal():
            heard.append(_DIGITS[int(word)])
        elif word in "-@":
            heard.append("dash" if word == "-" else "at")
        elif len(word) > 3 or draw > 0.2 or not heard:
            heard.append(word)
        elif draw > 0.1:
            heard[-1] += word
    return " ".join(heard) or text.casefold()


def _changed(value: str | int | float, chance: Random) -> str | int | float | None:
    if isinstance(value, int):
        return value + chance.randint(1, 5)
    if isinstance(value, float):
        return round(value + chance.uniform(1, 5), 2)
    try:
        return (date.fromisoformat(value) + timedelta(days=chance.randint(1, 20))).isoformat()
    except (ValueError, OverflowError):
        pass
    if re.fullmatch(r"\d?\d:\d\d", value):
        return f"{chance.randint(8, 18):02}{value[-3:]}"
    if any(map(str.isdecimal, value)):
        return re.sub(r"\d", lambda _: str(chance.randint(1, 9)), value)
    if "@" in value:
        return f"mail{chance.randint(2, 99)}@example.com"
    return "".join(chance.choice("BDFGKMPRT") for _ in value) if value.isupper() and value.isalpha() else None


def _plain(text: str) -> str:
    """A text for comparing: compatible characters made one, invisible ones gone, digits of all scripts as ours."""
    characters = unicodedata.normalize("NFKC", text).casefold()
    return "".join(
        str(unicodedata.digit(each)) if each.isdigit() else each
        for each in characters
        if unicodedata.category(each) != "Cf"
    )


def _joined(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def _digit(word: re.Match[str]) -> str:
    return "0" if word[0] == "oh" else str(_DIGITS.index(word[0]))
