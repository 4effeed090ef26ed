"""Policies: rules of asking, confirming and declining, each of which can be switched on (ReSpAct, Appendix E.2).

The prompt states the rules, and the model answers with each move what needs an understanding of language. Code checks
every move for the rest: too many results or none, values that nobody gave, facts and promises without a source, tools
that a state requires or forbids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from arq_graph.agent.part import Part, Text
from arq_graph.errors import InputError, suggestion

ByState = Callable[[Any], Iterable[str] | Awaitable[Iterable[str]]]
"""A function of the graph's state that names tools, sync or async."""


class Policy(Part):
    """A rule of speaking and acting.

    It never bypasses the gate: a call of a required tool is checked like any other.

    Args:
        name: Its name.
        rule: The rule as the prompt states it.
        requires: A function of the state, sync or async, that names the tools to call in this turn before anything else
            is called or said, except questions: `lambda state: ["check_stock"] if … else []`. A tool that can't be
            called now isn't required.
        forbids: A function of the state, sync or async, that names the tools that may not be called.

    The state is a dict. Until something is written to them, channels of lists and dicts (`guideline_matches`,
    `tool_insights`, `moves`) are empty and `variables` holds the agent's defaults; use `.get` for any other channel.

    Raises:
        SpecError: A value doesn't fit its field.
    """

    name: Text
    rule: Text
    requires: ByState | None = None
    forbids: ByState | None = None

    if TYPE_CHECKING:

        def __init__(
            self, name: str, rule: str, requires: ByState | None = None, forbids: ByState | None = None
        ) -> None: ...


PolicyName = Literal[
    "ask_for_required",
    "narrow_many_results",
    "widen_no_results",
    "name_or_type",
    "confirm_inferred",
    "placeholder_for_dont_care",
    "complete_half_requests",
    "weigh_requirements",
    "decline_unserved",
    "attributes_from_calls",
]

_RULES: dict[PolicyName, str] = {
    "ask_for_required": "A required argument that nobody gave is asked for, all that are open in one message.",
    "narrow_many_results": "A result in `too_many` is narrowed down: ask what matters most, and name what it could "
    "be. If the customer leaves the choice to you, pick one and say so.",
    "widen_no_results": "After a result in `empty`, say so, and offer a wider search or an alternative.",
    "name_or_type": "A word that may be the name of a thing or a kind of things is asked about before it is used "
    "(basis `ambiguous`).",
    "confirm_inferred": "A value carried over from another request, or inferred, is put to the customer before it is "
    "used.",
    "placeholder_for_dont_care": "What the customer says they do not care about is not asked again: its basis is "
    "`does_not_matter`, and the tool's own word for any value is passed, as its arguments name it; where there is "
    "none, an optional argument is left out.",
    "complete_half_requests": "A request that is only half said is asked about before anything is done.",
    "weigh_requirements": "Where several wishes cannot all be met, ask which one matters more.",
    "decline_unserved": "What none of the tools can do is declined, kindly and plainly; it is never promised.",
    "attributes_from_calls": "What is said of a thing or an order comes from a tool result or another source in this "
    "prompt, never from memory.",
}

POLICIES: Mapping[str, Policy] = {name: Policy(name, rule) for name, rule in _RULES.items()}
"""The shipped policies by name."""


def is_policy_on(name: PolicyName, policies: Collection[str]) -> bool:
    """Return True if a shipped policy is among those that are switched on."""
    return name in policies


def choose_policies(policies: Sequence[str | Policy] | None) -> Mapping[str, Policy]:
    """Return the policies that are switched on, by name, from names of shipped ones and your own policies; None: all.

    Raises:
        InputError: A name isn't a shipped policy's.
    """
    if policies is None:
        return dict(POLICIES)
    chosen: dict[str, Policy] = {}
    for policy in policies:
        if not isinstance(policy, Policy):
            if policy not in POLICIES:
                hint = suggestion(str(policy), POLICIES)
                raise InputError(
                    f"there is no policy {policy!r}{hint}; the shipped ones: {', '.join(POLICIES)}"
                )
            policy = POLICIES[policy]
        chosen[policy.name] = policy
    return chosen


@dataclass(frozen=True)
class ToolRules:
    """The rules of policies about tools at one point of a turn.

    Args:
        forbidden: The tools that may not be called now, each with the policy that forbids it.
        required: The tools that must be called before anything else, each with its policy. A tool that can't be called
            now, or was called in this turn or task, isn't among them.
    """

    forbidden: Mapping[str, Policy] = field(default_factory=dict)
    required: Mapping[str, Policy] = field(default_factory=dict)

    def find_refusal(self, tool: str) -> str | None:
        """Return why a tool may not be called now, with the rule; None if it may."""
        if policy := self.forbidden.get(tool):
            return f"the policy {policy.name} forbids {tool} now ({policy.rule})"
        if tool in self.required:
            return None
        return self.describe_required()

    def describe_required(self) -> str | None:
        """Return which tools must be called first, with the rules; None if there are none."""
        reasons: list[str] = []
        for tool, policy in self.required.items():
            reasons.append(f"the policy {policy.name} requires {tool} first ({policy.rule})")
        return "; ".join(reasons) or None
