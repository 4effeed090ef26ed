"""How far a conversation got toward its goal: milestone graphs, goal completion and progress rate, for any agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arq_graph.lazy import lazily

if TYPE_CHECKING:
    from arq_graph.milestones.constraints import Absent, Equals, Matches, OneOf, Within
    from arq_graph.milestones.findings import Finding, Findings
    from arq_graph.milestones.formats import BrokenRecord, read_transcript, read_transcripts
    from arq_graph.milestones.graph import MilestoneGraph
    from arq_graph.milestones.grounding import invented_arguments
    from arq_graph.milestones.langchain_messages import read_thread
    from arq_graph.milestones.measure import (
        coverage,
        frontier,
        goal_completed,
        path_taken,
        progress_rate,
        reach,
        satisfied_by,
    )
    from arq_graph.milestones.milestone import Called, Forbidden, Function, Milestone, Said
    from arq_graph.milestones.observations import ForbiddenEvent, Observations
    from arq_graph.milestones.observing import observe
    from arq_graph.milestones.patterns import Pattern
    from arq_graph.milestones.scoring import Score, score
    from arq_graph.milestones.tool_schemas import argument_schemas
    from arq_graph.milestones.tracking import ProgressTracker
    from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
    from arq_graph.milestones.verdicts import Verdict
    from arq_graph.milestones.yaml_file import parse_yaml, read_yaml

_MODULES = {
    "MilestoneGraph": "arq_graph.milestones.graph",
    "Milestone": "arq_graph.milestones.milestone",
    "Said": "arq_graph.milestones.milestone",
    "Function": "arq_graph.milestones.milestone",
    "Called": "arq_graph.milestones.milestone",
    "Forbidden": "arq_graph.milestones.milestone",
    "Equals": "arq_graph.milestones.constraints",
    "Matches": "arq_graph.milestones.constraints",
    "Within": "arq_graph.milestones.constraints",
    "OneOf": "arq_graph.milestones.constraints",
    "Absent": "arq_graph.milestones.constraints",
    "Pattern": "arq_graph.milestones.patterns",
    "Finding": "arq_graph.milestones.findings",
    "Findings": "arq_graph.milestones.findings",
    "read_yaml": "arq_graph.milestones.yaml_file",
    "parse_yaml": "arq_graph.milestones.yaml_file",
    "Transcript": "arq_graph.milestones.transcript",
    "Message": "arq_graph.milestones.transcript",
    "Call": "arq_graph.milestones.transcript",
    "Result": "arq_graph.milestones.transcript",
    "Event": "arq_graph.milestones.transcript",
    "BrokenRecord": "arq_graph.milestones.formats",
    "read_transcript": "arq_graph.milestones.formats",
    "read_transcripts": "arq_graph.milestones.formats",
    "read_thread": "arq_graph.milestones.langchain_messages",
    "Observations": "arq_graph.milestones.observations",
    "ForbiddenEvent": "arq_graph.milestones.observations",
    "observe": "arq_graph.milestones.observing",
    "argument_schemas": "arq_graph.milestones.tool_schemas",
    "Verdict": "arq_graph.milestones.verdicts",
    "invented_arguments": "arq_graph.milestones.grounding",
    "reach": "arq_graph.milestones.measure",
    "goal_completed": "arq_graph.milestones.measure",
    "progress_rate": "arq_graph.milestones.measure",
    "frontier": "arq_graph.milestones.measure",
    "coverage": "arq_graph.milestones.measure",
    "path_taken": "arq_graph.milestones.measure",
    "satisfied_by": "arq_graph.milestones.measure",
    "Score": "arq_graph.milestones.scoring",
    "score": "arq_graph.milestones.scoring",
    "ProgressTracker": "arq_graph.milestones.tracking",
}

__all__ = [
    "Absent",
    "BrokenRecord",
    "Call",
    "Called",
    "Equals",
    "Event",
    "Finding",
    "Findings",
    "Forbidden",
    "ForbiddenEvent",
    "Function",
    "Matches",
    "Message",
    "Milestone",
    "MilestoneGraph",
    "Observations",
    "OneOf",
    "Pattern",
    "ProgressTracker",
    "Result",
    "Said",
    "Score",
    "Transcript",
    "Verdict",
    "Within",
    "argument_schemas",
    "coverage",
    "frontier",
    "goal_completed",
    "invented_arguments",
    "observe",
    "parse_yaml",
    "path_taken",
    "progress_rate",
    "reach",
    "read_thread",
    "read_transcript",
    "read_transcripts",
    "read_yaml",
    "satisfied_by",
    "score",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
