"""The expected answer to one message: the active guidelines, or the calls and the words of a whole turn.

An expectation is measured as a milestone graph: each call is a functional milestone, each thing that the reply must
say a non-functional one, other calls are forbidden, and End requires all. So goal completion is success (ARQ paper,
6.2). Code decides it as far as it can, and a judge decides criteria in words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import Field, JsonValue, model_validator

from arq_graph.agent.guideline import Id
from arq_graph.agent.part import Part
from arq_graph.agent.spec_errors import Place
from arq_graph.agent.tools import find_schema_errors
from arq_graph.errors import suggestion
from arq_graph.milestones.findings import find_tool_mismatches
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START, Arguments, Forbidden, Milestone, Names, PatternCheck
from arq_graph.milestones.patterns import PatternText
from arq_graph.milestones.tool_schemas import Schemas
from arq_graph.milestones.users.user_spec import Text, Texts
from arq_graph.milestones.values import as_text


class HistoryStep(Part):
    """A message or a call before the message that is to be answered.

    Args:
        user: A message of the user.
        agent: A message of the agent; either of the two, or a call.
        call: The tool that the agent called, with its `arguments`, and its `result` or `error`.
        arguments: The call's arguments.
        result: The result of the call: a text, or any JSON value.
        error: The error of a call that failed.
    """

    user: Text | None = None
    agent: Text | None = None
    call: Text | None = None
    arguments: Mapping[str, JsonValue] = {}
    result: JsonValue = None
    error: Text | None = None

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        kinds = [kind for kind in (self.user, self.agent, self.call) if kind is not None]
        if len(kinds) != 1:
            raise ValueError("must have exactly one of `user`, `agent` and `call`")
        if self.call is None and self.model_fields_set & {"arguments", "result", "error"}:
            raise ValueError("has `arguments`, a `result` or an `error`, and no `call` that they belong to")
        if self.call is not None and (self.error is None) != ("result" in self.model_fields_set):
            raise ValueError("must have either the call's `result` or its `error`")
        return self

    def find_problems(self, schemas: Schemas | None) -> Iterator[tuple[Place, str]]:
        """Yield what the agent's tools lack or refuse; a failed call may have failed because of its values."""
        if self.call is None:
            return
        yield from find_tool_mismatches(schemas, self.call, self.arguments)
        schema = (schemas or {}).get(self.call, {})
        if self.error or "properties" not in schema:
            return
        for name, problem in find_schema_errors(schema, self.arguments):
            if name in schema["properties"]:
                yield (
                    ("arguments", name),
                    f"the tool {self.call!r} cannot take the argument {name!r}: {problem}",
                )


def make_history_messages(history: Iterable[HistoryStep]) -> Iterator[BaseMessage]:
    """Yield a history as chat messages, whose ids are the same in every run."""
    for number, step in enumerate(history, start=1):
        step_id = f"before-{number}"
        if step.user is not None:
            yield HumanMessage(step.user, id=step_id)
        elif step.call is None:
            yield AIMessage(step.agent or "", id=step_id)
        else:
            call = {"name": step.call, "args": dict(step.arguments), "id": step_id, "type": "tool_call"}
            yield AIMessage("", tool_calls=[call], id=step_id)
            yield _make_result_message(step, step_id)


def _make_result_message(step: HistoryStep, call_id: str) -> ToolMessage:
    if step.error:
        text = step.error
    elif isinstance(step.result, str):
        text = step.result
    else:
        text = as_text(step.result)
    return ToolMessage(
        text,
        tool_call_id=call_id,
        name=step.call,
        status="error" if step.error else "success",
        id=f"{call_id}-result",
    )


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
        active: The ids of exactly those guidelines that are active; then only the matcher runs. None: the whole turn
            runs.
        calls: The calls of the turn, each made once. Other calls must not be made, except of tools in `may_call`.
        may_call: Tools that may be called with any arguments.
        says: The things that the reply must say.
        never: Patterns that the agent must not say in this turn.
        reply: One or several examples of a right reply.
        wrong: Examples of replies that make the mistake at stake.

    Raises:
        SpecError: Guidelines are expected beside a turn, or nothing is expected at all.
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
        others = self.model_fields_set - {"active"}
        if self.active is not None and others:
            raise ValueError(f"has `active`, for the matcher alone, and `{min(others)}`, for a whole turn")
        if self.active is None and not others - {"reply", "wrong"}:
            raise ValueError("expects nothing; give `active`, or `calls`, `says` or `never`")
        return self

    def find_problems(
        self, schemas: Schemas | None, guidelines: Collection[str]
    ) -> Iterator[tuple[Place, str]]:
        """Yield what is expected of guidelines and tools that the agent doesn't have, and where that is."""
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
        steps = list(self._make_milestones())
        step_names = tuple(step.name for step in steps)
        start = Milestone(name=START, type="NFC")
        end = Milestone(name=END, type="NFC", dependencies=step_names, requires="all")
        forbidden = []
        for name in dict.fromkeys([*tools, *(call.tool for call in self.calls)]):
            if name not in self.may_call:
                expected = [call.arguments for call in self.calls if call.tool == name]
                forbidden.append(Forbidden(tool=name, unless=expected))
        for pattern in self.never:
            forbidden.append(Forbidden(pattern=pattern, said_by="agent"))
        return MilestoneGraph([start, *steps, end], forbidden=forbidden, vetoes=False)

    def _make_milestones(self) -> Iterator[Milestone]:
        if self.active is not None:
            expected = format_active_guidelines(self.active)
            yield _make_pattern_milestone(f"Exactly {expected}", rf"\A{re.escape(expected)}\Z")
            return
        yield _make_pattern_milestone("Replied", r"\S")
        for number, call in enumerate(self.calls, start=1):
            name = f"Call {number}: {call.tool}"
            yield Milestone(name=name, type="FC", tool=call.tool, arguments=call.arguments)
        for number, says in enumerate(self.says, start=1):
            if says.pattern is not None:
                yield _make_pattern_milestone(f"Says {number}: /{says.pattern.text}/", says.pattern)
            else:
                description = f"Of the agent's reply this is true: {says.criterion}"
                yield Milestone(name=f"Says {number}: {says.criterion}", type="NFC", description=description)


def format_active_guidelines(ids: Iterable[str]) -> str:
    """Return the reply of an app that only runs the matcher: "active: A, B", sorted, or "active: none"."""
    return f"active: {', '.join(sorted(ids)) or 'none'}"


def _make_pattern_milestone(name: str, pattern: Any) -> Milestone:
    return Milestone(name=name, type="NFC", check=PatternCheck(pattern=pattern, said_by="agent"))
