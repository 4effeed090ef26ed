"""What a specification is made of: guidelines, the terms of a glossary, variables, and confirmations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from arq_graph.agent.modules import load
from arq_graph.agent.spec_errors import spec_error
from arq_graph.agent.tools import ToolLike, is_taken, read_tool

Condition = str | Callable[[Any], bool | Awaitable[bool]] | None
OnFailure = Literal["raise", "activate", "skip"]
By = Literal["customer", "operator", "interrupt"]

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# Prompts name the profile P; results, terms, variables, messages, insights and waiting calls T1, K1, V1, M1, I1, C1.
_ID = re.compile(r"(?!(P|[TKVMIC][0-9]+)$)[A-Za-z0-9-][A-Za-z0-9_-]{0,63}")


def _identifier(name: str) -> str:
    if name and (not _ID.fullmatch(name) or is_taken(name)):
        raise ValueError(
            f"is {name!r}, but an id is 1 to 64 of the characters A-Z a-z 0-9 _ - that does not begin with _ and is"
            " nothing that prompts or answers use for something else; choose another id"
        )
    return name


def _condition(value: object, info: ValidationInfo) -> Condition:
    if isinstance(value, Mapping) and list(value) == ["function"]:
        value = load(str(value["function"]), info.context.folder if info.context else None)
    if isinstance(value, str):
        value = value.strip()
        if value in ("", "None"):
            raise ValueError(f"is {value!r}; for a guideline that always applies, leave it out")
        if _REFERENCE.fullmatch(value):
            raise ValueError(
                f"is {value!r}, which looks like a function and would be read as words; in a file write"
                f' {{function: "{value}"}}, in Python give the function itself'
            )
        return value
    if value is not None and not callable(value):
        raise ValueError(f"must be text, {{function: module:function}}, or left out, but is {value!r:.60}")
    return value


Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str, AfterValidator(_identifier)]

_NAMED = {"type": "string", "description": "module:function"}
_TOOL = {"type": "string", "description": "module:function, file.yaml:tool or mcp:server/tool"}
_FUNCTION = {"type": "object", "properties": {"function": _NAMED}, "required": ["function"]}
_WORDS = {"anyOf": [{"type": "string", "minLength": 1}, _FUNCTION, {"type": "null"}]}

ConditionField = Annotated[Condition, PlainValidator(_condition), WithJsonSchema(_WORDS)]
# `Any`, so that Pydantic does not look into tools of LangChain.
ToolField = Annotated[Any, PlainValidator(read_tool), WithJsonSchema(_TOOL)]


def _described(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Describe a model and its fields to editors by what its docstring says under `Args:`."""
    doc = inspect.getdoc(model) or ""
    schema["description"] = doc.partition("\n\nArgs:")[0]
    for name, text in re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", doc, re.MULTILINE):
        if name in schema.get("properties", ()):
            schema["properties"][name]["description"] = " ".join(text.split())


class Part(BaseModel):
    """A thing of a specification: it does not change, and what does not fit it is a `SpecError`."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        str_strip_whitespace=True,
        arbitrary_types_allowed=True,
        defer_build=True,  # until the first one is made: importing is quicker
        json_schema_extra=_described,
    )

    def __init__(self, *positions: Any, **values: Any) -> None:
        fields = type(self).model_fields
        values |= zip(list(fields)[: len(positions)], positions, strict=True)
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise spec_error(error, type(self), values) from None

    __iter__ = None  # type: ignore[assignment]  # or Pydantic would take one thing for a list of its fields

    # Inside another part Pydantic makes this one without `__init__`, and its errors keep their places.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def replace(self, **changes: Any) -> Self:
        """Return the same with some fields changed, checked again.

        Raises:
            SpecError: As when it is made.
        """
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)


class Guideline(Part):
    """When a condition holds, the agent takes an action.

    Args:
        condition: When it applies, in words. None: always. A function of the state, sync or async: decided in
            code.
        action: What the agent then does, says or refrains from, in words. None: an observation; only its
            condition is judged, and tools and relations may hang on it.
        id: 1 to 64 of `A-Z a-z 0-9 _ -`, not beginning with `_`. The agent gives `G1`, `G2`, … by place to
            those without one; until then it is empty.
        tools: Tools that may be called only while this guideline is active: LangChain tools, typed functions,
            "module:function", or in a file also "file.yaml:tool" and "mcp:server/tool".
        continuous: Whether the action is to be kept up rather than done once. None: a model is asked.
        priority: Among guidelines that conflict the higher priority wins; any whole number.
        entails: Ids of guidelines that are active whenever this one is.
        depends_on: Ids of guidelines without which this one is not active.
        overrides: Ids of guidelines that are not active while this one is.
        on_failure: What to do when no valid judgement can be had.
        sensitive_to_tools: Whether a tool's result could make the condition true. None: a model is asked, or
            it is taken to be so.
        always_judge: Whether it is judged in every turn, where a matcher chooses among many guidelines by what
            was said: for what the words of a message do not tell, such as a tone or a danger.

    Raises:
        SpecError: A value does not fit its field.
    """

    condition: ConditionField = None
    action: Text | None = None
    id: Id = ""
    tools: tuple[ToolField, ...] = ()
    continuous: bool | None = None
    priority: Annotated[int, Field(strict=True)] = 0
    entails: tuple[Id, ...] = ()
    depends_on: tuple[Id, ...] = ()
    overrides: tuple[Id, ...] = ()
    on_failure: OnFailure = "raise"
    sensitive_to_tools: bool | None = None
    always_judge: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            condition: Condition = None,
            action: str | None = None,
            *,
            id: str = "",
            tools: Sequence[ToolLike] = (),
            continuous: bool | None = None,
            priority: int = 0,
            entails: Sequence[str] = (),
            depends_on: Sequence[str] = (),
            overrides: Sequence[str] = (),
            on_failure: OnFailure = "raise",
            sensitive_to_tools: bool | None = None,
            always_judge: bool = False,
        ) -> None: ...

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.condition is None and self.action is None:
            raise ValueError("has neither a condition nor an action; write at least one")
        return self

    @property
    def condition_text(self) -> str | None:
        """The condition in words; a function's is the first line of its docstring, or its name."""
        if callable(self.condition):
            words = (inspect.getdoc(self.condition) or "").strip().splitlines()
            name = getattr(self.condition, "__name__", type(self.condition).__name__)
            return words[0] if words else name.strip("<>").replace("_", " ")
        return self.condition


class Term(Part, title="glossary term"):
    """A word of the business, and what it means here.

    Args:
        name: The word.
        description: What it means.
        synonyms: Other words for the same.

    Raises:
        SpecError: A value does not fit its field.
    """

    name: Text
    description: Text
    synonyms: Annotated[Sequence[Text], AfterValidator(tuple)] = ()


class Variable(Part):
    """Something that may be known about a customer or a conversation.

    Args:
        name: Its name; a thread's state holds values under it in `variables`.
        description: What it means.
        value: The value where the thread has none; anything that JSON can say.
        settable: Whether whoever calls the app may set it, as a part of the input.

    Raises:
        SpecError: A value does not fit its field.
    """

    name: Text
    description: Text
    value: JsonValue = None
    settable: bool = False


class Confirmation(Part):
    """Who has to agree to a call of a tool before it runs. In a file, `customer` is short for `{by: customer}`.

    Args:
        by: The customer (asked in the chat by a question that code writes), the operator (the run stops for a
            person who approves, edits or rejects), or interrupt (the customer, by LangGraph's interrupt
            instead of a message).
        ask: The question to the customer, in any language, with every argument of the tool in braces: "Soll
            ich {order_id} stornieren?". None: code writes it from the tool's name and arguments.
        reply: How to agree, in any language, with a word that counts as a yes: "Antworten Sie mit Ja." None:
            "Reply yes to go ahead."

    Raises:
        SpecError: A value does not fit its field.
    """

    by: By
    ask: Text | None = None
    reply: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        return {"by": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _asks_the_customer(self) -> Self:
        if (self.ask or self.reply) and self.by == "operator":
            raise ValueError("`ask` and `reply` are for the customer; an operator sees the call itself")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": ["customer", "operator", "interrupt"]}, handler(schema)]}
