# Every public name, once. `X as X` is how a stub says that it passes a name on.

from . import events as events
from .approval import ApproveCalls as ApproveCalls
from .blueprint_node import BlueprintNode as BlueprintNode
from .gate import active_guidelines as active_guidelines
from .guideline_matcher import GuidelineMatcher as GuidelineMatcher
from .judgements import ConditionJudgement as ConditionJudgement
from .judgements import Judgement as Judgement
from .message_reviser import MessageReviser as MessageReviser
from .message_schema import MessageBlueprint as MessageBlueprint
from .parallel import Parallel as Parallel
from .planner import PreActPlanner as PreActPlanner
from .planner import ReActPlanner as ReActPlanner
from .progress_tracker import TrackProgress as TrackProgress
from .speaking.listen import Listen as Listen
from .speaking.listen import route_moves as route_moves
from .speaking.policies import POLICIES as POLICIES
from .speaking.policies import Policy as Policy
from .speaking.speaker import Speaker as Speaker
from .speaking.world import ActInWorld as ActInWorld
from .strategy import Strategy as Strategy
from .tool_caller import ToolCaller as ToolCaller
from .tool_node import ToolGate as ToolGate
from .tool_node import guarded_tools as guarded_tools
from .tool_node import route_calls as route_calls
