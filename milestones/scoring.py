"""The score of one conversation: the measure, its range if something is undecided, and further figures beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.grounding import find_invented_arguments
from arq_graph.milestones.judge import (
    Judge,
    Judgement,
    Remark,
    acall_judge,
    call_judge,
    select_milestones_to_judge,
)
from arq_graph.milestones.matching import ForbiddenEvent, Observations, observe
from arq_graph.milestones.measure import compute_progress_rate, find_path_taken, is_goal_completed, reach
from arq_graph.milestones.transcript import Result, Transcript
from arq_graph.milestones.values import as_text
from arq_graph.milestones.verdicts import apply_verdicts

_NO_JUDGEMENT = Judgement()


@dataclass(frozen=True)
class Score:
    """The progress of one conversation toward its goal.

    Reaching and progress never fall as more is observed, so two runs give the range that holds every way in
    which the undecided milestones could be decided: none of them observed, and all of them at every event.

    Args:
        goal_completed: Goal completion; None if the undecided milestones decide it, or if there is
            nothing to complete.
        progress_range: The progress rate at least and at most, each 0 to 1; None if there is no way to go.
        reached: The milestones that were reached for certain, with the number of the event, in order.
        possibly_reached: Those that were reached at most: the same if nothing is undecided.
        observations: What was observed, what is undecided, and the forbidden events.
        judgement: The judge's verdicts, with `reasons` and `agreement`; empty if no judge was called.
    """

    goal_completed: bool | None
    progress_range: tuple[float, float] | None
    reached: Mapping[str, int]
    possibly_reached: Mapping[str, int]
    observations: Observations
    _graph: MilestoneGraph = field(repr=False, compare=False)
    _transcript: Transcript = field(repr=False, compare=False)
    judgement: Judgement = _NO_JUDGEMENT

    @property
    def progress_rate(self) -> float | None:
        """The progress rate, 0 to 1; None if it is a range, or if there is no way to go."""
        if self.progress_range is None:
            return None
        lowest, highest = self.progress_range
        return lowest if lowest == highest else None

    @property
    def undecided(self) -> tuple[str, ...]:
        """The milestones for which nothing decides whether they were observed."""
        return self.observations.undecided

    @property
    def forbidden(self) -> tuple[ForbiddenEvent, ...]:
        """The forbidden events that happened."""
        return self.observations.forbidden

    @cached_property
    def frontier(self) -> tuple[str, ...]:
        """The milestones that could come next: not reached, their dependencies are; in the graph's order.

        One of the dependencies for alternatives, each of them where all are required. Cost O(V + E).
        """
        frontier = []
        for milestone in self._graph.milestones:
            if milestone.name in self.reached:
                continue
            is_satisfied = all if milestone.requires == "all" else any
            if is_satisfied(name in self.reached for name in self._graph.pred[milestone.name]):
                frontier.append(milestone.name)
        return tuple(frontier)

    @cached_property
    def coverage(self) -> float | None:
        """The share of all milestones that were reached; Start and joins, which aren't steps, do not count.

        It isn't progress: it punishes the branches that were rightly not taken. None as for `is_goal_completed`.
        """
        if self.progress_range is None:
            return None
        steps = [milestone.name for milestone in self._graph.milestones if milestone.step]
        return sum(name in self.reached for name in steps) / len(steps)

    @cached_property
    def path_taken(self) -> tuple[str, ...]:
        """The reached milestones on the road that the progress rate is about; see `measure.find_path_taken`."""
        return find_path_taken(self._graph, self.reached)

    @cached_property
    def wasted_calls(self) -> tuple[int, ...]:
        """The calls, by event number, that served no milestone: neither they nor their results reached one."""
        serving = self._find_serving_events(self.reached) | self._find_serving_events(self.possibly_reached)
        results: dict[int | None, int] = {}
        for number, event in self._transcript.enumerate_events():
            if isinstance(event, Result):
                results[event.call] = number
        wasted = []
        for number, _ in self._transcript.enumerate_calls():
            has_served = number in serving or results.get(number) in serving
            if number > self._transcript.history_length and not has_served:
                wasted.append(number)
        return tuple(wasted)

    def _find_serving_events(self, reached: Mapping[str, int]) -> set[int]:
        """Return the events at which milestones were both observed and reached."""
        observed = self.observations.events
        return {event for name, event in reached.items() if event in observed.get(name, ())}

    @cached_property
    def repeated_calls(self) -> tuple[int, ...]:
        """The calls, by event number, of a tool that was called before with the same arguments."""
        previous_calls: set[str] = set()
        repeated: list[int] = []
        for number, call in self._transcript.enumerate_calls():
            arguments = call.arguments if call.malformed is None else call.malformed
            key = as_text([call.tool, arguments], sort_keys=True)
            if key in previous_calls and number > self._transcript.history_length:
                repeated.append(number)
            previous_calls.add(key)
        return tuple(repeated)

    @cached_property
    def invented_arguments(self) -> Mapping[int, tuple[str, ...]]:
        """The possibly invented arguments by call; see `grounding.find_invented_arguments`."""
        return find_invented_arguments(self._transcript)


def score(
    graph: MilestoneGraph,
    transcript: Transcript,
    *,
    tools: Any = None,
    judge: Judge | None = None,
) -> Score:
    """Measure one conversation on one graph.

    Code goes first. A judge is called only if its verdict can matter: on NFCs that nothing decided, and on calls
    that it may veto (`select_milestones_to_judge`). Cost O(E log V + events), twice if something is undecided;
    the figures beside the measure are computed when they are first used.

    Args:
        graph: The milestones.
        transcript: The conversation.
        tools: The agent's tools, for their schemas; see `observe`.
        judge: An `LLMJudge`, or a function `(graph, transcript, observations)` that returns verdicts.

    Raises:
        SpecError: Nothing can be measured on the graph, or one of its patterns doesn't finish.
        InputError: The judge isn't one, or is async, or a verdict is about a milestone that isn't in the graph.
        ToolError: A tool has no name.
        ReasoningError: The judge's model gave no answer.
    """
    observations = observe(graph, transcript, tools=tools)
    judgement = _NO_JUDGEMENT
    if judge is not None and select_milestones_to_judge(graph, observations):
        judgement = call_judge(judge, graph, transcript, observations)
    return _make_score(graph, transcript, observations, judgement)


async def ascore(
    graph: MilestoneGraph,
    transcript: Transcript,
    *,
    tools: Any = None,
    judge: Judge | None = None,
) -> Score:
    """Measure one conversation on one graph without blocking.

    Arguments and errors are those of `score`. The judge may also be async; one that isn't runs in a thread, and so do
    checks that are functions.
    """
    import asyncio  # scoring in a sync program does not need it

    observe_events = partial(observe, graph, transcript, tools=tools)
    has_functions = any(isinstance(milestone.check, str) for milestone in graph.milestones)
    if has_functions:
        observations = await asyncio.to_thread(observe_events)
    else:
        observations = observe_events()
    judgement = _NO_JUDGEMENT
    if judge is not None and select_milestones_to_judge(graph, observations):
        judgement = await acall_judge(judge, graph, transcript, observations)
    return _make_score(graph, transcript, observations, judgement)


class _Measured(NamedTuple):
    reached: dict[str, int]
    goal_completed: bool | None
    progress_rate: float | None


def _measure(graph: MilestoneGraph, observations: Observations, *, optimistic: bool) -> _Measured:
    reached = reach(graph, observations, optimistic=optimistic)
    goal_completed = is_goal_completed(graph, reached, observations.forbidden)
    return _Measured(reached, goal_completed, compute_progress_rate(graph, reached))


def _make_score(
    graph: MilestoneGraph, transcript: Transcript, observations: Observations, judgement: Judgement
) -> Score:
    """Return the score with the judge's verdicts, and a remark for each verdict that did not count."""
    observations, objections = apply_verdicts(graph, transcript, observations, judgement)
    remarks = tuple(Remark(verdict.milestone, f"not counted: {reason}") for verdict, reason in objections)
    low = _measure(graph, observations, optimistic=False)
    high = _measure(graph, observations, optimistic=True) if observations.undecided else low
    progress_range = None
    if low.progress_rate is not None and high.progress_rate is not None:
        progress_range = (low.progress_rate, high.progress_rate)
    return Score(
        goal_completed=low.goal_completed if low.goal_completed == high.goal_completed else None,
        progress_range=progress_range,
        reached=low.reached,
        possibly_reached=high.reached,
        observations=observations,
        _graph=graph,
        _transcript=transcript,
        judgement=judgement + Judgement(remarks=remarks),
    )
