"""An experiment's tables: those of its report and of its gold turns, and beneath them what the papers report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, RootModel

from arq_graph.agent.yaml_file import read_model
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.shown import Row, Table, number
from arq_graph.milestones.reports.tables import Rows, table, tables_of
from arq_graph.milestones.turn_level.metrics import TurnMetrics

_PUBLISHED = Path(__file__).with_name("published.yaml")
PUBLISHED = "published"
_TURNS: Mapping[str, Callable[[TurnMetrics], float | None]] = {
    "action recall": lambda of: of.action_recall.rate,
    "tool calls, F1": lambda of: of.tool_calls.f1,
    "parameter match": lambda of: of.parameter_match.rate,
    "final answers, F1": lambda of: of.final_answers.f1,
    "answer similarity": lambda of: of.similarity.mean,
}


class Published(Record):
    """What a paper reports: where, and its figures by row and arm."""

    source: str
    rows: Rows


@cache
def published() -> Mapping[str, Mapping[str, Published]]:
    """The papers' figures, by suite and title of the table."""
    return read_model(
        _PUBLISHED, RootModel[dict[str, dict[str, Published]]], what="file of published figures"
    ).root


class Experiment(Record):
    """What came of the arms on one suite.

    Args:
        schema_version: The version of this form, written as `schema`.
        suite: The suite's name.
        report: What was measured in its conversations.
        turns: By arm, the figures over the suite's gold turns; empty where it has none.
        ablated: By arm that leaves queries out, the step that they are left out of.
    """

    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    schema_version: Literal[1] = Field(default=1, alias="schema")
    suite: str
    report: Report
    turns: Mapping[str, TurnMetrics] = {}
    ablated: Mapping[str, str] = {}

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The papers' tables; the JSON holds them too, and of one that is read they are made anew."""
        turns = {
            name: {arm: number(figure(metrics), ".3f") for arm, metrics in self.turns.items()}
            for name, figure in _TURNS.items()
        }
        of_turns = [table("single turns", self.turns, turns)] if self.turns else []
        theirs = published().get(self.suite, {})
        found = [*tables_of(self.report, ablated=self.ablated), *of_turns]
        return tuple(_beside(each, theirs.get(each.title)) for each in found)


def _beside(ours: Table, theirs: Published | None) -> Table:
    rows: list[Row] = []
    for row in ours.rows:
        rows.append(row)
        cells = theirs.rows.get(row.name, {}) if theirs else {}
        if cells.keys() & set(ours.columns):
            rows.append(Row(name=PUBLISHED, cells=tuple(cells.get(column, "") for column in ours.columns)))
    if theirs is None or len(rows) == len(ours.rows):
        return ours
    note = f"{PUBLISHED}: {theirs.source}. Not comparable, for orientation."
    return ours.model_copy(update={"rows": tuple(rows), "notes": (*ours.notes, note)})
