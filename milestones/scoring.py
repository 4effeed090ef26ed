"""Score one conversation: the measure, its range if something is undecided, and further figures."""

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
    acall_judge,
    call_judge,
    select_milestones_to_judge,
)
from arq_graph.milestones.matching import ForbiddenEvent, Observations, observe
from arq_graph.milestones.measure import (
    compute_progress_rate,
    find_passed,
    find_path_taken,
    is_goal_completed,
    reach,
    select_forbidden,
)
from arq_graph.milestones.transcript import Call, Result, Transcript
from arq_graph.milestones.values import as_text
from arq_graph.milestones.verdicts import apply_verdicts


@dataclass(frozen=True)
class Score:
    """The progress of one conversation toward its goal.

    Progress never falls as more is observed. So its range has two ends: no undecided milestone was observed, or all of
    them were, at every event.

    Args:
        goal_completed: Goal completion; None if the undecided milestones decide it, or if there is nothing to measure:
            End needs no milestone and nothing is forbidden.
        progress_range: The progress rate at least and at most, each 0 to 1; None if there is nothing to measure.
        reached: The milestones that were reached for certain, with the number of the event, in order.
        possibly_reached: Those that would be reached if all undecided milestones were observed, in the same form.
        observations: What was observed, what is undecided, and the forbidden events.
        judgement: The judge's verdicts, with `reasons` and `agreement`; empty if no judge was called.
    """

    goal_completed: bool | None
    progress_range: tuple[float, float] | None
    reached: Mapping[str, int]
    possibly_reached: Mapping[str, int]
    observations: Observations = field(repr=False)
    _graph: MilestoneGraph = field(repr=False, compare=False)
    _transcript: Transcript = field(repr=False, compare=False)
    judgement: Judgement = field(default_factory=Judgement, repr=False)

    @property
    def progress_rate(self) -> float | None:
        """The progress rate, 0 to 1; None if it is a range, or if there is nothing to measure."""
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
        """The forbidden events that happened for certain: also if all undecided milestones were observed."""
        return select_forbidden(self.observations, self.possibly_reached)

    @cached_property
    def frontier(self) -> tuple[str, ...]:
        """The milestones that could be reached next, in the graph's order. Cost O(V + E).

        One reached dependency is enough, unless the milestone requires all of them; optional ones may be skipped.
        """
        passed = find_passed(self._graph, self.reached)
        frontier = []
        for milestone in self._graph.milestones:
            if milestone.name in self.reached:
                continue
            dependencies = list(self._graph.predecessors(milestone.name))
            passed_count = sum(name in passed for name in dependencies)
            needed_count = len(dependencies) if milestone.requires == "all" else 1
            if passed_count >= needed_count:
                frontier.append(milestone.name)
        return tuple(frontier)

    @cached_property
    def coverage(self) -> float | None:
        """The share of all milestones that were reached; Start and joins, which aren't steps, do not count.

        It isn't progress: the milestones of an alternative that wasn't needed lower it, too. None if there is
        nothing to measure.
        """
        if self.progress_range is None:
            return None
        steps = [milestone.name for milestone in self._graph.milestones if milestone.length > 0]
        return sum(name in self.reached for name in steps) / len(steps)

    @cached_property
    def path_taken(self) -> tuple[str, ...]:
        """The reached milestones on the path that the progress rate measures; see `measure.find_path_taken`."""
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

    @cached_property
    def too_early(self) -> Mapping[int, tuple[str, ...]]:
        """By wasted call, the dependencies of the milestone it fits that were not reached before it.

        Of alternatives, any would have done. Cost O(V + E + calls).
        """
        if not self.wasted_calls:
            return {}
        passed = find_passed(self._graph, self.possibly_reached)
        missing: dict[int, dict[str, None]] = {}
        for name, numbers in self.observations.events.items():
            reached_at = self.possibly_reached.get(name, len(self._transcript) + 1)
            for number in set(self.wasted_calls).intersection(numbers):
                for dependency in self._graph.predecessors(name):
                    if number < reached_at and passed.get(dependency, number) >= number:
                        missing.setdefault(number, {})[dependency] = None
        return {number: tuple(names) for number, names in sorted(missing.items())}

    def _find_serving_events(self, reached: Mapping[str, int]) -> set[int]:
        """Return the events at which milestones were both observed and reached."""
        observed = self.observations.events
        return {event for name, event in reached.items() if event in observed.get(name, ())}

    @cached_property
    def repeated_calls(self) -> tuple[int, ...]:
        """The calls, by event number, of a tool that was called before with the same arguments."""
        calls_by_tool: dict[str, list[tuple[int, Call]]] = {}
        for number, call in self._transcript.enumerate_calls():
            calls_by_tool.setdefault(call.tool, []).append((number, call))
        repeated: list[int] = []
        for calls in calls_by_tool.values():
            earlier_arguments: set[str] = set()
            for number, call in calls if len(calls) > 1 else ():
                arguments = _format_arguments(call)
                if arguments in earlier_arguments and number > self._transcript.history_length:
                    repeated.append(number)
                earlier_arguments.add(arguments)
        return tuple(sorted(repeated))

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
    further figures are computed when they are first used.

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
    judgement = None
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
    # Their modules are imported by the first conversation that is measured, which must not block, either.
    if has_functions(graph):
        observations = await asyncio.to_thread(observe_events)
    else:
        observations = observe_events()
    judgement = None
    if judge is not None and select_milestones_to_judge(graph, observations):
        judgement = await acall_judge(judge, graph, transcript, observations)
    return _make_score(graph, transcript, observations, judgement)


def has_functions(graph: MilestoneGraph) -> bool:
    """Return whether a graph names Python functions that observe milestones."""
    return any(isinstance(milestone.check, str) or milestone.state for milestone in graph.milestones)


def _make_score(
    graph: MilestoneGraph, transcript: Transcript, observations: Observations, judgement: Judgement | None
) -> Score:
    """Return the score with the judge's verdicts, and a remark for each verdict that did not count."""
    if judgement is None:
        judgement = Judgement()
    else:
        observations, objections = apply_verdicts(graph, transcript, observations, judgement)
        for verdict, reason in objections:
            judgement += Judgement(remarks=(Remark(verdict.milestone, f"not counted: {reason}"),))
    reached = reach(graph, observations, optimistic=False)
    lowest = compute_progress_rate(graph, reached)
    goal_completed = _decide_goal(graph, observations, reached)
    possibly_reached = reached
    highest = lowest
    if observations.undecided:
        possibly_reached = reach(graph, observations, optimistic=True)
        highest = compute_progress_rate(graph, possibly_reached)
        if goal_completed != _decide_goal(graph, observations, possibly_reached):
            goal_completed = None
    return Score(
        goal_completed=goal_completed,
        progress_range=None if lowest is None or highest is None else (lowest, highest),
        reached=reached,
        possibly_reached=possibly_reached,
        observations=observations,
        _graph=graph,
        _transcript=transcript,
        judgement=judgement,
    )


def _format_arguments(call: Call) -> str:
    """Return the arguments as JSON with sorted keys; malformed ones as a JSON string."""
    arguments = call.arguments if call.malformed is None else call.malformed
    return as_text([arguments], sort_keys=True)


def _decide_goal(
    graph: MilestoneGraph, observations: Observations, reached: Mapping[str, int]
) -> bool | None:
    return is_goal_completed(graph, reached, select_forbidden(observations, reached))
