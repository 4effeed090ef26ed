"""The figures over many conversations, from what was measured of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from arq_graph.milestones.reports.figures import Mean, Rate, RewardAgreement, Summary
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord, GraphRecord
from arq_graph.milestones.reports.report import Report, ReportSummary
from arq_graph.milestones.reports.resampling import bootstrap_mean, mean_within
from arq_graph.milestones.reports.statistics import pass_hat_k, wilson

# τ-bench rewards 0 or 1, and counts what differs from 1 by no more than this as 1.
_NEARLY = 1e-6
# For how many runs of a task pass^k is told at most.
_MOST_RUNS = 16


def report(
    records: Iterable[ConversationRecord],
    broken: Iterable[BrokenConversation] = (),
    graphs: Mapping[str, GraphRecord] | None = None,
    *,
    stand_ins: Sequence[str] = (),
) -> Report:
    """A report over many conversations, all together and by use case; its parts are those of `Report`."""
    conversations = tuple(records)
    by_use_case: dict[str, list[ConversationRecord]] = {}
    for record in conversations:
        if record.use_case is not None:
            by_use_case.setdefault(record.use_case, []).append(record)
    return Report(
        stand_ins=tuple(stand_ins),
        conversations=conversations,
        broken=tuple(broken),
        graphs=graphs or {},
        summary=ReportSummary(
            overall=summarize(conversations),
            use_cases={name: summarize(by_use_case[name]) for name in sorted(by_use_case)},
        ),
    )


def summarize(records: Iterable[ConversationRecord]) -> Summary:
    """The figures over these conversations.

    What is undecided is counted as unknown and never as a failure; a task with an undecided run is in no
    pass^k. Intervals take conversations as independent: where tasks were run several times they are somewhat
    too narrow (`compare` draws whole tasks). Cost O(n), and at most 256,000 draws for each of up to four
    intervals.

    Args:
        records: One a conversation; none at all has no rates and no means.
    """
    group = tuple(records)
    ranges = [record.progress_range for record in group if record.progress_range is not None]
    decided = [record.progress_rate for record in group if record.progress_rate is not None]
    progress = _mean(decided)
    undecided = len(ranges) > len(decided)
    goals = [record.goal_completed for record in group if record.goal_completed is not None]
    nothing = sum(record.progress_range is None for record in group)
    completed, to_complete = sum(goals), len(group) - nothing
    shares, tasks, left_out = _pass_hat_k(group)
    return Summary(
        conversations=len(group),
        goal_completion=_rate(completed, len(goals), unknown=len(group) - len(goals)),
        goal_at_least=_rate(completed, to_complete, unknown=nothing),
        goal_at_most=_rate(completed + to_complete - len(goals), to_complete, unknown=nothing),
        nothing_to_complete=nothing,
        progress_rate=progress,
        progress_at_least=_mean([low for low, _ in ranges]) if undecided else progress,
        progress_at_most=_mean([high for _, high in ranges]) if undecided else progress,
        pass_hat_k=shares,
        pass_hat_k_tasks=tasks,
        pass_hat_k_undecided=left_out,
        goal_reached=_goal_reached(group),
        turns=_count([record.turns for record in group]),
        calls=_count([record.calls for record in group]),
        wasted_calls=_count([len(record.wasted_calls) for record in group]),
        repeated_calls=_count([len(record.repeated_calls) for record in group]),
        forbidden=_rate(sum(bool(record.forbidden) for record in group), len(group)),
        stops=_stops(group),
        agreement=_mean([share for record in group for share in record.agreement.values()]),
        reward=_reward_agreement(group),
        model_calls=_spent(group, "model_calls"),
        input_tokens=_spent(group, "input_tokens"),
        output_tokens=_spent(group, "output_tokens"),
        turn_seconds=_turn_seconds(group),
        ended=dict(Counter(record.ended for record in group if record.ended is not None).most_common()),
    )


def _rate(count: int, n: int, unknown: int = 0) -> Rate:
    if not n:
        return Rate(count=0, n=0, unknown=unknown, rate=None, low=None, high=None)
    low, high = wilson(count, n)
    return Rate(count=count, n=n, unknown=unknown, rate=count / n, low=low, high=high)


def _goal_reached(group: Sequence[ConversationRecord]) -> Rate | None:
    reached = [record.goal_reached for record in group if record.goal is not None]
    if not reached:
        return None
    unknown = reached.count(None)
    return _rate(reached.count(True), len(reached) - unknown, unknown=unknown)


def _mean(values: Sequence[float]) -> Mean:
    if not values:
        return Mean(n=0, mean=None)
    low, high = bootstrap_mean(values) or (None, None)
    return Mean(n=len(values), mean=mean_within(values), low=low, high=high)


def _count(values: Sequence[int]) -> Mean:
    return Mean(n=len(values), mean=sum(values) / len(values) if values else None)


def _pass_hat_k(group: Sequence[ConversationRecord]) -> tuple[dict[int, float], dict[int, int], int]:
    """pass^k and its tasks, by k up to 16, and how many tasks it leaves out; nothing where none was run twice.

    Left out are tasks with an undecided run: where nothing but a judge could say yes, those that are decided
    are the failures. A run with nothing to complete is none.
    """
    runs: dict[tuple[str | None, ...], list[bool | None]] = {}
    for record in group:
        nothing = record.goal_completed is None and record.progress_range is None
        if record.task is not None and not nothing:
            runs.setdefault((record.arm, record.use_case, record.task), []).append(record.goal_completed)
    if max(map(len, runs.values()), default=0) < 2:
        return {}, {}, 0
    decided = {task: (goals.count(True), len(goals)) for task, goals in runs.items() if None not in goals}
    most = max((n for _, n in decided.values()), default=0)
    shares: dict[int, float] = {}
    tasks: dict[int, int] = {}
    for k in range(1, min(most, _MOST_RUNS) + 1 if most > 1 else 1):
        share = pass_hat_k(decided, k)
        if share is not None:
            shares[k] = share
            tasks[k] = sum(n >= k for _, n in decided.values())
    return shares, tasks, len(runs) - len(decided)


def _spent(group: Sequence[ConversationRecord], figure: str) -> Mean | None:
    values: list[int] = [value for record in group if (value := getattr(record, figure)) is not None]
    return _count(values) if values else None


def _turn_seconds(group: Sequence[ConversationRecord]) -> Mean | None:
    seconds = [each for record in group for each in record.turn_seconds]
    return Mean(n=len(seconds), mean=fsum(seconds) / len(seconds)) if seconds else None


def _stops(group: Sequence[ConversationRecord]) -> dict[str, int]:
    stops = Counter(
        record.stopped_at
        for record in group
        if record.goal_completed is False and record.stopped_at is not None
    )
    return dict(sorted(stops.items(), key=lambda stop: (-stop[1], stop[0])))


def _reward_agreement(group: Sequence[ConversationRecord]) -> RewardAgreement | None:
    """How GC goes with the reward, where both are known; rewarded is who got 1 or more."""
    if all(record.reward is None for record in group):
        return None
    both = Counter(
        (record.goal_completed, record.reward >= 1 - _NEARLY)
        for record in group
        if record.goal_completed is not None and record.reward is not None
    )
    return RewardAgreement(
        both=both[True, True],
        only_goal=both[True, False],
        only_reward=both[False, True],
        neither=both[False, False],
    )
