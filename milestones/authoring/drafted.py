"""From a model's draft to milestones, and what code finds wrong with them."""

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
    """A model's draft: why nothing could be measured on it, or which tools do not exist, and what may not be meant."""

    milestones: tuple[Milestone, ...]
    errors: tuple[Complaint, ...] = ()
    doubts: tuple[Complaint, ...] = ()


def drafted(drafts: Sequence[MilestoneDraft], *, workflow: str, tools: Sequence[str]) -> Drafted:
    """The milestones of a draft, and everything that code finds wrong with them."""
    names = [_one_line(draft.name) for draft in drafts]

    def complaint(name: str | None, message: str) -> Complaint:
        place = f"milestones[{names.index(name)}]" if name in names else "milestones"
        return Complaint("MilestoneAuthoring", place, message)

    if "" in names:
        return Drafted((), (complaint("", "its name is empty"),))
    milestones = tuple(map(_milestone, drafts))
    try:
        graph = MilestoneGraph(milestones)
    except SpecError as error:
        return Drafted(milestones, (complaint(None, str(error)),))
    found = graph.check(tools)
    errors = [complaint(each.milestone, each.message) for each in found.errors]
    errors += [complaint(*each) for each in _misnamed(graph, tools)]
    doubts = [complaint(each.milestone, each.message) for each in found.warnings]
    doubts += [complaint(None, message) for message in _left_out(graph, workflow, tools)]
    return Drafted(milestones, tuple(errors), tuple(doubts))


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
    for each in graph.milestones:
        if each.tool in tools and each.tool not in graph:
            yield (
                each.name,
                f"an FC is named exactly as its tool: name it {each.tool!r}, and set `tool` to null",
            )
        if each.name in tools and each.type != "FC" and each.name != START:
            yield each.name, f"{each.name!r} is the name of a tool: make it an FC, or name it otherwise"


def _left_out(graph: MilestoneGraph, workflow: str, tools: Sequence[str]) -> Iterator[str]:
    called = {milestone.called_tool for milestone in graph.milestones if milestone.type == "FC"}
    for tool in tools:
        named = _TOOL_LIKE.search(tool) and re.search(rf"(?<!\w){re.escape(tool)}(?!\w)", workflow)
        if named and tool not in called:
            yield f"the workflow names the tool {tool!r}, and no FC is its call"
