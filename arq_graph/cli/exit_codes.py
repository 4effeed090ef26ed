"""The exit codes of `arq-graph`; `docs/cli.md` explains them."""

from __future__ import annotations

WRONG_INPUT = 1
NO_ANSWER = 3
WAITING = 4
THRESHOLD_MISSED = 5
INTERRUPTED = 130


class AnnouncedInterrupt(KeyboardInterrupt):
    """Ctrl-C, after the command has said that it was interrupted."""
