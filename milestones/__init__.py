"""How far a conversation got toward its goal: milestone graphs, goal completion and progress rate, for any agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arq_graph.lazy import lazily

if TYPE_CHECKING:
    from arq_graph.milestones.authoring.author import aauthor_milestones, author_milestones
    from arq_graph.milestones.authoring.mermaid import mermaid
    from arq_graph.milestones.constraints import Absent, Equals, Matches, OneOf, Within
    from arq_graph.milestones.evaluation.conversation import Conversation
    from arq_graph.milestones.evaluation.conversing import aconverse, converse
    from arq_graph.milestones.evaluation.results import read_results
    from arq_graph.milestones.evaluation.running import aevaluate, evaluate
    from arq_graph.milestones.evaluation.scenario import Limits, Scenario
    from arq_graph.milestones.evaluation.suite import Suite
    from arq_graph.milestones.findings import Finding, Findings
    from arq_graph.milestones.graph import MilestoneGraph
    from arq_graph.milestones.graph_file import parse_yaml, read_yaml
    from arq_graph.milestones.grounding import invented_arguments
    from arq_graph.milestones.judging.judge import AsyncJudge, Judge
    from arq_graph.milestones.judging.judgement import Judgement, Remark
    from arq_graph.milestones.judging.llm_judge import LLMJudge
    from arq_graph.milestones.matching import observe
    from arq_graph.milestones.measure import (
        coverage,
        frontier,
        goal_completed,
        path_taken,
        progress_rate,
        reach,
        satisfied_by,
    )
    from arq_graph.milestones.milestone import Forbidden, Milestone, Said
    from arq_graph.milestones.observations import ForbiddenEvent, Observations
    from arq_graph.milestones.patterns import Pattern
    from arq_graph.milestones.reports.comparison import compare
    from arq_graph.milestones.reports.graph_choice import gold_graph
    from arq_graph.milestones.reports.html import write_html
    from arq_graph.milestones.reports.report import Report, read_report, write_report
    from arq_graph.milestones.reports.scoring_run import ascore_transcripts, score_transcripts
    from arq_graph.milestones.scoring import Score, ascore, score
    from arq_graph.milestones.tool_schemas import argument_schemas
    from arq_graph.milestones.tracking import ProgressTracker
    from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
    from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcript, read_transcripts
    from arq_graph.milestones.transcripts.messages import read_messages
    from arq_graph.milestones.transcripts.threads import read_thread
    from arq_graph.milestones.turn_level.actions import Action
    from arq_graph.milestones.turn_level.comparison import StepOutcome
    from arq_graph.milestones.turn_level.evaluation import TurnEvaluation, aevaluate_turns, evaluate_turns
    from arq_graph.milestones.turn_level.metrics import TurnMetrics, turn_metrics
    from arq_graph.milestones.turn_level.predictions import evaluate_predictions, read_predictions
    from arq_graph.milestones.turn_level.similarity import EmbeddingScorer, lexical_similarity
    from arq_graph.milestones.turn_level.steps import TurnStep, steps_of
    from arq_graph.milestones.users.agenda import AgendaUser
    from arq_graph.milestones.users.personas import Persona
    from arq_graph.milestones.users.simulated import SimulatedUser, make_user
    from arq_graph.milestones.users.spec import Intent, UserSpec
    from arq_graph.milestones.users.user import EXIT, User, UserTurn
    from arq_graph.milestones.verdicts import Verdict

_MODULES = {
    "MilestoneGraph": "arq_graph.milestones.graph",
    "Milestone": "arq_graph.milestones.milestone",
    "Said": "arq_graph.milestones.milestone",
    "Forbidden": "arq_graph.milestones.milestone",
    "Equals": "arq_graph.milestones.constraints",
    "Matches": "arq_graph.milestones.constraints",
    "Within": "arq_graph.milestones.constraints",
    "OneOf": "arq_graph.milestones.constraints",
    "Absent": "arq_graph.milestones.constraints",
    "Pattern": "arq_graph.milestones.patterns",
    "Finding": "arq_graph.milestones.findings",
    "Findings": "arq_graph.milestones.findings",
    "read_yaml": "arq_graph.milestones.graph_file",
    "parse_yaml": "arq_graph.milestones.graph_file",
    "Transcript": "arq_graph.milestones.transcript",
    "Message": "arq_graph.milestones.transcript",
    "Call": "arq_graph.milestones.transcript",
    "Result": "arq_graph.milestones.transcript",
    "Event": "arq_graph.milestones.transcript",
    "BrokenRecord": "arq_graph.milestones.transcripts.formats",
    "read_transcript": "arq_graph.milestones.transcripts.formats",
    "read_transcripts": "arq_graph.milestones.transcripts.formats",
    "read_thread": "arq_graph.milestones.transcripts.threads",
    "Observations": "arq_graph.milestones.observations",
    "ForbiddenEvent": "arq_graph.milestones.observations",
    "observe": "arq_graph.milestones.matching",
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
    "author_milestones": "arq_graph.milestones.authoring.author",
    "aauthor_milestones": "arq_graph.milestones.authoring.author",
    "mermaid": "arq_graph.milestones.authoring.mermaid",
    "Report": "arq_graph.milestones.reports.report",
    "compare": "arq_graph.milestones.reports.comparison",
    "read_report": "arq_graph.milestones.reports.report",
    "write_report": "arq_graph.milestones.reports.report",
    "Action": "arq_graph.milestones.turn_level.actions",
    "TurnStep": "arq_graph.milestones.turn_level.steps",
    "steps_of": "arq_graph.milestones.turn_level.steps",
    "StepOutcome": "arq_graph.milestones.turn_level.comparison",
    "TurnMetrics": "arq_graph.milestones.turn_level.metrics",
    "turn_metrics": "arq_graph.milestones.turn_level.metrics",
    "TurnEvaluation": "arq_graph.milestones.turn_level.evaluation",
    "evaluate_turns": "arq_graph.milestones.turn_level.evaluation",
    "aevaluate_turns": "arq_graph.milestones.turn_level.evaluation",
    "read_predictions": "arq_graph.milestones.turn_level.predictions",
    "evaluate_predictions": "arq_graph.milestones.turn_level.predictions",
    "lexical_similarity": "arq_graph.milestones.turn_level.similarity",
    "EmbeddingScorer": "arq_graph.milestones.turn_level.similarity",
    "read_messages": "arq_graph.milestones.transcripts.messages",
    "ascore": "arq_graph.milestones.scoring",
    "Judge": "arq_graph.milestones.judging.judge",
    "AsyncJudge": "arq_graph.milestones.judging.judge",
    "Judgement": "arq_graph.milestones.judging.judgement",
    "Remark": "arq_graph.milestones.judging.judgement",
    "LLMJudge": "arq_graph.milestones.judging.llm_judge",
    "write_html": "arq_graph.milestones.reports.html",
    "score_transcripts": "arq_graph.milestones.reports.scoring_run",
    "ascore_transcripts": "arq_graph.milestones.reports.scoring_run",
    "gold_graph": "arq_graph.milestones.reports.graph_choice",
    "Intent": "arq_graph.milestones.users.spec",
    "UserSpec": "arq_graph.milestones.users.spec",
    "User": "arq_graph.milestones.users.user",
    "UserTurn": "arq_graph.milestones.users.user",
    "make_user": "arq_graph.milestones.users.simulated",
    "EXIT": "arq_graph.milestones.users.user",
    "AgendaUser": "arq_graph.milestones.users.agenda",
    "SimulatedUser": "arq_graph.milestones.users.simulated",
    "Persona": "arq_graph.milestones.users.personas",
    "Scenario": "arq_graph.milestones.evaluation.scenario",
    "Limits": "arq_graph.milestones.evaluation.scenario",
    "Suite": "arq_graph.milestones.evaluation.suite",
    "evaluate": "arq_graph.milestones.evaluation.running",
    "aevaluate": "arq_graph.milestones.evaluation.running",
    "converse": "arq_graph.milestones.evaluation.conversing",
    "aconverse": "arq_graph.milestones.evaluation.conversing",
    "Conversation": "arq_graph.milestones.evaluation.conversation",
    "read_results": "arq_graph.milestones.evaluation.results",
}

__all__ = [
    "EXIT",
    "Absent",
    "Action",
    "AgendaUser",
    "AsyncJudge",
    "BrokenRecord",
    "Call",
    "Conversation",
    "EmbeddingScorer",
    "Equals",
    "Event",
    "Finding",
    "Findings",
    "Forbidden",
    "ForbiddenEvent",
    "Intent",
    "Judge",
    "Judgement",
    "LLMJudge",
    "Limits",
    "Matches",
    "Message",
    "Milestone",
    "MilestoneGraph",
    "Observations",
    "OneOf",
    "Pattern",
    "Persona",
    "ProgressTracker",
    "Remark",
    "Report",
    "Result",
    "Said",
    "Scenario",
    "Score",
    "SimulatedUser",
    "StepOutcome",
    "Suite",
    "Transcript",
    "TurnEvaluation",
    "TurnMetrics",
    "TurnStep",
    "User",
    "UserSpec",
    "UserTurn",
    "Verdict",
    "Within",
    "aauthor_milestones",
    "aconverse",
    "aevaluate",
    "aevaluate_turns",
    "argument_schemas",
    "ascore",
    "ascore_transcripts",
    "author_milestones",
    "compare",
    "converse",
    "coverage",
    "evaluate",
    "evaluate_predictions",
    "evaluate_turns",
    "frontier",
    "goal_completed",
    "gold_graph",
    "invented_arguments",
    "lexical_similarity",
    "make_user",
    "mermaid",
    "observe",
    "parse_yaml",
    "path_taken",
    "progress_rate",
    "reach",
    "read_messages",
    "read_predictions",
    "read_report",
    "read_results",
    "read_thread",
    "read_transcript",
    "read_transcripts",
    "read_yaml",
    "satisfied_by",
    "score",
    "score_transcripts",
    "steps_of",
    "turn_metrics",
    "write_html",
    "write_report",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
