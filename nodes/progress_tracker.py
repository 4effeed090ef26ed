"""Live milestones: the progress of a conversation, measured as it runs (Pre-Act, 4.3)."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import NextMilestone, Progress
from arq_graph.errors import require_type
from arq_graph.milestones.findings import require_measurable
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.scoring import Score, ascore, score
from arq_graph.milestones.transcripts.formats import read_transcript
from arq_graph.nodes.events import ProgressMade
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.state_view import StateView, view_state


class ProgressTracker(Node):
    """Measure the conversation so far on a milestone graph and write `progress`.

    Code decides the milestones that it can observe: calls and checked conditions. The others stay undecided, so that
    progress is a range, unless a judge is given. Only the messages count, so scoring the finished thread with the same
    graph gives the same numbers.

    Args:
        graph: The milestones.
        tools: The agent's tools, for their schemas; see `observe`.
        judge: A judge of the milestones that code can't decide; each run of the node may then ask a model.
        agent: The agent whose record it is, if it is one's.
        messages_key: Channel of the messages.

    Raises:
        SpecError: The graph can't be measured.
        InputError: `graph` isn't a `MilestoneGraph`; when run: there is no message yet.
        StateError: When run: a channel holds another type.
        ReasoningError: When run: the judge's model gave no answer.
    """

    name = "progress"

    def __init__(
        self,
        graph: MilestoneGraph,
        *,
        tools: Any = None,
        judge: Judge | None = None,
        agent: Agent | None = None,
        messages_key: str = "messages",
    ) -> None:
        require_type("graph", graph, MilestoneGraph, "read one with read_milestones(path)")
        require_measurable(graph)
        self.graph = graph
        self.messages_key = messages_key
        self._tools = tools
        self._judge: Any = judge
        self._agent = agent
        self.declare_channels({messages_key: list[AnyMessage]} | get_channel_types("progress"))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Measure the conversation so far."""
        state = view_state(self._agent, input, self.messages_key)
        transcript = read_transcript(state.messages)
        return self._make_update(state, score(self.graph, transcript, tools=self._tools, judge=self._judge))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Measure the conversation so far, without blocking while a judge is asked."""
        state = view_state(self._agent, input, self.messages_key)
        transcript = read_transcript(state.messages)
        result = await ascore(self.graph, transcript, tools=self._tools, judge=self._judge)
        return self._make_update(state, result)

    def _make_update(self, state: StateView, result: Score) -> Update:
        progress = make_progress_record(self.graph, result, state.turn_id)
        previous = state.read_record("progress", Progress)
        if not _is_same_progress(progress, previous):
            reached_before = previous.reached if previous else ()
            newly_reached = tuple(name for name in progress.reached if name not in reached_before)
            state.emit(ProgressMade(progress=progress, newly_reached=newly_reached))
        return {"progress": state.build_channel_value("progress", [progress])}


def make_progress_record(graph: MilestoneGraph, result: Score, turn: str = "") -> Progress:
    """Make the record of a score, with the milestones that could be reached next."""
    next_milestones: list[NextMilestone] = []
    for name in result.frontier:
        milestone = graph.get_milestone(name)
        tool = milestone.tool_name if milestone.type == "FC" else None
        next_milestones.append(NextMilestone(name=name, description=milestone.description, tool=tool))
    return Progress(
        turn=turn,
        reached=tuple(result.reached),
        goal_completed=result.goal_completed,
        progress_rate=result.progress_rate,
        progress_range=result.progress_range,
        next=tuple(next_milestones),
        undecided=result.undecided,
        forbidden=tuple(str(event.rule) for event in result.forbidden),
    )


def _is_same_progress(progress: Progress, previous: Progress | None) -> bool:
    """Return True if two records differ at most in the agent and the turn that wrote them."""
    if previous is None:
        return False
    unset = {"agent": "", "specification": "", "message_hash": "", "turn": ""}
    return progress.model_copy(update=unset) == previous.model_copy(update=unset)
