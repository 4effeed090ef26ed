"""Personas: how a user talks, from plain questions to ethical dilemmas, security challenges and critical decisions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import RootModel

from arq_graph.agent.parts import Part
from arq_graph.agent.spelling import suggestion
from arq_graph.agent.yaml_file import read_model
from arq_graph.errors import SpecError

Moment = Literal[
    "opening",
    "next",
    "answer",
    "again",
    "unknown",
    "correction",
    "yes",
    "no",
    "fallback",
    "side_question",
    "give_up",
]
_FILE = Path(__file__).with_name("personas.yaml")


class Persona(Part):
    """How a user talks."""

    description: str
    """Who it is, as a model reads it."""
    lines: Mapping[Moment, tuple[str, ...]] = {}
    """Its words for moments of a conversation, with `{said}` for what there is to say; for any moment that is not
    here, the plain persona's."""
    challenges: tuple[str, ...] = ()
    """What it puts to the agent beyond its wishes, one a turn, once all of them are dealt with."""

    def lines_for(self, moment: Moment) -> tuple[str, ...]:
        """The words that it may choose from at a moment."""
        return self.lines.get(moment) or shipped_personas()["plain"].lines[moment]


@cache
def shipped_personas() -> Mapping[str, Persona]:
    """The personas that come with the library, by name."""
    return read_model(_FILE, RootModel[dict[str, Persona]], what="file of personas").root


def persona_of(text: str) -> Persona:
    """The shipped persona of that name, or one that the text describes.

    Args:
        text: A name, or a description of at least three words.

    Raises:
        SpecError: It is one word or two, and no shipped persona is called that.
    """
    shipped = shipped_personas()
    name = text.strip().lower().replace("_", "-").replace(" ", "-")
    if found := shipped.get(name):
        return found
    if len(text.split()) >= 3:
        return Persona(description=text)
    raise SpecError(
        f"is {text!r}, which is no persona{suggestion(name, shipped)} (the personas are {', '.join(shipped)}; a "
        "description of your own has three words or more)"
    )
