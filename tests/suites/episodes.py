"""Arms that do what they are told, in a suite's worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from arq_graph.milestones import Limits, Report, Suite, evaluate, suites

Deed = tuple[str, dict[str, Any]]
SUITES = Path(suites.__file__).parent


def shipped(name: str) -> Suite:
    return Suite.from_yaml(SUITES / name / "suite.yaml")


def held(suite: Suite, deeds: Callable[[Any], Iterable[Deed]]) -> Report:
    """A run of a suite with an agent that does these deeds in the world in the one turn that it has."""

    def make(scenario: Any, agent: Any, model: Any, world: Any) -> Any:
        return _Doer(world, deeds)

    # What the user is like makes no difference to such an agent.
    helpful = [each for each in suite.scenarios if each.user is None or each.user.kind == "helpful"]
    short = suite.replace(scenarios=tuple(each.replace(limits=Limits(turns=1)) for each in helpful))
    return evaluate(short, {"doer": make})


class _Doer:
    def __init__(self, world: Any, deeds: Callable[[Any], Iterable[Deed]]) -> None:
        self.world, self.deeds = world, deeds

    def invoke(self, input: Any, config: Any = None, **settings: Any) -> Any:
        messages = list(input["messages"])
        for number, (tool, arguments) in enumerate(self.deeds(self.world)):
            call = {"name": tool, "args": arguments, "id": str(number)}
            result, status = done(self.world, tool, arguments)
            messages.append(AIMessage("", tool_calls=[call]))
            messages.append(ToolMessage(result, name=tool, tool_call_id=str(number), status=status))
        return {"messages": [*messages, AIMessage("That is all.")]}


def done(world: Any, tool: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    """What a deed gives: an action in a world of texts, or a call of a world's tool."""
    if tool == "act":
        seen = world.step(arguments["action"])
        return seen.text, "success" if seen.valid else "error"
    try:
        return str(getattr(world, tool)(**arguments)), "success"
    except ValueError as error:
        return str(error), "error"
