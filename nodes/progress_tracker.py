"""Live milestones: the progress of a conversation, measured as it runs (Pre-Act, 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.agent.journey import make_rule_id
from arq_graph.agent.journey_progress import JourneyProgress, JourneyState
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import NextMilestone, Progress
from arq_graph.errors import InputError, require_type
from arq_graph.milestones.findings import require_measurable
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.scoring import Score, ascore, score
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcript
from arq_graph.nodes.events import ProgressMade
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.state_view import StateView, view_state


class ProgressTracker(Node):
    """Measure the conversation so far on a milestone graph, and on the agent's journeys, and write `progress`.

    Of a graph, code decides the milestones that it can observe: calls and checked conditions. The others stay
    undecided, so that progress is a range, unless a judge is given. Only the messages count, so scoring the finished
    thread with the same graph gives the same numbers. The agent's journeys that have begun are measured, too, each in a
    record of its own before that of the graph.

    Args:
        graph: The milestones; None: only the agent's journeys are measured.
        tools: The agent's tools, for their schemas; see `observe`.
        judge: A judge of the graph's milestones that code can't decide; each run of the node may then ask a model.
        agent: The agent whose record it is, if it is one's.
        messages_key: Channel of the messages.

    Raises:
        SpecError: The graph can't be measured.
        InputError: `graph` isn't a `MilestoneGraph`, or there is nothing to measure on; when run: there is no message
            yet.
        StateError: When run: a channel holds another type.
        ReasoningError: When run: the judge's model gave no answer.
    """

    name = "progress"

    def __init__(
        self,
        graph: MilestoneGraph | None = None,
        *,
        tools: Any = None,
        judge: Judge | None = None,
        agent: Agent | None = None,
        messages_key: str = "messages",
    ) -> None:
        if graph is not None:
            require_type("graph", graph, MilestoneGraph, "read one with read_milestones(path)")
            require_measurable(graph)
        elif agent is None or not agent.journeys:
            raise InputError("there is nothing to measure on: give a graph, or an agent with journeys")
        self.graph = graph
        self.messages_key = messages_key
        self._tools = tools
        self._judge: Any = judge
        self._agent = agent
        self._journey_graphs: dict[str, MilestoneGraph] = {}
        if agent is not None:
            parts = {step.journey for journey in agent.journeys for step in journey.steps}
            for journey in agent.journeys:
                is_only_a_part = journey.id in parts and journey.condition is None
                if not is_only_a_part:
                    self._journey_graphs[journey.id] = MilestoneGraph.from_journey(agent, journey.id)
        channels = get_channel_types("progress", "journeys")
        self.declare_channels({messages_key: list[AnyMessage]} | channels)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Measure the conversation so far."""
        measurement = _Measurement(self._agent, view_state(self._agent, input, self.messages_key))
        for journey, graph in self._select_graphs(measurement).items():
            judge = None if journey else self._judge
            result = score(graph, measurement.transcript, tools=self._tools, judge=judge)
            measurement.add(journey, graph, result)
        return measurement.make_update()

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Measure the conversation so far, without blocking while a judge is asked."""
        measurement = _Measurement(self._agent, view_state(self._agent, input, self.messages_key))
        for journey, graph in self._select_graphs(measurement).items():
            judge = None if journey else self._judge
            result = await ascore(graph, measurement.transcript, tools=self._tools, judge=judge)
            measurement.add(journey, graph, result)
        return measurement.make_update()

    def _select_graphs(self, measurement: _Measurement) -> dict[str, MilestoneGraph]:
        """Return the graphs of the journeys that have begun, by their ids, and that of the milestones under ""."""
        graphs: dict[str, MilestoneGraph] = {}
        for journey, graph in self._journey_graphs.items():
            if journey in measurement.journeys:
                graphs[journey] = graph
        if self.graph is not None:
            graphs[""] = self.graph
        return graphs


class _Measurement:
    """What was measured in one run of the tracker.

    Attributes:
        journeys: The journeys that have begun, by their ids.
    """

    def __init__(self, agent: Agent | None, state: StateView) -> None:
        self.state = state
        record = state.read_record("journeys", JourneyProgress) if agent and agent.journeys else None
        self.journeys = {journey.journey: journey for journey in record.journeys} if record else {}
        self._records: list[Progress] = []

    @cached_property
    def transcript(self) -> Transcript:
        """The conversation so far."""
        return read_transcript(self.state.messages)

    def add(self, journey: str, graph: MilestoneGraph, result: Score) -> None:
        """Add the progress on a graph, which is that of a journey unless its id is empty."""
        progress = make_progress_record(graph, result, self.state.turn_id)
        if journey:
            following = tuple(self._select_next(graph, progress.next, self.journeys[journey]))
            progress = progress.model_copy(update={"journey": journey, "next": following})
        self._records.append(progress)

    def _select_next(
        self, graph: MilestoneGraph, following: Iterable[NextMilestone], journey: JourneyState
    ) -> Iterator[NextMilestone]:
        """Yield the milestones that could come next, without skipped steps; none while the journey isn't active."""
        skipped = {journey.journey}
        for other in self.journeys.values():
            for step in other.steps:
                if step.state == "skipped":
                    skipped.add(make_rule_id(other.journey, step.step))
        for milestone in following:
            if journey.state == "active" and graph.get_milestone(milestone.name).step not in skipped:
                yield milestone

    def make_update(self) -> Update:
        """Return the update, and emit an event for each progress that has changed."""
        if not self._records:
            return {}
        earlier = self.state.read_lasting_records("progress", Progress)
        previous = {record.journey: record for record in earlier}
        for progress in self._records:
            before = previous.get(progress.journey)
            if not _is_same_progress(progress, before):
                reached_before = before.reached if before else ()
                newly_reached = tuple(name for name in progress.reached if name not in reached_before)
                self.state.emit(ProgressMade(progress=progress, newly_reached=newly_reached))
        return {"progress": self.state.build_channel_value("progress", self._records)}


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
