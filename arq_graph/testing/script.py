"""The script of one turn, and how its words are found in an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from langchain_core.tools import BaseTool

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.journey import make_rule_id
from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, suggestion
from arq_graph.models.offline.calls import Call
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.reasoning.sections import as_json

Rule = str | Guideline
Tool = str | Callable[..., Any] | BaseTool


@dataclass(frozen=True)
class Script:
    """What the model answers in one turn. By default nothing applies, and no tool is called.

    A guideline or a step of a journey is named by its id, its condition or its action, or by the `Guideline` itself.

    Args:
        active: The guidelines that apply, the journeys that begin (they go on in later turns), and the steps that this
            reply takes. A guideline whose condition code knows (it has none, or a function) applies by itself.
        calls: The calls that the model makes once their tools are unlocked: `("get_order", {"order_id": "A-1"})`. One
            that waits for the customer's yes is asked about again if it is listed again.
        reply: What the reply says; under `composition="strict"`, the id of a prepared reply. It may be left out if a
            draft is sent as it is, or if a call is listed that the customer has to confirm.
        active_after_tools: The guidelines that apply only once a tool has returned something in this turn.
        answered: The steps of journeys that the customer's message answers.
        changed: The steps, done before, whose answer the customer's message changes.
        given_up: The journeys that the customer gives up.
        agrees: The customer's free words agree to the calls that code asked about; a plain yes needs no mention.
        answers: The answers to blueprints of your own, by the name of the class: `{"Sentiment": {"mood": "angry"}}`.
    """

    active: Sequence[Rule] = ()
    calls: Sequence[tuple[Tool, Mapping[str, Any]]] = ()
    reply: str | None = None
    active_after_tools: Sequence[Rule] = ()
    answered: Sequence[Rule] = ()
    changed: Sequence[Rule] = ()
    given_up: Sequence[str] = ()
    agrees: bool = False
    answers: Mapping[str, Any] = field(default_factory=dict)


class ScriptReader:
    """Finds what a script names in an agent, and raises an `InputError` if it isn't there."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.tools = {name: ToolSchema(tool) for name, tool in agent.toolbox.items()}
        self._ids: dict[Any, set[str]] = {}
        for rule in agent.judged_rules:
            self._add(rule.id, rule.id, rule.condition_text, rule.action, (rule.condition, rule.action))
        for journey in agent.journeys:
            for step in journey.steps:
                id = make_rule_id(journey.id, step.id)
                self._add(id, id, step.id, step.condition, step.action)

    def _add(self, id: str, *names: Any) -> None:
        for name in names:
            self._ids.setdefault(name, set()).add(id)

    def find_ids(self, rules: Iterable[Rule]) -> set[str]:
        """Return the ids of guidelines, steps and journeys."""
        ids: set[str] = set()
        for rule in rules:
            key = (rule.condition, rule.action) if isinstance(rule, Guideline) else rule
            matches = self._ids.get(key, ())
            if len(matches) > 1:
                raise InputError(
                    f"{rule!r} fits {len(matches)} guidelines or steps: name its id or its action"
                )
            if not matches:
                names = [name for name in self._ids if isinstance(name, str)]
                _refuse(f"agent {self.agent.name!r} has no guideline or step", str(rule), names)
            ids.update(matches)
        return ids

    def read_call(self, listed_call: tuple[Tool, Mapping[str, Any]]) -> Call:
        """Return a call with the answers to the queries about its arguments."""
        if not isinstance(listed_call, tuple) or len(listed_call) != 2:
            raise InputError(
                f'a call is a tool with its arguments, ("tool", {{…}}), not {listed_call!r:.100}'
            )
        tool, arguments = listed_call
        name = str(getattr(tool, "name", getattr(tool, "__name__", tool)))
        if name not in self.tools:
            _refuse(f"agent {self.agent.name!r} has no tool", name, self.tools)
        call = Call(name, description="", key=name, values=dict(arguments))
        known_arguments = {argument.name: argument for argument in self.tools[name].arguments}
        for unknown in arguments.keys() - known_arguments.keys():
            _refuse(f"the tool {name!r} has no argument", unknown, known_arguments)
        for argument in known_arguments.values():
            answer: dict[str, Any] = {"given": False, "basis": "nobody"}
            if argument.name in arguments:
                value = arguments[argument.name]
                if argument.strict_schema is None:
                    value = as_json(value)
                answer = {"given": True, "basis": "this_request", "value": value}
            call.answers[argument.property_name] = answer
        return call


def _refuse(problem: str, name: str, known_names: Iterable[str]) -> NoReturn:
    raise InputError(f"{problem} {name!r}{suggestion(name, known_names)}")
