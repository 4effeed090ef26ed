"""Whether a customer's answer is a yes: a short closed list, kept in `yes.yaml`, and no other reading."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import regex  # type: ignore[import-untyped]
from langchain_core.messages import BaseMessage

_MOST_WORDS = 20
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")
UNSEEN = r"[\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]|(?!\s)\p{Cc}"
"""The signs that nobody sees, as a pattern of `regex`."""
_FIRST_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")

Phrases = Mapping[tuple[str, ...], str]


def says_yes(answers: Sequence[BaseMessage], tools: Iterable[str] = ()) -> bool:
    """Whether a customer's messages together are a yes.

    They are text alone, ask nothing, and fall wholly into the phrases of the list, one of them a yes. "Ok" is one
    only with something beside it; beside a yes, so is a tool's first word with "it": "ok, yes, cancel it please".
    """
    words: list[str] = []
    for message in answers:
        blocks = [] if isinstance(message.content, str) else message.content
        is_text = all(isinstance(block, str) or block.get("type") == "text" for block in blocks)
        if not is_text or has_question_mark(message.text):
            return False
        words += _words(message.text)
    own = {(*_words(found[0]), "it"): "deed" for name in tools if (found := _FIRST_WORD.search(name))}
    return len(words) <= _MOST_WORDS and any(map(_is_yes, _readings(words, {**own, **_phrases()})))


def normalize_text(text: str) -> str:
    """A text as it is read: compatibility forms made plain, and signs that nobody sees left out."""
    without: str = regex.sub(UNSEEN, "", unicodedata.normalize("NFKC", text))
    return without


def has_question_mark(text: str) -> bool:
    """Whether a text holds a question mark, of any script."""
    names = [unicodedata.name(character, "") for character in text if not character.isalnum()]
    return any("QUESTION" in name or "INTERROBANG" in name for name in names)


def _words(text: str) -> list[str]:
    """The words and signs of a text, however they are written, without punctuation."""
    plain = _SKIN.sub("", normalize_text(text)).casefold()
    kinds = [(character, unicodedata.category(character)) for character in plain]
    # A sign is a word of its own, so that it counts: "$5" is two words, and neither is on the list.
    spaced = (" " if kind[0] in "PZC" else f" {each} " if kind[0] == "S" else each for each, kind in kinds)
    return "".join(spaced).split()


@cache
def _phrases() -> Phrases:
    import yaml  # when it is used: importing is quicker

    listed = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    by_kind = {**listed, "yes": [phrase for language in listed["yes"].values() for phrase in language]}
    return {tuple(_words(phrase)): kind for kind, phrases in by_kind.items() for phrase in phrases}


def _readings(words: Sequence[str], phrases: Phrases) -> set[frozenset[str]]:
    """The kinds of phrases of every way in which the words fall wholly into phrases."""
    found: list[set[frozenset[str]]] = [set() for _ in range(len(words) + 1)]
    found[0].add(frozenset())
    for start, so_far in enumerate(found):
        for end in range(start + 1, len(words) + 1):
            if kind := phrases.get(tuple(words[start:end])):
                found[end] |= {kinds | {kind} for kinds in so_far}
    return found[-1]


def _is_yes(kinds: frozenset[str]) -> bool:
    is_firm = "yes" in kinds or ("ok" in kinds and not kinds.isdisjoint({"please", "deed"}))
    return is_firm and "never" not in kinds
