"""The verdict of a report: every sentence is borne out by the figures, computed here by other ways."""

import json
import re
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import Report, compare, write_report

ARMS = ("guided", "pre-act", "react")
KINDS = ("helpful", "perturbed", "unhelpful")
MILESTONES = ("Start", "Order Found", "Refunded")
RULES = ("no-promises", "calm")


def make_record(goal: bool | None, stop: str = "Start", **fields: Any) -> dict[str, Any]:
    """Return a conversation that completed its goal, or stopped at a milestone."""
    progress = {True: (1.0, 1.0), False: (0.0, 0.0), None: (0.0, 1.0)}[goal]
    figures = {"goal_completed": goal, "progress_rate": None if goal is None else progress[0]}
    numbers = {"events": 2, "turns": 1, "calls": 0, "run": 1}
    path = {"reached": [{"name": stop, "step": 0}], "path_taken": [stop]}
    return {"id": str(fields), "progress_range": progress, **figures, **numbers, **path, **fields}


def make_report(*records: dict[str, Any]) -> Report:
    return Report.model_validate({"conversations": records})


def compare_goals(*sides: str, arms: tuple[str, str] = ("guided", "pre-act")) -> Report:
    """Report on arms whose conversations completed (x) or missed (.) their goal, or are undecided (?)."""
    outcomes = {"x": True, ".": False, "?": None}
    records = []
    for arm, side in zip(arms, sides, strict=True):
        for number, mark in enumerate(side):
            records.append(make_record(outcomes[mark], arm=arm, scenario=str(number), task=str(number)))
    return make_report(*records)


def test_an_arm_that_completes_more_is_named_with_the_paired_difference():
    [sentence, _] = compare_goals("x" * 10 + "." * 10, "x" * 20).verdict
    assert sentence == "pre-act completes more than guided: +50 points [23, 70]."
    [backward, _] = compare_goals("x" * 20, "x" * 10 + "." * 10).verdict
    assert backward == "guided completes more than pre-act: +50 points [23, 70]."


def test_a_difference_that_chance_explains_is_not_told():
    [sentence, _] = compare_goals("x.x.x.", ".xx.xx").verdict
    start = "No difference between guided and pre-act can be told from 6 pairs of conversations: +17 points"
    assert re.fullmatch(re.escape(start) + r" \[-\d+, \d+\]\.", sentence)


def test_one_arm_is_described_by_its_completion_and_undecided_goals_as_a_range():
    [sentence, _] = compare_goals("xxx.", arms=("guided",)).verdict
    assert re.fullmatch(r"guided completed the goal in 75% \[\d+, \d+\] of 4 conversations\.", sentence)
    [sentence, stops] = make_report(make_record(True), make_record(None), make_record(False)).verdict
    assert sentence == "The goal was completed in 33% to 67% of 3 conversations."
    assert stops.startswith("1 of 2 decided conversations missed the goal")
    assert make_report().verdict == ()


def test_where_and_with_whom_conversations_stop_is_said():
    records = [make_record(True, user="helpful") for _ in range(4)]
    records += [make_record(False, "Order Found", user="perturbed") for _ in range(2)]
    records += [make_record(False, "Start", user="perturbed"), make_record(True, user="perturbed")]
    assert make_report(*records).verdict[1] == (
        "3 of 8 conversations missed the goal, most often stopping at Order Found (2); perturbed customers, who don't "
        "have the ids at hand, missed it most often (3 of 4)."
    )


def test_the_rule_broken_most_is_a_guideline_or_something_forbidden():
    use = {"agent": "Desk", "guideline": "no-promises", "turns": 2, "checked": 2}
    broken = make_record(True, guidelines=[{**use, "broken": 1, "reasons": {"named a day": 1}}])
    kept = make_record(True, guidelines=[use])
    forbidden = make_record(False, forbidden=[{"step": 2, "rule": "guarantee"}])
    [_, rule] = make_report(broken, kept, make_record(True)).verdict
    assert rule == "The rule broken most often: no-promises, in 1 of 2 conversations in which it was active."
    assert make_report(broken, forbidden, forbidden).verdict[-1] == (
        "The rule broken most often: forbidden guarantee, in 2 of 3 conversations."
    )
    assert make_report(broken, forbidden).verdict[-1] == "Rules were broken in 2 of 2 conversations."


def test_a_reports_file_holds_the_verdict(tmp_path):
    report = compare_goals("xx.", "xxx")
    write_report(tmp_path / "report.json", report)
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == list(report.verdict)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    records = []
    arms = draw(st.sampled_from([ARMS[:1], ARMS[:2], ARMS]))
    bias = {arm: draw(st.sampled_from([1, 5, 9])) for arm in arms}
    for scenario in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(KINDS))
        for arm in arms:
            luck = draw(st.integers(0, 10))
            goal = None if luck == 10 else luck < bias[arm]
            uses = []
            for rule in draw(st.sets(st.sampled_from(RULES))):
                use = {"agent": "Desk", "guideline": rule, "turns": 1, "checked": 1}
                uses.append(use | {"broken": draw(st.integers(0, 1))})
            record = make_record(goal, draw(st.sampled_from(MILESTONES)), arm=arm, user=kind)
            records.append(record | {"scenario": str(scenario), "task": str(scenario), "guidelines": uses})
    return make_report(*records)


@settings(max_examples=60, deadline=None)
@given(reports())
def test_whatever_a_verdict_claims_holds(report: Report):
    assert len(report.verdict) <= 3
    for sentence in report.verdict:
        checks = {"more than": check_difference, "No difference": check_no_difference}
        checks |= {"completed the goal": check_completion, "missed the goal": check_stops}
        checks |= {"broken": check_rules, "in common": check_nothing_in_common}
        [check] = [check for words, check in checks.items() if words in sentence]
        check(report, sentence)


def correct_by_holm(report: Report) -> dict[frozenset[str], tuple[Any, float]]:
    """Return the difference of each two arms, and its p corrected for their number."""
    by_arm = defaultdict(list)
    for record in report.conversations:
        by_arm[record.arm].append(record.model_copy(update={"arm": None}))
    differences = {}
    for a, b in combinations(by_arm, 2):
        sides = [Report(conversations=tuple(by_arm[arm])) for arm in (a, b)]
        differences[frozenset((a, b))] = (a, compare(*sides).overall.goal_completion)
    corrected, largest = {}, 0.0
    for rank, (pair, difference) in enumerate(
        sorted(differences.items(), key=lambda item: item[1][1].p or 0)
    ):
        largest = max(largest, (difference[1].p or 0) * (len(differences) - rank))
        corrected[pair] = (difference, min(1.0, largest))
    return corrected


def check_difference(report: Report, sentence: str) -> None:
    better, worse, points, low, high = re.fullmatch(
        r"(\S+) completes more than ([^\s,:]+)(?:, the next of 3 arms)?: \+(\S+) points \[(\S+), (\S+)\].*\.",
        sentence,
    ).groups()
    (a, difference), p = correct_by_holm(report)[frozenset((better, worse))]
    sign = 1 if a == worse else -1
    assert p < 0.05
    assert float(points) == pytest.approx(100 * sign * difference.difference, abs=0.51)
    assert 0 <= float(low) <= float(points) <= float(high)
    bounds = sorted(100 * sign * bound for bound in (difference.low, difference.high))
    assert [float(low), float(high)] == pytest.approx(bounds, abs=0.51)
    check_best(report, better, worse)


def check_best(report: Report, *best: str) -> None:
    """No other arm completes more than the two that are compared."""
    rates = {arm: summary.goal_completion.rate for arm, summary in report.summary.arms.items()}
    others = [rate for arm, rate in rates.items() if arm not in best and rate is not None]
    assert all(rate <= min(rates[arm] for arm in best) for rate in others)


def check_no_difference(report: Report, sentence: str) -> None:
    a, b, n = re.search(r"(\S+) and (\S+) can be told from (\d+) pair", sentence).groups()
    (_, difference), p = correct_by_holm(report)[frozenset((a, b))]
    assert p >= 0.05 or difference.low is None or difference.low <= 0 <= difference.high
    assert int(n) == difference.pairs
    check_best(report, a, b)


def check_nothing_in_common(report: Report, sentence: str) -> None:
    a, b = re.match(r"(\S+) and (\S+) have", sentence).groups()
    decided = Counter()
    for record in report.conversations:
        decided[record.scenario] += record.arm in (a, b) and record.goal_completed is not None
    assert max(decided.values()) < 2


def check_completion(report: Report, sentence: str) -> None:
    goals = [record.goal_completed for record in report.conversations]
    least, most = goals.count(True) / len(goals), (len(goals) - goals.count(False)) / len(goals)
    figures = [int(figure) for figure in re.findall(r"(\d+)%", sentence)]
    assert figures == pytest.approx([100 * share for share in sorted({least, most})], abs=0.51)


def check_stops(report: Report, sentence: str) -> None:
    decided = [record for record in report.conversations if record.goal_completed is not None]
    missed = [record for record in decided if not record.goal_completed]
    assert sentence.startswith(f"{len(missed)} of {len(decided)} ")
    if stop := re.search(r"stopping at ([^(]+) \((\d+)\)", sentence):
        [(top, count), *others] = Counter(record.path_taken[-1] for record in missed).most_common()
        assert (stop[1], int(stop[2])) == (top, count)
        assert all(other < count for _, other in others)
    if kind := re.search(r"(\w+) customers.*missed it most often \((\d+) of (\d+)\)", sentence):
        shares = {}
        for name in {record.user for record in decided}:
            shares[name] = [not record.goal_completed for record in decided if record.user == name]
        assert (int(kind[2]), int(kind[3])) == (sum(shares[kind[1]]), len(shares[kind[1]]))
        best = sum(shares.pop(kind[1])) / int(kind[3])
        assert all(sum(values) / len(values) < best for values in shares.values())


def check_rules(report: Report, sentence: str) -> None:
    broken, active = Counter(), Counter()
    for record in report.conversations:
        active.update(use.guideline for use in record.guidelines)
        broken.update(set(record.broken_guidelines or ()))
    if rule := re.search(r"most often: (\S+), in (\d+) of (\d+) ", sentence):
        assert (int(rule[2]), int(rule[3])) == (broken[rule[1]], active[rule[1]])
        assert all(count < broken[rule[1]] for name, count in broken.items() if name != rule[1])
    else:
        [count] = [int(n) for n in re.findall(r"in (\d+) of", sentence)]
        assert count == sum(bool(record.broken_guidelines) for record in report.conversations)
        assert len(set(broken.values())) == 1
