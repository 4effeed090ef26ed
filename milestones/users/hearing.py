"""What a user without a model makes of the agent's words: questions, names and values, found by form and spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from arq_graph.milestones.values import as_number

CONFIRMATION = "Reply yes to go ahead."
"""How the question ends by which code asks for the customer's agreement."""

NAMES_OF_IDENTIFIERS = frozenset(("id", "number", "no", "code", "reference"))
"""Words that may stand for each other: an order's id is asked for as its number."""

LONGEST = 20_000
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟])\s*|\n+")
_FAILS = (
    "cannot",
    "can't",
    "could not",
    "unable",
    "not possible",
    "not found",
    "not understand",
    "did not work",
)
_OFFERS_MORE = ("anything else", "something else", "further questions")
_OFFERS_HELP = ("how can I help", "how may I help", "what can I do for you")


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
        whole = rf"(?<!\w){re.escape(str(self.value))}(?!\w)"
        return not isinstance(self.value, bool) and bool(re.search(whole, text, re.IGNORECASE))


class Heard:
    """The agent's words, and what can be told of them by their form."""

    def __init__(self, text: str) -> None:
        text = text[:LONGEST].strip()
        self.confirms = text.endswith(CONFIRMATION)
        # What stands in brackets is an example: "your order number (such as ORD-1001)".
        self.text = text if self.confirms else re.sub(r"\([^()]*\)", "", text)
        asked = [each for each in _SENTENCE.split(self.text) if asks_something(each)]
        self.offers_help = any(_says(_OFFERS_HELP, each) for each in asked)
        self.questions = [each for each in asked if not _says((*_OFFERS_HELP, *_OFFERS_MORE), each)]
        self.fails = _says(_FAILS, self.text)


def asks_something(text: str) -> bool:
    """Whether a sentence of a text ends with a question mark, of any script."""
    return bool(re.search(r"[?？؟][^\w?]*(?:\s|$)", text))


def words_of(text: str) -> list[str]:
    """The words of a text, those of a name such as `order_id` apart."""
    return re.findall(r"[^\W_]+", text.casefold())


def names(phrase: str, text: str, *, share: float = 1.0) -> bool:
    """Whether a text has the words of a phrase, in any order and spelt nearly so; or a share of them, from 0 to 1."""
    wanted = words_of(phrase)
    return bool(wanted) and len(_found(wanted, words_of(text))) >= share * len(set(wanted))


def asked_for(text: str, facts: Sequence[Fact]) -> list[Fact]:
    """The facts that a text asks for, by their names or by other words for them.

    Where two share a word, such as `order_id` and `order_date`, the one that is named more fully is meant.
    """
    there = words_of(text)
    rated = sorted(((_share(fact, there), fact) for fact in facts), key=lambda each: -each[0][0])
    meant: list[Fact] = []
    taken: set[str] = set()
    for (share, found), fact in rated:
        if share >= 0.5 and not found <= taken:
            meant.append(fact)
            taken |= found
    return meant


def others_said(text: str, fact: Fact) -> set[str]:
    """Values in a text that stand behind a fact's name, or look like its value, where the value itself is not there.

    A value without a digit is only looked for in quotes behind the name; an identifier of letters and digits anywhere.
    """
    if fact.is_in(text):
        return set()
    label, value = r"[\s_]+".join(words_of(fact.name)), str(fact.value)
    behind = rf"\b{label}\W{{1,3}}(?:is )?(?:(?<=[\"“'‘])([^\"”'’\n]+)|(\w[^\s,;]*\w|\w))"
    found = re.findall(behind, text, re.IGNORECASE)
    if isinstance(fact.value, bool):
        opposite = ("no", "false") if fact.value else ("yes", "true")
        return {bare for _, bare in found if bare.casefold() in opposite}
    if not any(map(str.isdigit, value)):
        return {quoted for quoted, _ in found if quoted}
    said = {quoted or bare for quoted, bare in found}
    if any(map(str.isalpha, value)):
        shape = "".join(
            r"\d+" if part.isdigit() else re.escape(part) for part in re.findall(r"\d+|\D+", value)
        )
        said = set(re.findall(rf"(?<!\w){shape}(?!\w)", text, re.IGNORECASE))
    number = as_number(value)
    return {
        each for each in said if any(map(str.isdigit, each)) and (number is None or as_number(each) != number)
    }


def _says(phrases: Iterable[str], text: str) -> bool:
    return any(fuzz.partial_ratio(phrase.casefold(), text.casefold()) >= 95 for phrase in phrases)


def _share(fact: Fact, there: list[str]) -> tuple[float, set[str]]:
    """How much of a fact's name, or of other words for it, stands in a text, and which words."""
    best: tuple[float, set[str]] = (0.0, set())
    for phrase in (fact.label, *fact.asked_as):
        wanted = words_of(phrase)
        found = _found(wanted, there)
        # That something has a number says nothing of which thing it is.
        if wanted and (not found <= NAMES_OF_IDENTIFIERS or set(wanted) <= NAMES_OF_IDENTIFIERS):
            best = max(best, (len(found) / len(wanted), found), key=lambda each: each[0])
    return best


def _found(wanted: Sequence[str], there: Sequence[str]) -> set[str]:
    identifies = not NAMES_OF_IDENTIFIERS.isdisjoint(there)
    return {
        word
        for word in wanted
        if word in there
        or (identifies and word in NAMES_OF_IDENTIFIERS)
        or (len(word) > 3 and process.extractOne(word, there, scorer=fuzz.ratio, score_cutoff=80))
    }
