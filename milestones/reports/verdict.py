"""The verdict of a report: at most three sentences, each of which its figures bear out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import TypeVar

from arq_graph.milestones.milestone import END
from arq_graph.milestones.reports.paired import ComparedGroup
from arq_graph.milestones.reports.records import group_by
from arq_graph.milestones.reports.summary import Records, compute_rate
from arq_graph.milestones.reports.table_format import (
    RecordsByArm,
    format_count,
    format_goal_completed,
    format_interval,
)

K = TypeVar("K")
Comparisons = Mapping[tuple[str, str], ComparedGroup]

_REMARKS = {"perturbed": ", who don't have the ids at hand,", "unhelpful": ", who suggest what is wrong,"}


def write_verdict(arms: RecordsByArm, comparisons: Comparisons) -> tuple[str, ...]:
    """Return which arm completes more, where conversations stop, and which rule is broken most often.

    A sentence claims only what the figures decide: nothing where there is a tie, and a difference of arms only if their
    paired statistics show it.

    Args:
        arms: The conversations by arm, without ablations.
        comparisons: The differences of each two arms; p is corrected for their number.
    """
    records = list(chain.from_iterable(arms.values()))
    sentences = [_compare_arms(arms, comparisons), _describe_stops(records), _describe_rules(records)]
    return tuple(filter(None, sentences))


def _compare_arms(arms: RecordsByArm, comparisons: Comparisons) -> str | None:
    """Compare the arm that completes most with the next one, or describe the only arm."""
    rates: dict[str, float] = {}
    for arm, records in arms.items():
        rate = compute_rate(records, lambda record: record.goal_completed).rate
        rates[arm] = -1 if rate is None else rate
    if len(arms) < 2:
        return _describe_completion(arms)
    best = sorted(rates, key=lambda arm: -rates[arm])[:2]
    a, b = (arm for arm in arms if arm in best)
    difference = comparisons[a, b].goal_completion
    if difference.difference is None:
        return f"{a} and {b} have no decided conversations in common, so they can't be compared."
    factor, bounds = 100, (difference.low, difference.high)
    if difference.verdict == "a better":
        a, b = b, a
        factor, bounds = -100, (difference.high, difference.low)
    points = f"{factor * difference.difference:+.0f} points{format_interval(*bounds, '.0f', factor)}"
    if difference.verdict == "no difference shown":
        of_arms = f"the two best of {len(arms)} arms, " if len(arms) > 2 else ""
        pairs = format_count(difference.pairs, "pair")
        return (
            f"No difference between {of_arms}{a} and {b} can be told from {pairs} of conversations: {points}."
        )
    of_arms = f", the next of {len(arms)} arms" if len(arms) > 2 else ""
    return f"{b} completes more than {a}{of_arms}: {points}."


def _describe_completion(arms: RecordsByArm) -> str | None:
    for arm, records in arms.items():
        counted = [record for record in records if record.progress_range is not None]
        if counted:
            subject = f"{arm} completed the goal" if records[0].arm else "The goal was completed"
            share = format_goal_completed(counted)
            return f"{subject} in {share} of {format_count(len(counted), 'conversation')}."
    return None


def _describe_stops(records: Records) -> str | None:
    """Say how many conversations missed the goal, where most often, and with which kind of simulated customer."""
    conversations = [record for record in records if not record.expected]
    decided = [record for record in conversations if record.goal_completed is not None]
    missed = [record for record in decided if record.goal_completed is False]
    if not missed:
        return None
    noun = "conversations" if len(decided) == len(conversations) else "decided conversations"
    text = f"{len(missed):,} of {len(decided):,} {noun} missed the goal"
    stops = Counter(record.stopped_at for record in missed)
    milestone = _find_top(stops)
    if milestone not in (None, END):
        text += f", most often stopping at {milestone} ({stops[milestone]:,})"
    missed_by_kind = Counter(record.user for record in missed)
    kinds: dict[str, int] = {}
    missed_shares: dict[str, float] = {}
    for kind, group in group_by(decided, lambda record: record.user).items():
        kinds[kind] = len(group)
        missed_shares[kind] = missed_by_kind[kind] / len(group)
    worst_kind = _find_top(missed_shares)
    if worst_kind is not None and len(kinds) > 1:
        share = f"{missed_by_kind[worst_kind]:,} of {kinds[worst_kind]:,}"
        text += f"; {worst_kind} customers{_REMARKS.get(worst_kind, '')} missed it most often ({share})"
    return f"{text}."


def _describe_rules(records: Records) -> str | None:
    """Name the guideline or the forbidden event that conversations broke most often."""
    broken: Counter[str] = Counter()
    checked: Counter[str] = Counter()
    breaking_count = 0
    for record in records:
        forbidden = {f"forbidden {event.rule}" for event in record.forbidden}
        checked.update({use.guideline for use in record.guidelines if use.checked})
        rules = forbidden.union(record.broken_guidelines or ())
        broken.update(rules)
        breaking_count += bool(rules)
    if not broken:
        return None
    top = _find_top(broken)
    if top is None:
        return f"Rules were broken in {breaking_count:,} of {len(records):,} conversations."
    share = f"{broken[top]:,} of {len(records):,} conversations"
    if top in checked:
        share = f"{broken[top]:,} of {checked[top]:,} conversations in which it was active"
    return f"The rule broken most often: {top}, in {share}."


def _find_top(counts: Mapping[K, float]) -> K | None:
    """Return the name with the largest count; None if there is a tie."""
    largest = max(counts.values(), default=0)
    top = [name for name, count in counts.items() if count == largest]
    return top[0] if largest and len(top) == 1 else None
