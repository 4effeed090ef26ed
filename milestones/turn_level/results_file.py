"""The outcomes of an evaluation on disk, one line a step, so that an interrupted run can go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from arq_graph.errors import InputError
from arq_graph.milestones.reports.kept_lines import KeepsLines, KeptLines, changed
from arq_graph.milestones.turn_level.comparison import StepOutcome

SCHEMA = 1
_BEGINS = b'{"schema": '


class ResultsFile(KeepsLines):
    """A JSON Lines file: the settings of the run, then an outcome a line, each written as soon as it is there.

    A line that a killed run left unfinished is cut off. Where a step stands in it twice, the later line counts.
    One run at a time has it open.

    Args:
        path: The file; made where it is missing.
        settings: What the outcomes depend on: the dataset, the agent, the similarity.

    Raises:
        InputError: The file cannot be used, is none of these, or was written with other settings.
    """

    _lines: KeptLines

    def __init__(self, path: Path, settings: Mapping[str, str]) -> None:
        self.path = path
        self._settings = dict(settings)
        self._lines = KeptLines(path, head=_BEGINS)
        self._done = self._read()
        self._lines.open()
        if self._lines.is_new:
            self._lines.append({"schema": SCHEMA, "settings": self._settings})

    @property
    def done(self) -> tuple[StepOutcome, ...]:
        """The outcomes that stood in the file when it was opened."""
        return tuple(self._done.values())

    def append(self, outcome: StepOutcome) -> None:
        """Write one outcome, and hand it to the system at once.

        Raises:
            InputError: It cannot be written.
        """
        try:
            record = outcome.model_dump()
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}: an outcome cannot be written: {error}") from None
        self._lines.append(record)

    def _read(self) -> dict[tuple[str, int], StepOutcome]:
        found: dict[tuple[str, int], StepOutcome] = {}
        if self._lines.is_new:
            return found
        records = self._lines.found()
        self._check(next(records, {}))
        for number, record in enumerate(records, start=2):
            try:
                outcome = StepOutcome.model_validate(record)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{self.path}, line {number}: no line of an earlier run ({_first(error)}); name another file"
                ) from None
            found[outcome.id, outcome.step] = outcome
        return found

    def _check(self, record: Mapping[str, Any]) -> None:
        settings = record.get("settings")
        if not isinstance(settings, Mapping) or record.get("schema") != SCHEMA:
            raise InputError(f"{self.path} holds no results of an earlier run: name another file")
        for name in changed(self._settings, settings):
            was, now = settings.get(name), self._settings.get(name)
            raise InputError(
                f"{self.path} was written with another {name} ({was!r}, now {now!r}): its results do not belong to "
                "this run; name another file, or remove it"
            )


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error)
