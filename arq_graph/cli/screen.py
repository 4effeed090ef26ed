"""What is printed, and how it stays readable: any text, any encoding, with and without colour, at any width."""

from __future__ import annotations

import errno
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from arq_graph.reasoning.sections import visible

LABEL_WIDTH = 8

_shown: list[Callable[[], None]] = []


def tolerate_any_text() -> None:
    """Let the standard streams write and read whatever there is, in whatever encoding they have."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")


class Screen(Console):
    """A console that lets a broken pipe be seen: its own way would look like a tool that ends the program."""

    def on_broken_pipe(self) -> None:
        """Whoever reads has gone."""
        raise BrokenPipeError(errno.EPIPE, "the reader has gone")


def output() -> Console:
    """Where results are printed."""
    return Screen(highlight=False, emoji=False, markup=False)


def diagnostics() -> Console:
    """Where everything else is printed."""
    return Screen(stderr=True, highlight=False, emoji=False, markup=False)


def printable(text: str, limit: int | None = None) -> str:
    """Text that cannot drive the terminal; with a limit on one line, and no longer than it."""
    if limit is not None:
        text = " ".join(text.split())
        if len(text) > limit:
            text = f"{text[: limit - 1]}…"
    return visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def words(text: str, style: str = "", limit: int | None = None) -> Text:
    """Words in a style; nothing in them is taken for markup."""
    return Text(printable(text, limit), style=style)


def spoken(text: str, limit: int = 4_000) -> Text:
    """What somebody said, shortened only where it is very long."""
    rest = len(text) - limit
    return words(text if rest <= 0 else f"{text[:limit]}… ({rest:,} more characters)")


def sentence(*parts: str | Text) -> Text:
    """Parts, joined without anything between them."""
    return Text.assemble(*(part if isinstance(part, Text) else words(part) for part in parts))


def warning(text: str) -> Text:
    """A warning, marked as one."""
    return sentence(words("warning: ", "yellow"), text)


def warn(message: str) -> None:
    """Print a warning to standard error."""
    diagnostics().print(warning(message))


def note(message: str) -> None:
    """Print a note to standard error."""
    diagnostics().print(words(message, "dim"))


def show_error(error: BaseException, message: str) -> None:
    """Print an error, and what was noted on it, such as how to go on, to standard error."""
    console = diagnostics()
    console.print(sentence(words("error: ", "bold red"), message))
    for remark in getattr(error, "__notes__", ()):
        if not remark.startswith("During task with name"):  # LangGraph's, about its own ids
            console.print(words(remark), soft_wrap=True)


Row = tuple[str, str, Sequence[RenderableType]]


def labelled(rows: Iterable[Row]) -> Table:
    """Rows of a label, its style, and lines that stay beside it however narrow the terminal is."""
    return _grid(rows, 2, justify="right", no_wrap=True, min_width=LABEL_WIDTH)


def named(rows: Iterable[tuple[str, Sequence[RenderableType]]]) -> Table:
    """Rows of a name and what there is to say about it."""
    return _grid(((name, "cyan", lines) for name, lines in rows), 2, overflow="fold", max_width=22)


def entry(mark: str, style: str, *lines: RenderableType) -> Table:
    """A list entry: a mark, and lines beside it."""
    return _grid([(mark, style, lines)], 1, no_wrap=True)


def _grid(rows: Iterable[Row], gap: int, **first_column: Any) -> Table:
    grid = Table.grid(padding=(0, gap, 0, 0))
    grid.add_column(**first_column)
    grid.add_column(overflow="fold")
    for label, style, lines in rows:
        grid.add_row(words(label, style), Group(*lines))
    return grid


def titled(title: str, style: str = "bold") -> Text:
    """The title of a part of a page, below an empty line."""
    return words(f"\n{title}", style)


def show_command(console: Console, *parts: object) -> None:
    """Print a command to copy, on one line however long it is."""
    console.print(Text(f"  {shlex.join(map(str, parts))}", style="bold"), soft_wrap=True)


def settle() -> None:
    """End whatever progress is shown, and leave its line where it is; what is printed next stands below it."""
    while _shown:
        _shown.pop()()


@contextmanager
def on_screen(stop: Callable[[], None]) -> Iterator[None]:
    """Inside the block something is shown that `stop` ends; `settle` may have to end it earlier."""
    _shown.append(stop)
    try:
        yield
    finally:
        if stop in _shown:
            _shown.remove(stop)
            stop()


def print_json(record: Mapping[str, Any]) -> None:
    """Print one object on a line of standard output, for programs, and hand it on at once."""
    # What an encoding cannot say would be no JSON; UTF-8 lacks only lone surrogates, whose escapes are.
    in_utf8 = "utf" in (sys.stdout.encoding or "").lower()
    print(json.dumps(record, ensure_ascii=not in_utf8, default=str), flush=True)


def is_terminal() -> bool:
    """Whether somebody types."""
    return sys.stdin.isatty()


def ask(question: str) -> str:
    """Ask whoever sits at the terminal, or whatever is piped in, for one line; raises `EOFError` where none is left."""
    with suppress(ImportError):
        import readline  # noqa: F401  (lines can be edited)
    answer = input(question)
    if not is_terminal():
        output().print(words(answer, limit=300))
    return answer
