"""What goes wrong, said in one readable message with an exit code that means something; Ctrl-C among it."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import typer

from arq_graph.cli.screen import diagnostics, note, sentence, settle, warn, words
from arq_graph.errors import ArqGraphError, ReasoningError

WRONG_INPUT = 1
NO_ANSWER = 3
WAITING = 4
INTERRUPTED = 130
_GRACE = 1.0


class Left(KeyboardInterrupt):
    """Ctrl-C that the user was already told about."""


@contextmanager
def reported(*, debug: bool) -> Iterator[None]:
    """Turn whatever goes wrong into a message on standard error and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        try:
            yield
            sys.stdout.flush()  # a full disk or a reader that has gone shows here at the latest
        except Left:
            raise typer.Exit(INTERRUPTED) from None
        except KeyboardInterrupt:
            note("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            with suppress(OSError, ValueError):  # what is still buffered would fail once more at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            note("Whatever was reading the output has closed it.")
            raise typer.Exit(WRONG_INPUT) from None
        except (Exception, SystemExit) as error:
            if hasattr(error, "exit_code"):  # Typer's own: wrong usage, or a command that is done
                raise
            settle()
            if debug:
                diagnostics().print(words("".join(traceback.format_exception(error))), soft_wrap=True)
            show_error(error, _message(error))
            raise typer.Exit(NO_ANSWER if isinstance(error, ReasoningError) else WRONG_INPUT) from None


@contextmanager
def leaving_on_ctrl_c(announce: Callable[[], None]) -> Iterator[None]:
    """Leave on Ctrl-C even while threads wait for a model, which could hold the program for a minute.

    Every finished step is on disk by then, so nothing is lost. What is running gets a second to clean up; a second
    Ctrl-C takes that second away.
    """

    def leave(*_: object) -> None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
        settle()
        timer = threading.Timer(_GRACE, os._exit, [INTERRUPTED])
        timer.daemon = True
        timer.start()
        announce()
        raise Left

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def show_error(error: BaseException, message: str) -> None:
    """Print an error, and what was noted on it, such as how to go on, to standard error."""
    console = diagnostics()
    console.print(sentence(words("error: ", "bold red"), message))
    for remark in getattr(error, "__notes__", ()):
        if not remark.startswith("During task with name"):  # LangGraph's, about its own ids
            console.print(words(remark), soft_wrap=True)


def _message(error: BaseException) -> str:
    if isinstance(error, ArqGraphError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"a module or tool of the agent ended the program (exit code {error.code})"
    if isinstance(error, sqlite3.Error):
        return f"the file of threads cannot be used: {error}; --db names another"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full: {error.filename or 'the output'} could not be written"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unexpected {type(error).__name__}: {error} in {last.filename}, line {last.lineno}. This should not happen: "
        "`arq-graph --debug …` shows how it came about."
    )
