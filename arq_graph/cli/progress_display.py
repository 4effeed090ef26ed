"""Show in the terminal what is going on and how far it has come, and leave on Ctrl-C meanwhile."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.status import Status

from arq_graph.cli.exit_codes import INTERRUPTED, AnnouncedInterrupt
from arq_graph.cli.screen import note, safe_text, stderr_console
from arq_graph.errors import ReasoningError

_CLEANUP_SECONDS = 1.0
_NODE_LABELS = {
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


class _RetryLogHandler(logging.Handler):
    """Prints that a model did not answer and is asked again soon, also where there is no terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        stderr_console().print(safe_text(record.getMessage(), "yellow"))


class StepDisplay(BaseCallbackHandler):
    """A line in the terminal that names the step under way."""

    run_inline = True  # in async runs, too: it only notes a name
    ignore_chat_model = True  # the node has named the step

    def __init__(self) -> None:
        self._status = Status("", console=stderr_console())

    @contextmanager
    def show(self, step: str, announce: Callable[[], None] | None = None) -> Iterator[None]:
        """Show the line inside the block, and print what the library logs about retries.

        Args:
            step: The first step.
            announce: As in `leave_on_ctrl_c`; by default it prints that the command was interrupted.
        """
        self._status.update(f"{step} …")
        logger = logging.getLogger("arq_graph")
        handler = _RetryLogHandler()
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        try:
            with _leave_on_ctrl_c(announce or _announce_interrupt, self._status.stop), self._status:
                yield
        finally:
            logger.removeHandler(handler)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Take the line away inside the block; after an error it stays away."""
        self._status.stop()
        yield
        self._status.start()

    def on_chain_start(self, *args: Any, metadata: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Name the step of the node that starts."""
        node = (metadata or {}).get("langgraph_node", "")
        if node in _NODE_LABELS:
            self._status.update(f"{_NODE_LABELS[node]} …")


@contextmanager
def progress_bar(
    activity: str, total: int | None, failure: str, resume_hint: str = ""
) -> Iterator[Callable[[bool], None]]:
    """Show a bar, or print a line for each tenth where there is no terminal.

    The block gets a function to call after each item, with whether it failed.

    Args:
        activity: The activity under way, such as "scoring".
        total: The number of items, if it is known.
        failure: What failed items are called, such as "broken".
        resume_hint: How to resume the command after Ctrl-C or an error of the model.
    """
    console = stderr_console()
    bar = Progress(
        SpinnerColumn("line"),
        TextColumn(activity),
        BarColumn(bar_width=24),
        MofNCompleteColumn(" of "),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failures]}", style="yellow"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(activity, total=total, failures="")
    done_count = 0
    failure_count = 0

    def advance(has_failed: bool) -> None:
        nonlocal done_count, failure_count
        done_count += 1
        failure_count += has_failed
        failures = f"{failure_count:,} {failure}" if failure_count else ""
        bar.update(task, advance=1, failures=failures)
        if bar.disable and total and _completes_a_tenth(done_count, total):
            note(f"{activity}: {done_count:,} of {total:,}, {failures}".removesuffix(", "))

    with _leave_on_ctrl_c(lambda: _announce_interrupt(resume_hint), bar.live.stop), bar:
        try:
            yield advance
        except ReasoningError as error:
            if resume_hint:
                error.add_note(resume_hint)
            raise


def _completes_a_tenth(done: int, total: int) -> bool:
    return done < total and done * 10 // total > (done - 1) * 10 // total


def _announce_interrupt(resume_hint: str = "") -> None:
    note(f"Interrupted. {resume_hint}".strip())


@contextmanager
def _leave_on_ctrl_c(announce: Callable[[], None], stop_display: Callable[[], None]) -> Iterator[None]:
    """Leave on Ctrl-C even while threads wait for a model, which could hold the program for a minute.

    Every finished step is on disk by then, so nothing is lost. Steps under way get a second to clean up; another Ctrl-C
    takes that second away.

    Args:
        announce: Prints that the command was interrupted, and how to resume it.
        stop_display: Stops what is on screen, so that what is printed next stands below it.
    """

    def exit_now(*_: object) -> None:
        os.write(2, b"\n")  # below the ^C
        os._exit(INTERRUPTED)

    def leave(*_: object) -> None:
        signal.signal(signal.SIGINT, exit_now)
        stop_display()
        timer = threading.Timer(_CLEANUP_SECONDS, os._exit, [INTERRUPTED])
        timer.daemon = True
        timer.start()
        announce()
        raise AnnouncedInterrupt

    previous_handler = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is leave:
            signal.signal(signal.SIGINT, previous_handler)
