"""The tables in which arms are compared: in pairs, by category, and with what an ablation leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from typing import Literal

from arq_graph.milestones.reports.paired import (
    ComparedGroup,
    Difference,
    compare_arms,
    compare_use_cases,
    pair_runs,
)
from arq_graph.milestones.reports.records import ConversationRecord
from arq_graph.milestones.reports.summary import average_output_tokens
from arq_graph.milestones.reports.table_format import (
    NOT_KNOWN,
    RecordsByArm,
    Table,
    format_goal_completed,
    format_interval,
    format_number,
    format_p_value,
    make_table,
)

DIFFERENCE = ("difference", "p", "pairs", "better")
"""The columns of a difference."""


def format_difference(difference: Difference, a: str, b: str, *, is_rate: bool = False) -> dict[str, str]:
    """Return the cells of a difference in points, or of a rate: with its interval, p, pairs, and the better side."""
    form, factor = ("+.2f", 1) if is_rate else ("+.0f", 100)
    figure = format_number(difference.difference, form, factor)
    interval = format_interval(difference.low, difference.high, form, factor)
    return {
        "difference": figure + interval,
        "p": format_p_value(difference.p),
        "pairs": f"{difference.pairs:,}",
        "better": {"a better": a, "b better": b}.get(difference.verdict, "not shown"),
    }


def build_pair_table(
    comparisons: Mapping[tuple[str, str], ComparedGroup],
    title: str,
    figure: Literal["goal_completion", "progress_rate"],
) -> Table:
    """Return the table of the differences between each two arms; it is empty for one arm."""
    is_rate = figure == "progress_rate"
    rows = {}
    for (a, b), group in comparisons.items():
        rows[f"{a} → {b}"] = format_difference(getattr(group, figure), a, b, is_rate=is_rate)
    unit = "of the progress rate" if is_rate else "of goal completion in points"
    note = f"Differences {unit}, with 95% intervals; p is corrected for the number of pairs (Holm)."
    return make_table(title, DIFFERENCE, rows, [note])


def build_category_tables(arms: RecordsByArm) -> Iterator[Table]:
    """Yield the categories in which two arms differ, beginning with the largest difference."""
    for a, b in combinations(arms, 2):
        categories = compare_use_cases(pair_runs(arms[a], arms[b]))
        if len(categories) < 2:
            continue
        differences = {}
        for name, group in categories.items():
            if group.goal_completion.difference:
                differences[name] = group.goal_completion
        rows = {}
        for name in sorted(differences, key=lambda name: -abs(differences[name].difference or 0)):
            rows[name] = format_difference(differences[name], a, b)
        note = (
            f"p is corrected for the {len(categories)} categories (Holm); categories without a difference are left "
            "out."
        )
        yield make_table(f"where {a} and {b} differ", DIFFERENCE, rows, [note])


def filter_records(arms: RecordsByArm, is_included: Callable[[ConversationRecord], bool]) -> RecordsByArm:
    """Return the records of each arm for which `is_included` is true."""
    filtered = {}
    for arm, records in arms.items():
        filtered[arm] = [record for record in records if is_included(record)]
    return filtered


def build_ablation_tables(
    arms: RecordsByArm, reference_arms: Mapping[str, str], ablated: Mapping[str, str]
) -> Iterator[Table]:
    """Yield a table for each reference arm and step, with the gain from each query that an ablation leaves out."""
    ablations: dict[tuple[str, str], list[str]] = {}
    for arm, reference in reference_arms.items():
        ablations.setdefault((reference, ablated.get(arm, "")), []).append(arm)
    for (reference, step), ablation_arms in ablations.items():
        compared = arms
        if step not in ("", "matcher"):  # of other steps, cases of the matcher alone say nothing
            compared = filter_records(arms, lambda record: record.tested_part == "whole turn")
        reference_tokens = average_output_tokens(compared[reference]).get(step)
        rows = {reference: {"tokens": format_number(reference_tokens, ".0f")}}
        comparisons = compare_arms(compared, product(ablation_arms, [reference]))
        for (arm, _), group in comparisons.items():
            cells = format_difference(group.goal_completion, arm, reference)
            cells["gain"] = cells["difference"]
            tokens = average_output_tokens(compared[arm]).get(step)
            cells["tokens"] = _format_token_change(tokens, reference_tokens)
            rows[arm.removeprefix(f"{reference} ")] = cells
        completion = format_goal_completed(compared[reference])
        scope = " of whole turns" if len(compared[reference]) < len(arms[reference]) else ""
        notes = [
            f"With all of its queries {reference} completes the goal in {completion}{scope}. "
            "Gain: goal completion with the query less that without it, in points, with 95% intervals.",
            f"p is corrected for the {len(ablation_arms)} that were left out (Holm). Tokens: written in an answer of "
            f"{step}.",
        ]
        yield make_table(
            f"{reference} without a query of {step}", ("gain", "p", "pairs", "tokens"), rows, notes
        )


def _format_token_change(tokens: float | None, reference_tokens: float | None) -> str:
    if tokens is None or reference_tokens is None:
        return NOT_KNOWN
    return f"{tokens:.0f} ({tokens - reference_tokens:+.0f})"
