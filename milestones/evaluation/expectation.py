"""The expected answer to one message: the active guidelines, or the calls and the words of a whole turn.

An expectation is measured on a milestone graph. Each expected call is a functional milestone, and each thing that the
reply must say is a non-functional one; other calls are forbidden, and End requires all milestones. So goal completion
is success (ARQ paper, 6.2). Code checks calls and patterns, and a judge checks criteria in words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from arq_graph.agent.guideline import Id
from arq_graph.agent.part import Part
from arq_graph.agent.patterns import PatternText
from arq_graph.agent.spec_errors import Place
from arq_graph.errors import suggestion
from arq_graph.milestones.findings import find_tool_mismatches
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START, Arguments, Forbidden, Milestone, Names, PatternCheck
from arq_graph.milestones.tool_schemas import Schemas
from arq_graph.milestones.users.user_spec import Text, Texts


class ExpectedCall(Part):
    """A call that must be made, and must not fail.

    Args:
        tool: The tool's name.
        arguments: The constraints on its arguments, by name, as in a milestone file.
    """

    tool: Text
    arguments: Arguments = Field({})


class ReplyRequirement(Part):
    """One thing that the reply must say, as a pattern or as a criterion.

    Args:
        pattern: A regular expression that occurs in it: code decides.
        criterion: A statement that is true of it: a judge decides.
    """

    pattern: PatternText | None = None
    criterion: Text | None = None

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if (self.pattern is None) == (self.criterion is None):
            raise ValueError("must have either a `pattern` or a `criterion`")
        return self


class Expectation(Part):
    """The expected answer to one message.

    Args:
        active: The ids of exactly the guidelines that the matcher must activate; then nothing else runs. None: the
            whole turn runs.
        calls: The calls that must be made. Any other call is forbidden, except of tools in `may_call`.
        may_call: Tools that may be called with any arguments.
        says: The things that the agent's reply must say (`says` of a scenario is the user's message).
        never: Patterns that the agent must not say in this turn.
        reply: One or several examples of a right reply.
        wrong: Examples of wrong replies.

    Raises:
        SpecError: Both `active` and something of a whole turn are expected, or nothing is.
    """

    active: tuple[Id, ...] | None = None
    calls: tuple[ExpectedCall, ...] = ()
    may_call: Names = ()
    says: tuple[ReplyRequirement, ...] = ()
    never: tuple[PatternText, ...] = ()
    reply: Texts = ()
    wrong: Texts = ()

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if self.active is None:
            # `calls: []` is an expectation, too: that nothing is called.
            if not self.model_fields_set - {"active", "reply", "wrong"}:
                raise ValueError("expects nothing; give `active`, or `calls`, `says` or `never`")
            return self
        for name in type(self).model_fields:
            if name != "active" and getattr(self, name):
                raise ValueError(f"has `active`, for the matcher alone, and `{name}`, for a whole turn")
        return self

    def find_problems(
        self, schemas: Schemas | None, guidelines: Collection[str]
    ) -> Iterator[tuple[Place, str]]:
        """Yield a problem for each guideline and tool that the agent doesn't have."""
        for index, name in enumerate(self.active or ()):
            if name not in guidelines:
                yield ("active", index), f"the agent has no guideline {name!r}{suggestion(name, guidelines)}"
        for index, name in enumerate(self.may_call):
            for _, problem in find_tool_mismatches(schemas, name, {}):
                yield ("may_call", index), problem
        for index, call in enumerate(self.calls):
            for place, problem in find_tool_mismatches(schemas, call.tool, call.arguments):
                yield ("calls", index, *place), problem

    def make_graph(self, tools: Iterable[str]) -> MilestoneGraph:
        """Return the milestones on which the answer is measured.

        Args:
            tools: The names of the agent's tools; those that are not expected are forbidden.
        """
        milestones = [Milestone(name=START, type="NFC")]
        milestones.extend(self._make_milestones())
        names = tuple(milestone.name for milestone in milestones[1:])
        milestones.append(Milestone(name=END, type="NFC", dependencies=names, requires="all"))
        expected_arguments: dict[str, list[Mapping[str, Any]]] = {name: [] for name in tools}
        for call in self.calls:
            expected_arguments.setdefault(call.tool, []).append(call.arguments)
        forbidden = []
        for name, expected in expected_arguments.items():
            if name not in self.may_call:
                forbidden.append(Forbidden(tool=name, unless=expected))
        for pattern in self.never:
            forbidden.append(Forbidden(pattern=pattern, said_by="agent"))
        return MilestoneGraph(milestones, forbidden=forbidden, vetoes=False)

    def _make_milestones(self) -> Iterator[Milestone]:
        if self.active is not None:
            expected = format_active_guidelines(self.active)
            yield _make_pattern_milestone(f"Exactly {expected}", rf"\A{re.escape(expected)}\Z")
            return
        yield _make_pattern_milestone("Replied", r"\S")
        for number, call in enumerate(self.calls, start=1):
            name = f"Call {number}: {call.tool}"
            yield Milestone(name=name, type="FC", tool=call.tool, arguments=call.arguments)
        reply_requirements = self.says
        for number, requirement in enumerate(reply_requirements, start=1):
            pattern, criterion = requirement.pattern, requirement.criterion
            if pattern is not None:
                yield _make_pattern_milestone(f"Says {number}: /{pattern.text}/", pattern)
            else:
                description = f"Of the agent's reply this is true: {criterion}"
                yield Milestone(name=f"Says {number}: {criterion}", type="NFC", description=description)


def format_active_guidelines(ids: Iterable[str]) -> str:
    """Return the reply of an app that only runs the matcher: "active: A, B", sorted, or "active: none"."""
    return f"active: {', '.join(sorted(ids)) or 'none'}"


def _make_pattern_milestone(name: str, pattern: Any) -> Milestone:
    return Milestone(name=name, type="NFC", check=PatternCheck(pattern=pattern, said_by="agent"))
