"""What a message does not give: clauses that deny having or telling a value, and words that are none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from arq_graph.models.offline.lexicon import NEGATORS, STOP_WORDS, listed
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import content, stem

MASK = "·"
"""Stands for what gives an argument nothing, or serves another one: it belongs to no word."""

_JOINT = (
    r"\b(?:but|because|though|although)\b"
    r"|\b(?:and|or)\b(?=\s+(?:i|we|it|my|our|the (?:\w+ ){1,2}(?:is|are|was))\b)"
)
_CLAUSE = re.compile(rf"(?:(?!{_JOINT})[^.,;:!?\n])+(?:{_JOINT}\s*$)?", re.IGNORECASE)
_NO = r"(?:not|\w+n['’]t|never|cannot|unable|nobody|nothing|neither|hardly|dont|doesnt|didnt|cant|wont)"
_TELLING = (
    r"know|knows|knew|known|remember|recall|recollect|sure|certain|aware|decide|decided|tell|telling|told|say|saying"
    r"|said|share|sharing|give|giving|given|provide|providing|disclose|reveal|mention|name|state|specify|think of"
)
_HAVING = r"have|has|had|having|got|get|find|found|want|wish|like|care|prefer|need"
_UNTOLD = (
    r"\bno (?:idea|clue|memory|recollection|knowledge)\b"
    r"|\b(?:forgot|forgotten|unsure|uncertain|unaware|undecided|refuse|decline|dunno)\b|\b(?:rather|prefer) not\b"
)
_DENIED_TELLING = re.compile(rf"\b{_NO}\b(?:\W+\w+){{0,3}}?\W+(?:{_TELLING})\b|{_UNTOLD}", re.IGNORECASE)
_DENIED = re.compile(
    rf"\b{_NO}\b(?:\W+\w+){{0,3}}?\W+(?:{_TELLING}|{_HAVING})\b|{_UNTOLD}"
    r"|(?:\b(?:is|are|was|were)|['’]s|['’]re)(?:n['’]t\b| not\b| never\b| unknown\b)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SAYS_IS = re.compile(rf"\b(?:is|are|was|were|be)\b|['’]s\b|{MASK}", re.IGNORECASE)
_FUNCTION_WORDS = (
    STOP_WORDS - listed("up down off out own same now soon all any both every each other another more most less least")
) | listed("think guess believe suppose mean hope yet")  # fmt: skip
_ANY = listed("whatever whichever whoever wherever")
_UNGIVEN = listed(
    "unknown unclear uncertain open undecided unavailable secret private confidential missing forgotten pending"
    " business"
)
_OF_TELLING = (
    frozenset(map(stem, re.findall(r"[a-z]+", f"{_TELLING}|{_HAVING}")))
    | frozenset(map(stem, listed(
        "idea clue memory recollection knowledge forgot forgotten unsure uncertain unaware undecided refuse decline"
        " dunno rather prefer hand moment right present information detail details answer exactly problem"
    )))
)  # fmt: skip
"""Stems of what a denial is made of, whatever it denies."""
_SUBJECT = re.compile(
    r"let (?:me|us)\b"
    r"|(?:(?:as|like|if|when|what|where|who|which|that|can|could|may|might|shall|should|will|would|do)\s+)?"
    r"(?:i|we|you|they|he|she|it)(?:['’]\w+)?\s+[a-z]",
    re.IGNORECASE,
)


def without_denials(text: str, *, of_telling: bool = False) -> str:
    """A text with marks in place of the clauses that deny to have, to know or to give something.

    Args:
        text: What was said.
        of_telling: Whether only those count that deny to know or to tell it.
    """
    pattern = _DENIED_TELLING if of_telling else _DENIED
    spans = [
        match.span()
        for match in _CLAUSE.finditer(text)
        if pattern.search(match[0]) and not _is_title(match[0])
    ]
    return _masked(text, spans)


def what_is_given(text: str, wanted: Wanted, others: Sequence[Wanted] = ()) -> str:
    """A text with marks in place of the clauses that give an argument nothing.

    These deny something, or hold no more than the label of an argument: "I think the night is" is left of what
    gave the night.
    """
    text = without_denials(text)
    empty = [
        match.span()
        for match in _CLAUSE.finditer(text)
        if _TOKEN.search(match[0]) and is_no_value(match[0], wanted, others)
    ]
    return _masked(text, empty)


def is_no_value(said: str, wanted: Wanted, others: Sequence[Wanted] = ()) -> bool:
    """Whether words are no name: function words, a denial, or only the label of an argument.

    Args:
        said: The words.
        wanted: The argument that they are offered for.
        others: The other arguments of the tool: their labels are not taken where something is said of them.
    """
    tokens = _TOKEN.findall(said.lower())
    if _is_title(said) or " ".join(tokens) in (example.lower() for example in wanted.examples):
        return False
    if not tokens or _ANY.intersection(tokens):
        return True
    if (
        tokens[0] in (*NEGATORS, "nobody") and wanted.kind != "text"
    ):  # "none" is an answer to which allergies there are
        return len(tokens) > 1 or wanted.kind != "thing" or tokens == ["nobody"]
    left = [
        token for token in tokens if token not in _FUNCTION_WORDS and stem(token) not in _labels([wanted])
    ]
    if all(token in _UNGIVEN for token in left):
        return not left or said.strip(f" {MASK}")[:1].islower()
    return _SAYS_IS.search(said) is not None and all(stem(token) in _labels(others) for token in left)


def is_sentence(said: str) -> bool:
    """Whether words are a sentence of its own, such as "you choose": no name begins like that."""
    return _SUBJECT.match(said) is not None and not _is_title(said)


def withholds(text: str, wanted: Wanted) -> bool:
    """Whether an answer denies the very thing that it was asked for, and says nothing else."""
    known = _labels([wanted]) | _OF_TELLING
    told = {word.stem for word in content(without_denials(text))} - known
    denied = {word.stem for word in content(text)} - known
    return _DENIED.search(text) is not None and not told and not denied


def _labels(wanted: Sequence[Wanted]) -> frozenset[str]:
    return frozenset(_stems(wanted))


def _stems(wanted: Sequence[Wanted]) -> Iterator[str]:
    for each in wanted:
        yield from each.objects
        yield from map(stem, each.tokens)


def _is_title(said: str) -> bool:
    """Whether it is written large as a title is: "Never Let Me Go", but neither "NEVER MIND" nor "Not Ben Hur"."""
    tokens = re.findall(r"[^\W\d_][\w'’]*", said)
    large = [token for token in tokens if token[0].isupper()]
    small = [token for token in tokens if not token[0].isupper()]
    is_joined = all(len(token) <= 4 and token in STOP_WORDS for token in small)
    begins = large[:1] == tokens[:1] and tokens[:1] != ["Not"]
    return len(large) > 1 and begins and is_joined and not said.isupper()


def _masked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + MASK * (end - start) + text[end:]
    return text
