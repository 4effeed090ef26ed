"""Canned replies: texts that a designer wrote, with fields that code fills from checked sources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, PositiveInt

from arq_graph.agent.braces import find_wrong_fields
from arq_graph.agent.part import Part, Text
from arq_graph.agent.spec_errors import Place, Problem
from arq_graph.errors import suggestion

Composition = Literal["free", "prefer", "strict"]
SOURCES = {"result", "variable", "customer", "knowledge"}
"""The settings of a field that say where its value may come from."""
ValueType = Literal["text", "integer", "number", "date", "time", "datetime"]


class ReplyField(Part, title="field of a canned reply"):
    """A field of a reply: what its value may be, and where it may come from. At least one source is needed.

    Args:
        result: A tool's result in this conversation, as "tool.path": "get_order.items.name" is the name of one of the
            items. Without a path it is the whole result.
        variable: A variable of the agent, with or without a path into its value.
        customer: Whether the value may be words of the customer's own, from any of their messages.
        knowledge: Whether the value may be the whole text of a passage that was found in this turn.
        this_turn: Whether only results of the current turn count.
        type: What the value has to be: text, an integer or number as JSON writes it, or an ISO 8601 date, time or
            datetime.
        max_length: How many characters it may have.
        multiline: Whether it may have several lines.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    result: Text | None = None
    variable: Text | None = None
    customer: bool = False
    knowledge: bool = False
    this_turn: bool = False
    type: ValueType = "text"
    max_length: PositiveInt = 200
    multiline: bool = False


class Reply(Part, title="canned reply"):
    """A text that the agent may send as it is, with fields in braces.

    Args:
        id: Its id.
        text: The text, "Your order {order} comes on {day}.", or one for each language, by its code:
            `{"en": "…", "de": "…"}`. The first one is for all other languages.
        when: When it fits, in words. None: the text says it.
        fields: By the name in braces, where its value comes from.
        otherwise: Whether this one is sent when no other fits; it has no fields.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    id: Text
    text: Text | Annotated[Mapping[Text, Text], Field(min_length=1)]
    when: Text | None = None
    fields: Mapping[Text, ReplyField] = {}
    otherwise: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            id: str,
            text: str | Mapping[str, str],
            when: str | None = None,
            fields: Mapping[str, ReplyField | Mapping[str, object]] = MappingProxyType({}),
            *,
            otherwise: bool = False,
        ) -> None: ...

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts by language; "" is the language of a text that is the only one."""
        return {"": self.text} if isinstance(self.text, str) else self.text

    def get_text(self, language: str) -> str:
        """Return the text in a language such as "en" or "en-GB"; the first one if there is none."""
        texts = {code.casefold(): text for code, text in self.texts.items()}
        code = language.strip().casefold().replace("_", "-")
        return texts.get(code) or texts.get(code.partition("-")[0]) or next(iter(texts.values()))


class SourcePath(NamedTuple):
    """The name of a tool or variable, and the keys that lead to a value inside its JSON."""

    name: str
    keys: tuple[str, ...]


def split_path(path: str, names: Collection[str]) -> SourcePath | None:
    """Split "name.key.key", whose name is the longest of these names that fits; None if none does."""
    for name in sorted(names, key=len, reverse=True):
        if path == name:
            return SourcePath(name, ())
        if path.startswith(f"{name}."):
            return SourcePath(name, tuple(path[len(name) + 1 :].split(".")))
    return None


def find_wrong_replies(
    replies: Sequence[Reply],
    composition: Composition,
    tools: Collection[str],
    variables: Collection[str],
    *,
    has_knowledge: bool,
) -> Iterator[Problem]:
    """Yield what is wrong with the replies of an agent whose tools and variables have these names."""
    last_resorts = [index for index, reply in enumerate(replies) if reply.otherwise]
    if composition == "strict" and not last_resorts:
        yield (
            ("composition",),
            "is strict, which needs a reply with `otherwise: true`, for when no other fits",
        )
    if composition == "prefer" and not replies:
        yield ("composition",), "is prefer, but there are no `replies`; write some, or leave it out"
    for index in last_resorts[1:]:
        problem = "is true for a second reply; only one is sent when no other fits"
        yield ("replies", index, "otherwise"), problem
    for index, reply in enumerate(replies):
        if reply.otherwise and reply.fields:
            problem = "must be empty, because the `otherwise` reply is sent as it is"
            yield ("replies", index, "fields"), problem
        for language, text in reply.texts.items():
            if wrong_field := find_wrong_fields(text, reply.fields):
                place: Place = ("replies", index, "text", language)
                yield place if language else place[:3], wrong_field
        for name, field in reply.fields.items():
            place = ("replies", index, "fields", name)
            yield from _find_wrong_source(place, field, tools, variables)
            if field.knowledge and not has_knowledge:
                yield (*place, "knowledge"), "is true, but the agent has no `knowledge`"


def _find_wrong_source(
    place: Place, field: ReplyField, tools: Collection[str], variables: Collection[str]
) -> Iterator[Problem]:
    if not any(getattr(field, source) for source in SOURCES):
        yield place, "has no source: give `result`, `variable`, `customer: true` or `knowledge: true`"
    if field.this_turn and not field.result:
        yield (*place, "this_turn"), "is about tools' results, but the field has no `result`"
    if field.result and not split_path(field.result, tools):
        hint = suggestion(field.result.partition(".")[0], tools)
        yield (*place, "result"), f"must begin with a tool of this agent, but is {field.result!r}{hint}"
    if field.variable and not split_path(field.variable, variables):
        hint = suggestion(field.variable.partition(".")[0], variables)
        yield (*place, "variable"), f"must be a variable of this agent, but is {field.variable!r}{hint}"
