"""The milestones of a journey: what a conversation reaches when its steps are done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.journey import Journey, JourneyStep, make_rule_id
from arq_graph.agent.spec import Agent
from arq_graph.milestones.milestone import END, START, Milestone

NOTHING_LEFT = "nothing left to do"
"""The milestone of a journey that may end without any of its last steps, since all of them have conditions."""


def make_journey_milestones(agent: Agent, id: str) -> list[Milestone]:
    """Return the milestones of a journey; see `MilestoneGraph.from_journey`."""
    builder = _Builder(agent)
    builder.milestones.append(Milestone(name=START, type="NFC"))
    last_names = builder.add_journey(agent.get_journey(id), _Place())
    builder.milestones.append(Milestone(name=END, type="NFC", dependencies=last_names))
    return builder.milestones


@dataclass(frozen=True)
class _Place:
    """Where a step, or a whole journey, stands among the others; the fields are those of a `Milestone`."""

    name: str = ""
    requires: Literal["all"] | None = None
    dependencies: tuple[str, ...] = ()
    optional: bool = False


class _Builder:
    """Makes the milestones of a journey and of those in it, one after the other.

    Attributes:
        milestones: Those that were made.
    """

    def __init__(self, agent: Agent) -> None:
        self.milestones: list[Milestone] = []
        self._agent = agent

    def add_journey(self, journey: Journey, whole: _Place, prefix: str = "") -> tuple[str, ...]:
        """Add the milestones of a journey, and return the names of those that end it.

        `whole` is the place of the journey among other steps.
        """
        places = {step.id: _place_step(journey, step, whole, prefix) for step in journey.steps}
        names = {step.id: _name_end(step, places[step.id]) for step in journey.steps}
        for step in journey.steps:
            place = places[step.id]
            if step.after:
                dependencies = tuple(self._name_before(journey, id, step, names) for id in step.after)
                requires = step.requires if step.requires == "all" else None
                place = replace(place, requires=requires, dependencies=dependencies)
            places[step.id] = place
            self._add_step(journey, step, place, is_part=bool(prefix))
        last_steps = [step for step in journey.steps if not journey.following[step.id]]
        last_names = tuple(names[step.id] for step in last_steps)
        if any(step.condition is None for step in last_steps):
            return last_names
        before_end: dict[str, None] = {}  # in order, each once
        for step in last_steps:
            before_end.update(dict.fromkeys(places[step.id].dependencies))
        place = _Place(prefix + NOTHING_LEFT, dependencies=tuple(before_end), optional=whole.optional)
        description = f"none of these holds: {'; '.join(map(_describe_condition, last_steps))}"
        self._add(place, type="NFC", description=description, step=journey.id, holds=True)
        return (*last_names, place.name)

    def _name_before(self, journey: Journey, id: str, step: JourneyStep, names: Mapping[str, str]) -> str:
        """Return the milestone on which a step depends that comes after another: its own, or a join with others."""
        alternatives = [names[id]]
        for other_id in _find_done_without(journey, id, step):
            alternatives.append(names[other_id])
        name = " or ".join(alternatives)
        if len(alternatives) > 1 and all(milestone.name != name for milestone in self.milestones):
            self._add(_Place(name, dependencies=tuple(alternatives)), type="Aggregator", requires="any")
        return name

    def _add_step(self, journey: Journey, step: JourneyStep, place: _Place, *, is_part: bool) -> None:
        record: dict[str, Any] = {
            "step": make_rule_id(journey.id, step.id),
            "description": _describe_step(step),
        }
        if step.journey is not None:
            inner = self._agent.get_journey(step.journey)
            self._add_join(step, place, self.add_journey(inner, place, f"{place.name}/"))
        elif not _is_done_by_call(step):
            self._add(place, **record, type="NFC", holds=True)
        else:
            # A journey that is a step is gone through once, perhaps before the other one came to it.
            record |= {"type": "FC", "holds": is_part}
            names = [place.name]
            if len(step.tools) > 1:
                names = [f"{place.name}/{tool.name}" for tool in step.tools]
            for name, tool in zip(names, step.tools, strict=True):
                own_name = tool.name if tool.name != name else None
                self._add(replace(place, name=name), **record, tool=own_name)
            if len(names) > 1:
                self._add_join(step, place, names)

    def _add_join(self, step: JourneyStep, place: _Place, names: Iterable[str]) -> None:
        """Add the milestone that is reached once one of others is, or once these may be skipped."""
        self._add(
            _Place(_name_end(step, place), dependencies=tuple(names)), type="Aggregator", requires="any"
        )

    def _add(self, place: _Place, **fields: Any) -> None:
        values = vars(place) | fields
        # Without what is the default, so that a file of these milestones is short.
        given = {name: value for name, value in values.items() if value not in (None, False, ())}
        self.milestones.append(Milestone(**given))


def _is_done_by_call(step: JourneyStep) -> bool:
    return bool(step.tools) and step.done_when is None


def _describe_step(step: JourneyStep) -> str:
    description = step.action or ""
    if step.condition is not None:
        description = f"when {_describe_condition(step)}: {description}"
    if step.done_when is not None:
        return f"{description} (met once {Guideline(step.done_when, id=step.id).condition_text})"
    if not step.tools:
        description += " (met once it was told, or what it asks for is known)"
    return description


def _place_step(journey: Journey, step: JourneyStep, whole: _Place, prefix: str) -> _Place:
    """Return the place of a step that is one of the first; the others have dependencies of their own."""
    id = make_rule_id(journey.id, step.id) if step.id in (START, END) else step.id
    is_last = not journey.following[step.id]
    may_be_skipped = not is_last and step.condition is not None
    return replace(whole, name=prefix + id, optional=whole.optional or may_be_skipped)


def _name_end(step: JourneyStep, place: _Place) -> str:
    """Return the milestone on which what comes after a step depends: its own, or a join of its parts."""
    is_join = step.journey is not None or (_is_done_by_call(step) and len(step.tools) > 1)
    # A join of optional milestones is reached without them, too.
    return f"{place.name}, if needed" if is_join and place.optional else place.name


def _find_done_without(journey: Journey, id: str, step: JourneyStep) -> list[str]:
    """Return the steps that may be done without one before them, after which another step may follow that one."""
    found: list[str] = []
    for following_id in journey.following[id]:
        following = journey.by_id[following_id]
        has_alternative = following.requires == "any" and len(following.after) > 1
        comes_before = step.id == following_id or following_id in journey.find_later_steps(step.id)
        if has_alternative and not comes_before:
            found.append(following_id)
    return found


def _describe_condition(step: JourneyStep) -> str:
    return Guideline(step.condition, id=step.id).condition_text or ""
