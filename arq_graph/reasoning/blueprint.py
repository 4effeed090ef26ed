"""Blueprints: Pydantic models whose fields are queries, answered in stages (ARQ paper, section 4).

In the modes without queries an answer holds the response fields of its blueprint, with their types, constraints
and field validators, and so do the blueprints inside the response. A model validator of the designer's sees that
answer in every mode; a `when` that reads a query which was not asked counts as false.
"""

from __future__ import annotations

from abc import ABC
from copy import deepcopy
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast, dataclass_transform

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
    Form,
    Mode,
    Query,
    get_field_queries,
    query,
    reinstate,
    respond,
    sort_by_stage,
    verify,
)
from arq_graph.reasoning.schema import AnswerJsonSchema, NotStrict, make_schema_generator, make_strict_schema

__all__ = ["ARQ", "Mode", "query", "reinstate", "respond", "verify"]

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

    __arq_form__: ClassVar[Form] = Form()  # in which mode "arq" asks it
    __arq_queries__: ClassVar[dict[str, Query]]
    __arq_schemas__: ClassVar[dict[Form, dict[str, Any]]]
    __arq_reduced__: ClassVar[dict[Form, type[BaseModel]]]

    @classmethod
    def response_schema(cls, mode: Mode = "arq") -> dict[str, Any]:
        """Return the JSON schema to ask a model with, in OpenAI's strict subset (ARQ paper, section 6.1).

        Args:
            mode: `"arq"`: all queries. `"cot"`: one free `reasoning`, then the response. `"direct"`: the
                response alone. Blueprints inside the response are reduced to their response, too.

        Returns:
            A fresh copy of the schema; its keys and their order are the same each time.

        Raises:
            PydanticUndefinedAnnotation: A forward reference of the class cannot be resolved yet.
            InputError: The mode isn't one of the three.
        """
        return deepcopy(get_schema(cls, require_choice("mode", mode, Mode)))

    def unmet(self) -> list[Complaint]:
        """Return complaints about this instance's verifications that don't have the answer they must have.

        Blueprints inside it, and verifications that weren't asked or whose `when` is false, are not considered.
        """
        complaints = []
        for name, field_query in self.__arq_queries__.items():
            if name not in self.__dict__ or not self._applies(field_query):
                continue
            if problem := field_query.find_problem(self.__dict__[name]):
                complaints.append(Complaint(type(self).__name__, name, problem))
        return complaints

    def _applies(self, query: Query) -> bool:
        try:
            return query.when is None or bool(query.when(self))
        except _NotAsked:
            return False

    def _require_answers(self) -> None:
        """Refuse null as the answer to a conditional query that applies."""
        errors = []
        for name, field_query in self.__arq_queries__.items():
            if field_query.when is None:
                continue
            is_unanswered = self.__dict__.get(name, ...) is None
            if is_unanswered and self._applies(field_query):
                message = 'null is not an answer here: the query applies ("{question}")'
                error = PydanticCustomError("unanswered_query", message, {"question": field_query.question})
                errors.append(InitErrorDetails(type=error, loc=(name,), input=None))
        if errors:
            raise ValidationError.from_exception_data(type(self).__name__, errors)

    @model_validator(mode="wrap")
    @classmethod
    def _validate_form(
        cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        """Validate an answer in the form that is the validation's context; without one, with all queries."""
        form = info.context if isinstance(info.context, Form) else Form()
        if form.is_whole or isinstance(value, cls):
            answer = handler(value)
        else:
            inner_form = Form("direct") if form.mode == "cot" else form
            reduced = _make_reduced_model(cls, form).model_validate(value, context=inner_form)
            answer = cast(Self, cls.model_construct(reduced.model_fields_set))
            answer.__dict__.update(reduced.__dict__)
        if not form.response_only:
            answer._require_answers()
        return answer

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not cls.__pydantic_fields_complete__:
            # Another class got here before this one's forward references were resolved.
            cls.model_rebuild(raise_errors=False)
        cls.__pydantic_fields__ = sort_by_stage(cls.__pydantic_fields__)
        cls.__arq_queries__ = {}
        for name, field in cls.__pydantic_fields__.items():
            for field_query in get_field_queries(field):
                cls.__arq_queries__[name] = field_query
        cls.__arq_reduced__ = {}
        try:
            return handler(source)
        except PydanticUserError as error:
            raise _make_type_error(cls, error) from error

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


def combine_blueprints(name: str, doc: str | None, *parts: type[ARQ], **fields: Any) -> type[ARQ]:
    """Make a blueprint with the queries of its parts, in this order, and then the fields; stages come first."""
    # Pydantic lists the fields of the last base first.
    return create_model(name, __base__=parts[::-1], __doc__=doc, **fields)


B = TypeVar("B", bound=ARQ)


def get_schema(blueprint: type[ARQ], mode: Mode) -> dict[str, Any]:
    """Return what `ARQ.response_schema` returns, made once: the caller must not change it."""
    if "__arq_schemas__" not in blueprint.__dict__:
        blueprint.model_rebuild()  # resolves forward references
    form = _get_form(blueprint, mode)
    schemas = blueprint.__arq_schemas__
    if form not in schemas:
        model = blueprint if mode == "arq" else _make_reduced_model(blueprint, form)
        schemas[form] = _make_schema(blueprint, model, make_schema_generator(form))
    return schemas[form]


def read_answer(blueprint: type[B], mode: Mode, text: str) -> tuple[B, str]:
    """Return the answer and, in mode "cot", the free reasoning, from a model's JSON, or raise ValidationError."""
    form = _get_form(blueprint, mode)
    answer = blueprint.model_validate_json(text, context=form)
    if form.response_only:
        response = dump_in_mode(answer, "direct")
        return blueprint.model_validate(response, context=Form("direct")), ""
    if mode == "cot":
        return answer, answer.__dict__.pop(_get_reasoning_key(blueprint))
    return answer, ""


def dump_in_mode(value: Any, mode: Mode) -> Any:
    """Return an answer, or a container of answers, as JSON values with the fields that a mode asks for."""
    return _dump(value, _get_form(type(value), mode))


def _dump(value: Any, form: Form) -> Any:
    if isinstance(value, ARQ):
        if form.is_whole:
            return value.model_dump(mode="json")
        dumped = {}
        for name, field_query in value.__arq_queries__.items():
            if form.includes(name, field_query):
                dumped[name] = _dump(getattr(value, name), form)
        return dumped
    if isinstance(value, dict):
        return {key: _dump(item, form) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_dump(item, form) for item in value]
    return value


def _get_form(blueprint: type, mode: Mode) -> Form:
    if mode == "arq" and issubclass(blueprint, ARQ):
        return blueprint.__arq_form__
    return Form(mode)


def list_response_fields(blueprint: type[ARQ]) -> list[str]:
    """Return the names of the fields that every mode has."""
    return [name for name, query in blueprint.__arq_queries__.items() if query.kind == "respond"]


def _get_reasoning_key(blueprint: type[ARQ]) -> str:
    """Return the key of the free reasoning: "reasoning", or longer where a response field has that name."""
    key = "reasoning"
    while key in list_response_fields(blueprint):
        key += "_"
    return key


def _make_reduced_model(blueprint: type[ARQ], form: Form) -> type[BaseModel]:
    """Return a plain model with the fields that the form includes, and their validators."""
    models = blueprint.__arq_reduced__
    if form in models:
        return models[form]
    fields: dict[str, Any] = {}
    if form.mode == "cot":
        fields[_get_reasoning_key(blueprint)] = str, Field(description=_REASONING)
    for name, field_query in blueprint.__arq_queries__.items():
        if form.includes(name, field_query):
            field = blueprint.model_fields[name]
            fields[name] = field.annotation, field
    validators: dict[str, Any] = {}
    for name, decorator in blueprint.__pydantic_decorators__.field_validators.items():
        info = decorator.info
        # Some of the fields that a validator names may not be in this form.
        decorate: Any = field_validator(*info.fields, mode=info.mode, check_fields=False)
        validators[name] = decorate(getattr_static(blueprint, name))
    models[form] = create_model(
        f"{blueprint.__name__}Response",
        __config__=blueprint.model_config,
        __doc__=blueprint.__doc__,
        __validators__=validators,
        **fields,
    )
    return models[form]


def _check_fields(blueprint: type[ARQ]) -> None:
    for name, field in blueprint.model_fields.items():
        if len(get_field_queries(field)) != 1:
            raise BlueprintDefinitionError(
                f'{blueprint.__name__}.{name} has no stage, or several: write `{name}: … = query("…")`, or reinstate, '
                "respond or verify in place of query. The stage belongs to the whole field, not into a union or a list."
            )
        if not field.is_required() or field.alias or field.validation_alias or field.serialization_alias:
            raise BlueprintDefinitionError(
                f"{blueprint.__name__}.{name} has a default or an alias, but an answer holds every query under its own "
                "name: drop it, and let the type admit None where there may be no answer."
            )
    if ABC not in blueprint.__bases__ and not list_response_fields(blueprint):
        raise BlueprintDefinitionError(
            f"{blueprint.__name__} has no response: give it a field with respond(…). A class that only holds "
            "queries for others to inherit has ABC among its bases; one that groups the answers to a query is a "
            "plain BaseModel."
        )


def _make_schema(
    blueprint: type[ARQ], model: type[BaseModel], generator: type[AnswerJsonSchema]
) -> dict[str, Any]:
    try:
        return make_strict_schema(model.model_json_schema(schema_generator=generator))
    except NotStrict as error:
        reason, path = error.args
        raise BlueprintDefinitionError(f"{blueprint.__name__}.{path}: {reason}.") from error
    except PydanticUserError as error:
        raise _make_type_error(blueprint, error) from error


def _make_type_error(blueprint: type[ARQ], error: PydanticUserError) -> BlueprintDefinitionError:
    return BlueprintDefinitionError(
        f"{blueprint.__name__} has a field of a type that JSON cannot hold: {error}"
    )


def _check_schema(blueprint: type[ARQ]) -> None:
    class OwnFieldsSchema(AnswerJsonSchema):
        def model_schema(self, schema: ModelSchema) -> dict[str, Any]:
            if schema["cls"] is not blueprint and issubclass(schema["cls"], ARQ):
                return {"properties": {}, "additionalProperties": False}  # each class checks its own fields
            return super().model_schema(schema)

    schema = _make_schema(blueprint, blueprint, OwnFieldsSchema)
    for name, field_query in blueprint.__arq_queries__.items():
        if field_query.when and {"type": "null"} not in schema["properties"][name].get("anyOf", ()):
            raise BlueprintDefinitionError(
                f"{blueprint.__name__}.{name} has when=…, so it may stay unanswered, but its type does not admit "
                "None: add `| None` to it."
            )
