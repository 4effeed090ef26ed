"""Choosing: offers that are taken or declined, and one of several things that the agent names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.milestones.users.asked import Fact
from arq_graph.milestones.users.hearing import Asked, Heard
from arq_graph.models.offline.words import content, overlap

_FROM = 0.6
_SEPARATOR = re.compile(r",\s*(?:or\s+|and\s+)?|\s+or\s+|\s+and\s+", re.IGNORECASE)
_LEAD = re.compile(
    r"^.*?\b(?:have|are|offer|prefer|choose|between|like|from|options|found|include|available|want"
    r"|either|for|is|it be|it)\b:?\s+",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[.:?!](?=\s|$)|\n|\s[-–—]\s")
"""Not the stop within "10:30" or "2.50"."""
_STEM = re.compile(
    r"\s*(?:and |so |but )?(?:which|what|who|whom|when|where|how|on which|at what|for which)\b", re.IGNORECASE
)
"""Begins the question itself, which is no option: "Which day suits you, Monday or Friday?"."""
_LISTED = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s*(.+)$", re.MULTILINE)
_LONGEST_OPTION = 60
_LONGEST_CLAUSE = 400


def wants_it(question: str, goal: str) -> bool:
    """Whether what a question offers to do is what the user asked for."""
    return bool(content(question)) and overlap(question, goal) >= _FROM


def accepted(question: Asked, heard: Heard, accepts: Sequence[str], refuses: Sequence[str]) -> bool | None:
    """Whether the user takes what is offered; None where neither list speaks of it."""
    for text in (question.text, question.context, heard.text):
        take = max((overlap(each, text) for each in accepts), default=0.0)
        decline = max((overlap(each, text) for each in refuses), default=0.0)
        if max(take, decline) >= _FROM:
            return take > decline
    return None


def named_in(text: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts whose values a text says."""
    return tuple(fact for fact in facts if fact.is_in(text))


def chosen(
    question: Asked,
    heard: Heard,
    facts: Sequence[Fact],
    goal: tuple[Sequence[str], Sequence[str]] | None,
) -> str | None:
    """What the user chooses, by its name; None where there is nothing to choose from.

    Args:
        question: The question.
        heard: The message that it stands in.
        facts: What the user knows.
        goal: What it takes and what it does not take; None: only what it knows by name is chosen.
    """
    if not question.leaves_a_choice and " or " not in question.text.lower():
        return None
    for text in (question.text, heard.text):
        if named := named_in(text, facts):
            return named[0].text
    if goal is None:
        return None
    accepts, refuses = goal
    options = _options(question, heard)
    for option in options:
        if any(overlap(each, option) >= _FROM or overlap(option, each) >= _FROM for each in accepts):
            return option
    left = [option for option in options if not any(overlap(each, option) >= _FROM for each in refuses)]
    return left[0] if left else None


def _options(question: Asked, heard: Heard) -> list[str]:
    """The things that a message names to choose from: a list, or what stands around "or"."""
    found = [match[1] for match in _LISTED.finditer(heard.text)]
    if len(found) < 2:
        found = _parts(question.text, "or") or _parts(heard.told, "or|and")
    trimmed = (option.strip(" .?!\"'*") for option in found)
    return [option for option in trimmed if option and len(option) <= _LONGEST_OPTION]


def _parts(text: str, joints: str) -> list[str]:
    for clause in _CLAUSE_END.split(text):
        if len(clause) <= _LONGEST_CLAUSE and re.search(rf"\s(?:{joints})\s", clause, re.IGNORECASE):
            stem, *rest = clause.strip().split(",", 1)
            named = rest[0] if rest and _STEM.match(stem) else _LEAD.sub("", clause.strip())
            parts = [part for part in _SEPARATOR.split(named.strip()) if part.strip()]
            if len(parts) > 1:
                return parts
    return []
