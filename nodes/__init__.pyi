# Every public name, once. `X as X` is how a stub says that it passes a name on.

from . import events as events
from .approval import CallApprover as CallApprover
from .blueprint_node import BlueprintNode as BlueprintNode
from .grants import get_active_guidelines as get_active_guidelines
from .guideline_matcher import GuidelineMatcher as GuidelineMatcher
from .history_summarizer import HistorySummarizer as HistorySummarizer
from .judgement_schema import ConditionJudgement as ConditionJudgement
from .judgement_schema import Judgement as Judgement
from .knowledge_retriever import KnowledgeRetriever as KnowledgeRetriever
from .message_reviser import MessageReviser as MessageReviser
from .message_schema import MessageBlueprint as MessageBlueprint
from .parallel import Parallel as Parallel
from .planner import PreActPlanner as PreActPlanner
from .planner import ReActPlanner as ReActPlanner
from .progress_tracker import ProgressTracker as ProgressTracker
from .speaking.listen import Listener as Listener
from .speaking.listen import route_moves as route_moves
from .speaking.policies import POLICIES as POLICIES
from .speaking.policies import Policy as Policy
from .speaking.speaker import Speaker as Speaker
from .speaking.world import WorldActor as WorldActor
from .strategy import Strategy as Strategy
from .tool_caller import ToolCaller as ToolCaller
from .tool_node import ToolCallGuard as ToolCallGuard
from .tool_node import guarded_tools as guarded_tools
from .tool_node import route_calls as route_calls
