"""Words of a text as stems, and how alike two of them are."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from arq_graph.models.offline.lexicon import (
    FAINT_WORDS,
    IRREGULAR,
    KINDS,
    NEGATORS,
    PHRASES,
    RELATED,
    STOP_WORDS,
    SYNONYMS,
    WEAK_WORDS,
)

MAX_CHARACTERS = 20_000
"""Only the first and the last half of this many characters of one text are read."""

_CACHED_CHARACTERS = 1_500
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[.,;:!?\n]")
_PHRASE = re.compile(r"\b(?:" + "|".join(f"({pattern})" for pattern in PHRASES) + r")\b")
_REPLACEMENTS = tuple(PHRASES.values())
_AMOUNT = re.compile(r"[$€£](?=\s?\d)|(?<=\d)\s?[$€£]")
_VOWEL = re.compile(r"[aeiouy]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./]+")


class Word(NamedTuple):
    """A word of a text.

    Args:
        stem: What it is compared by.
        surface: The word as it stands in the text, in lower case.
        negated: Whether a negation stands before it.
    """

    stem: str
    surface: str
    negated: bool


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The stem of a word in lower case, by English suffix rules; other languages come out nearly unchanged."""
    word = word.replace("’", "'").removesuffix("'s").removesuffix("'")
    if (regular := IRREGULAR.get(word)) is not None:
        return regular if regular == word else stem(regular)
    if len(word) <= 3 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix, kept in (
        ("ations", 4),
        ("ation", 4),
        ("ing", 3),
        ("ed", 3),
        ("ment", 3),
        ("able", 4),
        ("ly", 4),
    ):
        root = word[: -len(suffix)]
        if word.endswith(suffix) and len(root) >= kept and _VOWEL.search(root):
            word = root
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeosz":
        word = word[:-1]
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 4 and word.endswith("i"):
        word = word[:-1] + "y"
    return word


def _index(lines: tuple[str, ...]) -> dict[str, str]:
    return {stem(word): stem(line.split()[0]) for line in lines for word in line.split()}


_CANONICAL = _index(SYNONYMS)
_STOP = STOP_WORDS | ({word.replace("'", "") for word in STOP_WORDS} - {"id", "ill"})
_WEAK = frozenset(map(stem, WEAK_WORDS))
_FAINT = frozenset(map(stem, FAINT_WORDS))


def _canonical(stem: str) -> str:
    return _CANONICAL.get(stem, stem)


_RELATED = frozenset(
    frozenset(_canonical(stem(word)) for word in pair)
    for pair in (
        *(line.split() for line in RELATED),
        *((general, special) for general, specials in KINDS.items() for special in specials.split()),
    )
)


def _normalise(text: str) -> str:
    lowered = _AMOUNT.sub(" money ", text.lower().replace("’", "'"))
    return _PHRASE.sub(lambda match: f" {_REPLACEMENTS[(match.lastindex or 1) - 1]} ", lowered)


def shortened(text: str) -> str:
    """The beginning and the end of a very long text."""
    if len(text) <= MAX_CHARACTERS:
        return text
    half = MAX_CHARACTERS // 2
    return f"{text[:half]}\n{text[-half:]}"


def _read(text: str) -> tuple[Word, ...]:
    found: list[Word] = []
    reach = 0  # how many further words the last negation still covers
    for token in _WORD.findall(_normalise(shortened(text))):
        if token in ".,;:!?\n" or token in ("but", "however"):
            reach = 0
        elif token in NEGATORS:
            reach = 1
            if token in ("can't", "cannot", "cant", "unable", "won't"):
                found.append(Word("problem", token, False))
        elif token not in _STOP:
            found.append(Word(stem(token), token, reach > 0))
            reach -= 1 if stem(token) not in _WEAK else 0
    return tuple(found)


_read_cached = lru_cache(maxsize=4_096)(_read)


def words(text: str) -> tuple[Word, ...]:
    """The words of a text that carry meaning, in order, each with whether it is negated."""
    return _read_cached(text) if len(text) <= _CACHED_CHARACTERS else _read(text)


def content(text: str) -> tuple[Word, ...]:
    """Its words without those that any condition is made of ("the customer wants to know …")."""
    return tuple(word for word in words(text) if word.stem not in _WEAK)


def stems(text: str) -> frozenset[str]:
    """The stems of its words, negated or not."""
    return frozenset(word.stem for word in words(text))


def weight(stem: str) -> float:
    """How much a word of a condition counts: 1, or less for words that say little."""
    return 0.3 if stem in _FAINT else 1.0


@lru_cache(maxsize=65_536)
def likeness(one: str, other: str) -> float:
    """How alike two stems are, 0 to 1: the same, synonyms, related, or spelled nearly the same."""
    if one == other:
        return 1.0
    first, second = _canonical(one), _canonical(other)
    if first == second:
        return 0.9
    if frozenset((first, second)) in _RELATED:
        return 0.7
    return 0.8 if _misspelled(one, other) else 0.0


def _misspelled(one: str, other: str) -> bool:
    """Whether one letter is wrong, missing, added or swapped, in a word long enough for that to be a slip."""
    if min(len(one), len(other)) < 5 or abs(len(one) - len(other)) > 1 or one[0] != other[0]:
        return False
    if any(map(str.isdigit, one + other)):
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    rest, other_rest = one[start:], other[start:]
    if len(rest) == len(other_rest):
        swapped = rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
        return swapped or (rest[1:] == other_rest[1:] and start > 3)
    return rest[1:] == other_rest or other_rest[1:] == rest


def best_match(word: Word, among: tuple[Word, ...]) -> tuple[float, Word | None]:
    """The word among others that is most like this one and equally negated, and how alike they are."""
    best, found = 0.0, None
    for other in among:
        if other.negated == word.negated:
            alike = likeness(word.stem, other.stem)
            if alike > best:
                best, found = alike, other
                if best == 1.0:
                    break
    return best, found


def overlap(wanted: str, text: str) -> float:
    """The share of the wanted text's words, by weight, that the other text has: 0 to 1."""
    sought = content(wanted) or words(wanted)
    among = words(text)
    total = sum(weight(word.stem) for word in sought)
    if not total or not among:
        return 0.0
    return (
        sum(
            weight(word.stem) * best_match(word._replace(negated=False), _affirmed(among))[0]
            for word in sought
        )
        / total
    )


def _affirmed(among: tuple[Word, ...]) -> tuple[Word, ...]:
    return tuple(word._replace(negated=False) for word in among)


@lru_cache(maxsize=4_096)
def in_words(name: str) -> str:
    """A name from code as plain words: `order_id` and `orderId` become "order id"."""
    return " ".join(_CAMEL.sub(" ", name).split()).lower()
