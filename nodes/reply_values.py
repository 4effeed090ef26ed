"""Filling canned replies: code looks each value up where the model says it is, and compares it as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import regex  # type: ignore[import-untyped]
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.braces import fill_fields
from arq_graph.agent.reply import ReplyField, ValueType, split_path
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import FilledField, UsedReply
from arq_graph.errors import suggestion
from arq_graph.nodes.confirmation import find_hiding
from arq_graph.nodes.message_schema import ChosenReply, FieldValue
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.history import Line
from arq_graph.reasoning.sections import as_json
from arq_graph.reasoning.values import strip_marks

_TYPES: Mapping[ValueType, TypeAdapter[Any]] = {
    "integer": TypeAdapter(int),
    "number": TypeAdapter(Decimal),
    "date": TypeAdapter(date),
    "time": TypeAdapter(time),
    "datetime": TypeAdapter(datetime),
}
_CONTROL = regex.compile(r"[\p{Cc}\p{Zl}\p{Zp}]")
_LINE_BREAK = regex.compile(r"\r?\n|\t")
_LINK = regex.compile(r"\]\s*[(\[:]")
_MAX_SHOWN_VALUES = 5


class _ValueRefused(ValueError):
    """A value must not be filled in; the message says why."""


@dataclass(frozen=True)
class FilledReply:
    """A reply that the model chose. If there are `problems`, it has no `text`."""

    used: UsedReply
    text: str
    problems: Sequence[str]


class ReplyFiller:
    """Fills the replies of an agent with values from what a prompt showed.

    Args:
        agent: The agent.
        conversation: The conversation as the prompt showed it.
        variables: The variables as the prompt showed them, each with its `id`, `name` and `value`.
    """

    def __init__(
        self, agent: Agent, conversation: Conversation, variables: Sequence[Mapping[str, Any]]
    ) -> None:
        self._agent = agent
        self._conversation = conversation
        self._variables = {variable["id"]: variable for variable in variables}

    def fill(self, choice: ChosenReply, language: str) -> FilledReply:
        """Fill a reply that the model chose with the values that it gave, each checked against its source."""
        given = {value.field: value for value in choice.values}
        fields = {name: FilledField(value=item.value, source=item.source) for name, item in given.items()}
        reply = next((reply for reply in self._agent.replies if reply.id == choice.reply), None)
        if reply is None:
            hint = suggestion(choice.reply, [reply.id for reply in self._agent.replies])
            problem = f"there is no reply {as_json(choice.reply)}{hint}"
            return FilledReply(UsedReply(reply=choice.reply, values=fields), "", [problem])
        problems: list[str] = []
        texts: dict[str, str] = {}
        for name, field in reply.fields.items():
            try:
                texts[name] = self._find_value(field, given.get(name))
            except _ValueRefused as refused:
                problems.append(f"{as_json(name)} of {as_json(reply.id)}: {refused}")
        if problems:
            return FilledReply(UsedReply(reply=reply.id, values=fields), "", problems)
        used = {name: FilledField(value=text, source=given[name].source) for name, text in texts.items()}
        text = fill_fields(reply.get_text(language), texts)
        return FilledReply(UsedReply(reply=reply.id, values=used), text, ())

    def _find_value(self, field: ReplyField, given: FieldValue | None) -> str:
        """Return the value as its source has it."""
        if given is None:
            raise _ValueRefused("it has no value; give one with its source, or choose another reply")
        wanted = given.value.strip()
        values = self._list_values(field, given.source.strip(), wanted)
        for value in values:
            if _is_same(wanted, value):
                text = str(value).strip()
                _check_form(text, field)
                return text
        shown = as_json([str(value) for value in values[:_MAX_SHOWN_VALUES]])
        raise _ValueRefused(
            f"{as_json(wanted)} is not a whole value of {as_json(given.source)}, which has {shown}"
        )

    def _list_values(self, field: ReplyField, source: str, wanted: str) -> list[Any]:
        """Return the values that the field may take from a source."""
        line = self._conversation.lines_by_id.get(source)
        if line and line.speaker == "tool" and field.result:
            return self._list_result_values(field, field.result, line)
        if line and line.speaker == "customer" and field.customer:
            return _find_words(wanted, line.text)
        if field.variable and source in self._variables:
            variable = self._variables[source]
            if path := split_path(field.variable, [variable["name"]]):
                return list(_walk(variable["value"], path.keys))
        allowed = field.model_dump(include={"result", "variable", "customer"}, exclude_defaults=True)
        raise _ValueRefused(f"{as_json(source)} is no source of it: the field allows {as_json(allowed)}")

    def _list_result_values(self, field: ReplyField, result: str, line: Line) -> list[Any]:
        path = split_path(result, self._agent.toolbox)
        if path is None or not line.call or line.call["name"] != path.name:
            raise _ValueRefused(f"{line.id} is not a result of the tool in {as_json(result)}")
        if getattr(line.message, "status", None) == "error":
            raise _ValueRefused(f"{line.id} is an error")
        if field.this_turn and line not in self._conversation.current_turn_results:
            raise _ValueRefused(f"{line.id} is not from this turn")
        text = line.text
        if not path.keys:
            return [text]
        try:
            # Not as floats, so that a price of 59.90 keeps its last digit.
            return list(_walk(json.loads(text, parse_float=Decimal), path.keys))
        except (ValueError, RecursionError):
            return []


def _walk(value: Any, keys: Sequence[str]) -> Iterator[str | int | float | Decimal]:
    """Yield the texts and numbers at a path; a list stands for each of its items."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _walk(item, keys)
    elif keys:
        if isinstance(value, Mapping) and keys[0] in value:
            yield from _walk(value[keys[0]], keys[1:])
    elif isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        yield value


def _is_same(wanted: str, value: str | int | float | Decimal) -> bool:
    if isinstance(value, str):
        return wanted == value.strip()
    try:
        return Decimal(wanted) == Decimal(str(value))
    except ArithmeticError:
        return False


def _find_words(wanted: str, text: str) -> list[str]:
    """Return the wanted words if they stand in a text as whole words, without the marks around them; else the text."""
    words = text.split()
    count = len(wanted.split())
    for start in range(len(words) - count + 1):
        found = strip_marks(" ".join(words[start : start + count]))
        if found and found == wanted:
            return [found]
    return [text]


def _check_form(text: str, field: ReplyField) -> None:
    """Check that a value has the type and length of its field, and nothing in it that could pass for a template's."""
    if not text:
        raise _ValueRefused("it is empty")
    if len(text) > field.max_length:
        raise _ValueRefused(f"it has {len(text)} characters, and at most {field.max_length} are allowed")
    if _CONTROL.search(_LINE_BREAK.sub("", text) if field.multiline else text):
        raise _ValueRefused("it has line breaks or control characters")
    if find_hiding(text) or _LINK.search(text):
        raise _ValueRefused("it has markup")
    if field.type in _TYPES:
        is_bare = field.type in ("integer", "number")
        try:
            _TYPES[field.type].validate_json(text if is_bare else json.dumps(text), strict=True)
        except ValidationError:
            raise _ValueRefused(f"{as_json(text)} is not of the type {field.type}") from None
