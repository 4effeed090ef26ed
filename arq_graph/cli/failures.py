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
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from arq_graph.cli.screen import diagnostics, sentence, settle, words
from arq_graph.errors import ArqGraphError, BlueprintError, ReasoningError

WRONG_INPUT = 1
NO_ANSWER = 3
WAITING = 4
INTERRUPTED = 130
_GRACE = 1.0


class Left(KeyboardInterrupt):
    """Ctrl-C that the user was already told about."""


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turn whatever goes wrong into a message on standard error and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
            sys.stdout.flush()  # a full disk or a reader that has gone shows here at the latest
        except (typer.Exit, typer.BadParameter):
            raise
        except Left:
            raise typer.Exit(INTERRUPTED) from None
        except KeyboardInterrupt:
            note("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_output()
            note("Whatever was reading the output has closed it.")
            raise typer.Exit(WRONG_INPUT) from None
        except ReasoningError as error:
            _say(error, debug, str(error))
            raise typer.Exit(NO_ANSWER) from None
        except SystemExit as error:
            _say(error, debug, f"a module or tool of the agent ended the program (exit code {error.code})")
            raise typer.Exit(WRONG_INPUT) from None
        except Exception as error:
            _say(error, debug, _message(error))
            raise typer.Exit(WRONG_INPUT) from None


_debug = typer.Typer(add_completion=False)


@_debug.command()
def _with_debug(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """What every command takes."""


class ReportedCommand(TyperCommand):
    """A command of which whatever goes wrong is reported; `--debug` shows tracebacks."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params = [*self.params, typer.main.get_command(_debug).params[0]]

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with reported(ctx.params.pop("debug")):
            return super().invoke(ctx)


@contextmanager
def leaving_on_ctrl_c(announce: Callable[[], None]) -> Iterator[None]:
    """Leave on Ctrl-C even while threads wait for a model, which could hold the program for a minute.

    Every finished step is on disk by then, so nothing is lost. What is running gets a second to clean up; a second
    Ctrl-C takes that second away.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread alone
        return

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


def warn(message: str) -> None:
    """Print a warning to standard error."""
    diagnostics().print(sentence(words("warning: ", "yellow"), message))


def note(message: str) -> None:
    """Print a note to standard error."""
    diagnostics().print(words(message, "dim"))


def show_error(error: BaseException, message: str | None = None) -> None:
    """Print an error, and what was noted on it, such as how to go on, to standard error."""
    console = diagnostics()
    console.print(sentence(words("error: ", "bold red"), message or str(error) or type(error).__name__))
    for remark in getattr(error, "__notes__", ()):
        if not remark.startswith("During task with name"):  # LangGraph's, about its own ids
            console.print(words(remark), soft_wrap=True)


def _say(error: BaseException, debug: bool, message: str) -> None:
    settle()
    if debug:
        diagnostics().print(words("".join(traceback.format_exception(error))), soft_wrap=True)
        for number, attempt in enumerate(
            error.attempts if isinstance(error, BlueprintError) else (), start=1
        ):
            diagnostics().print(
                words(f"answer {number}, asked by {attempt.method}: {attempt.text}"), soft_wrap=True
            )
    show_error(error, message)


def _message(error: Exception) -> str:
    if isinstance(error, ArqGraphError):
        return str(error)
    if isinstance(error, sqlite3.Error):
        return f"the file of threads cannot be used: {error}; --db names another"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full: {error.filename or 'the output'} could not be written"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    said = f": {error}" if str(error) else ""
    return (
        f"unexpected {type(error).__name__}{said}{where}. This should not happen: run the command again with "
        "--debug to see how it came about."
    )


def _forget_output() -> None:
    """Point standard output elsewhere: what is still buffered would fail once more at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # no real file behind it
        return


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    if not sys.is_finalizing():
        warn(str(message))
