"""Asking whoever sits at the terminal, or whatever is piped in."""

from __future__ import annotations

import sys

from arq_graph.cli.screen import output, printable, words


def is_terminal() -> bool:
    """Whether somebody types."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask(question: str, *, prefilled: str = "") -> str:
    """Ask one line.

    Args:
        question: What to ask.
        prefilled: What stands there to be changed, where the terminal can do that.

    Raises:
        EOFError: Nobody answers any more.
    """
    if not is_terminal():
        output().print(words(question), end="")
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            output().print()
            raise EOFError
        output().print(words(printable(line.rstrip("\n"), 300)))
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
