"""What goes wrong, said in one readable message, with an exit code that means something."""

from __future__ import annotations

import sqlite3
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from arq_graph.cli.leaving import Left
from arq_graph.cli.screen import diagnostics, sentence, words
from arq_graph.errors import ArqGraphError, BlueprintError, ReasoningError

WRONG_INPUT = 1
NO_ANSWER = 3
WAITING = 4
INTERRUPTED = 130


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turn whatever goes wrong into a message on standard error and an exit code.

    Args:
        debug: Whether to show tracebacks too.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except typer.Exit:
            raise
        except Left:
            raise typer.Exit(INTERRUPTED) from None
        except KeyboardInterrupt:
            note("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # whoever reads has gone: typer ends quietly
        except ArqGraphError as error:
            _say(error, debug, str(error))
            raise typer.Exit(NO_ANSWER if isinstance(error, ReasoningError) else WRONG_INPUT) from None
        except sqlite3.Error as error:
            _say(error, debug, f"the file of threads cannot be used: {error}; --db names another")
            raise typer.Exit(WRONG_INPUT) from None
        except SystemExit as error:
            _say(error, debug, f"a module or tool of the agent ended the program (exit code {error.code})")
            raise typer.Exit(WRONG_INPUT) from None
        except Exception as error:
            _say(error, debug, _unexpected(error))
            raise typer.Exit(WRONG_INPUT) from None


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
    if debug:
        diagnostics().print(words("".join(traceback.format_exception(error))), soft_wrap=True)
        for number, attempt in enumerate(
            error.attempts if isinstance(error, BlueprintError) else (), start=1
        ):
            diagnostics().print(
                words(f"answer {number}, asked by {attempt.method}: {attempt.text}"), soft_wrap=True
            )
    show_error(error, message)


def _unexpected(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    said = f": {error}" if str(error) else ""
    return (
        f"unexpected {type(error).__name__}{said}{where}. This should not happen: run the command again with "
        "--debug to see how it came about."
    )


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    if not sys.is_finalizing():
        warn(str(message))
