"""From a model's draft to a milestone graph, and what code finds wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arq_graph.errors import SpecError
from arq_graph.milestones.authoring.blueprint import MilestoneDraft
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import START, Milestone
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.sections import clean

# "search" may be an ordinary word of the workflow; "search_orders" and "searchOrders" are not.
_TOOL_LIKE = re.compile(r"[_\d]|[a-z][A-Z]")


@dataclass(frozen=True)
class Drafted:
    """A model's draft, as far as it is a graph.

    Args:
        graph: The graph; None where two milestones have one name.
        errors: Why nothing could be measured on it, or which tools do not exist.
        doubts: What may not be meant.
    """

    graph: MilestoneGraph | None
    errors: tuple[Complaint, ...]
    doubts: tuple[Complaint, ...]


def drafted(drafts: Sequence[MilestoneDraft], *, workflow: str, tools: Sequence[str]) -> Drafted:
    """The graph of a draft, and everything that code finds wrong with it.

    Args:
        drafts: The milestones as the model gave them.
        workflow: The workflow that they come from.
        tools: Names of the agent's tools.
    """
    milestones = [_milestone(draft) for draft in drafts]
    places: dict[str, str] = {}
    for index, milestone in enumerate(milestones):
        places.setdefault(milestone.name, f"milestones[{index}]")
    if blank := [index for index, milestone in enumerate(milestones) if not milestone.name]:
        return Drafted(None, (_complaint(f"milestones[{blank[0]}].name", "it is empty"),), ())
    try:
        graph = MilestoneGraph(milestones)
    except SpecError as error:
        return Drafted(None, (_complaint("milestones", str(error)),), ())
    found = graph.check(tools)
    errors = [
        _complaint(places.get(each.milestone or "", "milestones"), each.message) for each in found.errors
    ]
    errors += [_complaint(places[name], message) for name, message in _misnamed(graph, tools)]
    doubts = [
        _complaint(places.get(each.milestone or "", "milestones"), each.message) for each in found.warnings
    ]
    doubts += [_complaint("milestones", message) for message in _left_out(graph, workflow, tools)]
    return Drafted(graph, tuple(errors), tuple(doubts))


def _milestone(draft: MilestoneDraft) -> Milestone:
    name = _one_line(draft.name)
    tool = _one_line(draft.tool or "") or None
    dependencies = dict.fromkeys(map(_one_line, draft.dependencies))  # one listed twice counts once
    return Milestone(
        name=name,
        type=draft.type,
        description=clean(draft.description).strip(),
        dependencies=tuple(dependencies),
        **({"requires": draft.requires} if draft.requires and len(dependencies) > 1 else {}),
        tool=tool if draft.type == "FC" and tool != name else None,
    )


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _misnamed(graph: MilestoneGraph, tools: Sequence[str]) -> Iterator[tuple[str, str]]:
    """An FC has the name of its tool, unless another FC has it (Pre-Act, Appendix F)."""
    for milestone in graph.milestones:
        if milestone.tool in tools and milestone.tool not in graph:
            yield (
                milestone.name,
                f"an FC is named exactly as its tool: name it {milestone.tool!r}, and set `tool` to null",
            )
    for milestone in graph.milestones:
        if milestone.name in tools and milestone.type != "FC" and milestone.name != START:
            yield (
                milestone.name,
                f"{milestone.name!r} is the name of a tool: make it an FC, or name it otherwise",
            )


def _left_out(graph: MilestoneGraph, workflow: str, tools: Sequence[str]) -> Iterator[str]:
    called = {milestone.called_tool for milestone in graph.milestones if milestone.type == "FC"}
    for tool in tools:
        named = _TOOL_LIKE.search(tool) and re.search(rf"(?<!\w){re.escape(tool)}(?!\w)", workflow)
        if named and tool not in called:
            yield f"the workflow names the tool {tool!r}, and no FC is its call"


def _complaint(place: str, message: str) -> Complaint:
    return Complaint("MilestoneAuthoring", place, message)
