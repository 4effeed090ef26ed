"""Words: all that the offline model knows of language."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_PREFIX_LENGTH = 4

NEGATIONS = frozenset({"no", "not", "without", "don't", "don’t"})


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case; `order_id` is two words."""
    return [word.casefold() for word in _WORD.findall(text)]


def to_phrase(name: str) -> str:
    """Return a name in code as words: `order_id` is "order id"."""
    return " ".join(split_words(name))


_STOP_WORDS = frozenset(
    split_words(
        """
        a an the this that it its is are was be been has have had do does did can could will would may shall should
        i me my we us our you your he she they their them there here and or but if as at by for from in into of on out
        to up with about what which who where so please just any some customer user agent wants want asks ask says say
        said tells tell needs need like get
        """
    )
)


def find_common(text: str, other: str) -> list[str]:
    """Return the words of a text that begin like a word of the other one, without words that say little."""
    prefixes = {word[:_PREFIX_LENGTH] for word in _split_content_words(other)}
    return [word for word in _split_content_words(text) if word[:_PREFIX_LENGTH] in prefixes]


def has_most_words(text: str, other: str) -> bool:
    """Return True if a text has words, and the other one has more than half of them."""
    return len(find_common(text, other)) * 2 > len(_split_content_words(text))


def _split_content_words(text: str) -> list[str]:
    return [word for word in dict.fromkeys(split_words(text)) if word not in _STOP_WORDS]
