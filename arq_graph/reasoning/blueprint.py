"""Blueprints: Pydantic models whose fields are queries, answered in stages (ARQ paper, section 4).

class Recommendation(ARQ):
    '''Recommend one restaurant to the group.'''

    diet: list[str] = reinstate("Every dietary constraint the group stated, word for word.")
    in_range: list[Option] = query("Which restaurants are open and in range?")
    answer: str = respond("The recommendation, in one sentence.")
    fits_everyone: bool = verify("Does the answer respect every constraint above?", must_be=True)
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast, dataclass_transform, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from arq_graph.errors import BlueprintDefinitionError, InputError
from arq_graph.reasoning.modes import (
    RESPONSE_ALONE,
    Mode,
    NotAsked,
    Variants,
    mode_schema,
    reasoning_key,
    response_model,
)
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
from arq_graph.reasoning.schema import AnswerJsonSchema, NotStrict, admits_null, strict_schema

__all__ = ["ARQ", "Complaint", "Mode", "queries_of", "query", "reinstate", "respond", "verify"]


@dataclass(frozen=True)
class Complaint:
    """One thing that a valid answer does not meet.

    Args:
        blueprint: The blueprint's name.
        query: Path of the query, such as "G3.score".
        message: What is wrong, and what was expected.
    """

    blueprint: str
    query: str
    message: str

    def __str__(self) -> str:
        place = f"{self.blueprint}.{self.query}" if self.query else self.blueprint
        return f"{place}: {self.message}"


@dataclass_transform(kw_only_default=True, field_specifiers=(reinstate, query, respond, verify, PrivateAttr))
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

    __arq_queries__: ClassVar[Mapping[str, Query]]
    __arq_schemas__: ClassVar[dict[Mode, dict[str, Any]]]
    __arq_variants__: ClassVar[Variants]

    @classmethod
    def response_schema(cls, mode: Mode = "arq") -> dict[str, Any]:
        """The JSON schema to ask a model with, in OpenAI's strict subset (ARQ paper, section 6.1).

        Args:
            mode: `"arq"`: all queries. `"cot"`: one free `reasoning`, then the response. `"direct"`: the
                response alone. Blueprints inside the response are reduced to their response, too.

        Returns:
            A fresh copy of the schema; its keys and their order are the same each time.

        Raises:
            BlueprintDefinitionError: The class is generic and its parameters are not set, or a forward
                reference of it is not resolved.
            InputError: There is no such mode.
        """
        return deepcopy(schema_in_mode(cls, mode))

    def unmet(self) -> list[Complaint]:
        """Complaints about this instance's verifications, not about those inside it, that are not what they must be.

        One that was not asked, or whose `when` is false, is not looked at.
        """
        return [
            Complaint(type(self).__name__, name, asked.problem(self.__dict__[name]))
            for name, asked in queries_of(type(self)).items()
            if name in self.__dict__ and self._applies(asked) and asked.problem(self.__dict__[name])
        ]

    def _applies(self, asked: Query) -> bool:
        try:
            return asked.when is None or bool(asked.when(self))
        except NotAsked:
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

    @classmethod
    def _of_response(cls, response: BaseModel) -> Self:
        """An instance that holds the response alone; reading anything else says that it was not asked."""
        answer = cast(Self, cls.model_construct())
        answer.__dict__.update(response.__dict__)
        answer.__pydantic_fields_set__.update(response.__dict__)
        answer._require_answers()
        return answer

    @model_validator(mode="wrap")
    @classmethod
    def _in_mode(cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if info.context is RESPONSE_ALONE and not isinstance(value, cls):
            model = response_model(cls, "direct")
            return cls._of_response(model.model_validate(value, context=RESPONSE_ALONE))
        answer = handler(value)
        answer._require_answers()
        return answer

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not cls.__pydantic_fields_complete__:
            # Another class got here before this one's forward references were resolved.
            cls.model_rebuild(raise_errors=False)
        cls.__pydantic_fields__ = by_stage(cls.__pydantic_fields__)
        cls.__arq_variants__ = {}
        try:
            return handler(source)
        except PydanticSchemaGenerationError as error:
            raise _without_schema(cls, handler) from error

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        super().__pydantic_on_complete__()
        if cls.__bases__ == (BaseModel,):
            return
        _check_fields(cls)
        cls.__arq_queries__ = queries_of(cls)
        if not cls.__pydantic_generic_metadata__["parameters"]:
            cls.__arq_schemas__ = {"arq": _checked_schema(cls)}

    if not TYPE_CHECKING:  # or else every attribute would seem to exist

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise NotAsked(
                    f"{type(self).__name__}.{name} was not asked: in the modes 'cot' and 'direct' an answer holds "
                    "response fields only. Read those, or ask in mode 'arq'.",
                    name=name,
                    obj=self,
                )
            return super().__getattr__(name)


B = TypeVar("B", bound=ARQ)


def schema_in_mode(blueprint: type[ARQ], mode: Mode) -> dict[str, Any]:
    """What `ARQ.response_schema` gives, made once and not to be changed."""
    if mode not in get_args(Mode):
        raise InputError(f"mode is {mode!r}: it must be one of {', '.join(map(repr, get_args(Mode)))}")
    if "__arq_schemas__" not in blueprint.__dict__:
        _require_complete(blueprint)
    schemas = blueprint.__arq_schemas__
    if mode not in schemas:
        schemas[mode] = mode_schema(blueprint, mode)
    return schemas[mode]


def read_answer(blueprint: type[B], mode: Mode, text: str) -> tuple[B, str]:
    """A blueprint's answer and the free reasoning before it, from the JSON that a model wrote.

    Raises:
        ValidationError: The text is no answer in this mode.
    """
    if mode == "arq":
        return blueprint.model_validate_json(text), ""
    response = response_model(blueprint, mode).model_validate_json(text, context=RESPONSE_ALONE)
    reasoning = response.__dict__.pop(reasoning_key(blueprint), "") if mode == "cot" else ""
    return blueprint._of_response(response), reasoning


def _check_fields(blueprint: type[BaseModel]) -> None:
    """Raise BlueprintDefinitionError unless each field is one query, without default or alias, and one responds."""
    for name, field in blueprint.model_fields.items():
        if problem := _problem(name, field):
            raise BlueprintDefinitionError(f"{blueprint.__name__}.{name} {problem}")
    if ABC in blueprint.__bases__:
        return
    if not any(asked.kind == "respond" for asked in queries_of(blueprint).values()):
        raise BlueprintDefinitionError(
            f"{blueprint.__name__} has no response: give it a field with respond(…). A class that only holds "
            "queries for others to inherit has ABC among its bases; one that groups the answers to a query is a "
            "plain BaseModel."
        )


def _require_complete(blueprint: type[BaseModel]) -> None:
    """Resolve what is left of a class's forward references, or raise BlueprintDefinitionError."""
    if parameters := blueprint.__pydantic_generic_metadata__["parameters"]:
        raise BlueprintDefinitionError(
            f"{blueprint.__name__} is generic: set its parameters before it is asked, "
            f"as in {blueprint.__name__}[{', '.join('str' for _ in parameters)}]."
        )
    try:
        blueprint.model_rebuild()
    except PydanticUndefinedAnnotation as error:
        raise BlueprintDefinitionError(
            f"{blueprint.__name__} refers to {error.name!r}, which is not defined: define it, or call "
            f"{blueprint.__name__}.model_rebuild() where it is."
        ) from error


def _checked_schema(blueprint: type[BaseModel]) -> dict[str, Any]:
    """The strict JSON schema of a blueprint with all its queries, or BlueprintDefinitionError."""
    try:
        schema = strict_schema(blueprint.model_json_schema(schema_generator=AnswerJsonSchema))
    except NotStrict as error:
        raise BlueprintDefinitionError(f"{blueprint.__name__}.{error.path}: {error.reason}.") from error
    for name, asked in queries_of(blueprint).items():
        if asked.when and not admits_null(schema["properties"][name], schema.get("$defs", {})):
            raise BlueprintDefinitionError(
                f"{blueprint.__name__}.{name} has when=…, so it may stay unanswered, but its type does not admit "
                "None: add `| None` to it."
            )
    return schema


def _without_schema(blueprint: type[BaseModel], handler: GetCoreSchemaHandler) -> BlueprintDefinitionError:
    """The error for a blueprint with a field whose type Pydantic cannot validate."""
    unknown = []
    for name, field in blueprint.model_fields.items():
        try:
            handler.generate_schema(field.annotation)
        except PydanticSchemaGenerationError:
            unknown.append(f"{name}: {field.annotation!r}")
    return BlueprintDefinitionError(
        f"{blueprint.__name__}.{', '.join(unknown)} is not a type that Pydantic can validate; use one that JSON "
        "can hold: str, int, bool, a list, a model."
    )


def _problem(name: str, field: FieldInfo) -> str:
    match queries_in(field):
        case []:
            return (
                f'has no stage: write `{name}: … = query("…")`, or reinstate, respond or verify in place of '
                "query. The stage belongs to the whole field, not into a union or a list."
            )
        case [first, second, *_]:
            return f"is asked twice, by {first.kind}() and by {second.kind}(): keep one."
    if name in ("response_schema", "unmet") or (name.startswith("model_") and hasattr(BaseModel, name)):
        return "has the name of a method that every blueprint has: rename the field."
    if not field.is_required():
        return (
            "has a default, but an answer holds every query: drop the default, or make the type admit None."
        )
    if field.alias or field.validation_alias or field.serialization_alias:
        return (
            "has an alias, but its name is what the model answers under: drop the alias and rename the field."
        )
    return ""
