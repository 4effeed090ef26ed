"""Filling canned replies: code looks each value up where the model says it is, and compares it as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias

import regex  # type: ignore[import-untyped]
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.braces import fill_fields
from arq_graph.agent.reply import SOURCES, Reply, ReplyField, ValueType, split_path
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import FilledField, UsedReply
from arq_graph.errors import shorten, suggestion
from arq_graph.nodes.confirmation import find_hiding
from arq_graph.nodes.message_schema import ChosenReply
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.history import Line
from arq_graph.reasoning.sections import RANGE_DASHES, as_json
from arq_graph.reasoning.values import strip_marks

_TYPES: Mapping[ValueType, TypeAdapter[Any]] = {
    "integer": TypeAdapter(int),
    "number": TypeAdapter(Decimal),
    "date": TypeAdapter(date),
    "time": TypeAdapter(time),
    "datetime": TypeAdapter(datetime),
}
_Place: TypeAlias = tuple[str, ...]
_CONTROL = regex.compile(r"[\p{Cc}\p{Zl}\p{Zp}]")
_LINE_BREAK = regex.compile(r"\r?\n|\t")
_LINK = regex.compile(r"\]\s*[(\[:]")
_BETWEEN_ENDS = regex.compile(rf"(?<=\w){RANGE_DASHES}(?=\w)")  # not the sign of a number
_MAX_SHOWN_VALUES = 5
_MAX_COMBINATIONS = 1_000


class _ValueRefused(ValueError):
    """A value must not be filled in; the message says why."""


@dataclass(frozen=True)
class _Value:
    """A text or number in a source.

    `items` says where it is: which result of the tool and, by the path of each list around it, which item.
    """

    raw: str | int | float | Decimal
    items: Mapping[_Place, str | int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return str(self.raw).strip()

    def is_same(self, text: str) -> bool:
        if isinstance(self.raw, str):
            return text == self.text
        try:
            return Decimal(text) == Decimal(self.text)
        except ArithmeticError:
            return False


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
        sections: The sections of the prompt, of which `variables` and `knowledge` are sources.
    """

    def __init__(self, agent: Agent, conversation: Conversation, sections: Mapping[str, Any]) -> None:
        self._agent = agent
        self._conversation = conversation
        self._variables = {variable["id"]: variable for variable in sections["variables"]}
        self._passages = {passage["id"]: passage for passage in sections["knowledge"]}

    def fill(self, choice: ChosenReply, language: str) -> FilledReply:
        """Fill a reply that the model chose with the values that it gave, each checked against its source."""
        claims: dict[str, FilledField] = {}
        for value in choice.values:
            claims[value.field] = FilledField(value=value.value.strip(), source=value.source.strip())
        reply = next((reply for reply in self._agent.replies if reply.id == choice.reply), None)
        if reply is None:
            hint = suggestion(choice.reply, [reply.id for reply in self._agent.replies])
            problem = f"there is no reply {as_json(choice.reply)}{hint}"
            return FilledReply(UsedReply(reply=choice.reply, values=claims), "", [problem])
        problems: list[str] = []
        values: dict[str, list[_Value]] = {}
        for name, reply_field in reply.fields.items():
            try:
                values[name] = self._find_values(reply_field, claims.get(name))
            except _ValueRefused as refused:
                problems.append(f"{as_json(name)} of {as_json(reply.id)}: {refused}")
        if not _are_of_one_item(reply, values):
            problem = "are from different results or items; take all of them from one"
            problems.append(f"the values of {as_json(reply.id)} {problem}")
        if problems:
            return FilledReply(UsedReply(reply=reply.id, values=claims), "", problems)
        texts = {name: matches[0].text for name, matches in values.items()}
        used = {name: FilledField(value=text, source=claims[name].source) for name, text in texts.items()}
        text = fill_fields(reply.get_text(language), texts)
        return FilledReply(UsedReply(reply=reply.id, values=used), text, ())

    def _find_values(self, field: ReplyField, claim: FilledField | None) -> list[_Value]:
        """Return the value as its source has it, at each place where it has it."""
        if claim is None:
            raise _ValueRefused("it has no value; give one with its source, or choose another reply")
        values = self._list_values(field, claim)
        matches = [value for value in values if value.is_same(claim.value)]
        if claim.source in self._passages and not claim.value:  # its id says which text is meant
            matches = values
        if matches:
            _check_form(matches[0].text, field)
            return matches
        excerpts = as_json([shorten(value.text, 100) for value in values[:_MAX_SHOWN_VALUES]])
        raise _ValueRefused(
            f"{as_json(claim.value)} is not a whole value of {claim.source}, which has {excerpts}"
        )

    def _list_values(self, field: ReplyField, claim: FilledField) -> list[_Value]:
        """Return the values that the field may take from the source."""
        source = claim.source
        line = self._conversation.lines_by_id.get(source)
        if line and line.speaker == "tool" and field.result:
            return self._list_result_values(field, field.result, line)
        if line and line.speaker == "customer" and field.customer:
            quote = claim.value[: field.max_length]  # a longer one is refused, and would be slow to find
            return _find_words(quote, line.text)
        if field.variable and source in self._variables:
            variable = self._variables[source]
            if path := split_path(field.variable, [variable["name"]]):
                return list(_walk(variable["value"], path.keys, (source,), {}))
        if field.knowledge and source in self._passages:
            passage = self._passages[source]
            if "shortened_from_characters" in passage:
                raise _ValueRefused(f"{source} is only the beginning of a text")
            return [_Value(passage["text"])]
        allowed = field.model_dump(include=SOURCES, exclude_defaults=True)
        raise _ValueRefused(f"{as_json(source)} is no source of it: the field allows {as_json(allowed)}")

    def _list_result_values(self, field: ReplyField, result: str, line: Line) -> list[_Value]:
        path = split_path(result, self._agent.toolbox)
        if path is None or not line.call or line.call["name"] != path.name:
            raise _ValueRefused(f"{line.id} is not a result of the tool in {as_json(result)}")
        if getattr(line.message, "status", None) == "error":
            raise _ValueRefused(f"{line.id} is an error")
        if field.this_turn and line not in self._conversation.current_turn_results:
            raise _ValueRefused(f"{line.id} is not from this turn")
        place = (path.name,)
        if not path.keys:
            return [_Value(line.text, {place: line.id})]
        try:
            # Not as floats, so that a price of 59.90 keeps its last digit.
            result_value = json.loads(line.text, parse_float=Decimal)
            return list(_walk(result_value, path.keys, place, {place: line.id}))
        except (ValueError, RecursionError):
            return []


def _walk(
    value: Any, keys: Sequence[str], place: _Place, items: Mapping[_Place, str | int]
) -> Iterator[_Value]:
    """Yield the texts and numbers at a path; a list stands for each of its items."""
    if isinstance(value, list | tuple):
        place = (*place, "[]")
        for index, item in enumerate(value):
            yield from _walk(item, keys, place, {**items, place: index})
    elif keys:
        if isinstance(value, Mapping) and keys[0] in value:
            yield from _walk(value[keys[0]], keys[1:], (*place, keys[0]), items)
    elif isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        yield _Value(value, items)


def _are_of_one_item(reply: Reply, values: Mapping[str, Sequence[_Value]]) -> bool:
    """Return True if the values can be those of one result of each tool, and of one item of each list in it.

    Fields that share a path are left out: they are meant to show several.
    """
    paths = [field.result for field in reply.fields.values()]
    combinations: list[dict[_Place, str | int]] = [{}]
    for name, matches in values.items():
        if paths.count(reply.fields[name].result) > 1:
            continue
        merged: list[dict[_Place, str | int]] = []
        for items in combinations:
            for value in matches:
                if all(items.get(place, item) == item for place, item in value.items.items()):
                    merged.append({**items, **value.items})
        combinations = merged[:_MAX_COMBINATIONS]
    return bool(combinations)


def _find_words(quote: str, text: str) -> list[_Value]:
    """Return the quoted words if a text has them as whole words, without the marks around them; else the text.

    Each end of a range such as 9:00–13:00 is a word, too.
    """
    for words in (text.split(), _BETWEEN_ENDS.sub(" ", text).split()):
        count = len(quote.split())
        for start in range(len(words) - count + 1):
            run = strip_marks(" ".join(words[start : start + count]))
            if run and run == quote:
                return [_Value(run)]
    return [_Value(text)]


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
