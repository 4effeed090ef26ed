"""Blueprints: Pydantic models whose fields are queries, answered in stages (ARQ paper, section 4).

class Recommendation(ARQ):
    '''Recommend one restaurant to the group.'''

    diet: list[str] = reinstate("Every dietary constraint the group stated, word for word.")
    in_range: list[Option] = query("Which restaurants are open and in range?")
    answer: str = respond("The recommendation, in one sentence.")
    fits_everyone: bool = verify("Does the answer respect every constraint above?", must_be=True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar, dataclass_transform

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from arq_graph.errors import BlueprintDefinitionError
from arq_graph.reasoning.definition import (
    check_fields,
    checked_schema,
    fields_without_schema,
    queries_by_stage,
    require_complete,
)
from arq_graph.reasoning.queries import Query, query, reinstate, respond, verify

__all__ = ["ARQ", "Mode", "Unmet", "query", "reinstate", "respond", "verify"]

Mode = Literal["arq", "cot", "direct"]
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Unmet:
    """A verification whose answer is not the one it must be.

    Args:
        blueprint: Name of the blueprint's class.
        query: Name of the field.
        question: What the field asks.
        value: The answer.
        expected: `must_be` as the designer wrote it: a value, or a predicate.
    """

    blueprint: str
    query: str
    question: str
    value: Any
    expected: Any

    def __str__(self) -> str:
        wanted = "is not acceptable" if callable(self.expected) else f"must be {self.expected!r}"
        return f'{self.blueprint}.{self.query}: "{self.question}" was answered {self.value!r}, which {wanted}'


@dataclass_transform(kw_only_default=True, field_specifiers=(reinstate, query, respond, verify, PrivateAttr))
class ARQ(BaseModel):
    """An attentive reasoning query: a blueprint that a model fills in, stage by stage.

    Every field is made with one of `reinstate`, `query`, `respond` and `verify`, as `x: T = query("…")` or as
    `x: Annotated[T, query("…")]`. The stages order the JSON schema and what `model_dump` gives: leading
    queries (`reinstate` and `query`) first, then the response, then verification, whatever the order of
    definition or subclassing; within its stage an inherited field keeps its place.

    Raises:
        BlueprintDefinitionError: The class cannot be asked, raised when the class is made (or, with forward
            references, when they are resolved).
    """

    model_config = ConfigDict(extra="forbid")

    __arq_queries__: ClassVar[Mapping[str, Query]] = {}
    __arq_schema__: ClassVar[dict[str, Any]] = {}

    @classmethod
    def in_mode(cls, mode: Mode) -> type[ARQ]:
        """The same blueprint with more or less reasoning (ARQ paper, section 6.1).

        Args:
            mode: `"arq"`: all queries, this class itself. `"cot"`: one free `reasoning`, then the response.
                `"direct"`: the response alone. Blueprints inside the response are reduced to their response.

        Returns:
            A blueprint of the same name, docstring and validation of the response; the same class each time.
            `modes.py` says what carries over.

        Raises:
            InputError: There is no such mode.
            BlueprintDefinitionError: As in `response_schema`; or a blueprint inside the response stands where
                it cannot be reduced, in a dataclass for one.
        """
        from arq_graph.reasoning.modes import variant_of  # which builds on this module

        return variant_of(cls, mode)

    @classmethod
    def response_schema(cls, mode: Mode = "arq") -> dict[str, Any]:
        """The JSON schema to ask a model with, in OpenAI's strict subset.

        Args:
            mode: As in `in_mode`.

        Returns:
            A fresh copy of the schema; its keys and their order are the same each time.

        Raises:
            BlueprintDefinitionError: The class is generic and its parameters are not set, or a forward
                reference of it is not resolved.
        """
        blueprint = cls.in_mode(mode)
        if "__arq_schema__" not in blueprint.__dict__:
            require_complete(blueprint)
            blueprint.__arq_schema__ = checked_schema(blueprint, queries_of(blueprint))
        schema: dict[str, Any] = _copied(blueprint.__arq_schema__)
        return schema

    def unmet(self) -> list[Unmet]:
        """The verifications of this instance, not of those inside it, whose answer is not what it must be.

        A verification whose `when` is false is not looked at.
        """
        return [
            Unmet(type(self).__name__, name, asked.question, value, asked.must_be)
            for name, asked in queries_of(type(self)).items()
            if self._is_asked(asked) and not asked.is_met(value := getattr(self, name))
        ]

    def _is_asked(self, asked: Query) -> bool:
        return asked.when is None or bool(asked.when(self))

    @model_validator(mode="after")
    def _answers_what_applies(self) -> Self:
        unanswered = [
            InitErrorDetails(
                type=PydanticCustomError(
                    "unanswered_query",
                    'null is not an answer here: the query applies ("{question}")',
                    {"question": asked.question},
                ),
                loc=(name,),
                input=None,
            )
            for name, asked in queries_of(type(self)).items()
            if asked.when is not None and getattr(self, name) is None and self._is_asked(asked)
        ]
        if unanswered:
            raise ValidationError.from_exception_data(type(self).__name__, unanswered)
        return self

    # A return annotation would replace this class in JSON schemas of what is serialized.
    @model_serializer(mode="wrap")
    def _in_stage_order(self, handler):  # type: ignore[no-untyped-def]
        return _ordered(handler(self), queries_of(type(self)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        try:
            return handler(source)
        except PydanticSchemaGenerationError as error:
            raise BlueprintDefinitionError(fields_without_schema(cls, handler)) from error

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        body = handler.resolve_ref_schema(schema)
        if "properties" in body:
            body["properties"] = _ordered(body["properties"], queries_of(cls))
        if "required" in body:
            body["required"] = list(_ordered(dict.fromkeys(body["required"]), queries_of(cls)))
        return schema

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        super().__pydantic_on_complete__()
        if cls.__bases__ == (BaseModel,):
            return
        check_fields(cls)
        cls.__arq_queries__ = queries_by_stage(cls)
        if not cls.__pydantic_generic_metadata__["parameters"]:
            checked_schema(cls, cls.__arq_queries__)


def queries_of(blueprint: type[ARQ]) -> Mapping[str, Query]:
    """The queries of a blueprint by field name, in the order of their stages."""
    if "__arq_queries__" not in blueprint.__dict__:
        # Reached through another class before its own forward references were resolved.
        blueprint.model_rebuild(raise_errors=False)
    if "__arq_queries__" not in blueprint.__dict__:
        return queries_by_stage(blueprint)
    return blueprint.__arq_queries__


def _ordered(values: dict[str, V], queries: Mapping[str, Query]) -> dict[str, V]:
    return {name: values[name] for name in queries if name in values} | values


def _copied(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _copied(value) for key, value in schema.items()}
    return [_copied(value) for value in schema] if isinstance(schema, list) else schema
