"""How far a conversation got toward its goal: milestone graphs, goal completion and progress rate, for any agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arq_graph.lazy import lazily_imported

# The public names, each written once: what type checkers see is what `__all__` says.
if TYPE_CHECKING:
    from arq_graph.milestones.authoring.author import aauthor_milestones as aauthor_milestones
    from arq_graph.milestones.authoring.author import author_milestones as author_milestones
    from arq_graph.milestones.authoring.mermaid import mermaid as mermaid
    from arq_graph.milestones.evaluation.conversation import Conversation as Conversation
    from arq_graph.milestones.evaluation.dialogue import aconverse as aconverse
    from arq_graph.milestones.evaluation.dialogue import converse as converse
    from arq_graph.milestones.evaluation.results import read_results as read_results
    from arq_graph.milestones.evaluation.runner import aevaluate as aevaluate
    from arq_graph.milestones.evaluation.runner import evaluate as evaluate
    from arq_graph.milestones.evaluation.scenario import Limits as Limits
    from arq_graph.milestones.evaluation.scenario import Scenario as Scenario
    from arq_graph.milestones.evaluation.suite import Suite as Suite
    from arq_graph.milestones.graph import MilestoneGraph as MilestoneGraph
    from arq_graph.milestones.judging.judge import AsyncJudge as AsyncJudge
    from arq_graph.milestones.judging.judge import Judge as Judge
    from arq_graph.milestones.judging.judgement import Judgement as Judgement
    from arq_graph.milestones.judging.judgement import Remark as Remark
    from arq_graph.milestones.judging.llm_judge import LLMJudge as LLMJudge
    from arq_graph.milestones.matching import observe as observe
    from arq_graph.milestones.milestone import Forbidden as Forbidden
    from arq_graph.milestones.milestone import Milestone as Milestone
    from arq_graph.milestones.reports.comparison import compare as compare
    from arq_graph.milestones.reports.graph_choice import gold_graph as gold_graph
    from arq_graph.milestones.reports.html import write_html as write_html
    from arq_graph.milestones.reports.report import Report as Report
    from arq_graph.milestones.reports.report import read_report as read_report
    from arq_graph.milestones.reports.report import write_report as write_report
    from arq_graph.milestones.reports.scoring_run import ascore_transcripts as ascore_transcripts
    from arq_graph.milestones.reports.scoring_run import score_transcripts as score_transcripts
    from arq_graph.milestones.scoring import Score as Score
    from arq_graph.milestones.scoring import ascore as ascore
    from arq_graph.milestones.scoring import score as score
    from arq_graph.milestones.tracking import ProgressTracker as ProgressTracker
    from arq_graph.milestones.transcript import Call as Call
    from arq_graph.milestones.transcript import Message as Message
    from arq_graph.milestones.transcript import Result as Result
    from arq_graph.milestones.transcript import Transcript as Transcript
    from arq_graph.milestones.transcripts.formats import BrokenRecord as BrokenRecord
    from arq_graph.milestones.transcripts.formats import read_transcript as read_transcript
    from arq_graph.milestones.transcripts.formats import read_transcripts as read_transcripts
    from arq_graph.milestones.transcripts.threads import read_thread as read_thread
    from arq_graph.milestones.turn_level.actions import Action as Action
    from arq_graph.milestones.turn_level.comparison import StepOutcome as StepOutcome
    from arq_graph.milestones.turn_level.evaluation import TurnEvaluation as TurnEvaluation
    from arq_graph.milestones.turn_level.evaluation import aevaluate_turns as aevaluate_turns
    from arq_graph.milestones.turn_level.evaluation import evaluate_turns as evaluate_turns
    from arq_graph.milestones.turn_level.metrics import TurnMetrics as TurnMetrics
    from arq_graph.milestones.turn_level.metrics import turn_metrics as turn_metrics
    from arq_graph.milestones.turn_level.predictions import evaluate_predictions as evaluate_predictions
    from arq_graph.milestones.turn_level.predictions import read_predictions as read_predictions
    from arq_graph.milestones.turn_level.similarity import EmbeddingScorer as EmbeddingScorer
    from arq_graph.milestones.turn_level.similarity import lexical_similarity as lexical_similarity
    from arq_graph.milestones.turn_level.steps import TurnStep as TurnStep
    from arq_graph.milestones.turn_level.steps import steps_of as steps_of
    from arq_graph.milestones.users.agenda import AgendaUser as AgendaUser
    from arq_graph.milestones.users.personas import Persona as Persona
    from arq_graph.milestones.users.simulated import SimulatedUser as SimulatedUser
    from arq_graph.milestones.users.simulated import make_user as make_user
    from arq_graph.milestones.users.spec import Intent as Intent
    from arq_graph.milestones.users.spec import UserSpec as UserSpec
    from arq_graph.milestones.users.user import EXIT as EXIT
    from arq_graph.milestones.users.user import User as User
    from arq_graph.milestones.users.user import UserTurn as UserTurn
    from arq_graph.milestones.verdicts import Verdict as Verdict

__getattr__, __dir__, __all__ = lazily_imported(__name__, __file__)
