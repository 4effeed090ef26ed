"""The modes of a blueprint: with all its queries, with free reasoning, or with the response alone.

In the modes without queries an answer holds the response fields of its blueprint, with their types, constraints
and field validators, and so do the blueprints inside the response. A model validator of the designer's sees that
answer in every mode; a `when` that reads a query which was not asked counts as false.
"""

from __future__ import annotations

from inspect import getattr_static
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, create_model, field_validator

from arq_graph.reasoning.queries import queries_of
from arq_graph.reasoning.schema import ResponseJsonSchema, strict_schema

Mode = Literal["arq", "cot", "direct"]
Variants = dict[str, type[BaseModel]]

REASONING: Final = (
    "Think it through step by step: what the instructions and the context ask for, and what follows."
)
RESPONSE_ALONE: Final = {"arq_graph": "the response alone"}
"""The validation context in which blueprints inside an answer are read without their queries."""


class NotAsked(AttributeError):
    """A query was read from an answer that was given in a mode without queries."""


def response_model(blueprint: type[BaseModel], mode: Mode) -> type[BaseModel]:
    """A plain model of a blueprint's response, behind a field for free reasoning where the mode is `"cot"`."""
    made: Variants = blueprint.__dict__["__arq_variants__"]
    if mode not in made:
        fields: dict[str, Any] = {
            name: (blueprint.model_fields[name].annotation, blueprint.model_fields[name])
            for name in response_fields(blueprint)
        }
        if mode == "cot":
            fields = {reasoning_key(blueprint): (str, Field(description=REASONING)), **fields}
        made[mode] = create_model(
            blueprint.__name__,
            __config__=blueprint.model_config,
            __validators__=_field_validators(blueprint),
            __module__=blueprint.__module__,
            **fields,
        )
    return made[mode]


def response_fields(blueprint: type[BaseModel]) -> list[str]:
    """The names of the fields that every mode has."""
    return [name for name, asked in queries_of(blueprint).items() if asked.kind == "respond"]


def reasoning_key(blueprint: type[BaseModel]) -> str:
    """The key of the free reasoning: "reasoning", or longer where a response field has that name."""
    key = "reasoning"
    while key in response_fields(blueprint):
        key += "_"
    return key


def mode_schema(blueprint: type[BaseModel], mode: Mode) -> dict[str, Any]:
    """The strict schema of a blueprint in a mode without queries."""
    schema = strict_schema(blueprint.model_json_schema(schema_generator=ResponseJsonSchema))
    if mode == "cot":
        reasoning = {reasoning_key(blueprint): {"description": REASONING, "type": "string"}}
        schema["properties"] = reasoning | schema["properties"]
        schema["required"] = list(schema["properties"])
    return schema


def _field_validators(blueprint: type[BaseModel]) -> dict[str, Any]:
    """The blueprint's field validators, for those of their fields that a response has."""
    validators = {}
    for name, validator in blueprint.__pydantic_decorators__.field_validators.items():
        options: dict[str, Any] = {"mode": validator.info.mode, "check_fields": False}
        options["json_schema_input_type"] = validator.info.json_schema_input_type
        decorate: Any = field_validator(*validator.info.fields, **options)
        validators[name] = decorate(getattr_static(blueprint, name))
    return validators
