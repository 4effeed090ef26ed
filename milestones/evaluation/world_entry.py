"""The world of a scenario, as a suite file names it."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any, cast

from pydantic import ConfigDict

from arq_graph.agent.modules import load_object
from arq_graph.agent.part import Part
from arq_graph.errors import SpecError
from arq_graph.milestones.evaluation.scenario import WorldFactory
from arq_graph.milestones.users.user_spec import Text


class WorldEntry(Part):
    """A class or function "module:name" that makes a world; the other keys are its arguments."""

    model_config = ConfigDict(extra="allow")

    of: Text

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the class or function."""
        return self.model_extra or {}

    def load(self, folder: Path) -> WorldFactory:
        """Return the class or function that makes the world.

        Raises:
            SpecError: The module has no such function, or the function does not take these arguments.
        """
        factory = cast(WorldFactory, load_object(self.of, folder))
        try:
            signature = inspect.signature(factory)
            arguments = self.arguments
            if "seed" in signature.parameters:
                arguments = {"seed": 0} | arguments
            signature.bind(**arguments)
        except TypeError as error:
            raise SpecError(
                f"names {self.of!r}, but a world is a class or function that takes the given arguments: {error}"
            ) from None
        return partial(factory, **self.arguments) if self.arguments else factory
