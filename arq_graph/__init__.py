"""LangGraph agents that follow their rules, and milestones that measure how far a conversation got."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arq_graph.lazy import lazily

if TYPE_CHECKING:
    from arq_graph.agent.environment import Environment, Observation
    from arq_graph.agent.spec import Agent, Guideline, Term, Variable
    from arq_graph.agent.state import (
        AgentState,
        AppliedGuideline,
        GuidelineMatch,
        Plan,
        PlanChange,
        PlannedCall,
        PlanStep,
        Revision,
        ToolInsight,
    )
    from arq_graph.apps.episode import Episode, EpisodeStep, episode_transcript, play_episode
    from arq_graph.apps.guided import PAPER_MODELS, create_guided_agent
    from arq_graph.apps.planning import create_planning_agent
    from arq_graph.apps.respact import create_respact_agent
    from arq_graph.apps.resuming import aresume_or_invoke, resume_or_invoke
    from arq_graph.apps.textworld_environment import TextWorldEnvironment, make_text_game
    from arq_graph.errors import (
        ArqGraphError,
        BlueprintDefinitionError,
        BlueprintError,
        InputError,
        ModelRequestError,
        ModelUnavailableError,
        PromptError,
        ReasoningError,
        RefusalError,
        SpecError,
        StateError,
        ToolError,
        UnsatisfiedError,
    )
    from arq_graph.models.offline.model import OfflineChatModel
    from arq_graph.models.scripted import ScriptedChatModel
    from arq_graph.reasoning.answer import Answer, Attempt, Complaint, Question
    from arq_graph.reasoning.blueprint import ARQ, Mode, query, reinstate, respond, verify
    from arq_graph.reasoning.reasoner import Reasoner
    from arq_graph.reasoning.usage import track_usage

_here = Path(__file__).resolve().parent
if not (_here / "nodes").is_dir() and (_here.parent / "nodes").is_dir():
    # In a checkout `nodes/` and `milestones/` stand beside this folder, and this folder shadows an installed
    # copy when Python runs from the repository's root.
    __path__.append(str(_here.parent))

_MODULES = {
    "ARQ": "arq_graph.reasoning.blueprint",
    "Mode": "arq_graph.reasoning.blueprint",
    "query": "arq_graph.reasoning.blueprint",
    "reinstate": "arq_graph.reasoning.blueprint",
    "respond": "arq_graph.reasoning.blueprint",
    "verify": "arq_graph.reasoning.blueprint",
    "Reasoner": "arq_graph.reasoning.reasoner",
    "Answer": "arq_graph.reasoning.answer",
    "Attempt": "arq_graph.reasoning.answer",
    "Complaint": "arq_graph.reasoning.answer",
    "Question": "arq_graph.reasoning.answer",
    "track_usage": "arq_graph.reasoning.usage",
    "Agent": "arq_graph.agent.spec",
    "Guideline": "arq_graph.agent.spec",
    "Term": "arq_graph.agent.spec",
    "Variable": "arq_graph.agent.spec",
    "AgentState": "arq_graph.agent.state",
    "AppliedGuideline": "arq_graph.agent.state",
    "GuidelineMatch": "arq_graph.agent.state",
    "Plan": "arq_graph.agent.state",
    "PlanChange": "arq_graph.agent.state",
    "PlanStep": "arq_graph.agent.state",
    "PlannedCall": "arq_graph.agent.state",
    "Revision": "arq_graph.agent.state",
    "ToolInsight": "arq_graph.agent.state",
    "OfflineChatModel": "arq_graph.models.offline.model",
    "ScriptedChatModel": "arq_graph.models.scripted",
    "PAPER_MODELS": "arq_graph.apps.guided",
    "create_guided_agent": "arq_graph.apps.guided",
    "create_planning_agent": "arq_graph.apps.planning",
    "aresume_or_invoke": "arq_graph.apps.resuming",
    "resume_or_invoke": "arq_graph.apps.resuming",
    "ArqGraphError": "arq_graph.errors",
    "BlueprintDefinitionError": "arq_graph.errors",
    "BlueprintError": "arq_graph.errors",
    "InputError": "arq_graph.errors",
    "ModelRequestError": "arq_graph.errors",
    "ModelUnavailableError": "arq_graph.errors",
    "PromptError": "arq_graph.errors",
    "ReasoningError": "arq_graph.errors",
    "RefusalError": "arq_graph.errors",
    "SpecError": "arq_graph.errors",
    "StateError": "arq_graph.errors",
    "ToolError": "arq_graph.errors",
    "UnsatisfiedError": "arq_graph.errors",
    "Environment": "arq_graph.agent.environment",
    "Observation": "arq_graph.agent.environment",
    "create_respact_agent": "arq_graph.apps.respact",
    "TextWorldEnvironment": "arq_graph.apps.textworld_environment",
    "make_text_game": "arq_graph.apps.textworld_environment",
    "Episode": "arq_graph.apps.episode",
    "EpisodeStep": "arq_graph.apps.episode",
    "play_episode": "arq_graph.apps.episode",
    "episode_transcript": "arq_graph.apps.episode",
}

__all__ = [
    "ARQ",
    "PAPER_MODELS",
    "Agent",
    "AgentState",
    "Answer",
    "AppliedGuideline",
    "ArqGraphError",
    "Attempt",
    "BlueprintDefinitionError",
    "BlueprintError",
    "Complaint",
    "Environment",
    "Episode",
    "EpisodeStep",
    "Guideline",
    "GuidelineMatch",
    "InputError",
    "Mode",
    "ModelRequestError",
    "ModelUnavailableError",
    "Observation",
    "OfflineChatModel",
    "Plan",
    "PlanChange",
    "PlanStep",
    "PlannedCall",
    "PromptError",
    "Question",
    "Reasoner",
    "ReasoningError",
    "RefusalError",
    "Revision",
    "ScriptedChatModel",
    "SpecError",
    "StateError",
    "Term",
    "TextWorldEnvironment",
    "ToolError",
    "ToolInsight",
    "UnsatisfiedError",
    "Variable",
    "aresume_or_invoke",
    "create_guided_agent",
    "create_planning_agent",
    "create_respact_agent",
    "episode_transcript",
    "make_text_game",
    "play_episode",
    "query",
    "reinstate",
    "respond",
    "resume_or_invoke",
    "track_usage",
    "verify",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
