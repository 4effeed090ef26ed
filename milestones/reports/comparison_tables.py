"""The tables in which arms are compared: in pairs, by category, and with what an ablation leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Literal

from arq_graph.milestones.reports.cells import (
    RecordsByArm,
    average_output_tokens,
    filter_records,
    format_goal_completed,
    is_of_matcher_alone,
)
from arq_graph.milestones.reports.comparison import (
    Difference,
    compare_arms,
    compare_use_cases,
    pair_runs,
)
from arq_graph.milestones.reports.table_format import (
    NOT_KNOWN,
    Table,
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


def build_pair_tables(
    arms: RecordsByArm, title: str, figure: Literal["goal_completion", "progress_rate"]
) -> Iterator[Table]:
    """Yield the table of the differences between each two arms, if there are two."""
    is_rate = figure == "progress_rate"
    rows = {}
    for comparison in compare_arms(arms):
        difference = getattr(comparison.overall, figure)
        cells = format_difference(difference, comparison.a, comparison.b, is_rate=is_rate)
        rows[f"{comparison.a} → {comparison.b}"] = cells
    unit = "of the progress rate" if is_rate else "of goal completion in points"
    note = f"Differences {unit}, with 95% intervals; p is corrected for the number of pairs (Holm)."
    if rows:
        yield make_table(title, DIFFERENCE, rows, note)


def build_category_tables(arms: RecordsByArm) -> Iterator[Table]:
    """Yield the categories in which two arms differ, beginning with the largest difference."""
    for a, b in combinations(arms, 2):
        use_cases = compare_use_cases(pair_runs(arms[a], arms[b]))
        differences = {name: group.goal_completion for name, group in use_cases.items()}
        differing = [name for name, difference in differences.items() if difference.difference]
        differing.sort(key=lambda name: -abs(differences[name].difference or 0))
        rows = {name: format_difference(differences[name], a, b) for name in differing}
        if rows and len(use_cases) > 1:
            yield make_table(
                f"where {a} and {b} differ",
                DIFFERENCE,
                rows,
                f"p is corrected for the {len(use_cases)} categories (Holm); categories without a difference are left "
                "out.",
            )


def build_ablation_tables(
    arms: RecordsByArm, reference_arms: Mapping[str, str], ablated: Mapping[str, str]
) -> Iterator[Table]:
    """Yield a table for each reference arm and step, with the gain from each query that an ablation leaves out."""
    ablations: dict[tuple[str, str], list[str]] = {}
    for arm, reference in reference_arms.items():
        ablations.setdefault((reference, ablated.get(arm, "")), []).append(arm)
    for (reference, step), ablation_arms in ablations.items():
        compared: RecordsByArm = {arm: arms[arm] for arm in (*ablation_arms, reference)}
        if step not in ("", "matcher"):  # of other steps, cases of the matcher alone say nothing
            compared = filter_records(compared, lambda record: not is_of_matcher_alone(record))
        comparisons = {comparison.a: comparison for comparison in compare_arms(compared)}
        tokens = {arm: average_output_tokens(records, step) for arm, records in compared.items()}
        rows = {reference: {"tokens": format_number(tokens[reference], ".0f")}}
        for arm in ablation_arms:
            cells = format_difference(comparisons[arm].overall.goal_completion, arm, reference)
            cells["gain"] = cells["difference"]
            cells["tokens"] = _format_token_change(tokens[arm], tokens[reference])
            rows[arm.removeprefix(f"{reference} ")] = cells
        completion = format_goal_completed(compared[reference])
        scope = " of whole turns" if len(compared[reference]) < len(arms[reference]) else ""
        yield make_table(
            f"{reference} without a query of {step}",
            ("gain", "p", "pairs", "tokens"),
            rows,
            f"With all of its queries {reference} completes the goal in {completion}{scope}. "
            f"Gain: goal completion with the query less that without it, in points, with 95% intervals.",
            f"p is corrected for the {len(ablation_arms)} that were left out (Holm). Tokens: written in an answer of "
            f"{step}.",
        )


def _format_token_change(tokens: float | None, reference_tokens: float | None) -> str:
    if tokens is None or reference_tokens is None:
        return NOT_KNOWN
    return f"{tokens:.0f} ({tokens - reference_tokens:+.0f})"
