"""What a judge's prompt shows: the numbered steps, the milestones and the agent; long texts as far as there is room."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.transcript import Call, Event, Message, Transcript
from arq_graph.reasoning.conversation import estimate_tokens
from arq_graph.reasoning.sections import as_json

SHORTEST_TEXT = 80
"""Characters of a text that are shown at least."""


def shown_steps(transcript: Transcript, max_tokens: int) -> list[dict[str, Any]] | None:
    """Every step of a conversation: none is left out, so their numbers are those of the transcript.

    The longest texts are cut as far as they have to be, so that all takes at most so many tokens as JSON; None where
    it does not even with `SHORTEST_TEXT` characters of each. Cost O(log max_tokens) renderings.
    """

    def render(limit: int | None) -> list[dict[str, Any]]:
        return [{"step": number, **_event(event, limit)} for number, event in transcript.numbered()]

    def is_too_long(limit: int | None) -> bool:
        return estimate_tokens(as_json(render(limit))) > max_tokens

    # Whole first: that a text was cut takes a few characters to say, which short ones do not save.
    if not is_too_long(None):
        return render(None)
    if is_too_long(SHORTEST_TEXT):
        return None
    limits = range(SHORTEST_TEXT, 8 * max_tokens)
    return render(limits[bisect_left(limits, True, key=is_too_long) - 1])


def _cut(key: str, text: str, limit: int | None) -> dict[str, Any]:
    """A text under its key; where it is too long its two ends, and beside them how long it is."""
    if limit is None or len(text) <= limit:
        return {key: text}
    half = limit // 2
    return {key: f"{text[:half]} … {text[-half:]}", "shortened_from_characters": len(text)}


def _event(event: Event, limit: int | None) -> dict[str, Any]:
    if isinstance(event, Message):
        return {"from": event.speaker, **_cut("text", event.text, limit)}
    if isinstance(event, Call):
        key = "arguments" if event.malformed is None else "malformed_arguments"
        written = _cut(key, event.written, limit)
        if event.malformed is None and len(written) == 1:
            written = {key: _data(event.written)}
        return {"from": "agent", "calls": event.tool, **written}
    record = {"from": "tool", "tool": event.tool, **_cut("result", event.text, limit)}
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


def with_dependencies(graph: MilestoneGraph, milestones: Sequence[Milestone]) -> set[str]:
    """Names of milestones and of what they depend on: with a join, which is observed nowhere, also what it joins."""
    found = {milestone.name for milestone in milestones}
    waiting = [name for milestone in milestones for name in milestone.dependencies]
    while waiting:
        name = waiting.pop()
        if name not in found and name in graph:
            found.add(name)
            milestone = graph.milestone(name)
            waiting.extend(milestone.dependencies if milestone.is_derived else ())
    return found


def shown_tools(definitions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tools with what their definitions say: name, description, and the schema of the arguments."""
    keys = {"name": "name", "description": "description", "parameters": "arguments"}
    return [
        {shown: each[key] for key, shown in keys.items() if each.get(key) not in (None, "")}
        for each in definitions
    ]
