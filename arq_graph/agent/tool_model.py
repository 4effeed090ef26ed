"""The Pydantic model that validates a tool's arguments, with each argument under its input name.

LangChain validates a call with this model when it runs the tool, but describes the tool to a chat model by a reduced
copy without aliases and validators. This library asks for, shows and completes arguments by the full model.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import Any

from langchain_core.tools import BaseTool, InjectedToolArg
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    RootModel,
    SecretBytes,
    SecretStr,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from arq_graph.agent.json_schema import flatten_schema
from arq_graph.reasoning.sections import clean

MAX_DEPTH = 100
"""How deep lists and objects in a value may be nested."""

_VARIADIC = ("args", "kwargs")
"""Names of the fields that LangChain generates for `*args` and `**kwargs`; without a value it doesn't pass them."""


class ToolModel:
    """A tool's model without the arguments that the runtime injects.

    Attributes:
        input_names: By field, the name under which it is validated: its validation alias, its alias, or its own name.
    """

    def __init__(self, model: type[BaseModel], injected: Collection[str] = ()) -> None:
        if injected:
            fields: dict[str, Any] = dict.fromkeys(injected, (Any, None))
            model = create_model(model.__name__, __base__=model, **fields)
        self._model = model
        self.input_names: dict[str, str] = {}
        self._names_by_synonym: dict[str, str] = {}
        for name in model.model_fields:
            if name in injected:
                continue
            names = _get_validation_names(model, name)
            if not names:
                raise TypeError(
                    f"its argument {name} is a part of another one (AliasPath), which isn't supported"
                )
            self.input_names[name] = names[0]
            for synonym in (*names, name):
                self._names_by_synonym.setdefault(synonym, names[0])

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, each under its input name."""
        by_alias = self._model.model_config.get("validate_by_alias") is not False
        schema = flatten_schema(self._model.model_json_schema(by_alias=by_alias))
        names = set(self.input_names.values())
        properties = schema["properties"]
        schema["properties"] = {name: part for name, part in properties.items() if name in names}
        if "required" in schema:
            schema["required"] = [name for name in schema["required"] if name in names]
        return schema

    def rename(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments under their input names, whichever of their names they were given by."""
        renamed: dict[str, Any] = {}
        for name, value in arguments.items():
            input_name = self._names_by_synonym.get(name, name)
            is_taken = input_name in arguments or input_name in renamed
            renamed[name if is_taken else input_name] = value
        return renamed

    def validate(self, arguments: Mapping[str, Any]) -> BaseModel:
        """Validate arguments as the tool does."""
        return self._model.model_validate(dict(arguments))

    def dump(self, validated: BaseModel) -> dict[str, Any]:
        """Return all values of validated arguments as JSON, under their input names."""
        dumped = validated.model_dump(round_trip=True, by_alias=False, warnings=False)
        values: dict[str, Any] = {}
        for name, input_name in self.input_names.items():
            value = getattr(validated, name)
            is_left_out = name in _VARIADIC and name not in validated.model_fields_set
            if not is_left_out:
                values[input_name] = _convert_to_json(value, dumped.get(name, value))
        return values

    def find_excluded(self, validated: BaseModel, overwritten: Collection[str]) -> list[str]:
        """Return the input names of the arguments that LangChain would not pass to the tool.

        They are the fields that a dump leaves out, and those that LangChain overwrites.
        """
        # `BaseTool._parse_input` passes the fields of such a dump.
        passed_names = validated.model_dump(warnings=False).keys() - set(overwritten)
        return [input_name for name, input_name in self.input_names.items() if name not in passed_names]


def find_overwritten_names(tool: BaseTool) -> list[str]:
    """Return the names of arguments that LangChain overwrites with values of its own."""
    names: list[str] = []
    for name, parameter in inspect.signature(tool._run).parameters.items():
        if name == "run_manager" or "RunnableConfig" in str(parameter.annotation):
            names.append(name)
    return names


def get_tool_model(tool: BaseTool) -> ToolModel | None:
    """Return the model that validates a tool's arguments; None if its JSON schema does."""
    reduced: Any = tool.tool_call_schema
    if isinstance(reduced, dict):
        return None
    full: Any = tool.args_schema or reduced
    for model in (full, reduced):
        if not issubclass(model, BaseModel):
            raise TypeError("its arguments are not a model of Pydantic 2")
    injected: list[str] = []
    for name, field in full.model_fields.items():
        # LangChain hides a field that has a validation alias alone, as if it were injected.
        is_hidden_by_alias = field.alias is None and isinstance(field.validation_alias, str)
        if name not in reduced.model_fields and not (is_hidden_by_alias and not _is_marked_injected(field)):
            injected.append(name)
    return _make_tool_model(full, frozenset(injected))


def _is_marked_injected(field: FieldInfo) -> bool:
    for mark in field.metadata:
        mark_type = mark if isinstance(mark, type) else type(mark)
        if issubclass(mark_type, InjectedToolArg):
            return True
    return False


@lru_cache(maxsize=1024)  # all tools made from a function share its model
def _make_tool_model(model: type[BaseModel], injected: frozenset[str]) -> ToolModel:
    return ToolModel(model, injected)


def are_same_values(value: Any, other: Any) -> bool:
    """Return True if two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(are_same_values(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(are_same_values, value, other))
    return bool(value == other)


def find_unstorable(value: Any, depth: int = 0) -> str | None:
    """Return why a JSON value cannot be stored with a conversation; None if it can."""
    if depth > MAX_DEPTH:
        return "it is nested too deeply"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return "it is an integer of more than 64 bits"
    if isinstance(value, float) and not math.isfinite(value):
        return "it is not a finite number"
    if isinstance(value, str) and clean(value) != value:
        return "it holds half a character (a lone surrogate)"
    parts: list[Any] = []
    if isinstance(value, list):
        parts = value
    elif isinstance(value, dict):
        parts = [*value, *value.values()]
    for part in parts:
        if problem := find_unstorable(part, depth + 1):
            return problem
    return None


def _get_validation_names(model: type[BaseModel], name: str) -> list[str]:
    """Return the names under which a field is validated, in Pydantic's order."""
    config = model.model_config
    alias = model.model_fields[name].validation_alias
    if alias is None or config.get("validate_by_alias") is False:
        return [name]
    names: list[str] = []
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    for choice in choices:
        path = choice.path if isinstance(choice, AliasPath) else [choice]
        if len(path) == 1:
            names.append(str(path[0]))
    if config.get("validate_by_name") or config.get("populate_by_name"):
        names.append(name)
    return names


def _convert_to_json(value: Any, dumped: Any) -> Any:
    """Return a value as JSON, with the fields of nested models under their input names; `dumped` is Pydantic's dump."""
    if isinstance(value, RootModel):
        return _convert_to_json(value.root, dumped)
    if isinstance(value, BaseModel) and isinstance(dumped, dict):
        fields: dict[str, Any] = dict(value.model_extra or {})
        for name in type(value).model_fields:
            item = getattr(value, name)
            input_name = next(iter(_get_validation_names(type(value), name)), name)
            fields[input_name] = _convert_to_json(item, dumped.get(name, item))
        return fields
    if isinstance(value, Mapping) and isinstance(dumped, dict):
        entries: dict[str, Any] = {}
        for key, item in value.items():
            entries[_convert_key(key)] = _convert_to_json(item, dumped.get(key, item))
        return entries
    if isinstance(value, list | tuple) and isinstance(dumped, list | tuple) and len(value) == len(dumped):
        return list(map(_convert_to_json, value, dumped))
    if isinstance(value, set | frozenset):
        return sorted(to_jsonable_python(dumped), key=json.dumps)
    if isinstance(dumped, SecretStr | SecretBytes):
        return to_jsonable_python(dumped.get_secret_value())
    return to_jsonable_python(dumped)


def _convert_key(key: Any) -> str:
    return str(next(iter(to_jsonable_python({key: None}))))
