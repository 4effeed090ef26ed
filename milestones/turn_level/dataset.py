"""The steps of a whole dataset, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

from arq_graph.errors import InputError
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, Format, read_transcripts
from arq_graph.milestones.turn_level.steps import TurnStep, steps_of
from arq_graph.reasoning.sections import clean

Dataset = str | Path | Transcript | Iterable[Transcript | BrokenRecord]


class DatasetSteps:
    """The steps of a dataset, one at a time; a broken record is noted and does not stop the rest.

    Where two conversations have the same id, the second is called `ID (2)`, and so on.

    Args:
        dataset: A file that `read_transcripts` reads, a transcript, or transcripts.
        format: The file's format; None: it is recognised.
        limit: How many steps at most, from the first; None: all.

    Raises:
        InputError: The limit is below 1.
    """

    def __init__(self, dataset: Dataset, *, format: Format | None = None, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise InputError(f"the limit is {limit}: it must be at least 1 step")
        self.broken: list[BrokenConversation] = []
        self._dataset = dataset
        self._format = format
        self._limit = limit

    def __iter__(self) -> Iterator[TurnStep]:
        return islice(self._steps(), self._limit)

    def _steps(self) -> Iterator[TurnStep]:
        self.broken.clear()
        ids: set[str] = set()
        for record in self._records():
            if isinstance(record, BrokenRecord):
                source = str(self._dataset) if isinstance(self._dataset, str | Path) else None
                self.broken.append(
                    BrokenConversation(source=source, record=record.index, error=str(record.error))
                )
                continue
            id = _unused(clean(record.id), ids)
            ids.add(id)
            yield from steps_of(record, conversation=id)

    def _records(self) -> Iterable[Transcript | BrokenRecord]:
        if isinstance(self._dataset, str | Path):
            return read_transcripts(self._dataset, format=self._format)
        return [self._dataset] if isinstance(self._dataset, Transcript) else self._dataset


def _unused(id: str, used: set[str]) -> str:
    again = (f"{id} ({number})" for number in count(2))
    return id if id not in used else next(name for name in again if name not in used)
