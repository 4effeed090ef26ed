"""Blueprints: Pydantic models whose fields are queries, answered in stages (ARQ paper, section 4).

In the modes without queries an answer holds the response fields of its blueprint, with their types, constraints
and field validators, and so do the blueprints inside the response. A model validator of the designer's sees that
answer in every mode; a `when` that reads a query which was not asked counts as false.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection
from copy import deepcopy
from functools import partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast, dataclass_transform

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.errors import PydanticUserError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ModelSchema

from arq_graph.errors import BlueprintDefinitionError, Complaint, require_choice
from arq_graph.reasoning.queries import (
    Query,
    by_stage,
    queries_in,
    queries_of,
    query,
    reinstate,
    respond,
    verify,
)
from arq_graph.reasoning.schema import (
    NOTHING,
    AnswerJsonSchema,
    LeftOut,
    NotStrict,
    left_out,
    reduced_schema,
    strict_schema,
)

__all__ = ["ARQ", "Complaint", "Mode", "queries_of", "query", "reinstate", "respond", "verify"]

Mode = Literal["arq", "cot", "direct"]
_Asked = tuple[Mode, LeftOut]

_REASONING = "Think it through step by step: what the instructions and the context ask for, and what follows."


class _NotAsked(AttributeError):
    """A query was read from an answer that was given in a mode without queries."""


@dataclass_transform(kw_only_default=True, field_specifiers=(reinstate, query, respond, verify))
class ARQ(BaseModel):
    """An attentive reasoning query: a blueprint that a model fills in, stage by stage.

    Every field is made with one of `reinstate`, `query`, `respond` and `verify`, as `x: T = query("…")` or as
    `x: Annotated[T, query("…")]`. The stages order the fields: leading queries (`reinstate` and `query`) first,
    then the response, then verification, whatever the order of definition or subclassing; within its stage an
    inherited field keeps its place.

    Raises:
        BlueprintDefinitionError: The class cannot be asked, raised when the class is made (or, with forward
            references, when they are resolved).
    """

    model_config = ConfigDict(extra="forbid")

    __arq_schemas__: ClassVar[dict[_Asked, dict[str, Any]]]
    __arq_reduced__: ClassVar[dict[Mode | LeftOut, type[BaseModel]]]

    @classmethod
    def response_schema(cls, mode: Mode = "arq", *, without: Collection[str] = ()) -> dict[str, Any]:
        """The JSON schema to ask a model with, in OpenAI's strict subset (ARQ paper, section 6.1).

        Args:
            mode: `"arq"`: all queries. `"cot"`: one free `reasoning`, then the response. `"direct"`: the
                response alone. Blueprints inside the response are reduced to their response, too.
            without: Names of queries that are left out in mode `arq`, here and in the blueprints inside.

        Returns:
            A fresh copy of the schema; its keys and their order are the same each time.

        Raises:
            PydanticUndefinedAnnotation: A forward reference of the class cannot be resolved yet.
            InputError: There is no such mode, or no such query that can be left out.
        """
        return deepcopy(schema_in_mode(cls, mode, left_out(without, cls)))

    def unmet(self) -> list[Complaint]:
        """Complaints about this instance's verifications, not about those inside it, that are not what they must be.

        One that was not asked, or whose `when` is false, is not looked at.
        """
        return [
            Complaint(type(self).__name__, name, problem)
            for name, asked in queries_of(type(self)).items()
            if name in self.__dict__ and self._applies(asked)
            if (problem := asked.problem(self.__dict__[name]))
        ]

    def _applies(self, asked: Query) -> bool:
        try:
            return asked.when is None or bool(asked.when(self))
        except _NotAsked:
            return False

    def _require_answers(self) -> None:
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
            if asked.when and self.__dict__.get(name, ...) is None and self._applies(asked)
        ]
        if unanswered:
            raise ValidationError.from_exception_data(type(self).__name__, unanswered)

    @model_validator(mode="wrap")
    @classmethod
    def _in_mode(cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Read an answer in the mode that the validation's context names; without one, with all queries.

        Where the context names queries that were left out, or none, the answer's response alone will be read.
        """
        asked: Any = info.context
        is_of_some = isinstance(asked, frozenset)
        if (asked in ("cot", "direct") or (is_of_some and asked)) and not isinstance(value, cls):
            inside = "direct" if asked == "cot" else asked
            response = _reduced_model(cls, asked).model_validate(value, context=inside)
            answer = cast(Self, cls.model_construct(response.model_fields_set))
            answer.__dict__.update(response.__dict__)
        else:
            answer = handler(value)
        if not is_of_some:
            answer._require_answers()
        return answer

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not cls.__pydantic_fields_complete__:
            # Another class got here before this one's forward references were resolved.
            cls.model_rebuild(raise_errors=False)
        cls.__pydantic_fields__ = by_stage(cls.__pydantic_fields__)
        cls.__arq_reduced__ = {}
        try:
            return handler(source)
        except PydanticUserError as error:
            raise _no_json(cls, error) from error

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        super().__pydantic_on_complete__()
        if cls.__bases__ == (BaseModel,):
            return
        _check_fields(cls)
        _check_schema(cls)
        cls.__arq_schemas__ = {}

    if not TYPE_CHECKING:  # or else every attribute would seem to exist

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise _NotAsked(
                    f"{type(self).__name__}.{name} was not asked: in the modes 'cot' and 'direct' an answer holds "
                    "response fields only. Read those, or ask in mode 'arq'."
                )
            return super().__getattr__(name)


class InnerARQ(ARQ, ABC, defer_build=True):
    """The base of a blueprint that code makes to stand inside another, with which it is built and checked."""


B = TypeVar("B", bound=ARQ)


def schema_in_mode(blueprint: type[ARQ], mode: Mode, without: LeftOut = NOTHING) -> dict[str, Any]:
    """What `ARQ.response_schema` gives, made once and not to be changed; what the blueprint lacks is passed over."""
    require_choice("mode", mode, Mode)
    if "__arq_schemas__" not in blueprint.__dict__:
        blueprint.model_rebuild()  # has references forward
    schemas, key = blueprint.__arq_schemas__, (mode, without)
    if key not in schemas:
        asked = blueprint if mode == "arq" else _reduced_model(blueprint, mode)
        schemas[key] = _strict(blueprint, asked, reduced_schema(partial(_is_asked, *key)))
    return schemas[key]


def read_answer(blueprint: type[B], mode: Mode, by_response: LeftOut | None, text: str) -> tuple[B, str]:
    """A blueprint's answer and the free reasoning before it, from the JSON that a model wrote.

    With `by_response`, which names the queries that were left out, if any, an answer of mode `arq` is what it is in
    the other modes: its response alone.

    Raises:
        ValidationError: The text is no answer in this mode.
    """
    if mode == "arq" and by_response is not None:
        filled = blueprint.model_validate_json(text, context=by_response)
        return blueprint.model_validate(dump_in_mode(filled, "direct"), context="direct"), ""
    answer = blueprint.model_validate_json(text, context=mode)
    return answer, answer.__dict__.pop(_reasoning_key(blueprint)) if mode == "cot" else ""


def dump_in_mode(value: Any, mode: Mode, without: LeftOut = NOTHING) -> Any:
    """An answer as a mode has it: all of it, save the queries that are left out, or the response alone."""
    if isinstance(value, ARQ):
        if mode == "arq" and not without:
            return value.model_dump(mode="json")
        asked = (
            name for name, each in queries_of(type(value)).items() if _is_asked(mode, without, name, each)
        )
        return {name: dump_in_mode(getattr(value, name), mode, without) for name in asked}
    if isinstance(value, dict):
        return {name: dump_in_mode(item, mode, without) for name, item in value.items()}
    return [dump_in_mode(item, mode, without) for item in value] if isinstance(value, list | tuple) else value


def _is_asked(mode: Mode, without: LeftOut, name: str, asked: Query) -> bool:
    return asked.kind == "respond" or (mode == "arq" and name not in without)


def list_response_fields(blueprint: type[BaseModel]) -> list[str]:
    """The names of the fields that every mode has."""
    return [name for name, asked in queries_of(blueprint).items() if asked.kind == "respond"]


def _reasoning_key(blueprint: type[BaseModel]) -> str:
    """The key of the free reasoning: "reasoning", or longer where a response field has that name."""
    key = "reasoning"
    while key in list_response_fields(blueprint):
        key += "_"
    return key


def _reduced_model(blueprint: type[ARQ], by: Mode | LeftOut) -> type[BaseModel]:
    """What is asked in a mode without queries, or in mode `arq` without some of them."""
    made = blueprint.__arq_reduced__
    if by not in made:
        key: _Asked = ("arq", by) if isinstance(by, frozenset) else (by, NOTHING)
        fields: dict[str, Any] = {
            name: (blueprint.model_fields[name].annotation, blueprint.model_fields[name])
            for name, asked in queries_of(blueprint).items()
            if _is_asked(*key, name, asked)
        }
        if by == "cot":
            fields = {_reasoning_key(blueprint): (str, Field(description=_REASONING)), **fields}
        again: Any = partial(field_validator, check_fields=False)  # of fields that a response has not, too
        validators = blueprint.__pydantic_decorators__.field_validators
        made[by] = create_model(
            f"{blueprint.__name__}Response",
            __config__=blueprint.model_config,
            __doc__=blueprint.__doc__,
            __validators__={
                name: again(*each.info.fields, mode=each.info.mode)(getattr_static(blueprint, name))
                for name, each in validators.items()
            },
            **fields,
        )
    return made[by]


def _check_fields(blueprint: type[ARQ]) -> None:
    for name, field in blueprint.model_fields.items():
        if len(queries_in(field)) != 1:
            problem = (
                f'has no stage, or several: write `{name}: … = query("…")`, or reinstate, respond or verify in place '
                "of query. The stage belongs to the whole field, not into a union or a list."
            )
        elif not field.is_required() or field.alias or field.validation_alias or field.serialization_alias:
            problem = (
                "has a default or an alias, but an answer holds every query under its own name: drop it, and let the "
                "type admit None where there may be no answer."
            )
        else:
            continue
        raise BlueprintDefinitionError(f"{blueprint.__name__}.{name} {problem}")
    if ABC not in blueprint.__bases__ and not list_response_fields(blueprint):
        raise BlueprintDefinitionError(
            f"{blueprint.__name__} has no response: give it a field with respond(…). A class that only holds "
            "queries for others to inherit has ABC among its bases; one that groups the answers to a query is a "
            "plain BaseModel."
        )


def _no_json(blueprint: type[ARQ], error: PydanticUserError) -> BlueprintDefinitionError:
    return BlueprintDefinitionError(
        f"{blueprint.__name__} has a field of a type that JSON cannot hold: {error}"
    )


def _strict(blueprint: type[ARQ], asked: type[BaseModel], by: type[AnswerJsonSchema]) -> dict[str, Any]:
    try:
        return strict_schema(asked.model_json_schema(schema_generator=by))
    except NotStrict as error:
        reason, path = error.args
        raise BlueprintDefinitionError(f"{blueprint.__name__}.{path}: {reason}.") from error
    except PydanticUserError as error:
        raise _no_json(blueprint, error) from error


def _check_schema(blueprint: type[ARQ]) -> None:
    class Own(AnswerJsonSchema):
        def model_schema(self, schema: ModelSchema) -> dict[str, Any]:
            if schema["cls"] is not blueprint and issubclass(schema["cls"], ARQ):
                return {"properties": {}, "additionalProperties": False}  # which is checked by itself
            return super().model_schema(schema)

    schema = _strict(blueprint, blueprint, Own)
    for name, asked in queries_of(blueprint).items():
        if asked.when and {"type": "null"} not in schema["properties"][name].get("anyOf", ()):
            raise BlueprintDefinitionError(
                f"{blueprint.__name__}.{name} has when=…, so it may stay unanswered, but its type does not admit "
                "None: add `| None` to it."
            )
