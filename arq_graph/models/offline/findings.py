"""Reading what a tool found: its values with their names, whether it found nothing, whether it failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.toolnames import ToolName, name_of
from arq_graph.models.offline.words import Word, in_words, likeness, stem, words

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
_NOT_DONE = re.compile(
    r"\b(?:not (?:possible|allowed|permitted|eligible|available|successful|accepted|approved|completed|done)"
    r"|unavailable|impossible|sold[ _-]?out|fully booked|booked (?:out|up)|already full|out[ _-]of[ _-]stock"
    r"|reject(?:ed|ion)|declined|denied|refused"
    r"|no (?:more )?\w+ (?:left|available|free)|unsuccessful|no longer available|none left"
    r"|wait(?:ing)?[ _-]?list(?:ed)?)\b",
    re.IGNORECASE,
)
_STATES = frozenset(("status", "state", "outcome", "result", "decision", "availability", "condition"))
_NO_STATE = re.compile(
    r"(?:(?:is|was|already|currently|now|completely) )*"
    r"(?:(?P<ended>closed|cancell?ed|expired|blocked|locked|suspended|terminated|discontinued)|(?P<full>full)|no|none|gone"
    r"|taken|occupied|void|invalid|ineligible)(?: (?:up|until|till|for|on|at|since|to|by|today|now)\b.*)?",
    re.IGNORECASE,
)
_ENDING = frozenset(
    map(
        stem,
        listed(
            "close cancel end stop finish complete resolve settle return terminate delete remove void withdraw revoke"
            " unsubscribe quit leave pause archive block freeze lock disable deactivate suspend report drop expire"
        ),
    )
)
_FILLING = frozenset(map(stem, listed("fill refill charge recharge load refuel top")))
_CANNOT = re.compile(
    r"\b(?:cannot|can not|can't|unable to|could(?: not|n't)|(?:was|were|is|are|has|have)(?: not|n't))\b",
    re.IGNORECASE,
)
_ANY_DEED = re.compile(
    r"\b(?:do|done|made?|make|process|complet|plac|accept|fulfil|confirm|perform|carried|carry)\w*\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"ok(?:ay)?|done|success\w*|confirmed|accepted|approved|complete[d]?|executed", re.IGNORECASE
)
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
        if self.refusal:
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
    def refusal(self) -> str:
        """The words by which what should have changed something says that it did not; empty where none does.

        A result without an error may still say so: "sold out", "cannot be renewed", `renewed: false`.
        """
        name = name_of(self.line)
        if not self.line.tool or name.only_reads:
            return ""
        for leaf in self.leaves[:40]:
            if isinstance(leaf.value, str):
                done = _says_done(leaf.value, name)
                if done is None and _is_of_state(leaf) and _is_no(leaf.value, name):
                    done = False
            elif isinstance(leaf.value, bool) and _is_of_deed(words(in_words(leaf.key)), name):
                done = leaf.value
            else:
                done = (leaf.value is True and leaf.key.lower() in _SUCCESS_KEYS) or None
            if done is not None:
                told = leaf.value if isinstance(leaf.value, str) else f"not {in_words(leaf.key)}"
                return "" if done else told
        return ""

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


def _says_done(text: str, name: ToolName) -> bool | None:
    """Whether a text says that the deed was done: by the first clause that speaks of it; None where none does."""
    if _DONE.fullmatch(text.strip(" .!")):
        return True
    for clause in re.split(r"[.;!?\n]|, but\b|\band\b", text[:600]):
        spoken = words(clause.replace("_", " "))
        of_deed = _is_of_deed(spoken, name)
        denied = _CANNOT.search(clause) and (of_deed or _ANY_DEED.search(clause))
        no = _NOT_DONE.search(clause.replace("_", " "))
        if denied or (no and not (no[0].isalpha() and _is_of_deed(words(no[0]), name))):
            return False  # but "declined" is what `decline_offer` did
        if of_deed:
            return True  # "is cancelled and cannot be restored"
    return None


def _is_of_state(leaf: Leaf) -> bool:
    return in_words(leaf.key).rpartition(" ")[2] in _STATES


def _is_no(state: str, name: ToolName) -> bool:
    """Whether a state says that the deed was not done: "full", "closed until May"; but what was to end has ended."""
    no = _NO_STATE.fullmatch(state.replace("_", " ").strip(" .!"))
    ends = _ENDING if no and no["ended"] else _FILLING if no and no["full"] else frozenset[str]()
    return no is not None and not name.deeds & ends


def _is_of_deed(spoken: tuple[Word, ...], name: ToolName) -> bool:
    return any(likeness(word.stem, deed) >= 0.9 for word in spoken for deed in name.deeds)


def _is_negative(leaf: Leaf) -> bool:
    return any(name.negated for name in leaf.names)


def _is_failure(value: Any) -> bool:
    return isinstance(value, str) and value.lower() in ("error", "failed", "failure")


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
