"""What is printed, and how it stays readable: any text, any encoding, with and without colour, at any width."""

from __future__ import annotations

import codecs
import errno
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from arq_graph.reasoning.sections import clean

LABEL_WIDTH = 8

_shown: list[Callable[[], None]] = []

# Characters of ours that an old terminal may not have.
_PLAIN = {
    "→": "->",
    "…": "...",
    "✓": "+",
    "✗": "x",
    "●": "*",
    "○": "o",
    "·": "-",
    "—": "-",
    "─": "-",
    "›": ">",
}

# What could drive a terminal or turn the direction of a line: control characters and bidirectional overrides.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def tolerate_any_text() -> None:
    """Let the standard streams write and read whatever there is, in whatever encoding they have."""
    codecs.register_error("arq_graph.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="arq_graph.plain")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    if plain := _PLAIN.get(error.object[error.start]):
        return plain, error.start + 1
    return codecs.backslashreplace_errors(error)


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
    """Text that cannot drive the terminal."""
    if limit is not None:
        text = " ".join(text.split())
        if len(text) > limit:
            text = f"{text[: limit - 1]}…"
    text = clean(text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def spoken(text: str, limit: int = 4_000) -> str:
    """What somebody said, shortened only where it is very long."""
    rest = len(text) - limit
    return printable(text if rest <= 0 else f"{text[:limit]}… ({rest:,} more characters)")


def words(text: str, style: str = "") -> Text:
    """Words in a style; nothing in them is taken for markup."""
    return Text(printable(text), style=style)


def sentence(*parts: str | Text) -> Text:
    """Parts, joined without anything between them."""
    return Text.assemble(*(part if isinstance(part, Text) else words(part) for part in parts))


Row = tuple[str, str, Sequence[RenderableType]]


def labelled(rows: Iterable[Row]) -> Table:
    """Rows of a label, its style, and lines that stay beside it however narrow the terminal is."""
    return _grid(rows, 2, justify="right", no_wrap=True, min_width=LABEL_WIDTH)


def table(rows: Iterable[tuple[str, Sequence[RenderableType]]]) -> Table:
    """Rows of a name and what there is to say about it."""
    return _grid(((name, "cyan", lines) for name, lines in rows), 2, overflow="fold", max_width=22)


def entry(mark: str, style: str, lines: Sequence[RenderableType]) -> Table:
    """A list entry: a mark, and lines beside it."""
    return _grid([(mark, style, lines)], 1, no_wrap=True)


def _grid(rows: Iterable[Row], gap: int, **first_column: Any) -> Table:
    grid = Table.grid(padding=(0, gap, 0, 0))
    grid.add_column(**first_column)
    grid.add_column(overflow="fold")
    for label, style, lines in rows:
        grid.add_row(words(label, style), Group(*lines))
    return grid


def command(*parts: object) -> Text:
    """A command to copy."""
    return Text(f"  {shlex.join(map(str, parts))}", style="bold")


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
    line = json.dumps(record, ensure_ascii=False, default=str)
    try:
        line.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:  # lone surrogates, or a terminal of another encoding
        line = json.dumps(record, default=str)
    print(line, flush=True)


def is_terminal() -> bool:
    """Whether somebody types."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask(question: str, *, prefilled: str = "") -> str:
    """Ask whoever sits at the terminal, or whatever is piped in, for one line."""
    if not is_terminal():
        output().print(words(question), end="")
        line = sys.stdin.readline() if sys.stdin is not None else ""
        output().print(words(printable(line.rstrip("\n"), 300)))
        if not line:
            raise EOFError
        return line.rstrip("\n")
    try:
        import readline
    except ImportError:  # no line editing on this system
        return input(question)
    readline.set_startup_hook(lambda: readline.insert_text(prefilled))
    try:
        return input(question)
    finally:
        readline.set_startup_hook()
