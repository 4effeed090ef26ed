"""The outcomes of an evaluation on disk, one line a step, so that an interrupted run can go on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from arq_graph.milestones.store import RunStore
from arq_graph.milestones.turn_level.comparison import StepOutcome


class ResultsFile:
    """The outcomes of a run, each written as soon as it is there; a context manager, which closes the file.

    Where a step stands in it twice, the later line counts.

    Args:
        path: The file; made where it is missing.
        settings: What the outcomes depend on, by a name that a message can show: the dataset, the agent, …

    Raises:
        InputError: The file cannot be used, holds something else, or was written with other settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, str]) -> None:
        self._store = RunStore(path, "turns", settings)
        done: dict[tuple[str, int], StepOutcome] = {}
        for entry in self._store.entries():
            # What cannot be read is asked again: no step counts twice.
            with suppress(ValidationError):
                outcome = StepOutcome.model_validate(entry)
                done[outcome.id, outcome.step] = outcome
        self.done = tuple(done.values())

    def __enter__(self) -> Self:
        self._store.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def append(self, outcome: StepOutcome) -> None:
        """Write one outcome; the system has it when this returns.

        Raises:
            InputError: It cannot be written.
        """
        self._store.append(outcome.model_dump())
