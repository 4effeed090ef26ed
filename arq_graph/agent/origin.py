"""The file that a specification came from, so that a complaint about it can name the line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from arq_graph.agent.entries import Misfit, NotText
from arq_graph.errors import SpecError

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Origin:
    """A file, and where in it each entry stands.

    Args:
        file: The file, as it was named: what errors say.
        path: The same, absolute: where it is found whatever the current folder is by then.
        lines: For each entry, by keys and indices from the outermost inwards, its line, counted from 1.
        bare: The words of entries that YAML does not read as text, because they stand without quotes.
    """

    file: str
    path: Path
    lines: Mapping[Place, int] = field(repr=False)
    bare: Mapping[Place, str] = field(repr=False)

    @property
    def folder(self) -> Path:
        """The folder of the file; the modules of its tools are looked for here first."""
        return self.path.resolve().parent

    def error(self, misfit: Misfit) -> SpecError:
        """Return the error for a misfit: at its own line, or else at that of what it stands in."""
        message = misfit.message
        if isinstance(misfit, NotText) and (word := self.bare.get(misfit.path)):
            message += f'; to have it read as text, put it in quotes: "{word}"'
        place: Place = misfit.path
        while place and place not in self.lines:
            place = place[:-1]
        return SpecError(message, file=self.file, line=self.lines.get(place))
