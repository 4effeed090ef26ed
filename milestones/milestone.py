"""Milestones and the rules by which they are observed: the models of the entries of a milestone file."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    Tag,
    model_validator,
)

from arq_graph.agent.part import Part, Text
from arq_graph.agent.patterns import PatternText
from arq_graph.milestones.constraints import Constraint
from arq_graph.milestones.transcript import Caller

START = "Start"
END = "End"

# One of the authors' published files spells it "Aggrigator".
_TYPES = {"fc": "FC", "nfc": "NFC", "aggregator": "Aggregator", "aggrigator": "Aggregator"}
_TYPES_OF_KEY: Mapping[str, tuple[str, ...]] = {
    "tool": ("FC",),
    "arguments": ("FC",),
    "by": ("FC",),
    "check": ("NFC",),
    "state": ("NFC",),
    "holds": ("FC", "NFC"),
    "step": ("FC", "NFC"),
}
_REFERENCE = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")

MilestoneType = Literal["FC", "NFC", "Aggregator"]
SaidBy = Literal["user", "agent", "tool"]


def _require_reference(text: str) -> str:
    if not _REFERENCE.fullmatch(text):
        raise ValueError(f"must be `module:function` or {{said_by: agent, pattern: …}}, but is {text!r}")
    return text


def _require_function(text: str) -> str:
    if not _REFERENCE.fullmatch(text):
        raise ValueError(f"must be `module:function`, but is {text!r}")
    return text


def _default_for_null(default: Any) -> BeforeValidator:
    return BeforeValidator(lambda value: default if value is None else value)


def _parse_type(text: Any) -> Any:
    return _TYPES.get(str(text).strip().lower(), text)


def _as_list(names: Any) -> Any:
    return (names,) if isinstance(names, str) else names


def _simplify(weight: float) -> float:
    return int(weight) if weight.is_integer() else weight


Weight = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True), AfterValidator(_simplify)]
Type = Annotated[MilestoneType, BeforeValidator(_parse_type)]
Names = Annotated[tuple[Text, ...], _default_for_null(()), BeforeValidator(_as_list)]
Arguments = Annotated[Mapping[str, Constraint], _default_for_null({})]


class Entry(Part):
    """An entry of a milestone file, which knows its line if it came from one."""

    _line: int | None = PrivateAttr(None)

    @property
    def line(self) -> int | None:
        """Its line in the file, from 1."""
        return self._line

    @model_validator(mode="wrap")
    @classmethod
    def _set_line(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        entry = validate(data)
        if isinstance(line := getattr(data, "line", None), int):
            entry._line = line
        return entry

    def __eq__(self, other: object) -> bool:
        """Return whether the other entry has the same values, in whichever line."""
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), str(self)))


class PatternCheck(Entry):
    """A check that holds at each message or tool result in which a pattern occurs.

    Args:
        pattern: Searched in the text; in a message, without marks of bold type, and with plain spaces and hyphens.
        said_by: Who must say it; None: anyone.
        tool: Only in results of this tool.
    """

    pattern: PatternText
    said_by: SaidBy | None = None
    tool: Text | None = None

    @model_validator(mode="after")
    def _require_tool_to_say_it(self) -> Self:
        if self.tool is not None and self.said_by != "tool":
            raise ValueError("has a `tool`, whose results are searched: write `said_by: tool` beside it")
        return self


class Forbidden(Entry):
    """A call or words that must not happen: at any time, also after the goal, or before a milestone is reached.

    Args:
        tool: The tool that must not be called.
        arguments: Forbid only calls whose arguments meet these constraints, by name.
        unless: Each of these lets one call through whose arguments meet it.
        pattern: A pattern that must not occur in what is said; either this or a tool.
        said_by: By whom it must not be said; None: by anyone.
        failed: `count`: the call must not even be tried; `ignore`: a call whose result is an error is let through.
        before: Forbid it only until this milestone is reached.
    """

    tool: Text | None = None
    arguments: Arguments = Field({})
    unless: tuple[Arguments, ...] = ()
    pattern: PatternText | None = None
    said_by: SaidBy | None = None
    failed: Literal["count", "ignore"] = "count"
    before: Text | None = None

    @model_validator(mode="after")
    def _require_tool_or_pattern(self) -> Self:
        if (self.tool is None) == (self.pattern is None):
            raise ValueError(
                "must have either a `tool` that is not to be called, or a `pattern` not to be said"
            )
        has_keys = {
            "arguments": bool(self.arguments),
            "unless": bool(self.unless),
            "failed": self.failed == "ignore",
        }
        for key, has_key in has_keys.items():
            if has_key and self.tool is None:
                raise ValueError(f"`{key}` goes with `tool`, not with `pattern`")
        if self.said_by is not None and self.tool is not None:
            raise ValueError("`said_by` goes with `pattern`, not with `tool`")
        return self

    def __str__(self) -> str:
        text = self._describe_event()
        if self.before is not None:
            text += f" before {self.before!r} is reached"
        return text

    def _describe_event(self) -> str:
        if self.pattern is not None:
            return f"{self.said_by or 'anyone'} says /{self.pattern.text}/"
        data = self.model_dump(mode="json")
        text = f"{self.tool}{_format_constraints(data['arguments'])}"
        if self.failed == "ignore":
            text += " without an error"
        if self.unless:
            text += f" unless {' or '.join(map(_format_constraints, data['unless']))}"
        return text


def _format_constraints(constraints: Mapping[str, Any]) -> str:
    return f"({', '.join(f'{name}: {constraint}' for name, constraint in constraints.items())})"


Check = Annotated[
    Annotated[PatternCheck, Tag("said")]
    | Annotated[str, AfterValidator(_require_reference), Tag("function")],
    Discriminator(lambda data: "function" if isinstance(data, str) else "said"),
]
"""A check of an NFC: a pattern that somebody says, or a function `(event, earlier) -> bool`.

The function is named `module:function`; a module beside the milestone file is preferred. It gets the event and the
sequence of all events before it, and must depend on nothing else. Scoring with a milestone file runs the functions
that it names; reading, checking and drawing it does not.
"""

StateReference = Annotated[str, AfterValidator(_require_function)]
"""A function `(transcript) -> bool | None` of the end state of a conversation, named and run as that of a check.

It finds the world in `transcript.world`, if the conversation was run by an evaluation whose scenario has one; else it
replays the calls, or reads what the record says. None: it can't tell.
"""


class Milestone(Entry):
    """A mission-critical step toward the goal (Pre-Act, 4.3 and Appendix F).

    Args:
        name: Its name, unique in the graph. `Start` and `End` are the two ends.
        type: `FC`, functional: a tool is called; `NFC`, non-functional: a state or a condition; `Aggregator`,
            a join: reached once its dependencies are, never observed by itself.
        description: Its meaning.
        dependencies: Names of the milestones that come before; none means Start.
        requires: `any` of the dependencies or `all`; if it is not given, a join requires all, any other any.
        weight: How much of the way it is, above 0. Joins and Start are not steps and have none.
        tool: For an FC, the tool's name where it differs from the milestone's.
        arguments: For an FC, constraints on the call's arguments, by name.
        by: For an FC, who calls the tool: the agent, or a user who has tools.
        check: For an NFC, how code observes it; None: only a judge can decide it.
        state: For an NFC, a function of the end state, in place of a check.
        holds: A state, or a call with a lasting effect: once observed, it stays observed.
        step: The step of a journey that it stands for, as `journey-step`. In a conversation of an agent that records
            its steps, an NFC is observed where the step was done, and an FC only if it was. An NFC that `holds` may
            then be reached by the event that satisfied its dependencies: one message may answer several questions.
        optional: It may be skipped: what depends on it may follow once its own dependencies are reached. Where it is
            reached it counts as progress.
    """

    name: Text
    type: Type
    description: Annotated[str, _default_for_null("")] = ""
    tool: Text | None = None
    arguments: Arguments = Field({})
    by: Caller = "agent"
    check: Check | None = None
    state: StateReference | None = None
    holds: bool = False
    step: Text | None = None
    optional: bool = False
    requires: Literal["any", "all"] = Field(
        default_factory=lambda fields: "all" if fields.get("type") == "Aggregator" else "any"
    )
    weight: Weight = 1
    dependencies: Names = ()

    @model_validator(mode="after")
    def _refuse_keys_of_other_types(self) -> Self:
        for key, key_types in _TYPES_OF_KEY.items():
            default = type(self).model_fields[key].default
            if self.type not in key_types and getattr(self, key) != default:
                key_type = " or an ".join(key_types)
                raise ValueError(f"`{key}` is a key of an {key_type}, and {self.name!r} is an {self.type}")
        for key in ("check", "holds", "step"):
            if getattr(self, key) and self.state is not None:
                raise ValueError(
                    f"has `state`, which is asked once, after the conversation: leave out `{key}`"
                )
        if self.optional and self.is_derived:
            raise ValueError(f"{self.name} can't be optional: only FC and NFC milestones can")
        return self

    @property
    def tool_name(self) -> str:
        """The name of the tool whose calls an FC observes."""
        return self.tool or self.name

    @property
    def is_derived(self) -> bool:
        """True for Start, End and joins: they are never observed, but reached through their dependencies."""
        return self.type == "Aggregator" or self.name in (START, END)

    @property
    def is_decided_by_judge(self) -> bool:
        """True for an NFC that code cannot observe."""
        is_decided_by_code = self.check is not None or self.state is not None
        return self.type == "NFC" and not is_decided_by_code and not self.is_derived

    @property
    def may_share_event(self) -> bool:
        """True for an NFC that the event which satisfied its dependencies may reach, too."""
        return self.type == "NFC" and self.step is not None and self.holds

    @property
    def names_function(self) -> bool:
        """True if a function decides it, which measuring imports."""
        return self.state is not None or isinstance(self.check, str)

    @property
    def length(self) -> float:
        """The length that it adds to a road: its weight; 0 for Start and the joins, which nobody has to do."""
        if self.type == "Aggregator" or self.name == START:
            return 0
        return self.weight


class Reviewed(Entry):
    """The reviewer of a milestone graph, and the day of the review.

    Args:
        by: The reviewer's name.
        date: The day.
    """

    by: Text
    date: datetime.date

    def __str__(self) -> str:
        return f"reviewed by {self.by} on {self.date}"
