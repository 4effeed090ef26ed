"""One milestone, and the rules that say where it was observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from arq_graph.milestones.constraints import Constraint
from arq_graph.milestones.patterns import Pattern

START = "Start"
END = "End"

MilestoneType = Literal["FC", "NFC", "Aggregator"]
Voice = Literal["user", "agent", "tool"]


@dataclass(frozen=True, slots=True)
class Said:
    """Someone said something: a message, or a tool's result, in which a pattern occurs.

    Args:
        pattern: What is looked for.
        said_by: Who says it; None: anyone.
    """

    pattern: Pattern
    said_by: Voice | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the user's own, `(event, earlier) -> bool`, asked at every event.

    It gets the event and the sequence of all events before it, and must depend on nothing else. Scoring with
    a milestone file runs the functions that it names; reading, checking and drawing it does not.

    Args:
        name: `module:function`; the module beside the milestone file is preferred.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Called:
    """A tool was called, whether or not it succeeded.

    Args:
        tool: The tool's name.
        arguments: What must hold of its arguments, by name.
    """

    tool: str
    arguments: Mapping[str, Constraint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forbidden:
    """What must not happen, at any time, also after the goal.

    Args:
        event: A call, whatever came of it, or something said.
        line: Its line in the file, from 1.
    """

    event: Called | Said
    line: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if isinstance(self.event, Said):
            return f"{self.event.said_by or 'anyone'} says /{self.event.pattern.text}/"
        wanted = ", ".join(f"{name}: {rule.as_written()}" for name, rule in self.event.arguments.items())
        return f"{self.event.tool}({wanted})"


@dataclass(frozen=True, slots=True)
class Milestone:
    """A mission-critical step toward the goal (Pre-Act, 4.3 and Appendix F).

    Args:
        name: Its name, unique in the graph. `Start` and `End` are the two ends.
        type: `FC`, functional: a tool is called; `NFC`, non-functional: a state or a condition;
            `Aggregator`, a join: reached once all its dependencies are, never observed by itself.
        description: What it means.
        dependencies: Names of the milestones that come before; none means Start.
        requires: `any` of the dependencies or `all`; a join requires all.
        weight: How much of the way it is, above 0. Joins and Start are no step and have none.
        tool: For an FC, the tool's name where it differs from the milestone's.
        arguments: For an FC, what must hold of the call's arguments, by name.
        check: For an NFC, where it is observed; None: only a judge can say.
        holds: For an NFC, a state: once observed, it stays observed.
        line: Its line in the file, from 1.
    """

    name: str
    type: MilestoneType
    description: str = ""
    dependencies: tuple[str, ...] = ()
    requires: Literal["any", "all"] = "any"
    weight: float = 1
    tool: str | None = None
    arguments: Mapping[str, Constraint] = field(default_factory=dict)
    check: Said | Function | None = None
    holds: bool = False
    line: int | None = field(default=None, compare=False)

    @property
    def called_tool(self) -> str:
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
