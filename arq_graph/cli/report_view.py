"""A report in the terminal: its tables, what went wrong, and what is doubtful."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill

from rich.padding import Padding
from rich.table import Table
from typer import Exit

from arq_graph.cli.exit_codes import WRONG_INPUT
from arq_graph.cli.screen import make_printable, note, safe_text, show, warn, warning_text
from arq_graph.experiments.published import has_published_rows
from arq_graph.milestones.reports import table_format
from arq_graph.milestones.reports.html_page import write_html
from arq_graph.milestones.reports.main_table import build_main_table
from arq_graph.milestones.reports.page_data import shorten_path
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.report import Report, format_stand_in_notice, write_report
from arq_graph.milestones.reports.rows import write_csv
from arq_graph.milestones.transcript import Transcript

EXCEPTIONS = "exceptions of tools"
"""The title of the table of calls that failed with an exception."""
format_count = table_format.format_count

_MAX_LISTED = 5
_NAME_LIMIT = 60
_NAME_WIDTH = 40
_TITLE_WIDTH = 24  # which breaks before a figure does
_FIGURE_WIDTH = 22
_ERROR_LIMIT = 400
_PATH_LIMIT = 300  # a path that is cut leads nowhere


def figure_table(title: str, headings: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    """Lay out rows of a name and figures.

    On a narrow terminal they break, names of one word last, and nothing is lost.
    """
    rows = [(shorten_name(name), figures) for name, figures in rows]
    terminal_width = get_terminal_size().columns
    max_name_width = min(_NAME_WIDTH, terminal_width // 2)
    are_names_short = all(" " not in name and len(name) <= max_name_width for name, _ in rows)
    longest_name = max((len(name) for name, _ in rows), default=0)
    title_width = max(_TITLE_WIDTH, min(longest_name, _NAME_WIDTH))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(
        safe_text(fill(title, title_width)),
        max_width=_NAME_WIDTH,
        no_wrap=are_names_short,
        overflow="fold",
        style="cyan",
    )
    column_width = max(1, terminal_width // (len(headings) + 1) - 2)
    for heading in headings:
        # At hyphens too, where rich would break anywhere.
        lines = fill(heading, column_width, break_long_words=False)
        table.add_column(safe_text(lines), justify="right", overflow="fold", max_width=_FIGURE_WIDTH)
    for name, figures in rows:
        table.add_row(name, *map(safe_text, figures))
    return table


def shorten_name(name: str) -> str:
    """Return a name from a file on one line of limited length."""
    return make_printable(name, _NAME_LIMIT)


def list_names(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    text = "; ".join(map(shorten_name, names[:_MAX_LISTED]))
    if len(names) > _MAX_LISTED:
        text += f"; and {len(names) - _MAX_LISTED:,} more"
    return text


def show_broken(broken: Sequence[BrokenConversation], participle: str) -> None:
    """Warn of the first broken records, which could not be "scored", "read" or "measured"."""
    for record in broken[:_MAX_LISTED]:
        warn(record.error)
    if len(broken) > _MAX_LISTED:
        extra = len(broken) - _MAX_LISTED
        warn(f"and {extra:,} more that could not be {participle}; the JSON report lists them all")


def incomplete_exit(resume_hint: str = "") -> Exit:
    """Return the exit of a command whose results are incomplete, and print a note about it."""
    reason = "because something went wrong or is missing."
    note(f"The exit code is {WRONG_INPUT}, {reason} {resume_hint}".rstrip())
    return Exit(WRONG_INPUT)


def write_outputs(
    report: Report,
    json: Path | None,
    html: Path | None,
    transcripts: Iterable[Transcript],
    tables: Sequence[table_format.Table],
    *,
    csv: Path | None = None,
    title: str = "Milestone report",
) -> None:
    """Write the report as JSON and CSV, and its page, as far as they were asked for, and print where they are.

    No page is written if nothing was measured.
    """
    if json is not None:
        write_report(json, report)
        note(f"The report is in {json}.")
    if csv is not None:
        write_csv(csv, report.to_rows())
        note(f"The rows are in {csv}.")
    if html is not None and report.conversations:
        write_html(html, report, transcripts, title=title, tables=tables)
        note(f"The page is in {html}.")
    elif html is not None:
        note(f"No page was written to {html}, because nothing was measured.")


def show_report(
    report: Report,
    tables: Iterable[table_format.Table],
    *,
    is_verbose: bool = False,
    suite: str = "",
    has_judge: bool = True,
) -> None:
    """Print what a report shows: its verdict and its main table; if verbose, all its tables, too.

    Tables of exceptions and with published figures are always printed. Without a judge, a hint names --judge.
    """
    notice = format_stand_in_notice(report.stand_ins)
    if notice:
        show(notice, style="yellow")
    size = format_count(len(report.conversations), "conversation")
    if suite:
        size += f" of {suite}"
    if report.failed:
        size += f", {format_count(len(report.failed), 'record')} could not be scored"
    show(size, style="bold")
    show(*report.verdict, style="bold")
    _show_table(build_main_table(report.main_arms))
    has_hidden = False
    for table in tables:
        if is_verbose or table.title == EXCEPTIONS or has_published_rows(table):
            _show_table(table)
        else:
            has_hidden = True
    if has_hidden:
        show("", "--verbose prints the other tables, by category, kind of user and arm.", style="dim")
    _show_errors(report)
    overall = report.summary.overall
    undecided = overall.goal_completion.unknown - overall.nothing_to_complete
    if undecided:
        hint = "" if has_judge else "; give --judge to have them decided"
        show(f"{format_count(undecided, 'conversation')} undecided{hint}.", style="yellow")
    agreement = overall.agreement.mean
    if agreement is not None:
        show(f"Judge: {agreement:.0%} of the votes agree with the verdict.", style="dim")
    _show_unreviewed_graphs(report)


def _show_table(table: table_format.Table) -> None:
    show("", figure_table(table.title, table.columns, [(row.name, row.cells) for row in table.rows]))
    for remark in table.notes:
        show(Padding(safe_text(remark, "dim"), (0, 0, 0, 2)))


def _show_errors(report: Report) -> None:
    """Print which conversations ended in an error; those of one arm with the same error are in one line."""
    ids_by_error: dict[tuple[str, str], list[str]] = {}
    for conversation in report.conversations:
        if conversation.error is not None:
            error = conversation.error.strip().partition("\n")[0]
            ids_by_error.setdefault((conversation.arm or "all", error), []).append(conversation.id)
    if not ids_by_error:
        return
    total = format_count(sum(map(len, ids_by_error.values())), "conversation")
    show(f"{total} ended in an error; what came before it is measured:", style="yellow")
    most_frequent = sorted(ids_by_error.items(), key=lambda entry: -len(entry[1]))
    for (arm, error), ids in most_frequent[:_MAX_LISTED]:
        error = make_printable(error, _ERROR_LIMIT)
        show(f"{shorten_name(arm)}: {len(ids):,}: {error} ({list_names(ids)})", style="yellow")


def _show_unreviewed_graphs(report: Report) -> None:
    unreviewed = []
    for name, graph in report.graphs.items():
        if graph.reviewed is False:
            unreviewed.append(shorten_path(graph.file or name))
    for file in unreviewed[:_MAX_LISTED]:
        message = (
            f"{make_printable(file, _PATH_LIMIT)} was generated, and nobody has reviewed it. What it asks for may not "
            "be what matters: read it, then write `reviewed: {by: …, date: …}` into it."
        )
        show(warning_text(message))
