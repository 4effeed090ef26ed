"""The conversations of files, each with its place, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcripts

Place = tuple[int, int]
"""File and record as numbers, in the order in which they are read."""

# What is wrong with a file itself comes after all that could be read of it.
_END_OF_FILE = 1 << 62


@dataclass(frozen=True, slots=True)
class Located:
    """A conversation, or a record that is none, and where it stands: its file, and its position there, from 0.

    `record` is None where the file itself cannot be read on; `number` is the file's place among those that are read.
    """

    item: Transcript | BrokenRecord
    record: int | None
    source: str | None = None
    number: int = 0

    @property
    def place(self) -> Place:
        """Where it stands, as numbers."""
        return self.number, _END_OF_FILE if self.record is None else self.record


def read_files(
    files: Sequence[Path],
    *,
    use_case: str | None = None,
    limit: int | None = None,
    read: Callable[[Path], Iterable[Transcript | BrokenRecord]] = read_transcripts,
) -> Iterator[Located]:
    """The conversations of several files, one at a time; memory holds one.

    A file that cannot be read on, even in its middle, is given as a broken record, and the next one begins.

    Args:
        files: The files.
        use_case: Conversations of this use case alone; None: all. Broken records are always given.
        limit: How many conversations at most, above 0; None: all. Broken records do not count.
        read: Reads one file, as `read_transcripts` does.
    """
    given = 0
    for number, file in enumerate(files):
        try:
            for record, item in enumerate(read(file)):
                if isinstance(item, Transcript):
                    if use_case is not None and item.use_case != use_case:
                        continue
                    given += 1
                yield Located(item, record, str(file), number)
                if given == limit:
                    return
        except InputError as error:
            yield Located(BrokenRecord(0, error), None, str(file), number)
