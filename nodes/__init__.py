"""Reasoning steps as LangGraph nodes, to add to any `StateGraph`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arq_graph.lazy import lazily

if TYPE_CHECKING:
    from arq_graph.agent.state import Move, WorldStatus
    from arq_graph.nodes.approval import ApproveCalls
    from arq_graph.nodes.blueprint_node import BlueprintNode
    from arq_graph.nodes.events import (
        Event,
        GuidelinesMatched,
        PlanMade,
        ProgressMade,
        ReplyRevised,
        ReplySent,
        Spoke,
        Thought,
        ToolCalled,
        ToolsDecided,
    )
    from arq_graph.nodes.guideline_matcher import GuidelineMatcher
    from arq_graph.nodes.judgements import GuidelineJudgement
    from arq_graph.nodes.message_reviser import MessageReviser
    from arq_graph.nodes.message_schema import MessageBlueprint, MessageRevision
    from arq_graph.nodes.pre_act_planner import PreActPlanner
    from arq_graph.nodes.progress import TrackProgress
    from arq_graph.nodes.react_planner import ReActPlanner
    from arq_graph.nodes.routing import route_approved, route_calls, route_round
    from arq_graph.nodes.speaking.dialogue_acts import HOUSEHOLD_ACTS
    from arq_graph.nodes.speaking.listening import Listen, route_moves
    from arq_graph.nodes.speaking.policies import POLICIES, Policy
    from arq_graph.nodes.speaking.speaker import Speaker
    from arq_graph.nodes.speaking.world import ActInWorld
    from arq_graph.nodes.tool_caller import ToolCaller
    from arq_graph.nodes.tool_node import guarded_tools
    from arq_graph.nodes.worked_examples import Example

_MODULES = {
    "BlueprintNode": "arq_graph.nodes.blueprint_node",
    "GuidelineMatcher": "arq_graph.nodes.guideline_matcher",
    "ToolCaller": "arq_graph.nodes.tool_caller",
    "PreActPlanner": "arq_graph.nodes.pre_act_planner",
    "ReActPlanner": "arq_graph.nodes.react_planner",
    "MessageReviser": "arq_graph.nodes.message_reviser",
    "guarded_tools": "arq_graph.nodes.tool_node",
    "ApproveCalls": "arq_graph.nodes.approval",
    "route_approved": "arq_graph.nodes.routing",
    "route_calls": "arq_graph.nodes.routing",
    "route_round": "arq_graph.nodes.routing",
    "MessageBlueprint": "arq_graph.nodes.message_schema",
    "MessageRevision": "arq_graph.nodes.message_schema",
    "GuidelineJudgement": "arq_graph.nodes.judgements",
    "Example": "arq_graph.nodes.worked_examples",
    "Event": "arq_graph.nodes.events",
    "GuidelinesMatched": "arq_graph.nodes.events",
    "PlanMade": "arq_graph.nodes.events",
    "ReplyRevised": "arq_graph.nodes.events",
    "ReplySent": "arq_graph.nodes.events",
    "ToolCalled": "arq_graph.nodes.events",
    "ToolsDecided": "arq_graph.nodes.events",
    "TrackProgress": "arq_graph.nodes.progress",
    "ProgressMade": "arq_graph.nodes.events",
    "ActInWorld": "arq_graph.nodes.speaking.world",
    "HOUSEHOLD_ACTS": "arq_graph.nodes.speaking.dialogue_acts",
    "Listen": "arq_graph.nodes.speaking.listening",
    "Move": "arq_graph.agent.state",
    "POLICIES": "arq_graph.nodes.speaking.policies",
    "Policy": "arq_graph.nodes.speaking.policies",
    "Speaker": "arq_graph.nodes.speaking.speaker",
    "Spoke": "arq_graph.nodes.events",
    "Thought": "arq_graph.nodes.events",
    "WorldStatus": "arq_graph.agent.state",
    "route_moves": "arq_graph.nodes.speaking.listening",
}

__all__ = [
    "HOUSEHOLD_ACTS",
    "POLICIES",
    "ActInWorld",
    "ApproveCalls",
    "BlueprintNode",
    "Event",
    "Example",
    "GuidelineJudgement",
    "GuidelineMatcher",
    "GuidelinesMatched",
    "Listen",
    "MessageBlueprint",
    "MessageReviser",
    "MessageRevision",
    "Move",
    "PlanMade",
    "Policy",
    "PreActPlanner",
    "ProgressMade",
    "ReActPlanner",
    "ReplyRevised",
    "ReplySent",
    "Speaker",
    "Spoke",
    "Thought",
    "ToolCalled",
    "ToolCaller",
    "ToolsDecided",
    "TrackProgress",
    "WorldStatus",
    "guarded_tools",
    "route_approved",
    "route_calls",
    "route_moves",
    "route_round",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
