"""One milestone, and the rules that say where it was observed: models of what stands in a milestone file."""

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
from arq_graph.milestones.constraints import Constraint
from arq_graph.milestones.patterns import PatternText

START = "Start"
END = "End"

# "Aggrigator" stands in a published file.
_TYPES = {"fc": "FC", "nfc": "NFC", "aggregator": "Aggregator", "aggrigator": "Aggregator"}
_ONLY_FOR = {"tool": "FC", "arguments": "FC", "check": "NFC", "holds": "NFC"}
_REFERENCE = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")

MilestoneType = Literal["FC", "NFC", "Aggregator"]
Voice = Literal["user", "agent", "tool"]


def _function(text: str) -> str:
    if not _REFERENCE.fullmatch(text):
        raise ValueError(f"must be `module:function` or {{said_by: agent, pattern: …}}, but is {text!r}")
    return text


def _nothing(empty: Any) -> BeforeValidator:
    return BeforeValidator(lambda written: empty if written is None else written)


Weight = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False, strict=True),
    AfterValidator(lambda weight: int(weight) if weight.is_integer() else weight),
]
Type = Annotated[MilestoneType, BeforeValidator(lambda text: _TYPES.get(str(text).strip().lower(), text))]
Names = Annotated[
    tuple[Text, ...],
    _nothing(()),
    BeforeValidator(lambda names: (names,) if isinstance(names, str) else names),
]
Arguments = Annotated[Mapping[str, Constraint], _nothing({})]


class Entry(Part):
    """An entry of a milestone file, which knows its line if it came from one."""

    _line: int | None = PrivateAttr(None)

    @property
    def line(self) -> int | None:
        """Its line in the file, from 1."""
        return self._line

    @model_validator(mode="wrap")
    @classmethod
    def _keep_line(cls, written: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        entry = read(written)
        if isinstance(line := getattr(written, "line", None), int):
            entry._line = line
        return entry

    def __eq__(self, other: object) -> bool:
        """Whether it says the same, wherever it stands."""
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), str(self)))


class PatternCheck(Entry):
    """Someone said something: a message, or a tool's result, in which a pattern occurs.

    Args:
        pattern: What is looked for; in a message, without marks of bold type, and with plain spaces and hyphens.
        said_by: Who says it; None: anyone.
    """

    pattern: PatternText
    said_by: Voice | None = None


class Forbidden(Entry):
    """What must not happen, at any time, also after the goal: a call, whatever came of it, or something said.

    Args:
        tool: The tool that must not be called.
        arguments: Only where this holds of its arguments, by name.
        unless: Each of these lets one call through, of whose arguments it holds.
        pattern: What must not be said; either this or a tool.
        said_by: By whom it must not be said; None: by anyone.
    """

    tool: Text | None = None
    arguments: Arguments = Field({})
    unless: tuple[Arguments, ...] = ()
    pattern: PatternText | None = None
    said_by: Voice | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        is_call, is_said = self.tool is not None, self.pattern is not None
        if is_call == is_said or (is_said and (self.arguments or self.unless)) or (is_call and self.said_by):
            raise ValueError(
                "must have either a `tool` that is not to be called, perhaps with `arguments`, "
                "or a `pattern` not to be said, perhaps with `said_by`"
            )
        return self

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"{self.said_by or 'anyone'} says /{self.pattern.text}/"
        written = self.model_dump(mode="json")
        wanted, *others = (
            f"({', '.join(f'{name}: {rule}' for name, rule in rules.items())})"
            for rules in (written["arguments"], *written["unless"])
        )
        return f"{self.tool}{wanted}" + (f" unless {' or '.join(others)}" if others else "")


Check = Annotated[
    Annotated[PatternCheck, Tag("said")] | Annotated[str, AfterValidator(_function), Tag("function")],
    Discriminator(lambda written: "function" if isinstance(written, str) else "said"),
]
"""Where an NFC is observed: where something is said, or where a function `(event, earlier) -> bool` says so.

The function is named `module:function`; a module beside the milestone file is preferred. It gets the event and the
sequence of all events before it, and must depend on nothing else. Scoring with a milestone file runs the functions
that it names; reading, checking and drawing it does not.
"""


class Milestone(Entry):
    """A mission-critical step toward the goal (Pre-Act, 4.3 and Appendix F).

    Args:
        name: Its name, unique in the graph. `Start` and `End` are the two ends.
        type: `FC`, functional: a tool is called; `NFC`, non-functional: a state or a condition; `Aggregator`,
            a join: reached once its dependencies are, never observed by itself.
        description: What it means.
        dependencies: Names of the milestones that come before; none means Start.
        requires: `any` of the dependencies or `all`; if it is not given, a join requires all, any other any.
        weight: How much of the way it is, above 0. Joins and Start are no step and have none.
        tool: For an FC, the tool's name where it differs from the milestone's.
        arguments: For an FC, what must hold of the call's arguments, by name.
        check: For an NFC, where it is observed; None: only a judge can say.
        holds: For an NFC, a state: once observed, it stays observed.
    """

    name: Text
    type: Type
    description: Annotated[str, _nothing("")] = ""
    tool: Text | None = None
    arguments: Arguments = Field({})
    check: Check | None = None
    holds: bool = False
    requires: Literal["any", "all"] = Field(
        default_factory=lambda known: "all" if known.get("type") == "Aggregator" else "any"
    )
    weight: Weight = 1
    dependencies: Names = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key, type in _ONLY_FOR.items():
            if self.type != type and getattr(self, key):
                raise ValueError(f"`{key}` is a key of an {type}, and {self.name!r} is an {self.type}")
        return self

    @property
    def tool_name(self) -> str:
        """The name of the tool that an FC watches."""
        return self.tool or self.name

    @property
    def is_derived(self) -> bool:
        """Start, End and the joins are never observed: they follow from their dependencies."""
        return self.type == "Aggregator" or self.name in (START, END)

    @property
    def is_decided_by_judge(self) -> bool:
        """Nothing in code can observe it."""
        return self.type == "NFC" and self.check is None and not self.is_derived

    @property
    def step(self) -> float:
        """How much of the way it is: its weight; 0 for Start and the joins, which nobody has to do."""
        return 0 if self.type == "Aggregator" or self.name == START else self.weight


class Reviewed(Entry):
    """Who looked a milestone graph over, and when.

    Args:
        by: Who did.
        date: The day.
    """

    by: Text
    date: datetime.date

    def __str__(self) -> str:
        return f"reviewed by {self.by} on {self.date}"
