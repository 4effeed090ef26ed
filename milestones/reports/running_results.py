"""Results kept as they come, so that a run that was stopped, or killed, goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from arq_graph.errors import InputError
from arq_graph.milestones.reports.kept_lines import KeepsLines, KeptLines, changed
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.running import Outcome, UnansweredConversation
from arq_graph.milestones.reports.running_files import Located

VERSION = 1
_HEAD = b'{"arq_graph": "results"'
Place = tuple[int, int]


class KeptResults(KeepsLines):
    """A JSON Lines file to which each result is appended at once; a context manager.

    Its first line says what the results are of; each further one is one result with its place. A last line
    that was cut off, as a killed process leaves it, is dropped, and its conversation is scored again.
    A conversation that the judge gave no answer about is not kept: it is scored again too.

    Args:
        file: The file; it is made when it is not there.
        of: What the results depend on (sources, graphs, judge, …), by a name that a message can show.
        sources: The names of the files that conversations are read from, by their number.
        fresh: Whether to begin again, whatever is there.

    Raises:
        InputError: The file holds results of something else, or no results, or cannot be read or written.
    """

    _lines: KeptLines

    def __init__(
        self,
        file: Path,
        of: Mapping[str, str],
        *,
        sources: Mapping[int, str] | None = None,
        fresh: bool = False,
    ) -> None:
        self.file = file
        self._of = dict(of)
        self._sources = sources or {}
        self._results: dict[Place, Outcome] = {}
        self._lines = KeptLines(file, fresh=fresh, head=_HEAD)
        if not self._lines.is_new:
            self._read(self._lines.found())
        self._lines.open()
        if self._lines.is_new:
            self._lines.append({"arq_graph": "results", "version": VERSION, "of": self._of})

    def __len__(self) -> int:
        return len(self._results)

    def get(self, one: Located) -> Outcome | None:
        """The result of a conversation that was scored before; None where it was not."""
        return self._results.get(one.place)

    def keep(self, one: Located, outcome: Outcome) -> None:
        """Keep a result; it is on its way to the disk when this returns.

        Raises:
            InputError: It cannot be written.
        """
        if isinstance(outcome, UnansweredConversation):
            return
        kind = "scored" if isinstance(outcome, ConversationRecord) else "broken"
        number, record = one.place
        self._results[one.place] = outcome
        held = outcome.model_dump(mode="json", exclude_defaults=True)
        self._lines.append({"file": number, "record": record, kind: held})

    def remove(self) -> None:
        """Take the file away: all that it holds is elsewhere now."""
        self._lines.close()
        with suppress(FileNotFoundError):
            self.file.unlink()

    def _read(self, lines: Iterator[Mapping[str, Any]]) -> None:
        self._compare(next(lines, {}))
        for line in lines:
            # What cannot be read is scored again: no result is lost, and none counts twice.
            with suppress(KeyError, TypeError, ValidationError):
                self._take(line)

    def _take(self, line: Mapping[str, Any]) -> None:
        place = (line["file"], line["record"])
        held = line.get("scored") or line["broken"]
        named = {**held, "source": self._sources.get(line["file"], held.get("source"))}
        kind = ConversationRecord if "scored" in line else BrokenConversation
        self._results[place] = kind.model_validate(named)

    def _compare(self, head: Mapping[str, Any]) -> None:
        of = head.get("of")
        if head.get("arq_graph") != "results" or not isinstance(of, Mapping):
            raise InputError(
                f"{self.file} is there and holds no results of an earlier run; move it away, or begin again "
                "with --fresh, which overwrites it"
            )
        others = changed(of, self._of)
        if head.get("version") != VERSION or others:
            raise InputError(
                f"{self.file} holds the results of an unfinished run, and this is another: "
                f"{', '.join(others) or 'its version'} changed since. Give what was given then to go on with "
                "it, or --fresh to begin again"
            )
