"""Asking for a milestone, field by field."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from arq_graph.cli.prompting import ask
from arq_graph.cli.screen import output, words
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START, Milestone, MilestoneType

_TYPES: dict[str, MilestoneType] = {
    "fc": "FC",
    "nfc": "NFC",
    "aggregator": "Aggregator",
    "join": "Aggregator",
}


def ask_milestone(graph: MilestoneGraph, milestone: Milestone) -> Milestone:
    """Ask for each field of a milestone; an empty line keeps what is there.

    Args:
        graph: The graph that it stands in.
        milestone: As it is now.

    Raises:
        EOFError: Nobody answers any more.
    """
    _tell("An empty line keeps what is there; - alone makes it empty.")
    name, type_ = milestone.name, milestone.type
    if milestone.name not in (START, END):
        name = _name(graph, milestone.name)
        type_ = _type(milestone.type)
    edited = replace(
        _of_type(milestone, type_), name=name, description=_text("Description", milestone.description)
    )
    if edited.type == "FC":
        tool = _text("Tool, where it has another name than the milestone", edited.tool or "")
        edited = replace(edited, tool=tool if tool and tool != name else None)
    if milestone.name == START:
        return edited
    own = {milestone.name: name}
    dependencies = ask_names(graph, "Depends on", milestone.dependencies, besides=milestone.name)
    return _requiring(replace(edited, dependencies=tuple(own.get(each, each) for each in dependencies)))


def ask_new(graph: MilestoneGraph) -> Milestone:
    """Ask for a new milestone.

    Args:
        graph: The graph that it comes into.

    Raises:
        EOFError: Nobody answers any more.
    """
    name = _name(graph, "")
    type_ = _type(None)
    description = _text("Description", "")
    new = Milestone(name, type_, description=description)
    if type_ == "FC":
        tool = _text("Tool, where it has another name than the milestone", "")
        new = replace(new, tool=tool if tool and tool != name else None)
    return _requiring(replace(new, dependencies=ask_names(graph, "Depends on", ())))


def ask_names(
    graph: MilestoneGraph, question: str, current: Sequence[str], *, besides: str | None = None
) -> tuple[str, ...]:
    """Ask for names of milestones until each is one.

    Args:
        graph: The graph.
        question: What they are asked for.
        current: What an empty line keeps.
        besides: A name that is not taken: a milestone does not depend on itself.

    Raises:
        EOFError: Nobody answers any more.
    """
    known = [name for name in graph if name != besides]
    while True:
        said = _asked(f"{question} (names, with commas)", _listed(current))
        if said == "":
            return tuple(current)
        named = _read_names(said)
        if named is None:
            _tell("That is no JSON list of names.")
        elif wrong := next((name for name in named if name not in known), None):
            _tell(f"{wrong!r} is no other milestone{_suggestion(wrong, known)}.")
        else:
            return tuple(dict.fromkeys(named))


def _requiring(milestone: Milestone) -> Milestone:
    if len(milestone.dependencies) < 2 or milestone.type == "Aggregator":
        return replace(milestone, requires="any")
    while True:
        said = _asked("Is [any] of them enough, or are [all] needed?", milestone.requires).lower()
        said = said or milestone.requires
        if said in ("any", "all"):
            return replace(milestone, requires="all" if said == "all" else "any")
        _tell("Answer with any or all.")


def _name(graph: MilestoneGraph, current: str) -> str:
    while True:
        name = " ".join(_asked("Name", current).split()) or current
        if not name:
            _tell("A milestone has a name.")
        elif name != current and name in graph:
            _tell(f"There is a milestone {name!r} already.")
        else:
            return name


def _type(current: MilestoneType | None) -> MilestoneType:
    while True:
        said = _asked("Type (FC: a tool is called, NFC: a state, Aggregator: a join)", current or "")
        if not said and current is not None:
            return current
        if type_ := _TYPES.get(said.lower()):
            return type_
        _tell("Answer with FC, NFC or Aggregator.")


def _of_type(milestone: Milestone, type_: MilestoneType) -> Milestone:
    """The milestone as one of another type, without what only the old type can have."""
    if type_ == milestone.type:
        return milestone
    lost = [
        key
        for key, value in (
            ("tool", milestone.tool),
            ("arguments", milestone.arguments),
            ("check", milestone.check),
            ("holds", milestone.holds),
        )
        if value
    ]
    if lost:
        _tell(f"A milestone of type {type_} has no {' and no '.join(lost)}: that is gone.")
    return replace(milestone, type=type_, tool=None, arguments={}, check=None, holds=False)


def _text(question: str, current: str) -> str:
    said = _asked(question, current)
    if said == "-":
        return ""
    # The prompt shows one line: what was left as it stood there keeps its line breaks.
    return current if said in ("", " ".join(current.split())) else said


def _read_names(said: str) -> list[str] | None:
    if said == "-":
        return []
    if not said.startswith("["):
        return [name.strip() for name in said.split(",") if name.strip()]
    try:
        named = json.loads(said)
    except (ValueError, RecursionError):
        return None
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        return None
    return cast(list[str], named)


def _listed(names: Sequence[str]) -> str:
    """Names as they can be typed: with commas, or as JSON where a comma is in one of them."""
    if any("," in name or name.startswith("[") or name == "-" for name in names):
        return json.dumps(list(names), ensure_ascii=False)
    return ", ".join(names)


def _suggestion(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _asked(question: str, current: str) -> str:
    shown = " ".join(current.split())
    return ask(f"{question}: ", prefilled=shown).strip()


def _tell(text: str) -> None:
    output().print(words(text, "yellow"))
