"""The figures over a group of conversations: shares and means, each with its interval, from what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self

from arq_graph.milestones.reports.records import ConversationRecord, Ended, Record
from arq_graph.milestones.reports.statistics import interval_of_shares, mean_within, pass_hat_k, wilson

# τ-bench rewards 0 or 1, and counts rewards that are this close to 1 as 1.
_NEARLY = 1e-6
_MOST_RUNS = 16


class Rate(Record):
    """A share of conversations, with its 95% interval: Wilson's, or of tasks that were tried repeatedly a bootstrap's.

    It is true of `count` of the `n` of which it is known; `unknown` are in neither number. Without any, the rest is
    None.
    """

    count: int
    n: int
    unknown: int = 0
    rate: float | None
    low: float | None
    high: float | None


class Mean(Record):
    """A mean over the n conversations that have a value; its 95% interval where values are from 0 to 1, not counts.

    That is a bootstrap's, which draws whole tasks, or Wilson's where that finds no spread.
    """

    n: int
    mean: float | None
    low: float | None = None
    high: float | None = None


class Fourfold(Record):
    """Two yes-or-no outcomes A and B, where both are known: in how many both, one alone, or neither is a yes."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @classmethod
    def of(cls, outcomes: Iterable[tuple[bool | None, bool | None]]) -> Self:
        """Count pairs of outcomes; None is not known."""
        n = Counter(outcomes)
        return cls(both=n[True, True], only_a=n[True, False], only_b=n[False, True], neither=n[False, False])

    @property
    def n(self) -> int:
        """In how many both are known."""
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def rate(self) -> float | None:
        """The share in which the two agree."""
        return (self.both + self.neither) / self.n if self.n else None


class Summary(Record):
    """The figures over a group of conversations.

    Args:
        goal_reached: The share in which the customer's own goal was reached, over the conversations whose scenario
            names one; None where none does. It is the first figure: End may be reached by another road, too.
        goal_completion: GC over the conversations where it is decided; `unknown` are the undecided and those with
            nothing to complete. The decided alone need not be like the rest: where some are undecided, the two that
            follow hold the truth between them.
        goal_at_least: GC over all that have something to complete, none of the undecided completed.
        goal_at_most: The same with all of the undecided completed.
        nothing_to_complete: Conversations whose graph gives nothing to complete (an empty gold list).
        progress_rate: PR, over the conversations where it is decided.
        progress_at_least: The mean of the lower ends, over all that have a way to go; `progress_at_most` of the upper.
        pass_hat_k: pass^k by k, where tasks were run several times: the mean over tasks of C(c, k) / C(n, k). Only
            tasks count of which every run is decided: the decided runs of the others need not be like the rest.
        pass_hat_k_undecided: How many tasks were left out of pass^k, because the GC of a run is undecided.
        turns: Messages of the user, a conversation.
        calls: Tool calls; `wasted_calls` served no milestone, and `repeated_calls` repeat an earlier one.
        stops: Where the conversations stopped whose GC is false: how many, by milestone, most first. At End stopped
            those in which something forbidden happened, or of which the world says that they were no success.
        agreement: The share of a judge's votes that agree with its verdict, over all its verdicts.
        reward: How GC (A) goes with the outcome that the records hold (B); None where they hold none.
        model_calls: Requests of the app to its models, a conversation.
        input_tokens: Tokens that they read; `output_tokens` are those that they wrote.
        turn_seconds: How long the app took for a turn, over all turns.
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


def summarize(records: Iterable[ConversationRecord]) -> Summary:
    """The figures over these conversations.

    What is undecided is counted as unknown and never as a failure. Runs of one task, with whatever kinds of users,
    depend on each other, so intervals are over whole tasks. Cost O(n), and at most 256,000 draws for each of up to
    eight intervals.
    """
    group = tuple(records)
    going = [one for one in group if one.progress_range is not None]
    progress = mean_of(going, lambda one: one.progress_rate)
    undecided = len(going) > progress.n
    own = [one for one in group if one.goal is not None]
    shares, left_out = _pass_hat_k(group)
    rewarded = [(one.goal_completed, one.reward >= 1 - _NEARLY) for one in group if one.reward is not None]
    return Summary(
        conversations=len(group),
        goal_reached=rate_of(own, lambda one: one.goal_reached) if own else None,
        goal_completion=rate_of(group, lambda one: one.goal_completed),
        goal_at_least=rate_of(going, lambda one: one.goal_completed is True),
        goal_at_most=rate_of(going, lambda one: one.goal_completed is not False),
        nothing_to_complete=len(group) - len(going),
        progress_rate=progress,
        progress_at_least=mean_of(going, partial(progress_end, 0)) if undecided else progress,
        progress_at_most=mean_of(going, partial(progress_end, 1)) if undecided else progress,
        pass_hat_k=shares,
        pass_hat_k_undecided=left_out,
        turns=_count(_known(group, "turns")),
        calls=_count(_known(group, "calls")),
        wasted_calls=_count(list(map(len, _known(group, "wasted_calls")))),
        repeated_calls=_count(list(map(len, _known(group, "repeated_calls")))),
        forbidden=rate_of(group, lambda one: bool(one.forbidden)),
        stops=dict(Counter(_known(group, "stopped_at")).most_common()),
        agreement=_count([share for record in group for share in record.agreement.values()]),
        reward=Fourfold.of(rewarded) if rewarded else None,
        model_calls=_count(_known(group, "model_calls")),
        input_tokens=_count(_known(group, "input_tokens")),
        output_tokens=_count(_known(group, "output_tokens")),
        turn_seconds=_count([each for record in group for each in record.turn_seconds]),
        ended=dict(Counter(_known(group, "ended")).most_common()),
    )


def _known(group: Sequence[ConversationRecord], field: str) -> list[Any]:
    return [value for record in group if (value := getattr(record, field)) is not None]


def rate_of(records: Sequence[ConversationRecord], told: Callable[[ConversationRecord], bool | None]) -> Rate:
    """The share of conversations of which something is true; None is not known."""
    tasks, known = _told(records, told)
    n, count = len(known), int(sum(known))
    low, high = wilson(count, n) if n else (None, None)
    if len(set(tasks)) < n:
        low, high = interval_of_shares(known, tasks)
    return Rate(count=count, n=n, unknown=len(records) - n, rate=count / n if n else None, low=low, high=high)


def mean_of(
    records: Sequence[ConversationRecord], told: Callable[[ConversationRecord], float | None]
) -> Mean:
    """The mean of a value from 0 to 1 over the conversations in which it is known, which is not None."""
    tasks, values = _told(records, told)
    low, high = interval_of_shares(values, tasks) if values else (None, None)
    return Mean(n=len(values), mean=mean_within(values) if values else None, low=low, high=high)


def _told(
    records: Sequence[ConversationRecord], told: Callable[[ConversationRecord], float | None]
) -> tuple[list[Hashable], list[float]]:
    """The task and the value of each conversation whose value is known."""
    found = [(one.independent_task or at, told(one)) for at, one in enumerate(records)]
    known = [(task, float(value)) for task, value in found if value is not None]
    return [task for task, _ in known], [value for _, value in known]


def progress_end(side: int, one: ConversationRecord) -> float | None:
    """The lower (0) or upper (1) end of a conversation's progress."""
    return None if one.progress_range is None else one.progress_range[side]


def _count(values: Sequence[float]) -> Mean:
    return Mean(n=len(values), mean=sum(values) / len(values) if values else None)


def _pass_hat_k(group: Sequence[ConversationRecord]) -> tuple[dict[int, float], int]:
    """pass^k by k, and how many tasks were left out: a task's decided runs may all be failures if one is undecided."""
    runs: dict[tuple[str | None, ...], list[bool | None]] = {}
    for record in group:
        nothing = record.goal_completed is None and record.progress_range is None
        if record.task is not None and not nothing:
            runs.setdefault((record.arm, record.use_case, record.task), []).append(record.goal_completed)
    if max(map(len, runs.values()), default=0) < 2:
        return {}, 0
    decided = {task: (goals.count(True), len(goals)) for task, goals in runs.items() if None not in goals}
    most = max((n for _, n in decided.values()), default=0)
    every = range(1, min(most, _MOST_RUNS) + 1) if most > 1 else ()
    shares = {k: share for k in every if (share := pass_hat_k(decided, k)) is not None}
    return shares, len(runs) - len(decided)
