"""Live milestones: how far the conversation got, kept in the state as it runs (Pre-Act, 4.3)."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.agent.state import NextMilestone, Progress
from arq_graph.errors import require_type
from arq_graph.milestones.findings import require_measurable
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.scoring import Score, ascore, score
from arq_graph.milestones.transcripts.formats import read_transcript
from arq_graph.nodes.channels import Node, StateView, Update, get_channel_types
from arq_graph.nodes.events import ProgressMade


class TrackProgress(Node):
    """Measure the conversation so far on a milestone graph and write `progress`.

    Milestones that code observes (calls, checked conditions) are decided for certain. The others stay undecided and
    make progress a range, unless a judge is given. The finished thread, scored with the same graph, gets the same
    numbers: nothing is counted here that is not in the messages.

    Args:
        graph: The milestones.
        tools: The agent's tools, for their schemas; see `observe`.
        judge: Whom to ask about milestones that code cannot decide; each run of the node may then ask a model.
        agent: Name of the specification that the record carries.
        messages_key: Channel of the messages.

    Raises:
        SpecError: The graph cannot be measured on.
        InputError: `graph` is no `MilestoneGraph`; when run: there is no message yet.
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
        agent: str = "",
        messages_key: str = "messages",
    ) -> None:
        require_type("milestones", graph, MilestoneGraph, "read one with read_milestones(path)")
        require_measurable(graph)
        self.graph = graph
        self.messages_key = messages_key
        self._tools = tools
        self._judge: Any = judge
        self._agent = agent
        self.declare_channels({messages_key: list[AnyMessage], **get_channel_types("progress")})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Measure the conversation so far."""
        state = StateView(input, self.messages_key, agent=self._agent)
        transcript = read_transcript(state.messages)
        return self._written(state, score(self.graph, transcript, tools=self._tools, judge=self._judge))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Measure the conversation so far, without blocking while a judge is asked."""
        state = StateView(input, self.messages_key, agent=self._agent)
        transcript = read_transcript(state.messages)
        measured = await ascore(self.graph, transcript, tools=self._tools, judge=self._judge)
        return self._written(state, measured)

    def _written(self, state: StateView, measured: Score) -> Update:
        now = make_progress_record(self.graph, measured, state.turn)
        before = state.read_record("progress", Progress)
        if before is None or now != before.model_copy(
            update={"agent": "", "message_hash": "", "turn": now.turn}
        ):
            known = before.reached if before else ()
            new = tuple(name for name in now.reached if name not in known)
            state.emit(ProgressMade(progress=now, newly_reached=new))
        return {"progress": state.replace_records("progress", [now])}


def make_progress_record(graph: MilestoneGraph, measured: Score, turn: str = "") -> Progress:
    """What is kept of a measure, with what could be reached next."""
    frontier = [graph.milestone(name) for name in measured.frontier]
    return Progress(
        turn=turn,
        reached=tuple(measured.reached),
        goal_completed=measured.goal_completed,
        progress_rate=measured.progress_rate,
        progress_range=measured.progress_range,
        next=tuple(
            NextMilestone(
                name=m.name, description=m.description, tool=m.tool_name if m.type == "FC" else None
            )
            for m in frontier
        ),
        undecided=measured.undecided,
        forbidden=tuple(str(each.rule) for each in measured.forbidden),
    )
