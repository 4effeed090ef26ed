"""An experiment's tables: the papers' figures for each arm, and beneath them what the papers report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, RootModel

from arq_graph.agent.yaml_file import read_model
from arq_graph.milestones.evaluation.moves import SHARES, shares_of
from arq_graph.milestones.reports.comparison import Difference, compare, compare_arms, references
from arq_graph.milestones.reports.figures import summarize
from arq_graph.milestones.reports.records import ConversationRecord, Record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.shown import (
    NOT_KNOWN,
    Row,
    Table,
    between,
    interval,
    number,
    percent,
    points,
    probability,
)
from arq_graph.milestones.reports.statistics import bootstrap_mean, mean_within, wilson
from arq_graph.milestones.turn_level.metrics import TurnMetrics

_PUBLISHED = Path(__file__).with_name("published.yaml")
PUBLISHED = "published"
MATCHER, TURN = "matcher alone", "whole turn"
CASES = "n"
_MOVES = "moves"
_OUTCOMES = {"success": "the world's success"}  # a case succeeds only where its milestones are reached, too

Records = Sequence[ConversationRecord]
Rows = Mapping[str, Mapping[str, str]]
"""Cells by row and arm; under `CASES`, how many cases a row is of."""


class Published(Record):
    """What a paper reports: where, and its figures by row and arm."""

    source: str
    rows: Rows


@cache
def published() -> Mapping[str, Mapping[str, Published]]:
    """The papers' figures, by suite and table."""
    return read_model(
        _PUBLISHED, RootModel[dict[str, dict[str, Published]]], what="file of published figures"
    ).root


class Experiment(Record):
    """What came of the arms on one suite.

    Args:
        schema_version: The version of this form, written as `schema`.
        suite: The suite's name.
        report: What was measured in its conversations.
        matches: The scenarios in which nothing but the matcher is run.
        turns: By arm, the figures over the suite's gold turns; empty where it has none.
        ablated: By arm that leaves queries out, the step that they are left out of.
    """

    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    schema_version: Literal[1] = Field(default=1, alias="schema")
    suite: str
    report: Report
    matches: tuple[str, ...] = ()
    turns: Mapping[str, TurnMetrics] = {}
    ablated: Mapping[str, str] = {}

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The papers' tables; the JSON holds them too, and of one that is read they are made anew."""
        return tuple(_tables_of(self))


def _tables_of(experiment: Experiment) -> Iterator[Table]:
    """All tables; those that would be empty are left out."""
    if not experiment.report.conversations:
        return
    every: dict[str, list[ConversationRecord]] = {name: [] for name in experiment.report.summary.arms}
    for one in experiment.report.conversations:
        every[one.arm or ""].append(one)
    lacking = references(every)  # which have tables of their own
    arms = {name: records for name, records in every.items() if name not in lacking}
    beside = published().get(experiment.suite, {})
    for title, key, rows in [
        ("success", "success", _by_part(arms, experiment.matches)),
        ("success by category", "categories", _by(arms, lambda one: one.use_case, _success)),
        ("success by kind of user", "users", _by_user(arms)),
        ("goal completion / progress rate", "progress", _progress_rows(arms, experiment.matches)),
        ("outcome in the world, mean", "outcome", _outcomes(arms)),
        (_MOVES, "moves", _moves(arms)),
        ("what was said for what", "speech", _speech(arms)),
        ("single turns", "turns", _turns(experiment.turns)),
        ("output tokens of a call", "tokens", _tokens(arms)),
        ("a conversation, mean", "costs", _costs(arms)),
    ]:
        if rows:
            yield _table(title, arms, rows, beside.get(key))
    yield from _worth(every, lacking, experiment)
    yield from _compared(arms)


def _table(title: str, arms: Iterable[str], rows: Rows, beside: Published | None) -> Table:
    columns = (*([CASES] if any(CASES in cells for cells in rows.values()) else []), *arms)
    found = []
    for name, cells in rows.items():
        found.append(Row(name=name, cells=tuple(cells.get(column, NOT_KNOWN) for column in columns)))
        theirs = beside.rows.get(name, {}) if beside else {}
        if theirs.keys() & set(columns):
            found.append(Row(name=PUBLISHED, cells=tuple(theirs.get(column, "") for column in columns)))
    notes = [SHARES] if title == _MOVES else []
    if beside and any(row.name == PUBLISHED for row in found):
        notes.append(f"{PUBLISHED}: {beside.source}. Not comparable, for orientation.")
    return Table(title=title, columns=columns, rows=tuple(found), notes=tuple(notes))


def _by_part(arms: Mapping[str, Records], matches: Collection[str]) -> Rows:
    def part_of(one: ConversationRecord) -> str:
        return MATCHER if one.scenario in matches else TURN

    rows = _by(arms, part_of, _success)
    # Of one part alone, all is that part.
    return (
        rows
        if len(rows) > 2
        else {name: cells for name, cells in rows.items() if (name == "all") is not bool(matches)}
    )


def _by_user(arms: Mapping[str, Records]) -> Rows:
    rows = _by(arms, lambda one: one.user, _success)
    return rows if len(rows) > 2 else {}  # one kind, and all


def _by(
    arms: Mapping[str, Records],
    group_of: Callable[[ConversationRecord], str | None],
    cell: Callable[[Records], str],
) -> Rows:
    """A row for each group, and one for all; nothing where no case belongs to any."""
    names = sorted(filter(None, {group_of(one) for records in arms.values() for one in records}))
    groups: dict[str, Mapping[str, Records]] = {
        name: {arm: [one for one in of if group_of(one) == name] for arm, of in arms.items()}
        for name in names
    }
    return {
        name: {CASES: str(len({one.scenario for of in group.values() for one in of}))}
        | {arm: cell(of) for arm, of in group.items() if of}
        for name, group in (groups | {"all": arms} if groups else {}).items()
    }


def _success(records: Records) -> str:
    """The share of successes, with an interval over whole tasks where these were run several times."""
    summary = summarize(records)
    least, most = summary.goal_at_least, summary.goal_at_most
    if least.count < most.count:
        return between(percent(least.rate), percent(most.rate))
    low, high = least.low, least.high
    tasks = len({one.task for one in records})
    if tasks < len(records):
        # Where no task differs from another, as many tasks as there are say how sure that is.
        of_tasks = wilson(round((least.rate or 0) * tasks), tasks)
        known = [(one.task, one.goal_completed) for one in records if one.goal_completed is not None]
        shares = bootstrap_mean([float(goal) for _, goal in known], clusters=[task for task, _ in known])
        low, high = shares or of_tasks
        low, high = of_tasks if low == high else (low, high)
    return percent(least.rate) + interval(low, high, ".0f", 100)


def _progress_rows(arms: Mapping[str, Records], matches: Collection[str]) -> Rows:
    # Of a single answer, no progress is of interest.
    is_of_turns = any(one.turns > 1 for records in arms.values() for one in records)
    return _by(arms, lambda one: one.use_case, _progress) if is_of_turns and not matches else {}


def _progress(records: Records) -> str:
    summary = summarize(records)
    goal = between(percent(summary.goal_at_least.rate), percent(summary.goal_at_most.rate))
    rate = between(number(summary.progress_at_least.mean), number(summary.progress_at_most.mean))
    return f"{goal} / {rate}"


def _outcomes(arms: Mapping[str, Records]) -> Rows:
    names = dict.fromkeys(name for records in arms.values() for one in records for name in one.outcome)
    rows = {
        _OUTCOMES.get(name, name): {
            arm: _mean([one.outcome.get(name) for one in of], ".3f") for arm, of in arms.items()
        }
        for name in names
    }
    turns = {arm: _mean([one.turns for one in of]) for arm, of in arms.items()}
    return rows | {"turns": turns} if rows else {}


def _moves(arms: Mapping[str, Records]) -> Rows:
    """The shares of moves, where thoughts are told, and how often tasks were tried."""
    found = {arm: shares_of(records) for arm, records in arms.items()}
    trials = {arm: [one.trials for one in records] for arm, records in arms.items()}
    rows: dict[str, Mapping[str, str]] = {}
    if any("think" in shares for shares in found.values()):
        names = dict.fromkeys(["think", *(name for shares in found.values() for name in shares)])
        rows = {name: {arm: percent(of.get(name)) for arm, of in found.items()} for name in names}
    if any(each > 1 for counts in trials.values() for each in counts):
        rows["trials"] = {arm: _mean(of) for arm, of in trials.items()}
    return rows


def _speech(arms: Mapping[str, Records]) -> Rows:
    """The share of what was said by category, or where speech is limited to some acts, by act."""
    counts = {
        arm: sum((Counter(one.dialogue_acts or one.speech) for one in of), Counter[str]())
        for arm, of in arms.items()
    }
    return {
        name: {arm: percent(of[name] / of.total()) for arm, of in counts.items() if of}
        for name in dict.fromkeys(name for of in counts.values() for name in of)
    }


def _turns(turns: Mapping[str, TurnMetrics]) -> Rows:
    figures: dict[str, Callable[[TurnMetrics], float | None]] = {
        "action recall": lambda of: of.action_recall.rate,
        "tool calls, F1": lambda of: of.tool_calls.f1,
        "parameter match": lambda of: of.parameter_match.rate,
        "final answers, F1": lambda of: of.final_answers.f1,
        "answer similarity": lambda of: of.similarity.mean,
    }
    return {
        name: {arm: number(figure(metrics), ".3f") for arm, metrics in turns.items()}
        for name, figure in figures.items()
        if turns
    }


def _tokens(arms: Mapping[str, Records]) -> Rows:
    names = dict.fromkeys(name for records in arms.values() for one in records for name in one.steps)
    used = {name: {arm: _tokens_of(of, name) for arm, of in arms.items()} for name in names}
    return {
        name: {arm: number(tokens, ".0f") for arm, tokens in by_arm.items() if tokens is not None}
        for name, by_arm in used.items()
    }


def _tokens_of(records: Records, step: str) -> float | None:
    """The output tokens of a step's answer."""
    used = [one.steps[step] for one in records if step in one.steps]
    calls = sum(one.calls for one in used)
    return sum(one.output_tokens for one in used) / calls if calls else None


def _worth(
    arms: Mapping[str, Records], lacking: Mapping[str, str], experiment: Experiment
) -> Iterator[Table]:
    """What each query that was left out gains in success, and costs in tokens."""
    steps = {arm: (whole, experiment.ablated.get(arm, "")) for arm, whole in lacking.items()}
    for whole, step in dict.fromkeys(steps.values()):
        without = [arm for arm, of in steps.items() if of == (whole, step)]
        # Where the matcher alone is run, another step's query can gain nothing.
        unmoved = () if step == "matcher" else experiment.matches
        of = {arm: [one for one in arms[arm] if one.scenario not in unmoved] for arm in (*without, whole)}
        gained = {each.a: each for each in compare_arms(of)}
        tokens = {arm: _tokens_of(records, step) for arm, records in of.items()}
        rows = [Row(name=whole, cells=(_success(of[whole]), "", "", "", number(tokens[whole], ".0f")))]
        for arm in without:
            sure = _sure(gained[arm].overall.goal_completion, arm, whole)[:3]
            fewer, most = tokens[arm], tokens[whole]
            costs = NOT_KNOWN if fewer is None or most is None else f"{fewer:.0f} ({fewer - most:+.0f})"
            rows.append(Row(name=arm.removeprefix(f"{whole} "), cells=(_success(of[arm]), *sure, costs)))
        notes = (
            "What the query gains: success with it less success without it, in points, with 95% intervals.",
            *(["Over whole turns."] if unmoved else []),
            f"p is corrected for the {len(without)} that were left out (Holm). Tokens: written in an answer of {step}.",
        )
        columns = ("success", "the query gains", "p", "pairs", "tokens")
        yield Table(
            title=f"{whole} without a query of {step}", columns=columns, rows=tuple(rows), notes=notes
        )


def _costs(arms: Mapping[str, Records]) -> Rows:
    figures = {"model calls": "model_calls", "tokens read": "input_tokens", "tokens written": "output_tokens"}
    return {
        name: {arm: _mean([getattr(one, field) for one in of]) for arm, of in arms.items()}
        for name, field in figures.items()
    }


def _mean(values: Iterable[Any], form: str = ".1f") -> str:
    known = [float(value) for value in values if value is not None]
    return number(mean_within(known), form) if known else NOT_KNOWN


def _compared(arms: Mapping[str, Records]) -> Iterator[Table]:
    """The arms in pairs, over all and by category; the categories in which they differ most come first."""
    pairs = {f"{pair.a} → {pair.b}": pair.overall.goal_completion for pair in compare_arms(arms)}
    columns = ("difference", "p", "pairs", "better")
    if pairs:
        rows = [Row(name=name, cells=_sure(of, *name.split(" → "))) for name, of in pairs.items()]
        note = "Differences of success in points, with 95% intervals; p is corrected for the number of pairs (Holm)."
        yield Table(title="arms in pairs", columns=columns, rows=tuple(rows), notes=(note,))
    for a, b in combinations(arms, 2):
        found = compare(*(Report(conversations=tuple(arms[arm])) for arm in (a, b))).use_cases
        differing = {name: of.goal_completion for name, of in found.items() if of.goal_completion.difference}
        order = sorted(differing, key=lambda name: -abs(differing[name].difference or 0))
        rows = [Row(name=name, cells=_sure(differing[name], a, b)) for name in order]
        note = f"p is corrected for the {len(found)} categories (Holm); categories without a difference are left out."
        if rows and len(found) > 1:
            yield Table(title=f"where {a} and {b} differ", columns=columns, rows=tuple(rows), notes=(note,))


def _sure(of: Difference, a: str, b: str) -> tuple[str, ...]:
    better = {"a better": a, "b better": b}.get(of.verdict, "not shown")
    return points(of), probability(of.p), f"{of.pairs}", better
