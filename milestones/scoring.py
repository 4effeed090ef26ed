"""The score of one conversation: the measure, its range where something is undecided, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.grounding import find_invented_arguments
from arq_graph.milestones.judge import (
    Judge,
    Judgement,
    Remark,
    aask_judge,
    ask_judge,
    select_milestones_to_judge,
)
from arq_graph.milestones.matching import ForbiddenEvent, Observations, observe
from arq_graph.milestones.measure import compute_progress_rate, find_path_taken, is_goal_completed, reach
from arq_graph.milestones.transcript import Result, Transcript
from arq_graph.milestones.values import as_text
from arq_graph.milestones.verdicts import apply_verdicts

_NOTHING_SAID = Judgement()


@dataclass(frozen=True)
class Score:
    """How far one conversation got toward its goal.

    Reaching and progress never fall as more is observed, so two runs give the range that holds every way in
    which the undecided milestones could be decided: none of them observed, and all of them at every event.

    Args:
        goal_completed: Goal completion; None where the undecided milestones decide it, or where there is
            nothing to complete.
        progress_range: The progress rate at least and at most, each 0 to 1; None where there is no way to go.
        reached: The milestones that were reached for certain, and at which event, in order.
        possibly_reached: Those that were reached at most: the same where nothing is undecided.
        observations: What was observed, what is undecided, what happened that is forbidden.
        judgement: What a judge said, with its `reasons` and `agreement`; empty where none was asked.
    """

    goal_completed: bool | None
    progress_range: tuple[float, float] | None
    reached: Mapping[str, int]
    possibly_reached: Mapping[str, int]
    observations: Observations
    _graph: MilestoneGraph = field(repr=False, compare=False)
    _transcript: Transcript = field(repr=False, compare=False)
    judgement: Judgement = _NOTHING_SAID

    @property
    def progress_rate(self) -> float | None:
        """The progress rate, 0 to 1; None where it is a range, or where there is no way to go."""
        if self.progress_range is None or self.progress_range[0] != self.progress_range[1]:
            return None
        return self.progress_range[0]

    @property
    def undecided(self) -> tuple[str, ...]:
        """The milestones of which nothing says whether they were observed."""
        return self.observations.undecided

    @property
    def forbidden(self) -> tuple[ForbiddenEvent, ...]:
        """What happened that must not."""
        return self.observations.forbidden

    @cached_property
    def frontier(self) -> tuple[str, ...]:
        """The milestones that could come next: not reached, their dependencies are; in the graph's order.

        One of the dependencies for alternatives, each of them where all are required. Cost O(V + E).
        """
        return tuple(
            each.name
            for each in self._graph.milestones
            if each.name not in self.reached
            and (all if each.requires == "all" else any)(
                before in self.reached for before in self._graph.pred[each.name]
            )
        )

    @cached_property
    def coverage(self) -> float | None:
        """The share of all milestones that were reached; Start and joins, which are no steps, do not count.

        It is no progress: it punishes the branches that were rightly not taken. None as for `is_goal_completed`.
        """
        if self.progress_range is None:
            return None
        steps = [each.name for each in self._graph.milestones if each.step]
        return sum(name in self.reached for name in steps) / len(steps)

    @cached_property
    def path_taken(self) -> tuple[str, ...]:
        """The reached milestones on the road that the progress rate is about; see `measure.find_path_taken`."""
        return find_path_taken(self._graph, self.reached)

    @cached_property
    def wasted_calls(self) -> tuple[int, ...]:
        """The calls, by event number, that served no milestone: neither they nor their results reached one."""
        events = self.observations.events
        serving = {
            event
            for run in (self.reached, self.possibly_reached)
            for name, event in run.items()
            if event in events.get(name, ())
        }
        answers = {one.call: at for at, one in self._transcript.enumerate_events() if isinstance(one, Result)}
        return tuple(
            at
            for at, _ in self._transcript.enumerate_calls()
            if at > self._transcript.history and at not in serving and answers.get(at) not in serving
        )

    @cached_property
    def repeated_calls(self) -> tuple[int, ...]:
        """The calls, by event number, of a tool that was called before with the same arguments."""
        seen: set[str] = set()
        repeated: list[int] = []
        for number, call in self._transcript.enumerate_calls():
            arguments = call.arguments if call.malformed is None else call.malformed
            key = as_text([call.tool, arguments], sort_keys=True)
            if key in seen and number > self._transcript.history:
                repeated.append(number)
            seen.add(key)
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

    Code goes first. A judge is asked only where its word can matter: of NFCs that nothing decided, and of calls
    that it may veto (`select_milestones_to_judge`); where there are none it is not asked at all.
    Cost O(E log V + events), twice where something is undecided; the rest is computed when it is asked for.

    Args:
        graph: The milestones.
        transcript: What happened.
        tools: The agent's tools, for their schemas; see `observe`.
        judge: Whom to ask: an `LLMJudge`, or a function `(graph, transcript, observations)` that gives verdicts.

    Raises:
        SpecError: The graph cannot be measured on, or one of its patterns does not finish.
        InputError: The judge is none, or is async, or a verdict is about no milestone of the graph.
        ToolError: A tool has no name.
        ReasoningError: The judge's model gave no answer.
    """
    seen, said = observe(graph, transcript, tools=tools), _NOTHING_SAID
    if judge is not None and select_milestones_to_judge(graph, seen):
        said = ask_judge(judge, graph, transcript, seen)
    return _scored(graph, transcript, seen, said)


async def ascore(
    graph: MilestoneGraph,
    transcript: Transcript,
    *,
    tools: Any = None,
    judge: Judge | None = None,
) -> Score:
    """Measure one conversation on one graph without blocking.

    Arguments and errors are those of `score`. The judge may also be async; one that is not runs in a thread, and so do
    checks that are functions.
    """
    import asyncio  # scoring in a sync program does not need it

    observed = partial(observe, graph, transcript, tools=tools)
    may_block = any(isinstance(each.check, str) for each in graph.milestones)
    seen = await asyncio.to_thread(observed) if may_block else observed()
    said = _NOTHING_SAID
    if judge is not None and select_milestones_to_judge(graph, seen):
        said = await aask_judge(judge, graph, transcript, seen)
    return _scored(graph, transcript, seen, said)


def _scored(graph: MilestoneGraph, transcript: Transcript, seen: Observations, said: Judgement) -> Score:
    """The score with the judge's verdicts, and a remark for each verdict that did not count."""
    observations, objections = apply_verdicts(graph, transcript, seen, said)
    remarks = tuple(Remark(verdict.milestone, f"not counted: {why}") for verdict, why in objections)

    def measured(*, optimistic: bool) -> tuple[dict[str, int], bool | None, float | None]:
        reached = reach(graph, observations, optimistic=optimistic)
        completed = is_goal_completed(graph, reached, observations.forbidden)
        return reached, completed, compute_progress_rate(graph, reached)

    low, worst, least = measured(optimistic=False)
    high, best, most = measured(optimistic=True) if observations.undecided else (low, worst, least)
    return Score(
        worst if worst == best else None,
        None if least is None or most is None else (least, most),
        low,
        high,
        observations,
        graph,
        transcript,
        said + Judgement(remarks=remarks),
    )
