"""Whether two English words are forms of one: "cancel" and "cancellation" are, "restart" and "restore" are not."""

from __future__ import annotations

# The longest first; what is left of a word has to be long enough to tell something.
_ENDINGS = {
    **dict.fromkeys(("ations", "ation", "ions", "ion", "als", "al"), 4),
    **dict.fromkeys(("ments", "ment", "ings", "ing"), 3),
    **dict.fromkeys(("ies", "ied", "es", "ed"), 4),
    "s": 3,
    "e": 4,
    "y": 4,
}
# What may be left of an ending behind the shorter of two roots: "activ" and "activat", "appl" and "applic".
_REMAINS = frozenset(("e", "at", "ic"))
_SHORT = 4


def are_forms_of_one(word: str, other: str) -> bool:
    """Whether two words, in small letters, are forms of one; where it cannot tell, they are not."""
    short, long = sorted((_root(word), _root(other)), key=len)
    if not long.startswith(short):
        return False
    remains = long[len(short) :]
    return not remains or remains == "e" or (len(short) >= _SHORT and remains in _REMAINS)


def _root(word: str) -> str:
    for ending, least in _ENDINGS.items():
        if word.endswith(ending) and len(word) - len(ending) >= least:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > _SHORT and word[-1] == word[-2] else word
