"""What each kind of user lets out: all it knows, nothing with a number, or nothing true; and how speech is misheard."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, timedelta
from random import Random

from arq_graph.milestones.users.hearing import NAMES_OF_IDENTIFIERS, Fact, whole, words_of
from arq_graph.milestones.users.spec import Kind, Value

_NOT_AT_HAND = "I do not have that at hand."


def is_kept_back(fact: Fact) -> bool:
    """Whether a perturbed user keeps a value back: a number, a date, an address of mail, an identifier."""
    if isinstance(fact.value, bool):
        return False
    text = str(fact.value)
    identifies = not NAMES_OF_IDENTIFIERS.isdisjoint(words_of(fact.name))
    return identifies or "@" in text or any(map(str.isnumeric, text))


def leaks(text: str, kind: Kind, facts: Iterable[Fact]) -> bool:
    """Whether a text says what this kind of user does not say, with whatever separators.

    A perturbed user says no digit of any script, and an unhelpful one no true value. Numbers in words are not found.
    """
    plain = _plain(text)
    if kind == "perturbed" and any(map(str.isnumeric, plain)):
        return True
    joined = re.sub(r"[\W_]+", "", plain)
    for fact in facts if kind != "helpful" else ():
        if isinstance(fact.value, bool) or (kind == "perturbed" and not is_kept_back(fact)):
            continue
        said = _plain(str(fact.value))
        codes = (re.sub(r"[\W_]+", "", said), re.sub(r"\D", "", said)) if is_kept_back(fact) else ()
        if re.search(whole(said), plain) or any(len(code) > 2 and code in joined for code in codes):
            return True
    return False


def let_out(text: str, kind: Kind, facts: Iterable[Fact], seed: object = 0) -> str:
    """A text as this kind of user says it: without numbers, or with wrong values for the true ones."""
    if kind == "helpful":
        return text
    known = [fact for fact in facts if not isinstance(fact.value, bool)]
    for fact in sorted(known, key=lambda each: -len(str(each.value))):
        instead = "" if kind == "perturbed" else str(wrong_value(fact.value, seed, known) or "something")
        if kind == "unhelpful" or is_kept_back(fact):
            text = re.sub(whole(fact.value), lambda _, said=instead: said, text, flags=re.IGNORECASE)  # type: ignore[misc]
    text = without_numbers(text) if kind == "perturbed" else text
    sentences = (
        _NOT_AT_HAND if leaks(each, kind, known) else each for each in re.split(r"(?<=[.!?])\s+", text)
    )
    left = re.sub(r"\s+([.,;:!?])", r"\1", " ".join(" ".join(dict.fromkeys(sentences)).split()))
    return left or (_NOT_AT_HAND if known else "")


def without_numbers(value: Value) -> str:
    """The words of a value that hold no digit: `in cabinet` of `in cabinet 2`, which a guide still tells."""
    return " ".join(word for word in str(value).split(" ") if not any(map(str.isnumeric, word)))


def wrong_value(value: Value, seed: object, truths: Iterable[Fact]) -> Value | None:
    """A value of the same form that is wrong; None where the form does not tell how, as of a name."""
    if isinstance(value, bool):
        return not value
    chance = Random(f"{seed}/{value}")
    taken = {_plain(str(each.value)) for each in truths} | {_plain(str(value))}
    wrongs = (_changed(value, chance) for _ in range(20))
    return next((wrong for wrong in wrongs if wrong is not None and _plain(str(wrong)) not in taken), None)


def misheard(text: str, chance: Random) -> str:
    """A text as a speech recogniser may write it down: no capitals, no points, digits one by one, short words lost."""
    heard = re.findall(r"\d|[^\W\d_]+", text.casefold())
    kept = [word for word in heard if len(word) > 3 or word.isdigit() or chance.random() > 0.2]
    return " ".join(kept) or text.casefold()


def _changed(value: str | int | float, chance: Random) -> str | int | float | None:
    if not isinstance(value, str):
        return type(value)(round(value + chance.uniform(1, 5), 2))
    with suppress(ValueError, OverflowError):
        return (date.fromisoformat(value) + timedelta(days=chance.randint(1, 20))).isoformat()
    if any(map(str.isdecimal, value)):
        return re.sub(r"\d", lambda _: str(chance.randint(1, 9)), value)
    return "".join(chance.choice("BDFGKMPRT") for _ in value) if value.isupper() and value.isalpha() else None


def _plain(text: str) -> str:
    """A text for comparing: normalized, without invisible characters, and with ASCII digits."""
    characters = unicodedata.normalize("NFKC", text).casefold()
    return "".join(
        str(unicodedata.digit(each)) if each.isdigit() else each
        for each in characters
        if unicodedata.category(each) != "Cf"
    )
