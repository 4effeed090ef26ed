"""Words: all that the offline model knows of language."""

from __future__ import annotations

import re
from math import ceil

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case; `order_id` and `orderId` are two words."""
    separated = _CAMEL_CASE.sub(" ", text.replace("_", " "))
    return [word.casefold() for word in _WORD.findall(separated)]


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
    """Return the words of a text that the other one has too, in any form."""
    other_words = split_content_words(other)
    common = []
    for word in split_content_words(text):
        if any(_is_same(word, other_word) for other_word in other_words):
            common.append(word)
    return common


def split_content_words(text: str) -> list[str]:
    """Return the different words of a text that say what it is about."""
    return [word for word in dict.fromkeys(split_words(text)) if word not in _STOP_WORDS]


def has_most_words(text: str, other: str) -> bool:
    """Return True if a text has words, and the other one has more than half of them."""
    return len(find_common(text, other)) * 2 > len(split_content_words(text))


def _is_same(word: str, other: str) -> bool:
    """Return True for equal words, and for those with a common prefix of four letters and two thirds of the longer."""
    length = max(4, ceil(max(len(word), len(other)) * 2 / 3))
    return word == other or word[:length] == other[:length]
