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
        active: The guidelines that apply, the journeys that begin, and the steps that this reply takes. A guideline
            whose condition code knows (it has none, or a function) applies by itself, until a reply has followed it.
            A journey goes on in the following turns.
        calls: The calls that the model makes once their tools are unlocked: `("get_order", {"order_id": "A-1"})`. One
            that waits for the customer's yes is asked about again if it is listed again.
        reply: What the reply says; under `composition="strict"`, the id of a prepared reply. It may be left out if a
            draft is sent as it is, or if a call is listed that the customer has to confirm.
        active_after_tools: The guidelines that apply only once a tool has returned something in this turn.
        answered: The steps of journeys that the customer's message answers.
        changed: The steps, done before, whose answer the customer's message changes.
        left: The journeys that the customer leaves for another topic, for now.
        given_up: The journeys that the customer gives up.
        begun_anew: The journeys that have ended and that the customer wants to go through again.
        agrees: The customer's free words agree to the calls that code asked about; a plain yes needs no mention.
        answers: The answers to blueprints of your own, by the name of the class: `{"Sentiment": {"mood": "angry"}}`.
    """

    active: Sequence[Rule] = ()
    calls: Sequence[tuple[Tool, Mapping[str, Any]]] = ()
    reply: str | None = None
    active_after_tools: Sequence[Rule] = ()
    answered: Sequence[Rule] = ()
    changed: Sequence[Rule] = ()
    left: Sequence[str] = ()
    given_up: Sequence[str] = ()
    begun_anew: Sequence[str] = ()
    agrees: bool = False
    answers: Mapping[str, Any] = field(default_factory=dict)


class ScriptReader:
    """Finds what scripts name in an agent; `place` says where in the scripts a name stands.

    Its methods raise an `InputError` if the agent doesn't have what is named. `journeys` has the journey of each step.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.tools = {name: ToolSchema(tool) for name, tool in agent.toolbox.items()}
        self.journeys: dict[str, str] = {}
        self._ids: dict[Any, list[str]] = {}
        for rule in agent.judged_rules:
            self._add(rule.id, rule.id, rule.condition_text, rule.action, (rule.condition, rule.action))
        for journey in agent.journeys:
            self.journeys |= dict.fromkeys(journey.rule_ids, journey.id)
            for step in journey.steps:
                id = make_rule_id(journey.id, step.id)
                self._add(id, id, step.id, step.condition, step.action)

    def _add(self, id: str, *names: Any) -> None:
        for name in names:
            self._ids.setdefault(name, []).append(id)

    def find_ids(self, rules: Sequence[Rule], place: str) -> set[str]:
        """Return the ids of guidelines, steps and journeys."""
        ids: set[str] = set()
        for rule in rules:
            key = (rule.condition, rule.action) if isinstance(rule, Guideline) else rule
            matches = self._ids.get(key, [])
            if len(set(matches)) > 1:
                several = f"{len(set(matches))} guidelines or steps"
                raise InputError(f"{place}: {rule!r} fits {several}: name its id or its action")
            if not matches:
                known_names = [name for name in self._ids if isinstance(name, str)]
                self._refuse(
                    f"{place}: agent {self.agent.name!r} has no guideline or step", str(rule), known_names
                )
            ids.update(matches)
        return ids

    def read_call(self, tool: Tool, arguments: Mapping[str, Any], place: str) -> Call:
        """Return a call with the answers to the queries about its arguments."""
        name = tool if isinstance(tool, str) else str(getattr(tool, "name", getattr(tool, "__name__", tool)))
        if name not in self.tools:
            self._refuse(f"{place}: agent {self.agent.name!r} has no tool", name, self.tools)
        call = Call(name, description="", key=name, values=dict(arguments))
        known_arguments = {argument.name: argument for argument in self.tools[name].arguments}
        for unknown in arguments.keys() - known_arguments.keys():
            self._refuse(f"{place}: the tool {name!r} has no argument", unknown, known_arguments)
        for argument in known_arguments.values():
            answer: dict[str, Any] = {"given": False, "basis": "nobody", "customer_should_provide_it": True}
            if argument.name in arguments:
                value = arguments[argument.name]
                if argument.strict_schema is None:
                    value = as_json(value)
                answer = {"given": True, "basis": "this_request", "value": value}
            call.answers[argument.property_name] = answer
        return call

    def _refuse(self, problem: str, name: str, known_names: Iterable[str]) -> NoReturn:
        raise InputError(f"{problem} {name!r}{suggestion(name, known_names)}")
