"""Results of `score`, kept as they come, so that a run that was stopped, or killed, goes on where it was."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.running import Outcome, UnansweredConversation
from arq_graph.milestones.reports.running_files import Located
from arq_graph.milestones.store import RunStore

Place = tuple[int, int]


class KeptResults:
    """The results of one run, by the place of each conversation; a context manager, which closes the file.

    A conversation that the judge gave no answer about is not kept: it is scored again.

    Args:
        file: The file; it is made when it is not there.
        of: What the results depend on (sources, graphs, judge, …), by a name that a message can show.
        sources: The names of the files that conversations are read from, by their number.
        fresh: Whether to begin again, whatever is there.

    Raises:
        InputError: The file holds results of something else, or no results, or cannot be read or written.
    """

    def __init__(
        self,
        file: Path,
        of: Mapping[str, str],
        *,
        sources: Mapping[int, str] | None = None,
        fresh: bool = False,
    ) -> None:
        self.file = file
        self._sources = sources or {}
        self._results: dict[Place, Outcome] = {}
        self._store = RunStore(file, "score", of, fresh=fresh, instead="give --fresh to begin again")
        for entry in self._store.entries():
            # What cannot be read is scored again: no result is lost, and none counts twice.
            with suppress(KeyError, TypeError, ValidationError):
                self._take(entry)

    def __enter__(self) -> Self:
        self._store.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def __len__(self) -> int:
        return len(self._results)

    def get(self, one: Located) -> Outcome | None:
        """The result of a conversation that was scored before; None where it was not."""
        return self._results.get(one.place)

    def keep(self, one: Located, outcome: Outcome) -> None:
        """Keep a result; the system has it when this returns.

        Raises:
            InputError: It cannot be written.
        """
        if isinstance(outcome, UnansweredConversation):
            return
        kind = "scored" if isinstance(outcome, ConversationRecord) else "broken"
        number, record = one.place
        self._results[one.place] = outcome
        held = outcome.model_dump(mode="json", exclude_defaults=True)
        self._store.append({"file": number, "record": record, kind: held})

    def remove(self) -> None:
        """Take the file away: all that it holds is elsewhere now."""
        self._store.remove()

    def _take(self, line: Mapping[str, Any]) -> None:
        place = (line["file"], line["record"])
        held = line.get("scored") or line["broken"]
        named = {**held, "source": self._sources.get(line["file"], held.get("source"))}
        kind = ConversationRecord if "scored" in line else BrokenConversation
        self._results[place] = kind.model_validate(named)
