"""The verdict of a report: at most three sentences, each of which its figures bear out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TypeVar

from arq_graph.milestones.milestone import END
from arq_graph.milestones.reports.paired import ComparedGroup, Difference
from arq_graph.milestones.reports.records import ConversationRecord, group_by
from arq_graph.milestones.reports.summary import Records, compute_rate
from arq_graph.milestones.reports.table_format import RecordsByArm, format_goal_completed

K = TypeVar("K")

_KIND_REMARKS = {
    "perturbed": ", who don't have the ids at hand,",
    "unhelpful": ", who suggest what is wrong,",
}


def write_verdict(
    arms: RecordsByArm, comparisons: Mapping[tuple[str, str], ComparedGroup]
) -> tuple[str, ...]:
    """Return which arm completes more, where conversations stop, and which rule is broken most often.

    Each sentence is there only if the figures decide what it says: there is no tie, and a difference of arms is one
    that their paired statistics show.

    Args:
        arms: The conversations by arm, without ablations.
        comparisons: The differences of each two arms; p is corrected for their number.
    """
    records = list(chain.from_iterable(arms.values()))
    sentences = [_describe_completion(arms, comparisons), _describe_stops(records), _describe_rules(records)]
    return tuple(filter(None, sentences))


def _describe_completion(
    arms: RecordsByArm, comparisons: Mapping[tuple[str, str], ComparedGroup]
) -> str | None:
    if len(arms) != 1:
        return _describe_difference(arms, comparisons)
    [(arm, records)] = arms.items()
    counted = [record for record in records if record.progress_range is not None]
    if not counted:
        return None
    subject = f"{arm} completed the goal" if records[0].arm else "The goal was completed"
    return f"{subject} in {format_goal_completed(counted)} of {_count(len(counted), 'conversation')}."


def _describe_difference(
    arms: RecordsByArm, comparisons: Mapping[tuple[str, str], ComparedGroup]
) -> str | None:
    """Compare the arm that completes most with the next one."""
    rates: dict[str, float] = {}
    for arm, records in arms.items():
        rate = compute_rate(records, lambda record: record.goal_completed).rate
        if rate is not None:
            rates[arm] = rate
    if len(rates) < 2:
        return None
    best, second = sorted(rates, key=lambda arm: -rates[arm])[:2]
    key = (best, second) if (best, second) in comparisons else (second, best)
    difference = comparisons[key].goal_completion
    if not difference.pairs:
        return f"{best} and {second} have no decided conversations in common, so they can't be compared."
    better = {"a better": key[0], "b better": key[1]}.get(difference.verdict)
    if better is None:
        of_arms = f"the two best of {len(rates)} arms, " if len(rates) > 2 else ""
        start = f"No difference between {of_arms}{best} and {second} can be told from"
        figures = _format_points(difference, is_reversed=key[0] == best)
        return f"{start} {_count(difference.pairs, 'pair')} of conversations: {figures}."
    worse = key[0] if better == key[1] else key[1]
    of_arms = f", the next of {len(rates)} arms" if len(rates) > 2 else ""
    return f"{better} completes more than {worse}{of_arms}: {_format_points(difference, better == key[0])}."


def _format_points(difference: Difference, is_reversed: bool) -> str:
    """Return the difference b - a, or a - b, in points with its interval, and how many pairs are left out of it."""
    values = [difference.difference, difference.low, difference.high]
    if is_reversed:
        values = [difference.difference, difference.high, difference.low]
    sign = -100 if is_reversed else 100
    points = [sign * value for value in values if value is not None]
    # A bound that isn't 0 must not be shown as 0.
    places = 0 if all(value == 0 or abs(value) >= 0.5 for value in points) else 1
    # Adding 0 turns -0 into 0.
    numbers = [round(value, places) + 0 for value in points]
    text = f"{numbers[0]:+.{places}f} points"
    if len(numbers) == 3:
        text += f" [{numbers[1]:.{places}f}, {numbers[2]:.{places}f}]"
    if difference.tasks == 1:
        text += " in one task, which says nothing of others"
    if difference.left_out:
        text += f"; {_count(difference.left_out, 'pair')} left out, as not both are decided"
    return text


def _describe_stops(records: Records) -> str | None:
    """Say how many conversations stopped, where most often, and with which kind of simulated customer."""
    conversations = [record for record in records if not record.expected]
    decided = [record for record in conversations if record.goal_completed is not None]
    missed = [record for record in decided if record.goal_completed is False]
    if not missed:
        return None
    noun = "conversations" if len(decided) == len(conversations) else "decided conversations"
    text = f"{_share(len(missed), len(decided))} {noun} missed the goal"
    stops = Counter(record.stopped_at for record in missed)
    milestone = _find_top(stops)
    if milestone not in (None, END):
        text += f", most often stopping at {milestone} ({stops[milestone]:,})"
    kinds = group_by(decided, lambda record: record.user)
    missed_by_kind = Counter(record.user for record in missed)
    kind = _find_top({kind: missed_by_kind[kind] / len(group) for kind, group in kinds.items()})
    if kind is not None and len(kinds) > 1:
        share = _share(missed_by_kind[kind], len(kinds[kind]))
        text += f"; {kind} customers{_KIND_REMARKS.get(kind, '')} missed it most often ({share})"
    return f"{text}."


def _describe_rules(records: Records) -> str | None:
    """Name the guideline or the forbidden event that conversations broke most often."""
    broken: Counter[tuple[str, str]] = Counter()
    active: Counter[tuple[str, str]] = Counter()
    breaking_count = 0
    for record in records:
        rules = set(_list_broken_rules(record))
        broken.update(rules)
        breaking_count += bool(rules)
        active.update({(use.agent, use.guideline) for use in record.guidelines if use.checked})
    if not broken:
        return None
    top = _find_top(broken)
    if top is None:
        return f"Rules were broken in {_share(breaking_count, len(records))} conversations."
    owner, name = top
    if owner:
        share = f"{_share(broken[top], active[top])} conversations in which it was active"
    else:
        name = f"forbidden {name}"
        share = f"{_share(broken[top], len(records))} conversations"
    return f"The rule broken most often: {name}, in {share}."


def _list_broken_rules(record: ConversationRecord) -> Iterator[tuple[str, str]]:
    """Yield the agent and the id of each guideline that was broken, and each forbidden rule, without an agent."""
    for use in record.guidelines:
        if use.broken:
            yield use.agent, use.guideline
    for event in record.forbidden:
        yield "", event.rule


def _find_top(counts: Mapping[K, float]) -> K | None:
    """Return the name with the largest count; None if there is a tie."""
    largest = max(counts.values(), default=0)
    top = [name for name, count in counts.items() if count == largest]
    return top[0] if largest and len(top) == 1 else None


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _share(count: int, n: int) -> str:
    return f"{count:,} of {n:,}"
