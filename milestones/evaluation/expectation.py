"""What one answer must be: the guidelines that are active, or the calls and the words of a whole turn.

An expectation is measured as a milestone graph: each call is a functional milestone, each thing that the reply must
say a non-functional one, whatever else must not happen is forbidden, and End requires all. So goal completion is
success (ARQ paper, 6.2), decided by code where code can, and by a judge where only the words of a criterion tell.
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


class Before(Part):
    """Something that was said or done before the message that is to be answered.

    Args:
        user: What the user said.
        agent: What the agent said; either of the two, or a call.
        call: The tool that the agent called, with its `arguments`, and its `result` or `error`.
        arguments: The call's arguments.
        result: What the tool gave back: a text, or anything that JSON can say.
        error: What a call that failed gave back instead.
    """

    user: Text | None = None
    agent: Text | None = None
    call: Text | None = None
    arguments: Mapping[str, JsonValue] = {}
    result: JsonValue = None
    error: Text | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if sum(each is not None for each in (self.user, self.agent, self.call)) != 1:
            raise ValueError("must have one of `user`, `agent` and `call`")
        if self.call is None and self.model_fields_set & {"arguments", "result", "error"}:
            raise ValueError("has `arguments`, a `result` or an `error`, and no `call` that they belong to")
        if self.call is not None and (self.error is None) != ("result" in self.model_fields_set):
            raise ValueError("must have either the call's `result` or its `error`")
        return self

    def unlike(self, schemas: Schemas | None) -> Iterator[tuple[Place, str]]:
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


def messages_before(history: Iterable[Before]) -> Iterator[BaseMessage]:
    """A history as chat messages; their ids are the same at every start."""
    for number, one in enumerate(history, start=1):
        id = f"before-{number}"
        if one.user is not None:
            yield HumanMessage(one.user, id=id)
        elif one.call is None:
            yield AIMessage(one.agent or "", id=id)
        else:
            call = {"name": one.call, "args": dict(one.arguments), "id": id, "type": "tool_call"}
            yield AIMessage("", tool_calls=[call], id=id)
            text = one.error or (one.result if isinstance(one.result, str) else as_text(one.result))
            status: Any = "error" if one.error else "success"
            yield ToolMessage(text, tool_call_id=id, name=one.call, status=status, id=f"{id}-result")


class ExpectedCall(Part):
    """A call that must be made, and must not fail.

    Args:
        tool: The tool's name.
        arguments: What must hold of its arguments, by name, as in a milestone file.
    """

    tool: Text
    arguments: Arguments = Field({})


class Says(Part):
    """What the reply must say.

    Args:
        pattern: A regular expression that occurs in it: code decides.
        criterion: What must be true of it, in words: a judge decides. Either this or a pattern.
    """

    pattern: PatternText | None = None
    criterion: Text | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if (self.pattern is None) == (self.criterion is None):
            raise ValueError("must have either a `pattern` or a `criterion`")
        return self


class Expectation(Part):
    """What the answer to one message must be.

    Args:
        active: Exactly these guidelines are active, by their ids; then nothing but the matcher is run. None: the
            whole turn is.
        calls: The calls of the turn, each made once. Others must not be made, but those of tools in `may_call`.
        may_call: Tools that may be called besides, with any arguments.
        says: What the reply must say.
        never: Patterns that the agent must not say in this turn.
        reply: A reply that fits, or several, as examples.
        wrong: Replies that make the mistake at stake, as examples.

    Raises:
        SpecError: Guidelines are expected beside a turn, or nothing is expected at all.
    """

    active: tuple[Id, ...] | None = None
    calls: tuple[ExpectedCall, ...] = ()
    may_call: Names = ()
    says: tuple[Says, ...] = ()
    never: tuple[PatternText, ...] = ()
    reply: Texts = ()
    wrong: Texts = ()

    @model_validator(mode="after")
    def _expects_one_thing(self) -> Self:
        others = self.model_fields_set - {"active"}
        if self.active is not None and others:
            raise ValueError(f"has `active`, for the matcher alone, and `{min(others)}`, for a whole turn")
        if self.active is None and not others - {"reply", "wrong"}:
            raise ValueError("expects nothing; give `active`, or `calls`, `says` or `never`")
        return self

    def unlike(self, schemas: Schemas | None, guidelines: Collection[str]) -> Iterator[tuple[Place, str]]:
        """What is expected and the agent does not have: where it stands, and what is wrong."""
        for index, name in enumerate(self.active or ()):
            if name not in guidelines:
                yield ("active", index), f"the agent has no guideline {name!r}{suggestion(name, guidelines)}"
        for index, name in enumerate(self.may_call):
            for _, said in find_tool_mismatches(schemas, name, {}):
                yield ("may_call", index), said
        for index, call in enumerate(self.calls):
            for place, said in find_tool_mismatches(schemas, call.tool, call.arguments):
                yield ("calls", index, *place), said

    def graph(self, tools: Iterable[str]) -> MilestoneGraph:
        """The milestones that the answer is measured on.

        Args:
            tools: The agent's tools, by name; those that are not expected are forbidden.
        """
        steps = [*self._milestones()]
        end = Milestone(name=END, type="NFC", dependencies=tuple(one.name for one in steps), requires="all")
        watched = dict.fromkeys((*tools, *(call.tool for call in self.calls)))
        return MilestoneGraph(
            [Milestone(name=START, type="NFC"), *steps, end],
            forbidden=[
                *(
                    Forbidden(tool=name, unless=[call.arguments for call in self.calls if call.tool == name])
                    for name in watched
                    if name not in self.may_call
                ),
                *(Forbidden(pattern=pattern, said_by="agent") for pattern in self.never),
            ],
            vetoes=False,
        )

    def _milestones(self) -> Iterator[Milestone]:
        if self.active is not None:
            exactly = rf"\A{re.escape(format_active_guidelines(self.active))}\Z"
            yield _said(f"Exactly {format_active_guidelines(self.active)}", exactly)
            return
        yield _said("Replied", r"\S")
        for number, call in enumerate(self.calls, start=1):
            yield Milestone(
                name=f"Call {number}: {call.tool}", type="FC", tool=call.tool, arguments=call.arguments
            )
        for number, each in enumerate(self.says, start=1):
            if each.pattern is not None:
                yield _said(f"Says {number}: /{each.pattern.text}/", each.pattern)
            else:
                criterion = f"Of the agent's reply this is true: {each.criterion}"
                yield Milestone(name=f"Says {number}: {each.criterion}", type="NFC", description=criterion)


def format_active_guidelines(ids: Iterable[str]) -> str:
    """How an app that runs the matcher alone says which guidelines are active."""
    return f"active: {', '.join(sorted(ids)) or 'none'}"


def _said(name: str, pattern: Any) -> Milestone:
    return Milestone(name=name, type="NFC", check=PatternCheck(pattern=pattern, said_by="agent"))
