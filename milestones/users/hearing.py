"""What a user without a model makes of the agent's words: questions, names and values, found by form and spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

CONFIRMATION = "Reply yes to go ahead."
"""How the question ends by which code asks for the customer's agreement."""

NAMES_OF_IDENTIFIERS = frozenset(("id", "number", "no", "code", "reference"))
"""Words that may stand for each other: an order's id is asked for as its number."""

LONGEST = 20_000
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟])\s*|\n+")
_FAILS = re.compile(r"cannot|can't|could not|unable|not (?:possible|found|understand)", re.IGNORECASE)
_OFFERS_MORE = re.compile(r"(?:any|some)thing else", re.IGNORECASE)
_OFFERS_HELP = re.compile(r"how (?:can|may) I help|what can I do for you", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a user knows: what it is called (`order_id`), its value, and other words that ask for it."""

    name: str
    value: str | int | float | bool
    asked_as: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name in words: `order id`."""
        return self.name.replace("_", " ")

    def is_in(self, text: str) -> bool:
        """Whether a text says the value, as a whole word; a yes or no is in none."""
        return not isinstance(self.value, bool) and bool(re.search(whole(self.value), text, re.IGNORECASE))


class Heard:
    """The agent's words, and what can be told of them by their form."""

    def __init__(self, text: str) -> None:
        text = text[:LONGEST].strip()
        self.confirms = text.endswith(CONFIRMATION)
        # What stands in brackets is an example: "your order number (such as ORD-1001)".
        self.text = text if self.confirms else re.sub(r"\([^()]*\)", "", text)
        asked = [each for each in _SENTENCE.split(self.text) if asks_something(each)]
        self.offers_help = any(map(_OFFERS_HELP.search, asked))
        self.questions = [
            each for each in asked if not (_OFFERS_HELP.search(each) or _OFFERS_MORE.search(each))
        ]
        self.fails = bool(_FAILS.search(self.text))


def whole(value: object) -> str:
    """A pattern that finds a value as a whole word."""
    return rf"(?<!\w){re.escape(str(value))}(?!\w)"


def asks_something(text: str) -> bool:
    """Whether a sentence of a text ends with a question mark, of any script."""
    return bool(re.search(r"[?？؟][^\w?]*(?:\s|$)", text))


def words_of(text: str) -> list[str]:
    """The words of a text, those of a name such as `order_id` apart."""
    return re.findall(r"[^\W_]+", text.casefold())


def share_named(phrase: str, text: str) -> float:
    """How much of a phrase stands in a text, 0 to 1: its words in any order, spelt nearly so.

    That something has a number says nothing of which thing it is.
    """
    wanted, there = set(words_of(phrase)), words_of(text)
    identifies = not NAMES_OF_IDENTIFIERS.isdisjoint(there)
    found = {
        word
        for word in wanted
        if word in there
        or (identifies and word in NAMES_OF_IDENTIFIERS)
        or (len(word) > 3 and process.extractOne(word, there, scorer=fuzz.ratio, score_cutoff=80))
    }
    says_nothing = found <= NAMES_OF_IDENTIFIERS and not wanted <= NAMES_OF_IDENTIFIERS
    return 0.0 if says_nothing or not wanted else len(found) / len(wanted)


def asked_for(text: str, facts: Sequence[Fact]) -> list[Fact]:
    """The facts that a text asks for, by their names or by other words for them; else those that it half names."""
    shares = [max(share_named(phrase, text) for phrase in (fact.label, *fact.asked_as)) for fact in facts]
    least = 1.0 if 1.0 in shares else 0.5
    return [fact for fact, share in zip(facts, shares, strict=True) if share >= least]


def others_said(text: str, fact: Fact) -> set[str]:
    """Values in a text that stand where a fact's own is not: of its form, as an identifier, or behind its name."""
    if fact.is_in(text):
        return set()
    value = str(fact.value)
    if any(map(str.isdigit, value)) and any(map(str.isalpha, value)):
        return set(re.findall(re.sub(r"\d+", lambda _: r"\d+", whole(value)), text, re.IGNORECASE))
    label = r"[\s_]+".join(words_of(fact.name))
    behind = re.findall(rf"\b{label}: (\"[^\"\n]+\"|\w+(?:[.,:-]\w+)*)", text, re.IGNORECASE)
    right = {str(True): ("yes", "true"), str(False): ("no", "false")}.get(value, ())
    return {said.strip('"') for said in behind if said.strip('"').casefold() not in right}
