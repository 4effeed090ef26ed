"""What a blueprint's definition must hold, checked once when its class is complete."""

from __future__ import annotations

from abc import ABC
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo

from arq_graph.errors import BlueprintDefinitionError
from arq_graph.reasoning.queries import queries_in, queries_of
from arq_graph.reasoning.schema import AnswerJsonSchema, NotStrict, admits_null, strict_schema

_METHODS = frozenset({"response_schema", "unmet"})


def check_fields(blueprint: type[BaseModel]) -> None:
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


def require_complete(blueprint: type[BaseModel]) -> None:
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


def checked_schema(blueprint: type[BaseModel]) -> dict[str, Any]:
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


def without_schema(blueprint: type[BaseModel], handler: GetCoreSchemaHandler) -> BlueprintDefinitionError:
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
    if name in _METHODS or (name.startswith("model_") and hasattr(BaseModel, name)):
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
