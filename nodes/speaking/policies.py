"""When to ask, to confirm, to decline: rules of speaking that can be switched on one by one (ReSpAct, Appendix E.2).

A rule stands in the prompt, for the model to follow. What needs language is asked of the model with its move; what
code can see, it holds every move against: results that are too many or none, values that nobody told, facts and
promises without a source, tools that a state requires or forbids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Self

from langchain_core.messages import AIMessage

from arq_graph.agent.part import Part, Text
from arq_graph.errors import InputError, suggestion
from arq_graph.nodes.blueprint_node import UserFunction
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.speaking.speech import task_messages
from arq_graph.nodes.spec_sections import build_function_state

ByState = Callable[[Any], Iterable[str] | Awaitable[Iterable[str]]]
"""A function of the graph's state that names tools, sync or async."""


class Policy(Part):
    """A rule of speaking and acting.

    It never opens the gate: a tool that it requires still needs what every call needs.

    Args:
        name: Its name.
        rule: The rule as the prompt states it.
        requires: Which tools have to be called in this turn before anything else is called or said, save questions:
            a function of the state, sync or async, e.g. `lambda state: ["check_stock"] if … else []`. What cannot be
            called now is not required.
        forbids: Which tools may not be called: a function of the state, sync or async.

    The state is a dict. A channel that holds a list or a dict (`guideline_matches`, `tool_insights`, `moves`) is empty
    until something is written to it, `variables` holds the agent's own values until then; any other channel is missing
    until then: `.get`.

    Raises:
        SpecError: A value does not fit its field.
    """

    name: Text
    rule: Text
    requires: ByState | None = None
    forbids: ByState | None = None

    if TYPE_CHECKING:

        def __init__(
            self, name: str, rule: str, requires: ByState | None = None, forbids: ByState | None = None
        ) -> None: ...


_RULES = {
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


def policies_of(given: Sequence[str | Policy] | None) -> Mapping[str, Policy]:
    """The policies that are switched on: those named, and your own; None is every shipped one."""
    chosen: dict[str, Policy] = {}
    for entry in POLICIES.values() if given is None else given:
        policy = entry if isinstance(entry, Policy) else POLICIES.get(entry)
        if policy is None:
            near = suggestion(str(entry), POLICIES)
            raise InputError(f"there is no policy {entry!r}{near}; the shipped ones: {', '.join(POLICIES)}")
        chosen[policy.name] = policy
    return chosen


@dataclass(frozen=True)
class ToolRules:
    """The tools that policies forbid now, and those that they require before anything else, each with its policy.

    What cannot be called now, or was called already in this turn or task, is not required.
    """

    forbidden: Mapping[str, Policy]
    required: Mapping[str, Policy]

    @classmethod
    def of(cls, policies: Collection[Policy], gate: Gate) -> Generator[UserFunction, Any, Self]:
        """What the policies' functions say now; yields the call of each."""
        state = build_function_state(gate.agent, gate.state)
        named = {"forbids": dict[str, Policy](), "requires": dict[str, Policy]()}
        for policy, (which, found) in product(policies, named.items()):
            function: ByState | None = getattr(policy, which)
            for name in (yield partial(function, state)) if function else ():
                if name not in gate.tools:
                    whose = f"policy {policy.name!r} names {name!r}, which is no tool of this agent"
                    raise InputError(f"{whose}{suggestion(str(name), gate.tools)}")
                found[name] = policy
        forbidden, required = named.values()
        said = [each for each in task_messages(gate.state.messages) if isinstance(each, AIMessage)]
        called = {call["name"] for message in said for call in message.tool_calls}
        open_now = set(gate.granted).difference(called, forbidden)
        return cls(forbidden, {name: policy for name, policy in required.items() if name in open_now})

    def find_objection(self, tool: str) -> str:
        """Why a tool may not be called now, with the rule; empty if it may."""
        if policy := self.forbidden.get(tool):
            return f"the policy {policy.name} forbids {tool} now ({policy.rule})"
        return self.owed() if tool not in self.required else ""

    def owed(self) -> str:
        """What has to be called before anything else, with the rules; empty if nothing has."""
        return "; ".join(
            f"the policy {policy.name} requires {tool} first ({policy.rule})"
            for tool, policy in self.required.items()
        )
