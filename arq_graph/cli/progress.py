"""What is going on, and how far it has come, in a line of the terminal where there is one; and Ctrl-C meanwhile."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.status import Status

from arq_graph.cli import INTERRUPTED
from arq_graph.cli.screen import diagnostics, note, on_screen, settle, words
from arq_graph.errors import ReasoningError

_GRACE = 1.0
_STEPS = {
    "match": "matching guidelines",
    "call_tools": "deciding on tools",
    "plan": "planning",
    "speak": "thinking of the next move",
    "approve": "asking the operator",
    "tools": "running tools",
    "match_again": "looking again at what the results change",
    "call_tools_again": "looking again at what the results change",
    "message": "writing the reply",
}


class _Waits(logging.Handler):
    """Says that a model did not answer and is asked again soon; without a terminal, too, where nobody waits."""

    def emit(self, record: logging.LogRecord) -> None:
        diagnostics().print(words(record.getMessage(), "yellow"))


class Progress(BaseCallbackHandler):
    """A line in the terminal that names the step under way."""

    run_inline = True  # in async runs, too: it only notes a name
    ignore_chat_model = True  # the node has named the step

    def __init__(self) -> None:
        self._status = Status("", console=diagnostics())

    @contextmanager
    def shown(self, step: str) -> Iterator[None]:
        """Show progress inside the block."""
        self._status.update(f"{step} …")
        log, waits = logging.getLogger("arq_graph"), _Waits()
        log.setLevel(logging.INFO)
        log.addHandler(waits)
        try:
            with self._status, on_screen(self._status.stop):
                yield
        finally:
            log.removeHandler(waits)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the line away while somebody is asked something; after an error it stays away."""
        self._status.stop()
        yield
        self._status.start()

    def on_chain_start(self, *args: Any, metadata: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """A node begins."""
        step = _STEPS.get((metadata or {}).get("langgraph_node", ""))
        if step:
            self._status.update(f"{step} …")


@contextmanager
def leaving_on_ctrl_c(announce: Callable[[], None]) -> Iterator[None]:
    """Leave on Ctrl-C even while threads wait for a model, which could hold the program for a minute.

    Every finished step is on disk by then, so nothing is lost. What is running gets a second to clean up; a second
    Ctrl-C takes that second away.
    """

    def leave_now(*_: object) -> None:
        os.write(2, b"\n")  # below the ^C
        os._exit(INTERRUPTED)

    def leave(*_: object) -> None:
        signal.signal(signal.SIGINT, leave_now)
        settle()
        timer = threading.Timer(_GRACE, os._exit, [INTERRUPTED])
        timer.daemon = True
        timer.start()
        announce()
        raise KeyboardInterrupt("it was said")

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is leave:
            signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar(doing: str, total: int | None, failing: str) -> Iterator[Callable[[bool], None]]:
    """Show a bar, or lines without a terminal; the block gets a function to call after each: with whether it failed."""
    console = diagnostics()
    columns = (
        SpinnerColumn("line"),
        TextColumn(doing),
        BarColumn(bar_width=24),
        MofNCompleteColumn(" of "),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}", style="yellow"),
    )
    bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(doing, total=total, failed="")
    count = failures = 0

    def done(failed: bool) -> None:
        nonlocal count, failures
        count, failures = count + 1, failures + failed
        told = f"{failures:,} {failing}" if failures else ""
        bar.update(task, advance=1, failed=told)
        if bar.disable and total and count < total and count * 10 // total > (count - 1) * 10 // total:
            note(f"{doing}: {count:,} of {total:,}{told and f', {told}'}")

    with bar, on_screen(bar.stop):
        yield done


@contextmanager
def way_on_said(way_on: str, doing: str, total: int | None, failing: str) -> Iterator[Callable[[bool], None]]:
    """A progress bar inside the block; whatever ends it, an interrupt or a model, says how to go on."""
    with (
        leaving_on_ctrl_c(lambda: note(f"Interrupted. {way_on}".strip())),
        progress_bar(doing, total, failing) as advance,
    ):
        try:
            yield advance
        except ReasoningError as error:
            if way_on:
                error.add_note(way_on)
            raise
