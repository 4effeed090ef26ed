"""The command `arq-graph`: try an agent, run it over conversations, and see why it said what it said."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from arq_graph.cli.exit_codes import INTERRUPTED, WRONG_INPUT

_EXTRA_PACKAGES = {"typer": "typer", "rich": "rich", "dotenv": "python-dotenv"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `arq-graph`.

    Args:
        arguments: The command line without the program's name; None takes the process's own.

    Raises:
        SystemExit: Always; `docs/cli.md` says what each exit code means.
    """
    reduce_garbage_collection()
    try:
        from arq_graph.cli.app import app
        from arq_graph.cli.screen import tolerate_any_text

        tolerate_any_text()
        app(args=arguments, prog_name="arq-graph")
    except ModuleNotFoundError as error:
        package = _EXTRA_PACKAGES.get(error.name or "")
        if package is None:
            raise
        print(f'error: arq-graph needs the package {package}: pip install "arq_graph[cli]"', file=sys.stderr)
        raise SystemExit(WRONG_INPUT) from None
    except KeyboardInterrupt:
        # The libraries are still loading, so nothing else handles it yet.
        raise SystemExit(INTERRUPTED) from None


def reduce_garbage_collection() -> None:
    """Let Python look for garbage less often: most objects of a command, from modules to records, live to its end."""
    gc.set_threshold(100_000, 50, 50)
