"""Words as their stems: all that the stand-in knows of language."""

from __future__ import annotations

import re
from functools import lru_cache

import snowballstemmer

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")

# Words that stand in any sentence, and those with which conditions begin. The list stays closed.
_STOP = """
a an the this that it its is are was be been has have had do does did can could will would may shall should i me my we
us our you your he she they their them there here and or but if as at by for from in into of on out to up with about
what which who where so please just any some customer user agent wants want asks ask says say said tells tell needs need
like
"""
_STOP_WORDS = frozenset(_STOP.split())


def words(text: str) -> list[str]:
    """The words of a text in lower case; `order_id` and `orderId` are two words."""
    return [word.casefold() for word in _WORD.findall(_HUMP.sub(" ", text.replace("_", " ")))]


def label(name: str) -> str:
    """A name in code as words: `order_id` is "order id"."""
    return " ".join(words(name))


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """The stems of the words of a text that say what it is about."""
    # A stemmer keeps the word it works on: one for each call is safe with threads.
    stemmer = snowballstemmer.stemmer("english")
    return frozenset(stemmer.stemWord(word) for word in words(text) if word not in _STOP_WORDS)


def share(wanted: frozenset[str], said: frozenset[str]) -> float:
    """Which part of the stems that are wanted was said, from 0 to 1."""
    return len(wanted & said) / len(wanted) if wanted else 0.0
