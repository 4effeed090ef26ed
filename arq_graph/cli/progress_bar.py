"""How far a run over many things has come, in the terminal; nothing where no terminal is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


class _Count(ProgressColumn):
    """How many of how many; how many alone where the total is unknown."""

    def render(self, task: Task) -> Text:
        total = f" of {int(task.total):,}" if task.total is not None else ""
        return Text(f"{int(task.completed):,}{total}")


@contextmanager
def progress_bar(doing: str, total: int | None, *, failing: str) -> Iterator[Callable[[bool], None]]:
    """Show a bar inside the block, which gets a function to call after each: with whether it failed.

    Args:
        doing: What goes on: `scoring`.
        total: How many there are; None: unknown.
        failing: What is said behind the number of those that failed: `broken`.
    """
    console = diagnostics()
    if not console.is_terminal:
        yield lambda _failed: None
        return
    with Progress(
        SpinnerColumn("line"),
        TextColumn(doing),
        BarColumn(bar_width=24),
        _Count(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}", style="yellow"),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task(doing, total=total, failed="")
        failures = 0

        def done(failed: bool) -> None:
            nonlocal failures
            failures += failed
            progress.update(task, advance=1, failed=f"{failures:,} {failing}" if failures else "")

        yield done
