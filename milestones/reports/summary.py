"""The figures over a group of conversations: shares and means, each with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Self

from arq_graph.milestones.reports.records import ConversationRecord, Ended, Record
from arq_graph.milestones.reports.statistics import clipped_mean, pass_hat_k, share_interval
from arq_graph.milestones.turn_note import GuidelineUse, add_guideline_uses

Records = Sequence[ConversationRecord]

# τ-bench rewards 0 or 1, and counts rewards that are this close to 1 as 1.
_REWARD_TOLERANCE = 1e-6
_MAX_RUNS = 16


class Rate(Record):
    """A share of conversations, with its 95% interval over tasks (`statistics.share_interval`).

    `count` of the `n` in which it is known; `unknown` are in neither number. If n is 0, the rest is None.
    """

    count: int
    n: int
    unknown: int = 0
    rate: float | None
    low: float | None
    high: float | None


class Mean(Record):
    """A mean over the n conversations that have a value, and its 95% interval if values are from 0 to 1, not counts.

    The interval is one over tasks (`statistics.share_interval`).
    """

    n: int
    mean: float | None
    low: float | None = None
    high: float | None = None


class Fourfold(Record):
    """Two yes-or-no outcomes A and B: in how many conversations both, one alone, or neither is a yes."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @classmethod
    def count(cls, outcomes: Iterable[tuple[bool | None, bool | None]]) -> Self:
        """Count pairs of outcomes; those with an unknown one (None) are left out."""
        counts = Counter(outcomes)
        return cls(
            both=counts[True, True],
            only_a=counts[True, False],
            only_b=counts[False, True],
            neither=counts[False, False],
        )

    @property
    def n(self) -> int:
        """The number of pairs in which both are known."""
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def rate(self) -> float | None:
        """The share in which the two agree."""
        return (self.both + self.neither) / self.n if self.n else None


class Summary(Record):
    """The figures over a group of conversations.

    Args:
        goal_reached: The share in which the customer's own goal was reached, over the conversations whose scenario
            names one; None if none does. It is the first figure: End may be reached by another road, too.
        goal_completion: GC over the conversations where it is decided; `unknown` are the undecided and those with
            nothing to complete. The decided alone need not be like the rest: if some are undecided, the truth is
            between the next two.
        goal_at_least: GC over all that have something to complete, none of the undecided completed.
        goal_at_most: The same with all of the undecided completed.
        nothing_to_complete: Conversations whose graph gives nothing to complete (an empty gold list).
        progress_rate: PR, over the conversations where it is decided.
        progress_at_least: The mean of the lower ends, over all that have a way to go; `progress_at_most` of the upper.
        pass_hat_k: pass^k by k, if tasks were run several times: the mean over tasks of C(c, k) / C(n, k). Only
            tasks count of which every run is decided: the decided runs of the others need not be like the rest.
        pass_hat_k_undecided: The number of tasks left out of pass^k, because the GC of a run is undecided.
        turns: Messages of the user, a conversation.
        calls: Tool calls; `wasted_calls` served no milestone, and `repeated_calls` repeat an earlier one.
        stops: The milestones at which conversations whose GC is false stopped, with counts, most first. Those at End
            had a forbidden event, or the world says that they were not a success.
        agreement: The share of a judge's votes that agree with its verdict, over all its verdicts.
        reward: GC (A) against the outcome that the records state (B); None if they state none.
        model_calls: Requests of the app to its models, a conversation.
        input_tokens: Tokens that they read; `output_tokens` are those that they wrote.
        turn_seconds: The seconds that the app took for a turn, over all turns.
        guidelines: How often each guideline of an agent of this library was active, followed and broken, most often
            broken first.
    """

    conversations: int
    goal_reached: Rate | None = None
    goal_completion: Rate
    goal_at_least: Rate
    goal_at_most: Rate
    nothing_to_complete: int = 0
    progress_rate: Mean
    progress_at_least: Mean
    progress_at_most: Mean
    pass_hat_k: Mapping[int, float] = {}
    pass_hat_k_undecided: int = 0
    turns: Mean
    calls: Mean
    wasted_calls: Mean
    repeated_calls: Mean
    forbidden: Rate
    stops: Mapping[str, int] = {}
    agreement: Mean
    reward: Fourfold | None = None
    model_calls: Mean
    input_tokens: Mean
    output_tokens: Mean
    turn_seconds: Mean
    ended: Mapping[Ended, int] = {}
    guidelines: tuple[GuidelineUse, ...] = ()

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        for name in ("conversations", "goal_completion", "progress_rate"):
            yield name, getattr(self, name)


def summarize(records: Iterable[ConversationRecord]) -> Summary:
    """Return the figures over these conversations.

    What is undecided is counted as unknown and never as a failure. Runs of one task, with whatever kinds of users,
    depend on each other, so intervals are over whole tasks. Cost O(n), and at most 256,000 draws for each of up to
    eight intervals.
    """
    group = tuple(records)
    with_way_to_go: list[ConversationRecord] = []
    with_goal: list[ConversationRecord] = []
    agreement: list[float] = []
    turn_seconds: list[float] = []
    rewards = []
    for record in group:
        agreement.extend(record.agreement.values())
        turn_seconds.extend(record.turn_seconds)
        if record.progress_range is not None:
            with_way_to_go.append(record)
        if record.goal is not None:
            with_goal.append(record)
        if record.reward is not None:
            rewards.append((record.goal_completed, record.reward >= 1 - _REWARD_TOLERANCE))
    goal_reached = None
    if with_goal:
        goal_reached = compute_rate(with_goal, lambda record: record.goal_reached)
    progress = compute_mean(with_way_to_go, lambda record: record.progress_rate)
    progress_at_least = progress_at_most = progress
    if progress.n < len(with_way_to_go):  # some are undecided
        progress_at_least, progress_at_most = compute_progress_ends(with_way_to_go)
    pass_hat_k, undecided_tasks = _compute_pass_hat_k(group)
    return Summary(
        conversations=len(group),
        goal_reached=goal_reached,
        goal_completion=compute_rate(group, lambda record: record.goal_completed),
        goal_at_least=compute_rate(with_way_to_go, lambda record: record.goal_completed is True),
        goal_at_most=compute_rate(with_way_to_go, lambda record: record.goal_completed is not False),
        nothing_to_complete=len(group) - len(with_way_to_go),
        progress_rate=progress,
        progress_at_least=progress_at_least,
        progress_at_most=progress_at_most,
        pass_hat_k=pass_hat_k,
        pass_hat_k_undecided=undecided_tasks,
        turns=_average(_collect_values(group, "turns")),
        calls=_average(_collect_values(group, "calls")),
        wasted_calls=_average(list(map(len, _collect_values(group, "wasted_calls")))),
        repeated_calls=_average(list(map(len, _collect_values(group, "repeated_calls")))),
        forbidden=compute_rate(group, lambda record: bool(record.forbidden)),
        stops=dict(Counter(_collect_values(group, "stopped_at")).most_common()),
        agreement=_average(agreement),
        reward=Fourfold.count(rewards) if rewards else None,
        model_calls=_average(_collect_values(group, "model_calls")),
        input_tokens=_average(_collect_values(group, "input_tokens")),
        output_tokens=_average(_collect_values(group, "output_tokens")),
        turn_seconds=_average(turn_seconds),
        ended=dict(Counter(_collect_values(group, "ended")).most_common()),
        guidelines=add_guideline_uses(chain.from_iterable(record.guidelines for record in group)),
    )


def _collect_values(records: Records, field: str) -> list[Any]:
    """Return the values of a field that are not None."""
    values = []
    for record in records:
        value = getattr(record, field)
        if value is not None:
            values.append(value)
    return values


def _average(values: Sequence[float]) -> Mean:
    if not values:
        return Mean(n=0, mean=None)
    return Mean(n=len(values), mean=sum(values) / len(values))


def compute_rate(records: Records, get_value: Callable[[ConversationRecord], bool | None]) -> Rate:
    """Return the share of conversations of which something is true; None is not known."""
    tasks, values = _collect_by_task(records, get_value)
    n, count = len(values), int(sum(values))
    if not n:
        return Rate(count=0, n=0, unknown=len(records), rate=None, low=None, high=None)
    low, high = share_interval(values, tasks)
    return Rate(count=count, n=n, unknown=len(records) - n, rate=count / n, low=low, high=high)


def compute_mean(records: Records, get_value: Callable[[ConversationRecord], float | None]) -> Mean:
    """Return the mean of a value from 0 to 1 over the conversations in which it is known, which is not None."""
    tasks, values = _collect_by_task(records, get_value)
    if not values:
        return Mean(n=0, mean=None)
    low, high = share_interval(values, tasks)
    return Mean(n=len(values), mean=clipped_mean(values), low=low, high=high)


def compute_progress_ends(records: Records) -> tuple[Mean, Mean]:
    """Return the means of the lower and of the upper ends of the progress rate, over those that have a way to go."""
    least = compute_mean(records, lambda record: record.progress_range and record.progress_range[0])
    most = compute_mean(records, lambda record: record.progress_range and record.progress_range[1])
    return least, most


def _collect_by_task(
    records: Records, get_value: Callable[[ConversationRecord], float | None]
) -> tuple[list[Hashable], list[float]]:
    """Return the task and the value of each conversation whose value is known."""
    tasks: list[Hashable] = []
    values: list[float] = []
    for position, record in enumerate(records):
        value = get_value(record)
        if value is not None:
            tasks.append(record.independent_task or position)
            values.append(float(value))
    return tasks, values


def average_output_tokens(records: Records) -> dict[str, float]:
    """Return the tokens that one call of each step writes, on average; steps that were not called are left out."""
    calls: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for record in records:
        for step, usage in record.steps.items():
            calls[step] += usage.calls
            tokens[step] += usage.output_tokens
    return {step: tokens[step] / count for step, count in calls.items() if count}


def _compute_pass_hat_k(records: Records) -> tuple[dict[int, float], int]:
    """Return pass^k by k, and the number of tasks left out because a run is undecided.

    The decided runs of such a task may all be failures.
    """
    runs: dict[tuple[str | None, str | None, str], list[bool | None]] = {}
    for record in records:
        has_nothing_to_complete = record.goal_completed is None and record.progress_range is None
        if record.task is not None and not has_nothing_to_complete:
            task = (record.arm, record.use_case, record.task)
            runs.setdefault(task, []).append(record.goal_completed)
    if max(map(len, runs.values()), default=0) < 2:
        return {}, 0
    decided_runs = {}
    most_runs = 0
    for task, goals in runs.items():
        if None not in goals:
            decided_runs[task] = (goals.count(True), len(goals))
            most_runs = max(most_runs, len(goals))
    shares: dict[int, float] = {}
    if most_runs > 1:
        for k in range(1, min(most_runs, _MAX_RUNS) + 1):
            share = pass_hat_k(decided_runs, k)
            if share is not None:
                shares[k] = share
    return shares, len(runs) - len(decided_runs)
