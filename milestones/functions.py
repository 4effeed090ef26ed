"""Functions of the user's own that a milestone file names as `module:function`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from arq_graph.agent.entries import Misfit
from arq_graph.agent.modules import load
from arq_graph.errors import SpecError
from arq_graph.milestones.transcript import Event

EventCheck = Callable[[Event, Sequence[Event]], bool]
"""Asked at every event, with all events before it; must depend on nothing else."""


def load_check(name: str, *, file: str | None = None, line: int | None = None) -> EventCheck:
    """The function that a check names; a module beside the file is preferred to an installed one.

    Args:
        name: `module:function`.
        file: The milestone file.
        line: The line that names the function, for the message.

    Raises:
        SpecError: There is no such module or function, or importing it fails.
    """
    try:
        found = load(name, Path(file).resolve().parent if file else None)
    except Misfit as misfit:
        raise SpecError(f"`check` {misfit.message}", file=file, line=line) from misfit.__cause__
    if not callable(found):
        raise SpecError(f"`check` names {name!r}, which is no function", file=file, line=line)
    return cast(EventCheck, found)
