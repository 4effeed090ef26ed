"""Journeys: flows of several steps that guide the agent, unlock its tools one by one, and measure its conversations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from arq_graph.agent.guideline import (
    Condition,
    ConditionField,
    Guideline,
    Id,
    ToolField,
    describe_condition,
)
from arq_graph.agent.part import Part, Text
from arq_graph.agent.spec_errors import Problem
from arq_graph.agent.tools import ToolLike
from arq_graph.errors import suggestion

MAX_ID_LENGTH = 64
_JOIN_WORDS = {"any": "or", "all": "and"}


def _as_list(ids: Any) -> Any:
    return (ids,) if isinstance(ids, str) else ids


class JourneyStep(Part):
    """A step of a journey: a guideline that code opens once a step before it is done.

    Args:
        id: Its id, unique in the journey. In prompts and records it is `journey-step`.
        action: What the agent does in this step: asks, tells or looks something up.
        condition: When the step is taken, as of a `Guideline`; where it doesn't hold, the step is skipped. None:
            always.
        tools: Tools that can be called only while this step is open. It is done once a call of one of them succeeds.
        after: The steps before it, one id or several; none: it is one of the first.
        requires: `any`: it opens once one of these is done; `all`: once each of these is done or skipped.
        done_when: When the step is done, if another condition than the usual one decides; as of a `Guideline`.
        journey: The id of another journey that is the whole step.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    id: Annotated[Id, Field(min_length=1)]
    action: Text | None = None
    condition: ConditionField = None
    tools: tuple[ToolField, ...] = ()
    after: Annotated[
        tuple[Id, ...], BeforeValidator(_as_list, json_schema_input_type=tuple[Id, ...] | Id)
    ] = ()
    requires: Literal["any", "all"] = "any"
    done_when: ConditionField = None
    journey: Id | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            id: str,
            action: str | None = None,
            *,
            condition: Condition = None,
            tools: Sequence[ToolLike] = (),
            after: str | Sequence[str] = (),
            requires: Literal["any", "all"] = "any",
            done_when: Condition = None,
            journey: str | None = None,
        ) -> None: ...

    @model_validator(mode="after")
    def _has_action_or_journey(self) -> Self:
        if self.journey is None and self.action is None:
            raise ValueError(
                "has neither an `action` nor a `journey`; write what the agent does in this step"
            )
        if self.journey is not None and (self.action or self.tools or self.done_when):
            raise ValueError("is another `journey`, whose steps have actions and tools; leave these out here")
        return self

    @property
    def is_done_by_call(self) -> bool:
        """True if a successful call of one of its tools is what does the step."""
        return bool(self.tools) and self.done_when is None

    def describe(self) -> str:
        """Return the step as a line: its id, when it is taken, and what the agent does in it."""
        parts = [self.id]
        if self.after:
            parts.append(f"after {f' {_JOIN_WORDS[self.requires]} '.join(self.after)}")
        if self.condition is not None:
            parts.append(f"when {describe_condition(self.condition)}")
        return f"{', '.join(parts)}: {self.action or f'the journey {self.journey}'}"


class Journey(Part):
    """A flow of steps, such as returning an item; it goes on over many turns.

    Args:
        id: Its id, unique among journeys and guidelines.
        condition: When the customer is in this journey, as of a `Guideline`. None: always, or, if it is a step of
            another journey, while that step is open.
        steps: Its steps. It is done once one of the last ones is.
        give_up: When the journey ends unfinished, in words: "the customer wants to keep the item".
        sensitive_to_tools: Whether a tool's result could make the condition true, as of a `Guideline`.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    id: Annotated[Id, Field(min_length=1)]
    condition: ConditionField = None
    steps: Annotated[tuple[JourneyStep, ...], Field(min_length=1)]
    give_up: Text | None = None
    sensitive_to_tools: bool | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            id: str,
            condition: Condition = None,
            steps: Sequence[JourneyStep] = (),
            give_up: str | None = None,
            sensitive_to_tools: bool | None = None,
        ) -> None: ...

    @cached_property
    def by_id(self) -> Mapping[str, JourneyStep]:
        """The steps by their ids."""
        return {step.id: step for step in self.steps}

    @cached_property
    def following(self) -> Mapping[str, tuple[str, ...]]:
        """For each step's id, the ids of the steps directly after it."""
        following: dict[str, tuple[str, ...]] = {}
        for id in self.by_id:
            following[id] = tuple(step.id for step in self.steps if id in step.after)
        return following

    @cached_property
    def condition_rule(self) -> Guideline:
        """The guideline that is active while the customer is in this journey: an observation."""
        condition = self.condition or f"the journey {self.id} is under way"
        return Guideline(condition, id=self.id, always_judge=True, sensitive_to_tools=self.sensitive_to_tools)

    @cached_property
    def step_rules(self) -> Mapping[str, Guideline]:
        """The guideline of each step that isn't another journey, by the step's id."""
        rules: dict[str, Guideline] = {}
        for step in self.steps:
            if step.journey is None:
                rules[step.id] = self._make_step_rule(step)
        return rules

    def _make_step_rule(self, step: JourneyStep) -> Guideline:
        condition = self.condition_rule.condition_text or ""
        if step.condition is not None:
            condition += f", and {describe_condition(step.condition)}"
        return Guideline(
            condition,
            step.action,
            id=make_rule_id(self.id, step.id),
            tools=step.tools,
            depends_on=(self.id,),
            continuous=False,
        )

    @property
    def rule_ids(self) -> tuple[str, ...]:
        """The ids of the guidelines that the journey makes."""
        step_ids = [make_rule_id(self.id, step.id) for step in self.steps if step.journey is None]
        return (self.id, *step_ids)

    def describe(self) -> str:
        """Return the journey as an entry of a list, for a prompt without a matcher."""
        if self.condition is None:
            title = f"the journey {self.id}"
        else:
            title = f"when {describe_condition(self.condition)}, go through the journey {self.id}"
        lines = [f"- {title}:"]
        lines.extend(f"  - {step.describe()}" for step in self.steps)
        if self.give_up:
            lines.append(f"  It ends when {self.give_up}.")
        return "\n".join(lines)

    def find_later_steps(self, id: str) -> set[str]:
        """Return the ids of all steps after a step, directly or by way of others."""
        later: set[str] = set()
        queue = [id]
        while queue:
            for following_id in self.following[queue.pop()]:
                if following_id not in later:
                    later.add(following_id)
                    queue.append(following_id)
        return later


def make_rule_id(journey: str, step: str) -> str:
    """Return the id that a step has in prompts and records."""
    return f"{journey}-{step}"


def find_journey_problems(journeys: Sequence[Journey]) -> Iterator[Problem]:
    """Yield ids that are too long, steps after unknown ones, unknown journeys, and circles."""
    ids = [journey.id for journey in journeys]
    for position, journey in enumerate(journeys):
        for index, step in enumerate(journey.steps):
            for field, problem in _find_step_problems(journey, step, ids):
                yield ("journeys", position, "steps", index, *field), problem
        if circle := _find_circle({step.id: step.after for step in journey.steps}):
            problem = (
                f"go in a circle: {' → '.join(circle)}, so that none of these can begin; remove one `after`"
            )
            yield ("journeys", position, "steps"), problem
    parts: dict[str, list[str]] = {}
    for journey in journeys:
        parts[journey.id] = [step.journey for step in journey.steps if step.journey]
    if circle := _find_circle(parts):
        problem = f"contain the journey itself: {' → '.join(circle[::-1])}; remove one of these steps"
        yield ("journeys", ids.index(circle[0]), "steps"), problem


def _find_step_problems(journey: Journey, step: JourneyStep, journey_ids: Sequence[str]) -> Iterator[Problem]:
    if len(make_rule_id(journey.id, step.id)) > MAX_ID_LENGTH:
        limit = MAX_ID_LENGTH - 1
        yield ("id",), f"is too long: together with that of its journey it may have {limit} characters"
    for number, target in enumerate(step.after):
        if target not in journey.by_id:
            hint = suggestion(target, journey.by_id)
            yield ("after", number), f"names {target!r}, but no step of this journey has that id{hint}"
    if step.journey is not None and step.journey not in journey_ids:
        hint = suggestion(step.journey, journey_ids)
        yield ("journey",), f"is {step.journey!r}, but no journey has that id{hint}"


def _find_circle(edges: Mapping[str, Sequence[str]]) -> list[str]:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []
