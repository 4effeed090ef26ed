"""A report in the terminal: its tables, what went wrong, and what is doubtful."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from typer import Exit

from arq_graph.cli.exit_codes import WRONG_INPUT
from arq_graph.cli.screen import make_printable, note, safe_text, stdout_console, warn, warning_text
from arq_graph.milestones.reports import shown
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.report import Report, stand_in_notice, write_report
from arq_graph.milestones.transcript import Transcript

_SHOWN = 5
_NAME_WIDTH = 40
_TITLE_WIDTH = 24  # which breaks before a figure does
_FIGURE_WIDTH = 22
_REASON = 400
_PATH = 300  # a path that is cut leads nowhere


def columns(title: str, headings: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    """Rows of a name and figures; on a narrow terminal they break, names of one word last, and nothing is lost."""
    rows = [(one_line(name), figures) for name, figures in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    most = min(_NAME_WIDTH, get_terminal_size().columns // 2)
    whole = all(" " not in name and len(name) <= most for name, _ in rows)
    title = fill(title, max([_TITLE_WIDTH, *(min(len(name), _NAME_WIDTH) for name, _ in rows)]))
    table.add_column(safe_text(title), max_width=_NAME_WIDTH, no_wrap=whole, overflow="fold", style="cyan")
    room = max(1, get_terminal_size().columns // (len(headings) + 1) - 2)
    # At hyphens too, where rich would break anywhere.
    for heading in (fill(each, room, break_long_words=False) for each in headings):
        table.add_column(safe_text(heading), justify="right", overflow="fold", max_width=_FIGURE_WIDTH)
    for name, figures in rows:
        table.add_row(name, *map(safe_text, figures))
    return table


def one_line(name: str) -> str:
    """A name from a file, on one line and not endless."""
    return make_printable(name, 60)


def counted(count: int, one: str) -> str:
    """A count and what is counted: `1 record`, `2 records`."""
    return f"{count:,} {one if count == 1 else one + 's'}"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f"; and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return "; ".join(map(one_line, names[:_SHOWN])) + more


def show_broken(broken: Sequence[BrokenConversation], done: str) -> None:
    """Warn of the first records that are broken."""
    for one in broken[:_SHOWN]:
        warn(one.error)
    if len(broken) > _SHOWN:
        warn(f"and {len(broken) - _SHOWN:,} more that could not be {done}; the JSON report lists them all")


def incomplete(way_on: str = "") -> Exit:
    """The exit of a command whose results are there but not whole, which is said."""
    note(f"The exit code is {WRONG_INPUT}, because something went wrong or is missing. {way_on}".rstrip())
    return Exit(WRONG_INPUT)


def show_report(report: Report, tables: Iterable[shown.Table], *, of: str = "", judged: bool = True) -> None:
    """Print a report.

    Args:
        report: What was measured.
        tables: Its tables, or those of the experiment that it belongs to.
        of: The suite's name.
        judged: Whether somebody decides what code cannot; else it is said how.
    """
    console = stdout_console()
    if notice := stand_in_notice(report.stand_ins):
        console.print(safe_text(notice, "yellow"))
    of = f" of {of}" if of else ""
    failed = f", {counted(len(report.failed), 'record')} could not be scored" if report.failed else ""
    console.print(safe_text(f"{counted(len(report.conversations), 'conversation')}{of}{failed}", "bold"))
    for table in tables:
        console.print()
        console.print(columns(table.title, table.columns, ((row.name, row.cells) for row in table.rows)))
        for line in table.notes:
            console.print(Padding(safe_text(line, "dim"), (0, 0, 0, 2)))
    _show_errors(report, console)
    undecided = report.summary.overall.goal_completion.unknown - report.summary.overall.nothing_to_complete
    if undecided:
        way = "" if judged else "; give --judge to have them decided"
        console.print(safe_text(f"{counted(undecided, 'conversation')} undecided{way}.", "yellow"))
    if (agreement := report.summary.overall.agreement.mean) is not None:
        console.print(safe_text(f"Judge: {agreement:.0%} of the votes agree with the verdict.", "dim"))
    unreviewed = [graph.file or name for name, graph in report.graphs.items() if graph.reviewed is False]
    for file in unreviewed[:_SHOWN]:
        console.print(
            warning_text(
                f"{make_printable(file, _PATH)} was generated, and nobody has reviewed it. What it asks for may not be "
                "what matters: read it, then write `reviewed: {by: …, date: …}` into it."
            )
        )


def write_outputs(
    report: Report,
    json: Path | None,
    html: Path | None,
    said: Iterable[Transcript],
    tables: Sequence[shown.Table],
    title: str = "Milestone report",
) -> None:
    """Write the report and the page that were asked for, and say where they are; a page only of what was measured."""
    if json is not None:
        write_report(json, report)
        note(f"The report is in {json}.")
    if html is not None and report.conversations:
        write_html(html, report, said, title=title, tables=tables)
        note(f"The page is in {html}.")
    elif html is not None:
        note(f"No page was written to {html}, because nothing was measured.")


def _show_errors(report: Report, console: Console) -> None:
    """Say which conversations ended in an error, and in which; those of one arm with the same error stand together."""
    wrong: dict[tuple[str, str], list[str]] = {}
    for one in report.conversations:
        if one.error is not None:
            reason = one.error.strip().partition("\n")[0]
            wrong.setdefault((one.arm or "all", reason), []).append(one.id)
    if wrong:
        every = counted(sum(map(len, wrong.values())), "conversation")
        console.print(safe_text(f"{every} ended in an error; what came before it is measured:", "yellow"))
    for (arm, reason), ids in sorted(wrong.items(), key=lambda each: -len(each[1]))[:_SHOWN]:
        line = f"{one_line(arm)}: {len(ids):,}: {make_printable(reason, _REASON)} ({listed(ids)})"
        console.print(safe_text(line, "yellow"))
