"""The command `arq-graph`: try an agent, run it over conversations, and see why it said what it said."""

from __future__ import annotations

from collections.abc import Sequence

WRONG_INPUT = 1
NO_ANSWER = 3
WAITING = 4
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `arq-graph`.

    Args:
        arguments: The command line without the program's name; None takes the process's own.

    Raises:
        SystemExit: Always; `docs/command.md` says what each exit code means.
    """
    try:
        from arq_graph.cli.app import app
        from arq_graph.cli.screen import tolerate_any_text

        tolerate_any_text()
        app(args=None if arguments is None else list(arguments), prog_name="arq-graph")
    except KeyboardInterrupt:
        # While the libraries are still loading.
        raise SystemExit(INTERRUPTED) from None
