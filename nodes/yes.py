"""Decide whether a customer's answer is a yes: by the closed list of phrases in `yes.yaml`, and nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from langchain_core.messages import BaseMessage

from arq_graph.reasoning.sections import normalize_text

MAX_WORDS = 20
"""The most words that an answer may have to count as a yes."""

_SKIN_TONE = re.compile("[\U0001f3fb-\U0001f3ff]")
_FIRST_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")

Phrases = Mapping[tuple[str, ...], str]
"""Phrases as words, each with its kind."""


def is_yes(answers: Sequence[BaseMessage], tools: Iterable[str] = ()) -> bool:
    """Return whether a customer's messages together are a yes.

    They are one if they have only text, no question mark, and consist entirely of listed phrases, at least one of which
    is a yes. "Ok" counts only together with another phrase. Next to a yes, the first word of a tool's name with "it" is
    allowed, too: "ok, yes, cancel it please".
    """
    words: list[str] = []
    for message in answers:
        blocks = [] if isinstance(message.content, str) else message.content
        is_text = all(isinstance(block, str) or block.get("type") == "text" for block in blocks)
        if not is_text or has_question_mark(message.text):
            return False
        words += _split_words(message.text)
    if len(words) > MAX_WORDS:
        return False
    phrases: dict[tuple[str, ...], str] = {}
    for tool in tools:
        if first_word := _FIRST_WORD.search(tool):
            phrases[(*_split_words(first_word[0]), "it")] = "action"
    phrases.update(_load_phrases())
    for kinds in _parse_phrases(words, phrases):
        is_confirmed_ok = "ok" in kinds and ("please" in kinds or "action" in kinds)
        if ("yes" in kinds or is_confirmed_ok) and "never" not in kinds:
            return True
    return False


def has_question_mark(text: str) -> bool:
    """Return whether a text has a question mark, of any script."""
    for character in text:
        name = "" if character.isalnum() else unicodedata.name(character, "")
        if "QUESTION" in name or "INTERROBANG" in name:
            return True
    return False


def _split_words(text: str) -> list[str]:
    """Return the words of a text without punctuation.

    A symbol is a word of its own, so that it counts: "$5" is two words, and neither of them is listed.
    """
    spaced = []
    for character in _SKIN_TONE.sub("", normalize_text(text)).casefold():
        category = unicodedata.category(character)[0]
        if category in "PZC":
            spaced.append(" ")
        elif category == "S":
            spaced.append(f" {character} ")
        else:
            spaced.append(character)
    return "".join(spaced).split()


@cache
def _load_phrases() -> Phrases:
    import yaml  # here, so that importing this module stays quick

    phrases_by_kind = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    kind_by_phrase: dict[tuple[str, ...], str] = {}
    for phrases in phrases_by_kind.pop("yes").values():  # one list per language
        for phrase in phrases:
            kind_by_phrase[tuple(_split_words(phrase))] = "yes"
    for kind, phrases in phrases_by_kind.items():
        for phrase in phrases:
            kind_by_phrase[tuple(_split_words(phrase))] = kind
    return kind_by_phrase


def _parse_phrases(words: Sequence[str], phrases: Phrases) -> set[frozenset[str]]:
    """Return, for every way to split the words entirely into phrases, the kinds of these phrases."""
    # kinds_up_to[n] has the kinds of phrases in every split of the first n words.
    kinds_up_to: list[set[frozenset[str]]] = [set() for _ in range(len(words) + 1)]
    kinds_up_to[0].add(frozenset())
    for start, kinds_before in enumerate(kinds_up_to):
        for end in range(start + 1, len(words) + 1):
            if kind := phrases.get(tuple(words[start:end])):
                kinds_up_to[end] |= {kinds | {kind} for kinds in kinds_before}
    return kinds_up_to[-1]
