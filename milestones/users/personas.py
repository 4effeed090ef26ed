"""Personas: how a user talks, from plain questions to ethical dilemmas, security challenges and critical decisions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter
from rapidfuzz import fuzz, process

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


class Persona(BaseModel):
    """How a user talks.

    Args:
        description: Who it is, as a model reads it.
        lines: Its words for moments of a conversation, with `{said}` for what there is to say; for any moment that
            is not here, the plain persona's.
        challenges: What it puts to the agent beyond its wishes, one a turn, once all of them are dealt with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str
    lines: Mapping[Moment, tuple[str, ...]] = {}
    challenges: tuple[str, ...] = ()

    def lines_for(self, moment: Moment) -> tuple[str, ...]:
        """The words that it may choose from at a moment."""
        return self.lines.get(moment) or shipped_personas()["plain"].lines[moment]


@cache
def shipped_personas() -> Mapping[str, Persona]:
    """The personas that come with the library, by name."""
    written = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, Persona]).validate_python(written)


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
    near = process.extractOne(name, list(shipped), scorer=fuzz.ratio, score_cutoff=60)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise SpecError(
        f"There is no persona {text!r}.{meant} The library ships {', '.join(shipped)}; a description of your own has "
        "three words or more."
    )
