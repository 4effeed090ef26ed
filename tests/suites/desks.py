"""Conversations with the desks of the use cases, written down in short and held with a fresh world."""

from __future__ import annotations

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
def suite_of(use_case: str) -> Suite:
    return Suite.from_yaml(FOLDER / f"{use_case}.suite.yaml")


@cache
def graph_of(use_case: str) -> MilestoneGraph:
    return read_milestones(FOLDER / f"{use_case}.milestones.yaml")


class Desk:
    """The agent's tools in a world that nobody has touched yet."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        agent = scenario.equip_agent(scenario.make_world(seed))
        assert agent is not None
        self.agent: Agent = agent

    @property
    def definitions(self) -> list[dict[str, Any]]:
        return [convert_to_openai_tool(tool) for tool in self.agent.toolbox.values()]

    def answer(self, tool: str, arguments: dict[str, Any], id: str) -> dict[str, Any]:
        """The message with what a tool gives back, as an agent of this library would record it."""
        try:
            call = {"type": "tool_call", "name": tool, "args": arguments, "id": id}
            result = self.agent.toolbox[tool].invoke(call)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return {"role": "tool", "tool_call_id": id, "content": said, "status": "error"}
        return {"role": "tool", "tool_call_id": id, "content": result.text}


def held(scenario: Scenario, script: str, seed: int = 1) -> list[dict[str, Any]]:
    """The messages of a script: lines such as `customer: …`, `agent: …` and `call: tool {arguments as JSON}`.

    A line that begins with `and:` is a call that stands in one message with the call before it.
    """
    desk, messages, count = Desk(scenario, seed), list[dict[str, Any]](), 0
    for line in filter(None, map(str.strip, script.splitlines())):
        kind, _, said = line.partition(": ")
        if kind in ("customer", "agent"):
            messages.append({"role": "user" if kind == "customer" else "assistant", "content": said})
            continue
        assert kind in ("call", "and"), line
        tool, _, written = said.partition(" ")
        arguments, count = json.loads(written or "{}"), count + 1
        call = {"id": f"call_{count}", "type": "function"}
        call["function"] = {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
        if kind == "call":
            asked: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": []}
            messages.append(asked)
        asked["tool_calls"].append(call)
        messages.append(desk.answer(tool, arguments, call["id"]))
    return messages


def measured(use_case: str, messages: list[dict[str, Any]]) -> Score:
    return score(graph_of(use_case), read_transcript(messages))
