"""When to ask, to confirm, to decline: rules of speaking that can be switched on one by one (ReSpAct, Appendix E.2).

A rule stands in the prompt. What code can see of it, it holds every move against: results that are too many or none,
values that were not stated, facts and promises without a source, tools that a state requires or forbids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from arq_graph.agent.spelling import suggestion
from arq_graph.errors import InputError

ByState = Callable[[Any], Iterable[str]]
"""A function of the graph's state that names tools."""

_UNFINISHED = re.compile(
    r"(?:\.\.\.|…|[,:;]|\b(?:a|an|the|to|for|and|or|with|from|of|my|in|at|on|about|i|i['’]d like|want))\s*$",
    re.IGNORECASE,
)
_COUNTS = ("total", "count", "total_results", "matches")


@dataclass(frozen=True)
class Policy:
    """A rule of speaking and acting.

    Args:
        name: Its name.
        rule: The rule as the prompt states it; not empty.
        requires: Which tools have to be called in this turn before anything else is called or said, save questions:
            a function of the state, e.g. `lambda state: ["check_stock"] if … else []`.
        forbids: Which tools may not be called: a function of the state.

    The state is a dict. A channel that holds a list or a dict (`guideline_matches`, `tool_insights`, `moves`) is empty
    until something is written to it, `variables` holds the agent's own values until then; any other channel (`plan`,
    `world`) is missing until then: `.get`.

    Raises:
        InputError: A field does not hold what it should.
    """

    name: str
    rule: str
    requires: ByState | None = None
    forbids: ByState | None = None

    def __post_init__(self) -> None:
        for field in ("name", "rule"):
            value = getattr(self, field)
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"Policy: `{field}` must be a text that says something, not {value!r}")
        for field in ("requires", "forbids"):
            value = getattr(self, field)
            if value is not None and not callable(value):
                raise InputError(
                    f"Policy {self.name!r}: `{field}` must be a function of the state that names tools"
                )


def _policies(rules: Mapping[str, str]) -> Mapping[str, Policy]:
    return MappingProxyType({name: Policy(name, rule) for name, rule in rules.items()})


POLICIES: Mapping[str, Policy] = _policies(
    {
        "ask_for_required": "A required argument that nobody gave is asked for, all that are open in one message.",
        "narrow_many_results": "A result in `too_many` is narrowed down: ask what matters most, and name what it could "
        "be. If the customer leaves the choice to you (`told_to_pick`), pick one and say so.",
        "widen_no_results": "After a result in `empty`, say so, and offer a wider search or an alternative.",
        "name_or_type": "A word that may be the name of a thing or a kind of things is asked about before it is used "
        "(basis `ambiguous`).",
        "confirm_inferred": "A value carried over from another request, or inferred, is put to the customer before it "
        "is used.",
        "placeholder_for_dont_care": "What the customer says they do not care about is not asked again: its basis is "
        "`does_not_matter`, and the tool's own word for any value is passed.",
        "complete_half_requests": "A request that is only half said (`half_request`) is asked about before anything is "
        "done.",
        "weigh_requirements": "Where several wishes cannot all be met, ask which one matters more.",
        "decline_unserved": "What none of the tools can do is declined, kindly and plainly; it is never promised.",
        "attributes_from_calls": "What is said of a thing or an order comes from a tool result or another source "
        "in this prompt, never from memory.",
    }
)
"""The shipped policies by name."""


def policies_of(given: Sequence[str | Policy] | None) -> Mapping[str, Policy]:
    """The policies that are switched on.

    Args:
        given: Names of shipped ones and policies of your own; None is every shipped one.

    Raises:
        InputError: There is none of that name, or two have the same.
    """
    if given is None:
        return POLICIES
    if isinstance(given, str | Policy) or not isinstance(given, Sequence):
        raise InputError(f"policies must be a list of names and policies, not {type(given).__name__}")
    chosen: dict[str, Policy] = {}
    for entry in given:
        if isinstance(entry, str):
            if entry not in POLICIES:
                near = suggestion(entry, POLICIES)
                raise InputError(
                    f"there is no policy {entry!r}{near}; the shipped ones: {', '.join(POLICIES)}"
                )
            entry = POLICIES[entry]
        if not isinstance(entry, Policy):
            raise InputError(f"policies holds {entry!r}: give the name of a shipped one, or a Policy")
        if entry.name in chosen:
            raise InputError(f"policies holds {entry.name!r} twice; keep one of them")
        chosen[entry.name] = entry
    return MappingProxyType(chosen)


def named_by(functions: Iterable[tuple[str, ByState]], state: Any, known: Iterable[str]) -> frozenset[str]:
    """The tools that policies name in a state.

    Args:
        functions: The name of each policy and its function.
        state: The graph's state.
        known: The names of the tools that there are.

    Raises:
        InputError: One names a tool that the agent does not have.
    """
    found: set[str] = set()
    tools = set(known)
    for policy, function in functions:
        try:
            named = function(state)
            names = [named] if isinstance(named, str) else list(named or ())
        except Exception as error:
            error.add_note(f"raised by the policy {policy!r}")
            raise
        if unknown := [name for name in names if name not in tools]:
            raise InputError(
                f"policy {policy!r} names {unknown[0]!r}, which is no tool of this agent"
                + suggestion(str(unknown[0]), tools)
            )
        found.update(names)
    return frozenset(found)


def is_half_said(text: str) -> bool:
    """Whether a message breaks off, as far as its last word tells."""
    return bool(text.strip()) and _UNFINISHED.search(text) is not None


def entries_in(text: str) -> int | None:
    """How many entries a tool's result lists; None where it is no list.

    A JSON array counts its items; an object its longest array, or a number that it calls `total` or `count`.
    """
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(result, list):
        return len(result)
    if not isinstance(result, dict):
        return None
    named = [result.get(name) for name in _COUNTS]
    counted = [value for value in named if isinstance(value, int) and not isinstance(value, bool)]
    listed = [len(value) for value in result.values() if isinstance(value, list)]
    return max([*counted, *listed], default=None)
