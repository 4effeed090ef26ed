"""How far texts speak of something: the share of its words that they have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.words import Word, best_match, content, stem, weight

DEALS = frozenset(stem(word) for word in listed("order book buy reserve schedule purchase"))
WISHES = re.compile(
    r"\bi(?:'d| would) like|\bi(?:'ll| will) (?:have|take)|\b(?:i|we) (?:want|need) (?!to\b)|\b(?:can"
    r"|could|may) (?:i|we) (?:have|get)"
    r"|\bgive me|(?<!,)(?<!\byes)(?<!\byeah)(?<!\byep)(?<!\bsure)(?<!\bok)(?<!\bokay),? please\W*$",
    re.IGNORECASE,
)
"""A "yes, please" wishes for nothing of its own."""
ON_OFFER = stem("onoffer")
SPECIFIC = re.compile(r"(?<=[\w,;] )[A-Z][a-z][\w'’]*|[\"“][^\"”]*[\"”]|\b[A-Z]{1,6}[-#/]?\d[\w-]*")
"""Names and numbers within a sentence say which one is meant, not what the sentence is about."""


def share(sought: tuple[Word, ...], among: tuple[Word, ...]) -> float:
    """The share of the words sought, by weight, that are among others: 0 to 1."""
    total = sum(weight(word.stem) for word in sought)
    if not total:
        return 0.0
    return sum(weight(word.stem) * best_match(word, among)[0] for word in sought) / total


def speaks_of(
    sought: tuple[Word, ...],
    texts: Sequence[str],
    context: tuple[Word, ...],
    profile: tuple[Word, ...] = (),
    decisive: frozenset[str] = frozenset(),
) -> float:
    """How far texts speak of what is sought.

    The share of its words that they have, where a word that only the talk before had counts half. Where that
    leaves doubt, it helps if a sentence is about little else: "I want to cancel" is about an order in a talk
    about orders, "cancel my subscription" is not.

    Args:
        sought: The words sought.
        texts: What was said.
        context: The words of the talk before.
        profile: The words of what the agent is for.
        decisive: Stems of what it is all about: that is not meant just because it was spoken of before.
    """
    among = tuple(word for text in texts for word in content(text))
    total = sum(weight(word.stem) for word in sought)
    if not total or not among:
        return 0.0
    direct = met = 0.0
    for word in sought:
        alike = best_match(word, among)[0]
        if alike < 0.9 and word.stem in DEALS and any(map(WISHES.search, texts)):
            alike = 0.9
            context += profile
        direct += weight(word.stem) * alike
        before = 0.0 if word.stem in decisive else 0.5 * best_match(word, context)[0]
        met += weight(word.stem) * max(alike, before)
    recall = direct / total
    if recall >= 0.75 or recall < 0.45:
        return recall
    sentences = [sentence for text in texts for sentence in dialogue.sentences(text)]
    precision = max((_share_of_sentence(sentence, sought) for sentence in sentences), default=0.0)
    return max(recall, min(1.0, met / total), 0.5 * recall + 0.5 * precision)


def _share_of_sentence(sentence: str, sought: tuple[Word, ...]) -> float:
    plain = SPECIFIC.sub(" ", sentence)
    said = [word for word in content(plain) if not any(map(str.isdigit, word.stem)) and word.stem != ON_OFFER]
    if not said:  # "Do you have Dune?" is about what it names, whatever that is
        is_about_it = any(best_match(word, sought)[0] for word in content(sentence))
        return 1.0 if plain != sentence and is_about_it else 0.0
    return sum(best_match(word, sought)[0] for word in said) / len(said)
