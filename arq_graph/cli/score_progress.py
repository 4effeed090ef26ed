"""How far a run over many conversations has come, in the terminal; nothing where no terminal is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from arq_graph.cli.screen import diagnostics
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.running import Outcome


class ScoreProgress:
    """A bar with how many conversations are scored, and how many are broken."""

    def __init__(self, progress: Progress | None, total: int | None) -> None:
        self._progress = progress
        self._broken = 0
        if progress is not None:
            self._task = progress.add_task("scoring", total=total, broken="")

    def done(self, outcome: Outcome) -> None:
        """One more is done."""
        if self._progress is None:
            return
        self._broken += isinstance(outcome, BrokenConversation)
        broken = f"{self._broken:,} broken" if self._broken else ""
        self._progress.update(self._task, advance=1, broken=broken)


class _Count(ProgressColumn):
    """How many of how many; how many alone where the total is unknown."""

    def render(self, task: Task) -> Text:
        total = f" of {int(task.total):,}" if task.total is not None else ""
        return Text(f"{int(task.completed):,}{total}")


@contextmanager
def shown_progress(total: int | None) -> Iterator[ScoreProgress]:
    """Show progress inside the block.

    Args:
        total: How many conversations there are; None: unknown.
    """
    console = diagnostics()
    if not console.is_terminal:
        yield ScoreProgress(None, total)
        return
    with Progress(
        SpinnerColumn("line"),
        TextColumn("scoring"),
        BarColumn(bar_width=24),
        _Count(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[broken]}", style="yellow"),
        console=console,
        transient=True,
    ) as progress:
        yield ScoreProgress(progress, total)


def lines_of(files: Sequence[Path]) -> int | None:
    """How many records files of one record a line hold; None where a file is no such file."""
    if not all(file.suffix.lower() in (".jsonl", ".ndjson") for file in files):
        return None
    lines = 0
    for file in files:
        with file.open("rb") as stream:
            lines += _lines(iter(lambda: stream.read(1 << 20), b""))
    return lines


def _lines(chunks: Iterable[bytes]) -> int:
    lines, ends = 0, b"\n"
    for chunk in chunks:
        lines += chunk.count(b"\n")
        ends = chunk[-1:]
    return lines + (ends != b"\n")
