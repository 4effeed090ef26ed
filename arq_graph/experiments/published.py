"""The figures of the papers, and tables that show them beneath ours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from pydantic import RootModel

from arq_graph.agent.yaml_file import read_model
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.reports.table_format import Row, Rows, Table
from arq_graph.milestones.users.user_spec import Kind

_PUBLISHED = "published"


class PublishedFigures(Record):
    """Figures that a paper reports, by row and arm.

    Args:
        source: The paper, its table, and how the figures were measured.
        variant: The model or setting that they are of, where a table has several.
        not_comparable: Why ours cannot be compared with them, such as a fine-tuned model; None: for orientation.
        user_kind: The one kind of users that they are of; they are shown only beside figures of the same kind.
        rows: The figures.
    """

    source: str
    variant: str | None = None
    not_comparable: str | None = None
    user_kind: Kind | None = None
    rows: Rows


@cache
def read_published_figures() -> Mapping[str, Mapping[str, list[PublishedFigures]]]:
    """Return the figures of the papers, by suite and title of the table."""
    file = Path(__file__).with_name("published.yaml")
    model = RootModel[dict[str, dict[str, list[PublishedFigures]]]]
    return read_model(file, model, file_kind="file of published figures").root


def add_published_rows(
    table: Table, publications: Iterable[PublishedFigures], user_kinds: Collection[str | None]
) -> Table:
    """Return the table with the published figures of an arm beneath each row, and a note on their source.

    Args:
        table: A table of our figures.
        publications: What the papers report in the table of this title.
        user_kinds: The kinds of users that our figures are of.
    """
    comparable = []
    for published in publications:
        if published.user_kind is None or set(user_kinds) == {published.user_kind}:
            comparable.append(published)
    rows: list[Row] = []
    notes = list(table.notes)
    for row in table.rows:
        rows.append(row)
        for published in comparable:
            figures = published.rows.get(row.name, {})
            if figures.keys().isdisjoint(table.columns):
                continue
            name = f"{_PUBLISHED}, {published.variant}" if published.variant else _PUBLISHED
            cells = tuple(figures.get(column, "") for column in table.columns)
            rows.append(Row(name=name, cells=cells))
            note = _format_note(name, published)
            if note not in notes:
                notes.append(note)
    return table.model_copy(update={"rows": tuple(rows), "notes": tuple(notes)})


def has_published_rows(table: Table) -> bool:
    """Return True if `add_published_rows` has added some."""
    return any(row.name.partition(",")[0] == _PUBLISHED for row in table.rows)


def _format_note(name: str, published: PublishedFigures) -> str:
    if published.not_comparable:
        return f"{name}: {published.source}. Not comparable: {published.not_comparable}."
    return f"{name}: {published.source}. For orientation."
