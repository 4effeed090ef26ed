"""Live milestones in the compiled apps: where in a turn progress is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.graph import START, StateGraph

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError

if TYPE_CHECKING:
    from arq_graph.milestones.graph import MilestoneGraph
    from arq_graph.milestones.judging.judge import AnyJudge
    from arq_graph.nodes.progress import TrackProgress


def tracker_of(
    agent: Agent, milestones: MilestoneGraph | None, judge: AnyJudge | None
) -> TrackProgress | None:
    """The node that measures progress; None where there are no milestones.

    Raises:
        InputError: A judge is given, and nothing to ask it about.
        SpecError: The graph cannot be measured on.
    """
    if milestones is not None:
        # Loads networkx, which an agent without milestones has no use for.
        from arq_graph.nodes.progress import TrackProgress

        return TrackProgress(milestones, tools=agent.toolbox, judge=judge, agent=agent.name)
    if judge is not None:
        raise InputError("judge is asked about milestones: give milestones= too")
    return None


def add_beside(builder: StateGraph[Any, Any, Any, Any], agent: Agent, tracker: TrackProgress) -> None:
    """Measure beside the steps of a guided turn, so that it takes no step of its own but the last.

    At the turn's start and after tools, side by side with matching, so that a plan made behind both sees it; and once
    the reply is written.
    """
    builder.add_node("progress", tracker)
    for node in (START, *(["tools"] if agent.toolbox else []), "message"):
        builder.add_edge(node, "progress")
