"""How far a run over many conversations has come, in the terminal; nothing where no terminal is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from arq_graph.cli.progress_bar import progress_bar
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.scoring_run import Outcome


class ScoreProgress:
    """A bar with how many conversations are scored, and how many are broken.

    Args:
        advance: Takes whether one more is broken.
    """

    def __init__(self, advance: Callable[[bool], None]) -> None:
        self._advance = advance

    def done(self, outcome: Outcome) -> None:
        """One more is done."""
        self._advance(isinstance(outcome, BrokenConversation))


@contextmanager
def shown_progress(total: int | None) -> Iterator[ScoreProgress]:
    """Show progress inside the block.

    Args:
        total: How many conversations there are; None: unknown.
    """
    with progress_bar("scoring", total, failing="broken") as advance:
        yield ScoreProgress(advance)


def lines_of(files: Sequence[Path]) -> int | None:
    """How many records files of one record a line hold; None where a file is no such file."""
    if not all(file.suffix.lower() in (".jsonl", ".ndjson") for file in files):
        return None
    lines = 0
    for file in files:
        with file.open("rb") as stream:
            lines += _lines(iter(lambda: stream.read(1 << 20), b""))
    return lines


def _lines(chunks: Iterable[bytes]) -> int:
    lines, ends = 0, b"\n"
    for chunk in chunks:
        lines += chunk.count(b"\n")
        ends = chunk[-1:]
    return lines + (ends != b"\n")
