"""Policies: rules of asking, confirming and declining, each of which can be switched on (ReSpAct, Appendix E.2).

A rule stands in the prompt, for the model to follow. The model answers what needs language with its move. Code checks
every move for what it can see: too many results or none, values that nobody gave, facts and promises without a source,
tools that a state requires or forbids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from langchain_core.messages import AIMessage

from arq_graph.agent.part import Part, Text
from arq_graph.errors import InputError, suggestion
from arq_graph.nodes.agent_node import build_function_state
from arq_graph.nodes.blueprint_node import UserFunction
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.speaking.speech import find_task_messages

ByState = Callable[[Any], Iterable[str] | Awaitable[Iterable[str]]]
"""A function of the graph's state that names tools, sync or async."""


class Policy(Part):
    """A rule of speaking and acting.

    It never opens the gate: a tool that it requires still needs what every call needs.

    Args:
        name: Its name.
        rule: The rule as the prompt states it.
        requires: A function of the state, sync or async, that names the tools to call in this turn before anything else
            is called or said, except questions: `lambda state: ["check_stock"] if … else []`. A tool that can't be
            called now isn't required.
        forbids: A function of the state, sync or async, that names the tools that may not be called.

    The state is a dict. A channel that holds a list or a dict (`guideline_matches`, `tool_insights`, `moves`) is empty
    until something is written to it, `variables` holds the agent's own values until then; any other channel is missing
    until then: `.get`.

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


def choose_policies(policies: Sequence[str | Policy] | None) -> Mapping[str, Policy]:
    """Return the policies that are switched on, by name, from names of shipped ones and policies of one's own.

    None stands for all shipped ones.

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
    """The tools that policies forbid now, and those that they require before anything else, each with its policy.

    A tool that can't be called now, or was called already in this turn or task, isn't required.
    """

    forbidden: Mapping[str, Policy]
    required: Mapping[str, Policy]

    @classmethod
    def evaluate(cls, policies: Collection[Policy], gate: Gate) -> Generator[UserFunction, Any, Self]:
        """Return the rules that apply now; yields the calls of the policies' functions.

        Raises:
            InputError: A function names a tool that the agent doesn't have.
        """
        state = build_function_state(gate.agent, gate.state)
        forbidden: dict[str, Policy] = {}
        required: dict[str, Policy] = {}
        for policy in policies:
            forbidden_tools = yield from _name_tools(policy, policy.forbids, state, gate)
            forbidden.update(dict.fromkeys(forbidden_tools, policy))
            required_tools = yield from _name_tools(policy, policy.requires, state, gate)
            required.update(dict.fromkeys(required_tools, policy))
        called: set[str] = set()
        for message in find_task_messages(gate.state.messages):
            if isinstance(message, AIMessage):
                called.update(call["name"] for call in message.tool_calls)
        callable_now = set(gate.granted).difference(called, forbidden)
        required = {tool: policy for tool, policy in required.items() if tool in callable_now}
        return cls(forbidden, required)

    def find_objection(self, tool: str) -> str:
        """Return why a tool may not be called now, with the rule; empty if it may."""
        if policy := self.forbidden.get(tool):
            return f"the policy {policy.name} forbids {tool} now ({policy.rule})"
        return "" if tool in self.required else self.describe_required()

    def describe_required(self) -> str:
        """Return what has to be called before anything else, with the rules; empty if nothing has."""
        return "; ".join(
            f"the policy {policy.name} requires {tool} first ({policy.rule})"
            for tool, policy in self.required.items()
        )


def _name_tools(
    policy: Policy, function: ByState | None, state: Any, gate: Gate
) -> Generator[UserFunction, Any, list[str]]:
    """Return the tools that a policy's function names."""
    if function is None:
        return []
    tools = list((yield partial(function, state)))
    for tool in tools:
        if tool not in gate.tools:
            hint = suggestion(str(tool), gate.tools)
            raise InputError(f"policy {policy.name!r} names {tool!r}, which isn't a tool of this agent{hint}")
    return tools
