"""The facts that each kind of user discloses: all, those without numbers, or none that is true; and misheard speech."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta
from random import Random

from arq_graph.milestones.users.agent_message import (
    IDENTIFIER_WORDS,
    Fact,
    make_word_pattern,
    split_into_words,
)
from arq_graph.milestones.users.user_spec import UserSpec, Value

_NOT_AT_HAND = "I do not have that at hand."


def is_withheld_if_perturbed(fact: Fact) -> bool:
    """Return True if a perturbed user doesn't have a value at hand: a number, date, mail address or identifier."""
    text = str(fact.value)
    is_identifier = not IDENTIFIER_WORDS.isdisjoint(split_into_words(fact.name))
    return not fact.is_yes_or_no and (is_identifier or "@" in text or _has_digit(text))


def is_disclosing(text: str, spec: UserSpec) -> bool:
    """Return True if a text says what this kind of user never says, with whatever separators.

    A perturbed user says no digit of any script, and an unhelpful one no true value. Numbers in words are not found.
    """
    if spec.kind == "helpful":
        return False
    normal_text = _normalize(text)
    if spec.kind == "perturbed" and _has_digit(normal_text):
        return True
    return any(_says_value(normal_text, fact) for fact in select_withheld_facts(spec))


def select_withheld_facts(spec: UserSpec) -> list[Fact]:
    """Return the facts that this kind of user doesn't tell."""
    if spec.kind == "helpful":
        return []
    if spec.kind == "perturbed":
        return list(filter(is_withheld_if_perturbed, spec.facts))
    return [fact for fact in spec.facts if not fact.is_yes_or_no]


def _says_value(normal_text: str, fact: Fact) -> bool:
    value = _normalize(str(fact.value))
    if re.search(make_word_pattern(value), normal_text):
        return True
    if not is_withheld_if_perturbed(fact):
        return False
    squeezed_text = re.sub(r"[\W_]+", "", normal_text)
    codes = (re.sub(r"[\W_]+", "", value), re.sub(r"\D", "", value))
    return any(len(code) > 2 and code in squeezed_text for code in codes)


def redact(text: str, spec: UserSpec, seed: object) -> str:
    """Return a text as this kind of user says it: without numbers, or with wrong values for the true ones."""
    if spec.kind == "helpful":
        return text
    for fact in sorted(select_withheld_facts(spec), key=lambda fact: -len(str(fact.value))):
        replacement = ""
        if spec.kind == "unhelpful":
            replacement = str(make_wrong_value(fact.value, seed, spec.facts) or "something")
        text = _replace_word(text, fact.value, replacement)
    if spec.kind == "perturbed":
        text = strip_numbers(text)
    sentences = []
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        sentences.append(_NOT_AT_HAND if is_disclosing(sentence, spec) else sentence)
    words = " ".join(dict.fromkeys(sentences)).split()
    redacted = re.sub(r"\s+([.,;:!?])", r"\1", " ".join(words))
    if not redacted and not all(fact.is_yes_or_no for fact in spec.facts):
        return _NOT_AT_HAND
    return redacted


def _replace_word(text: str, value: object, replacement: str) -> str:
    return re.sub(make_word_pattern(value), lambda _: replacement, text, flags=re.IGNORECASE)


def strip_numbers(value: Value) -> str:
    """Return the words of a value that hold no digit: `in cabinet` of `in cabinet 2`, which a guide still tells."""
    return " ".join(word for word in str(value).split(" ") if not _has_digit(word))


def make_wrong_value(value: Value, seed: object, facts: Sequence[Fact]) -> Value | None:
    """Return a value of the same form that is wrong; None if the form doesn't tell how, as of a name."""
    if isinstance(value, bool):
        return not value
    chance = Random(f"{seed}/{value}")
    true_values = {_normalize(str(fact.value)) for fact in facts}
    true_values.add(_normalize(str(value)))
    for _ in range(20):
        candidate = _vary(value, chance)
        if candidate is not None and _normalize(str(candidate)) not in true_values:
            return candidate
    return None


def simulate_speech_recognition(text: str, chance: Random) -> str:
    """Return a text as a recogniser may write it down: no capitals, no full stops, single digits, short words lost."""
    words = []
    for word in re.findall(r"\d|[^\W\d_]+", text.casefold()):
        if len(word) > 3 or word.isdigit() or chance.random() > 0.2:
            words.append(word)
    return " ".join(words) or text.casefold()


def _vary(value: str | int | float, chance: Random) -> str | int | float | None:
    if not isinstance(value, str):
        return type(value)(round(value + chance.uniform(1, 5), 2))
    with suppress(ValueError, OverflowError):
        return (date.fromisoformat(value) + timedelta(days=chance.randint(1, 20))).isoformat()
    if any(map(str.isdecimal, value)):
        return re.sub(r"\d", lambda _: str(chance.randint(1, 9)), value)
    if value.isupper() and value.isalpha():
        return "".join(chance.choice("BDFGKMPRT") for _ in value)
    return None


def _has_digit(text: str) -> bool:
    return any(map(str.isnumeric, text))


def _normalize(text: str) -> str:
    """Return a text for comparing: in lower case, without invisible characters, and with ASCII digits."""
    characters = []
    for character in unicodedata.normalize("NFKC", text).casefold():
        if character.isdigit():
            characters.append(str(unicodedata.digit(character)))
        elif unicodedata.category(character) != "Cf":
            characters.append(character)
    return "".join(characters)
