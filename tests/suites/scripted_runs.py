"""Agents that make prescribed calls in a suite's worlds."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from arq_graph.milestones import Limits, Suite, evaluate, suites

ToolCall = tuple[str, dict[str, Any]]
ChooseCalls = Callable[[Any], Iterable[ToolCall]]
SUITES = Path(suites.__file__).parent


def load_suite(name: str) -> Suite:
    return Suite.from_yaml(SUITES / name / "suite.yaml")


def run_scripted_agent(suite: Suite, choose_calls: ChooseCalls) -> tuple[Any, ...]:
    """Run the helpful users' scenarios with an agent that makes these calls in its only turn."""

    def make_agent(scenario: Any, agent: Any, model: Any, world: Any) -> Any:
        return _ScriptedAgent(world, choose_calls)

    scenarios = []
    for scenario in suite.scenarios:
        if scenario.user is None or scenario.user.kind == "helpful":
            scenarios.append(scenario.replace(limits=Limits(turns=1)))
    return evaluate(suite.replace(scenarios=tuple(scenarios)), {"scripted": make_agent}).conversations


class _ScriptedAgent:
    def __init__(self, world: Any, choose_calls: ChooseCalls) -> None:
        self.world, self.choose_calls = world, choose_calls

    def invoke(self, input: Any, config: Any = None, **settings: Any) -> Any:
        messages = list(input["messages"])
        for number, (tool, arguments) in enumerate(self.choose_calls(self.world)):
            id = str(number)
            text, status = call_world(self.world, tool, arguments)
            messages.append(AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": id}]))
            messages.append(ToolMessage(text, name=tool, tool_call_id=id, status=status))
        return {"messages": [*messages, AIMessage("That is all.")]}


def call_world(world: Any, tool: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    """Take an action in a world of texts, or call a world's tool; return the text and the status."""
    if tool == "act":
        observation = world.step(arguments["action"])
        return observation.text, "success" if observation.valid else "error"
    try:
        return str(getattr(world, tool)(**arguments)), "success"
    except ValueError as error:
        return str(error), "error"
