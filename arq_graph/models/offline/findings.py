"""Reading what a tool found: its values with their names, whether it found nothing, whether it failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.words import Word, in_words, likeness, words

MAX_LEAVES = 200
_EMPTY_TEXT = re.compile(
    r"\b(?:not found|no (?:results?|match(?:es)?|records?|entr(?:y|ies)|\w+ (?:were |was )?found)|none"
    r"|nothing|does(?:n't| not)"
    r" exist|unknown|could not find|unable to find|invalid|empty)\b",
    re.IGNORECASE,
)
_FAILED_TEXT = re.compile(
    r"^\W*(?:error|exception|failed|failure|traceback)\b|\b(?:timed? ?out|an? (?:\w+ )?error|exception"
    r"|failed)\b",
    re.IGNORECASE,
)
_FAILURE_KEYS = frozenset(("error", "errors", "exception", "failure"))
_SUCCESS_KEYS = frozenset(("ok", "success", "successful", "succeeded"))
_COUNT_KEYS = re.compile(
    r"(?:^|_)(?:count|total|available|availability|remaining|left|stock|quantity|copies|seats|slots"
    r"|rooms|results?|matches"
    r"|free|units)(?:$|_)",
    re.IGNORECASE,
)
_YET_TO_COME = re.compile(
    r"\b(?:will|to) be\b|\byet to\b|\b(?:expected|scheduled|estimated|due|planned) (?:to|for)\b|\bnot "
    r"yet\b|\bbefore\b|\bif\b"
    r"|\bonce\b|\bwhen\b|\buntil\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Leaf:
    """One value of a result.

    Args:
        path: The keys that lead to it, with the numbers of list entries left out.
        value: A string, a number, a boolean or None.
    """

    path: tuple[str, ...]
    value: Any

    @property
    def key(self) -> str:
        """Its own name; empty for a value without one."""
        return self.path[-1] if self.path else ""

    @cached_property
    def names(self) -> tuple[Word, ...]:
        """The words of the keys that lead to it."""
        return words(in_words(" ".join(self.path)))


@dataclass(frozen=True)
class Finding:
    """A tool's result, read.

    Args:
        line: The line of the conversation it stands in.
    """

    line: Line

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """Its values."""
        return _leaves(self.line.text)

    @cached_property
    def failed(self) -> bool:
        """Whether the tool reports that it could not do what it was asked."""
        if self.line.error:
            return True
        result = self.line.result
        if isinstance(result, str):
            return bool(_FAILED_TEXT.search(result[:300]))
        return any(
            (leaf.key.lower() in _FAILURE_KEYS and leaf.value not in (None, "", False, 0))
            or (leaf.key.lower() in _SUCCESS_KEYS and leaf.value is False)
            or _is_failure(leaf.value)
            for leaf in self.leaves
        )

    @cached_property
    def is_empty(self) -> bool:
        """Whether nothing was found, or nothing is left."""
        result = self.line.result
        if result is None or result in ([], {}, "", "[]", False):
            return True
        if isinstance(result, str):
            return bool(_EMPTY_TEXT.search(result[:300]))
        if isinstance(result, dict):
            lists = [value for value in result.values() if isinstance(value, list)]
            if lists and not any(lists):
                return True
        return any(
            _COUNT_KEYS.search(leaf.key) and (leaf.value is False or leaf.value == 0)
            if isinstance(leaf.value, int | float)
            else isinstance(leaf.value, str)
            and len(self.leaves) <= 3
            and bool(_EMPTY_TEXT.search(leaf.value[:300]))
            for leaf in self.leaves[:40]
        )

    @cached_property
    def subject(self) -> tuple[Word, ...]:
        """The words of what it is about: the tool's name, its arguments and the names of its values."""
        keys = " ".join(in_words(str(key)) for key in self.line.arguments)
        given = " ".join(value for value in self.line.arguments.values() if isinstance(value, str))
        named = tuple(word for leaf in self.leaves[:40] for word in leaf.names)
        return words(in_words(self.line.tool)) + words(keys) + words(given[:300]) + named

    def tells(self, word: Word) -> bool | None:
        """Whether it says a thing, such as "delayed": True, False where it says the contrary, None if neither.

        A text says it with the word itself; a name says it only where its value is true, so that
        `delivered_at: null` and `estimated_delivery` do not say "delivered".
        """
        verdict: bool | None = None
        for leaf in self.leaves:
            if isinstance(leaf.value, str):
                said = _said(word, leaf.value)
            elif isinstance(leaf.value, bool) and any(
                likeness(word.stem, name.stem) >= 0.9 for name in leaf.names
            ):
                said = leaf.value != _is_negative(leaf)
            else:
                continue
            if said is True:
                return not word.negated
            verdict = False if said is False else verdict
        return None if verdict is None else word.negated


def _is_negative(leaf: Leaf) -> bool:
    return any(name.negated for name in leaf.names)


def _is_failure(value: Any) -> bool:
    return isinstance(value, str) and value.lower() in (
        "error", "failed", "failure", "declined", "rejected", "denied", "refused"
    )  # fmt: skip


def _said(word: Word, text: str) -> bool | None:
    for clause in re.split(r"[.;!?\n]|, but\b", text[:2_000]):
        for said in words(clause.replace("_", " ")):
            if likeness(word.stem, said.stem) >= 0.9:
                return not said.negated and not _YET_TO_COME.search(clause)
    return None


@lru_cache(maxsize=512)
def _leaves_of_json(text: str) -> tuple[Leaf, ...]:
    found: list[Leaf] = []
    for leaf in _walk(Line("", "tool", text).result, ()):
        found.append(leaf)
        if len(found) >= MAX_LEAVES:
            break
    return tuple(found)


def _leaves(text: str) -> tuple[Leaf, ...]:
    return _leaves_of_json(text) if len(text) < 4_000 else _leaves_of_json.__wrapped__(text)


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, (*path, str(key)))
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item, path)
    else:
        yield Leaf(path, value)
