"""Short scripts of conversations with the desks of the use cases, run in a fresh world."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool

from arq_graph import Agent, milestones
from arq_graph.milestones import (
    MilestoneGraph,
    Scenario,
    Score,
    Suite,
    read_milestones,
    read_transcript,
    score,
)

FOLDER = Path(milestones.__file__).parent / "suites" / "use_cases"


@cache
def load_suite(use_case: str) -> Suite:
    return Suite.from_yaml(FOLDER / f"{use_case}.suite.yaml")


@cache
def load_graph(use_case: str) -> MilestoneGraph:
    return read_milestones(FOLDER / f"{use_case}.milestones.yaml")


class Desk:
    """The agent's tools in a fresh world."""

    def __init__(self, scenario: Scenario, seed: int = 1) -> None:
        agent = scenario.equip_agent(scenario.make_world(seed))
        assert agent is not None
        self.agent: Agent = agent

    @property
    def definitions(self) -> list[dict[str, Any]]:
        return [convert_to_openai_tool(tool) for tool in self.agent.toolbox.values()]

    def call(self, tool: str, arguments: dict[str, Any], id: str = "1") -> dict[str, Any]:
        """Return the message with a tool's result, as an agent of this library records it."""
        message = {"role": "tool", "tool_call_id": id}
        try:
            call = {"type": "tool_call", "name": tool, "args": arguments, "id": id}
            message["content"] = self.agent.toolbox[tool].invoke(call).text
        except Exception as error:
            message["content"] = f"{type(error).__name__}: {error}"
            message["status"] = "error"
        return message


def run_script(use_case: str, script: str) -> list[dict[str, Any]]:
    """Return the messages of a script with the lines `customer: …`, `agent: …` and `call: tool {arguments}`."""
    desk = Desk(load_suite(use_case).scenarios[0])
    messages: list[dict[str, Any]] = []
    for number, line in enumerate(script.strip().splitlines()):
        kind, _, text = line.partition(": ")
        if kind == "customer":
            messages.append({"role": "user", "content": text})
        elif kind == "agent":
            messages.append({"role": "assistant", "content": text})
        else:
            assert kind == "call", line
            tool, _, arguments = text.partition(" ")
            arguments = arguments or "{}"
            call = {"id": f"call_{number}", "type": "function"}
            call["function"] = {"name": tool, "arguments": arguments}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append(desk.call(tool, json.loads(arguments), call["id"]))
    return messages


def score_messages(use_case: str, messages: list[dict[str, Any]]) -> Score:
    return score(load_graph(use_case), read_transcript(messages))
