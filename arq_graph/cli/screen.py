"""Print to the terminal so that any text stays readable: in any encoding, at any width, with and without colour."""

from __future__ import annotations

import errno
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from arq_graph.errors import shorten
from arq_graph.reasoning.sections import visible

LABEL_WIDTH = 8

_MESSAGE_LIMIT = 4_000
_ECHO_LIMIT = 300

Row = tuple[str, str, Sequence[RenderableType]]
"""A label, its style, and the lines beside it; plain texts are made printable."""


def tolerate_any_text() -> None:
    """Let the standard streams write and read any text in whatever encoding they have."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            errors = "replace" if stream is sys.stdin else "backslashreplace"
            stream.reconfigure(errors=errors)


class Screen(Console):
    """A console that raises `BrokenPipeError`; rich would end the program, as a tool of the agent might."""

    def on_broken_pipe(self) -> None:
        """Raise an error because nobody reads the output any more."""
        raise BrokenPipeError(errno.EPIPE, "the reader has gone")


def stdout_console() -> Console:
    """Return the console for results."""
    return Screen(highlight=False, emoji=False, markup=False)


def stderr_console() -> Console:
    """Return the console for notes, warnings, errors and progress."""
    return Screen(stderr=True, highlight=False, emoji=False, markup=False)


def make_printable(text: str, limit: int | None = None) -> str:
    """Escape the characters that drive a terminal; with a limit, return one line of at most so many characters."""
    if limit is not None:
        text = " ".join(text.split())
        if len(text) > limit:
            text = f"{text[: limit - 1]}…"
    return visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def safe_text(text: str, style: str = "", limit: int | None = None) -> Text:
    """Return printable text in a style; nothing in it is taken for markup."""
    return Text(make_printable(text, limit), style=style)


def message_text(text: str, limit: int = _MESSAGE_LIMIT) -> Text:
    """Return a message with its line breaks, shortened only if it is very long."""
    extra = len(text) - limit
    if extra <= 0:
        return safe_text(text)
    return safe_text(f"{text[:limit]}… ({extra:,} more characters)")


def join_parts(*parts: str | Text) -> Text:
    """Join parts without anything between them."""
    joined = Text()
    for part in parts:
        if isinstance(part, str):
            part = safe_text(part)
        joined.append_text(part)
    return joined


def show(*parts: RenderableType, style: str = "") -> None:
    """Print parts of a result to standard output, one below the other; the style is that of plain texts."""
    console = stdout_console()
    for part in parts:
        console.print(_make_safe(part, style))


def _make_safe(part: RenderableType, style: str = "") -> RenderableType:
    if isinstance(part, str):
        return safe_text(part, style)
    return part


def show_heading(title: str, style: str = "bold") -> None:
    """Print the title of a section, below an empty line."""
    show("", title, style=style)


def warning_text(message: str) -> Text:
    """Return a message that is marked as a warning."""
    return join_parts(safe_text("warning: ", "yellow"), shorten(message))


def warn(message: str) -> None:
    """Print a warning to standard error."""
    stderr_console().print(warning_text(message))


def note(message: str) -> None:
    """Print a note to standard error."""
    stderr_console().print(safe_text(message, "dim"))


def show_error(error: BaseException, message: str) -> None:
    """Print an error to standard error, with the notes that were added to it, such as how to continue."""
    console = stderr_console()
    console.print(join_parts(safe_text("error: ", "bold red"), shorten(message)))
    for remark in getattr(error, "__notes__", ()):
        if not remark.startswith("During task with name"):  # LangGraph's, about its own ids
            console.print(safe_text(shorten(remark)), soft_wrap=True)


def show_command(words: Iterable[object], console: Console | None = None) -> None:
    """Print a command to copy, on one line however long it is; to standard output or the console."""
    console = console or stdout_console()
    console.print(Text(f"  {shlex.join(map(str, words))}", style="bold"), soft_wrap=True)


def label_grid(rows: Iterable[Row]) -> Table:
    """Lay out labels with lines that stay beside them however narrow the terminal is."""
    return _grid(rows, 2, justify="right", no_wrap=True, min_width=LABEL_WIDTH)


def name_grid(rows: Iterable[tuple[str, Sequence[RenderableType]]]) -> Table:
    """Lay out names with what there is to say about them."""
    return _grid(((name, "cyan", lines) for name, lines in rows), 2, overflow="fold", max_width=22)


def list_entry(mark: str, style: str, lines: Sequence[RenderableType]) -> Table:
    """Lay out an entry of a list: a mark, and lines beside it."""
    return _grid([(mark, style, lines)], 1, no_wrap=True)


def _grid(rows: Iterable[Row], gap: int, **first_column: Any) -> Table:
    grid = Table.grid(padding=(0, gap, 0, 0))
    grid.add_column(**first_column)
    grid.add_column(overflow="fold")
    for label, style, lines in rows:
        grid.add_row(safe_text(label, style), Group(*map(_make_safe, lines)))
    return grid


def print_json(record: Mapping[str, Any]) -> None:
    """Print an object on one line of standard output, and flush it for the program that reads it."""
    # Escapes that an encoding needs would not be JSON. UTF-8 lacks only lone surrogates, and their escapes are JSON.
    is_utf8 = "utf" in (sys.stdout.encoding or "").lower()
    print(json.dumps(record, ensure_ascii=not is_utf8, default=str), flush=True)


def is_interactive() -> bool:
    """Return whether somebody types at the terminal."""
    return sys.stdin.isatty()


def prompt(question: str) -> str:
    """Ask for one line of standard input, and show a line that was piped in.

    Raises:
        EOFError: There are no more lines.
    """
    with suppress(ImportError):
        import readline  # noqa: F401  (lines can be edited)
    answer = input(question)
    if not is_interactive():
        stdout_console().print(safe_text(answer, limit=_ECHO_LIMIT))
    return answer
