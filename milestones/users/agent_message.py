"""An agent's message as a user without a model takes it: questions, names and values, found by form and spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from arq_graph.reasoning.sections import name_in_words

CONFIRMATION = "Reply yes to go ahead."
"""The end of the question by which code asks for the customer's agreement."""

IDENTIFIER_WORDS = frozenset(("id", "number", "no", "code", "reference"))
"""Words that may stand for each other: an order's id is asked for as its number."""

MAX_CHARACTERS = 20_000
_EQUAL_WORDS = {"true": {"true", "yes"}, "false": {"false", "no"}}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟])\s*|\n+")
_FAILURE = re.compile(r"cannot|can't|could not|unable|not (?:possible|found|understand)", re.IGNORECASE)
_OFFER_OF_MORE = re.compile(r"(?:any|some)thing else", re.IGNORECASE)
_OFFER_OF_HELP = re.compile(r"how (?:can|may) I help|what can I do for you", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a user knows: its name (`order_id`), its value, and other words that ask for it."""

    name: str
    value: str | int | float | bool
    asked_as: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name in words: `order id`, for `orderId` too."""
        return name_in_words(self.name)

    @property
    def is_yes_or_no(self) -> bool:
        """True if the value is true or false: no text says it by itself."""
        return isinstance(self.value, bool)

    def is_in(self, text: str) -> bool:
        """Return True if a text says the value, as a whole word; never for a yes or no."""
        pattern = make_word_pattern(self.value)
        return not self.is_yes_or_no and re.search(pattern, text, re.IGNORECASE) is not None


class AgentMessage:
    """The agent's words, and what their form tells.

    Attributes:
        text: The words, without what stands in brackets.
        is_confirmation: True if code asks for an agreement.
        questions: The sentences that ask something, without offers to help.
        offers_help: True if the agent asks how it can help.
        reports_failure: True if the agent says that something isn't possible.
    """

    def __init__(self, text: str) -> None:
        text = text[:MAX_CHARACTERS].strip()
        self.is_confirmation = text.endswith(CONFIRMATION)
        if not self.is_confirmation:
            # What stands in brackets is an example: "your order number (such as ORD-1001)".
            text = re.sub(r"\([^()]*\)", "", text)
        self.text = text
        self.offers_help = False
        self.questions: list[str] = []
        for sentence in _SENTENCE_END.split(text):
            if not has_question(sentence):
                continue
            if _OFFER_OF_HELP.search(sentence):
                self.offers_help = True
            elif not _OFFER_OF_MORE.search(sentence):
                self.questions.append(sentence)
        self.reports_failure = _FAILURE.search(text) is not None


def make_word_pattern(value: object) -> str:
    """Return a pattern that finds a value as a whole word."""
    return rf"(?<!\w){re.escape(str(value))}(?!\w)"


def has_question(text: str) -> bool:
    """Return True if a sentence of a text ends with a question mark, of any script."""
    return re.search(r"[?？؟][^\w?]*(?:\s|$)", text) is not None


def split_into_words(text: str) -> list[str]:
    """Return the words of a text in lower case, those of a name such as `order_id` apart."""
    return re.findall(r"[^\W_]+", text.casefold())


def measure_overlap(phrase: str, text: str) -> float:
    """Return the share of a phrase's words that a text has, from 0 to 1, in any order and spelt nearly so.

    Words such as `number` alone count as nothing: they don't tell which thing is meant.
    """
    phrase_words, text_words = set(split_into_words(phrase)), split_into_words(text)
    names_identifier = not IDENTIFIER_WORDS.isdisjoint(text_words)
    matching_words = set()
    for word in phrase_words:
        is_synonym = names_identifier and word in IDENTIFIER_WORDS
        is_long = len(word) > 3
        if word in text_words or is_synonym or (is_long and _is_nearly_in(word, text_words)):
            matching_words.add(word)
    is_only_identifier = matching_words <= IDENTIFIER_WORDS and not phrase_words <= IDENTIFIER_WORDS
    if is_only_identifier or not phrase_words:
        return 0.0
    return len(matching_words) / len(phrase_words)


def _is_nearly_in(word: str, words: Sequence[str]) -> bool:
    return process.extractOne(word, words, scorer=fuzz.ratio, score_cutoff=80) is not None


def find_requested_facts(text: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts that a text names, or has other words for; else those that it half names."""
    named_facts, half_named_facts = [], []
    for fact in facts:
        share = measure_overlap(fact.label, text)
        for phrase in fact.asked_as:
            share = max(share, measure_overlap(phrase, text))
        if share == 1:
            named_facts.append(fact)
        elif share >= 0.5:
            half_named_facts.append(fact)
    return tuple(named_facts or half_named_facts)


def find_other_values(text: str, fact: Fact) -> set[str]:
    """Return the values, in lower case, that a text has in place of a fact's own: of its form, or after its name.

    Empty if the text says the fact's own value.
    """
    if fact.is_in(text):
        return set()
    text, value = text.casefold(), str(fact.value).casefold()
    if any(map(str.isdigit, value)) and any(map(str.isalpha, value)):
        identifier = re.sub(r"\d+", r"\\d+", make_word_pattern(value))
        return set(re.findall(identifier, text))
    label = r"[\s_]+".join(split_into_words(fact.label))
    quoted_values = re.findall(rf"\b{label}: (\"[^\"\n]+\"|\w+(?:[.,:-]\w+)*)", text)
    values = {quoted.strip('"') for quoted in quoted_values}
    return values - _EQUAL_WORDS.get(value, set())
