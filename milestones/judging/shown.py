"""What a judge's prompt shows: the numbered steps, the milestones and the agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.transcript import Call, Event, Message, Transcript


def shown_steps(transcript: Transcript) -> list[dict[str, Any]]:
    """Every step of a conversation, with its number."""
    return [{"step": number, **_event(event)} for number, event in transcript.numbered()]


def _event(event: Event) -> dict[str, Any]:
    if isinstance(event, Message):
        return {"from": event.speaker, "text": event.text}
    if isinstance(event, Call):
        known = {"from": "agent", "calls": event.tool}
        if event.malformed is not None:
            return {**known, "malformed_arguments": event.written}
        return {**known, "arguments": _data(event.written)}
    record: dict[str, Any] = {"from": "tool", "tool": event.tool, "result": event.text}
    if event.call is not None:
        record["of_step"] = event.call
    return {**record, "failed": True} if event.failed else record


def _data(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):  # a Python literal that JSON cannot say
        return written


def milestone_ids(graph: MilestoneGraph) -> dict[str, str]:
    """An id for each milestone, by its name: `M1`, `M2`, … in the graph's order, whatever is asked of them."""
    return {milestone.name: f"M{number}" for number, milestone in enumerate(graph.milestones, start=1)}


def shown_milestones(graph: MilestoneGraph) -> list[dict[str, Any]]:
    """What the milestones mean, and what comes before each."""
    ids = milestone_ids(graph)
    return [_milestone(each, ids) for each in graph.milestones]


def _milestone(milestone: Milestone, ids: dict[str, str]) -> dict[str, Any]:
    kind = "join" if milestone.is_derived else "call" if milestone.type == "FC" else "state"
    record: dict[str, Any] = {"id": ids[milestone.name], "type": kind, "name": milestone.name}
    if milestone.description:
        record["description"] = milestone.description
    if milestone.type == "FC":
        record["tool"] = milestone.called_tool
        if milestone.arguments:
            record["arguments"] = {name: rule.as_written() for name, rule in milestone.arguments.items()}
    if milestone.dependencies:
        record["dependencies"] = [ids.get(name, name) for name in milestone.dependencies]
    if len(milestone.dependencies) > 1:
        record["requires"] = milestone.requires
    return {**record, "holds": True} if milestone.holds else record


def shown_tools(definitions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tools with what their definitions say: name, description, and the schema of the arguments."""
    keys = {"name": "name", "description": "description", "parameters": "arguments"}
    return [
        {shown: each[key] for key, shown in keys.items() if each.get(key) not in (None, "")}
        for each in definitions
    ]
