"""The history of a conversation: the messages and calls before it, as a suite file writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import JsonValue, model_validator

from arq_graph.agent.json_schema import find_schema_errors
from arq_graph.agent.part import Part, has_value_or_error
from arq_graph.agent.spec_errors import Place
from arq_graph.milestones.findings import find_tool_mismatches
from arq_graph.milestones.tool_schemas import Schemas
from arq_graph.milestones.users.user_spec import Text
from arq_graph.milestones.values import as_text


class HistoryEntry(Part):
    """A message or a call before the conversation; exactly one of `user`, `agent` and `call`.

    Args:
        user: A message of the user.
        agent: A message of the agent.
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
        has_outcome = self.result is not None or self.error is not None
        if self.call is None and (self.arguments or has_outcome):
            raise ValueError("has `arguments`, a `result` or an `error`, but no `call` that they belong to")
        if self.call is not None and not has_value_or_error(self, "result"):
            raise ValueError("must have either the call's `result` or its `error`")
        return self

    def find_problems(self, schemas: Schemas | None) -> Iterator[tuple[Place, str]]:
        """Yield problems of the call: an unknown tool or argument, and values that the tool refuses.

        The values of a failed call aren't checked: they may be why it failed.
        """
        if self.call is None:
            return
        yield from find_tool_mismatches(schemas, self.call, self.arguments)
        schema = (schemas or {}).get(self.call, {})
        if self.error or "properties" not in schema:
            return
        for name, problem in find_schema_errors(schema, self.arguments):
            if name in schema["properties"]:
                place = ("arguments", name)
                yield place, f"the tool {self.call!r} cannot take the argument {name!r}: {problem}"


def make_history_messages(history: Iterable[HistoryEntry]) -> Iterator[BaseMessage]:
    """Yield a history as chat messages, whose ids are the same in every run."""
    for number, entry in enumerate(history, start=1):
        message_id = f"before-{number}"
        if entry.user is not None:
            yield HumanMessage(entry.user, id=message_id)
        elif entry.call is None:
            yield AIMessage(entry.agent or "", id=message_id)
        else:
            call = {"name": entry.call, "args": dict(entry.arguments), "id": message_id, "type": "tool_call"}
            yield AIMessage("", tool_calls=[call], id=message_id)
            yield _make_result_message(entry, message_id)


def _make_result_message(entry: HistoryEntry, call_id: str) -> ToolMessage:
    fields: dict[str, Any] = {"tool_call_id": call_id, "name": entry.call, "id": f"{call_id}-result"}
    if entry.error:
        return ToolMessage(entry.error, status="error", **fields)
    if isinstance(entry.result, str):
        return ToolMessage(entry.result, **fields)
    return ToolMessage(as_text(entry.result), **fields)
