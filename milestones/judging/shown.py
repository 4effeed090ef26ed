"""What a judge's prompt shows: the numbered steps, the milestones and the agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.transcript import Event, Message, Result, Transcript


def shown_steps(transcript: Transcript) -> list[dict[str, Any]]:
    """Every step of a conversation, with its number."""
    return [{"step": number, **_event(event)} for number, event in transcript.numbered()]


def _event(event: Event) -> dict[str, Any]:
    if isinstance(event, Message):
        return {"from": event.speaker, "text": event.text}
    if isinstance(event, Result):
        shown = {"from": "tool", "tool": event.tool, "result": event.text}
        return shown | _said({"of_step": event.call, "failed": event.failed})
    shown = {"from": "agent", "calls": event.tool}
    if event.malformed is not None:
        return {**shown, "malformed_arguments": event.malformed}
    return {**shown, "arguments": dict(event.arguments)}


def milestone_ids(graph: MilestoneGraph) -> dict[str, str]:
    """An id for each milestone, by its name: `M1`, `M2`, … in the graph's order, whatever is asked of them."""
    return {milestone.name: f"M{number}" for number, milestone in enumerate(graph.milestones, start=1)}


def shown_milestones(graph: MilestoneGraph) -> list[dict[str, Any]]:
    """What the milestones mean, and what comes before each."""
    ids = milestone_ids(graph)
    shown = []
    for milestone in graph.milestones:
        is_call = milestone.type == "FC"
        kind = "join" if milestone.is_derived else "call" if is_call else "state"
        more = {
            "description": milestone.description,
            "tool": milestone.called_tool if is_call else None,
            "arguments": milestone.model_dump(mode="json")["arguments"],
            "dependencies": [ids.get(name, name) for name in milestone.dependencies],
            "requires": milestone.requires if len(milestone.dependencies) > 1 else None,
            "holds": milestone.holds,
        }
        shown.append({"id": ids[milestone.name], "type": kind, "name": milestone.name, **_said(more)})
    return shown


def shown_tools(definitions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tools with what their definitions say: name, description, and the schema of the arguments."""
    keys = {"name": "name", "description": "description", "parameters": "arguments"}
    return [_said({shown: each.get(key) for key, shown in keys.items()}) for each in definitions]


def _said(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", False, [], {})}
