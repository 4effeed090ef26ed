"""Holding a call's arguments against the tool's own schema: a Pydantic model, or a JSON schema as MCP's tools have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError


@dataclass(frozen=True)
class ArgumentError:
    """What a tool's schema does not accept.

    Args:
        argument: The argument's name; "" for the call as a whole.
        missing: Whether it is required and not there.
        message: Why, in the schema's own words.
    """

    argument: str
    missing: bool
    message: str


ArgumentCheck: TypeAlias = Callable[[Mapping[str, Any]], list[ArgumentError]]


def schema_of(tool: BaseTool) -> dict[str, Any]:
    """The JSON schema of what a model may pass to a tool, injected arguments left out."""
    schema: Any = tool.tool_call_schema
    if isinstance(schema, dict):
        return schema
    found: dict[str, Any] = (
        schema.model_json_schema() if issubclass(schema, BaseModel) else schema.schema()
    )  # Pydantic's first version
    return found


def check_of(tool: BaseTool) -> ArgumentCheck:
    """What holds arguments against a tool's schema."""
    model: Any = tool.tool_call_schema
    if isinstance(model, dict) or not issubclass(model, BaseModel):
        return _by_json_schema(schema_of(tool))
    whole = tool.args_schema
    if isinstance(whole, type) and issubclass(whole, BaseModel):
        # LangChain's reduced model has lost the validators; without injected arguments the whole one serves.
        model = whole if whole.model_fields.keys() == model.model_fields.keys() else model
    return _by_model(model)


def _by_model(model: type[BaseModel]) -> ArgumentCheck:
    def check(arguments: Mapping[str, Any]) -> list[ArgumentError]:
        try:
            model.model_validate(dict(arguments))
        except ValidationError as error:
            return [
                ArgumentError(
                    str(item["loc"][0]) if item["loc"] else "",
                    item["type"] == "missing" and len(item["loc"]) == 1,
                    item["msg"],
                )
                for item in error.errors(include_url=False, include_context=False, include_input=False)
            ]
        except Exception as error:  # a tool's own validator may raise anything
            return [ArgumentError("", missing=False, message=f"{type(error).__name__}: {error}")]
        return []

    return check


def _by_json_schema(schema: Mapping[str, Any]) -> ArgumentCheck:
    def check(arguments: Mapping[str, Any]) -> list[ArgumentError]:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import validator_for
        from referencing import Registry

        required = schema.get("required") or ()
        found = [ArgumentError(name, True, "Field required") for name in required if name not in arguments]
        # An empty registry: a reference to a web address is never fetched.
        validator = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
        try:
            for error in validator.iter_errors(dict(arguments)):
                if error.absolute_path:
                    found.append(ArgumentError(str(error.absolute_path[0]), False, error.message))
                elif error.validator != "required":
                    found.append(ArgumentError("", False, error.message))
        except Exception as error:  # a reference that leads nowhere, an unknown type, a broken pattern
            problem = f"the tool's own schema cannot be used: {type(error).__name__}: {error}"
            found.append(ArgumentError("", False, problem))
        return found

    return check
