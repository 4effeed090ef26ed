"""Errors of a speech recogniser: words that sound alike, words lost or run together, letters and digits spelled out."""

from __future__ import annotations

import re
from random import Random

from arq_graph.models.offline.lexicon import listed

_SOUNDS_LIKE = {
    "their": "there", "there": "their", "to": "two", "for": "four", "right": "write", "write": "right",
    "know": "no", "your": "you're", "would": "wood", "buy": "by", "by": "buy", "hear": "here", "here": "hear",
    "wait": "weight", "week": "weak", "male": "mail", "mail": "male", "sale": "sail", "order": "or there",
    "address": "a dress", "email": "he mail", "cancel": "can sell", "refund": "re found", "appointment": "a pointment",
    "please": "pleas", "shipping": "chipping", "where": "wear", "our": "are", "book": "brook", "loan": "lone",
}  # fmt: skip
_OFTEN_LOST = listed("a an the is it i my of in to please and that")
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_SIGNS = {"-": "dash", "@": "at", ".": "dot", "/": "slash", "_": "underscore", "#": "hash", ":": ""}
_SHARE = 0.2


def misheard(text: str, chance: Random) -> str:
    """A text as a speech recogniser may write it down: in lower case, without punctuation, with mistakes.

    Args:
        text: What was said.
        chance: Which mistakes are made.
    """
    heard: list[str] = []
    for token in text.split():
        word = token.strip(",;:!?\"'()").rstrip(".")
        if any("0" <= character <= "9" for character in word) or "@" in word:
            heard.extend(_spelled(word))
            continue
        word = word.lower()
        if not word:
            continue
        draw = chance.random()
        if draw < _SHARE and word in _SOUNDS_LIKE:
            heard.append(_SOUNDS_LIKE[word])
        elif draw < _SHARE and word in _OFTEN_LOST:
            continue
        elif draw > 1 - _SHARE / 4 and heard and len(word) < 5:
            heard[-1] += word
        else:
            heard.append(word)
    return " ".join(heard) or text.lower()


def _spelled(token: str) -> list[str]:
    """An identifier as it is read out: `OR-12` becomes o r dash one two; longer words stay words."""
    words: list[str] = []
    for part in re.findall(r"[0-9]|[^\W\d_]+|[^\w\s]|_", token):
        if part in _SIGNS:
            words.extend(filter(None, [_SIGNS[part]]))
        elif "0" <= part <= "9":
            words.append(_DIGITS[int(part)])
        elif part.isalpha():
            words.extend(part.lower() if len(part) <= 3 else [part.lower()])
    return words
