"""A tool's arguments: an answer read as what the tool takes, held against the tool's own schema, which decides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from arq_graph.agent.tools import argument_schema
from arq_graph.nodes.argument_schema import Argument, arguments_blueprint, arguments_of, in_words
from arq_graph.reasoning.blueprint import ARQ


@dataclass(frozen=True)
class Problem:
    """An argument that is missing or invalid; None is the call as a whole."""

    argument: Argument | None
    kind: str
    message: str = ""


class ToolArguments:
    """How one tool's arguments are asked and read; its schema may be a Pydantic model or a JSON schema."""

    def __init__(self, tool: BaseTool) -> None:
        self.tool = tool
        self.name = tool.name
        self._model = _model_of(tool)
        self._schema = argument_schema(tool)
        self.arguments = arguments_of(self._schema)
        self._by_name = {argument.name: argument for argument in self.arguments}

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """What the tool takes for an argument that is not given, where its schema says so."""
        properties = self._schema.get("properties") or {}
        return {
            name: entry["default"]
            for name, entry in properties.items()
            if isinstance(entry, Mapping) and "default" in entry
        }

    @cached_property
    def title(self) -> str:
        """The tool as a customer reads it: its title, or its name in words."""
        title = (self.tool.metadata or {}).get("title")
        return str(title) if title else in_words(self.name).capitalize()

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The arguments' names as a customer reads them."""
        return {argument.name: argument.name.replace("_", " ") for argument in self.arguments}

    def key(self, arguments: Mapping[str, Any]) -> str:
        """A call as text that calls share which do the same: defaults spelled out, texts without space around."""
        given = {
            name: value.strip() if isinstance(value, str) else value for name, value in arguments.items()
        }
        return json.dumps([self.name, {**self.defaults, **given}], sort_keys=True, default=str)

    @property
    def blueprint(self) -> type[ARQ]:
        """A blueprint with one decision for each argument."""
        return arguments_blueprint(self.name, self.arguments)

    def blueprint_with(self, basis: type[ARQ]) -> type[ARQ]:
        """A blueprint with one decision for each argument, and before each value what it rests on."""
        return arguments_blueprint(self.name, self.arguments, basis)

    def read(self, decisions: Any) -> tuple[dict[str, Any], list[Problem]]:
        """The arguments that an answer gives, and what is missing or invalid; a call can only be made without."""
        arguments: dict[str, Any] = {}
        problems: dict[str, Problem] = {}
        for argument in self.arguments:
            decision = getattr(decisions, argument.key)
            if not decision.given:
                if argument.required:
                    problems[argument.name] = Problem(argument, "missing")
                continue
            arguments[argument.name] = decision.value
            if argument.as_json and decision.value is not None:
                try:
                    arguments[argument.name] = json.loads(decision.value)
                except (ValueError, RecursionError) as error:
                    del arguments[argument.name]
                    why = f"the value is not JSON: {error}"
                    problems[argument.name] = Problem(argument, "invalid", why)
        for problem in self.validate(arguments):
            problems.setdefault(problem.argument.name if problem.argument else "", problem)
        return arguments, list(problems.values())

    def validate(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """Hold arguments against the tool's own schema; one problem for each argument at most."""
        problems: dict[str, Problem] = {}
        errors = self._by_model(arguments) if self._model else self._by_json_schema(arguments)
        for name, is_missing, message in errors:
            argument = self._by_name.get(name)
            # A null that the schema does not take, for an argument it cannot do without, is no value.
            nulled = argument is not None and argument.required and arguments.get(argument.name) is None
            kind = "missing" if is_missing or nulled else "invalid"
            problems.setdefault(name, Problem(argument, kind, message))
        return list(problems.values())

    def _by_model(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, bool, str]]:
        """What a Pydantic model says: the argument's name ("" for the whole), whether it is missing, and why."""
        assert self._model is not None
        try:
            self._model.model_validate(dict(arguments))
        except ValidationError as error:
            for item in error.errors(include_url=False, include_context=False, include_input=False):
                place = item["loc"]
                yield (
                    str(place[0]) if place else "",
                    item["type"] == "missing" and len(place) == 1,
                    item["msg"],
                )
        except Exception as error:  # a tool's own validator may raise anything
            yield "", False, f"{type(error).__name__}: {error}"

    def _by_json_schema(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, bool, str]]:
        """The same of a JSON schema, as MCP's tools have one."""
        from jsonschema import Draft202012Validator
        from jsonschema.validators import validator_for
        from referencing import Registry

        for name in self._schema.get("required") or ():
            if name not in arguments:
                yield name, True, "Field required"
        # An empty registry: a reference to a web address is never fetched.
        validator = validator_for(self._schema, default=Draft202012Validator)(
            self._schema, registry=Registry()
        )
        try:
            for error in validator.iter_errors(dict(arguments)):
                if error.absolute_path:
                    yield str(error.absolute_path[0]), False, error.message
                elif error.validator != "required":
                    yield "", False, error.message
        except Exception as error:  # a reference that leads nowhere, an unknown type, a broken pattern
            yield "", False, f"the tool's own schema cannot be used: {type(error).__name__}: {error}"


def _model_of(tool: BaseTool) -> type[BaseModel] | None:
    """The model that validates a tool's arguments; None where its JSON schema does."""
    model: Any = tool.tool_call_schema
    if isinstance(model, dict) or not issubclass(model, BaseModel):
        return None
    whole = tool.args_schema
    if isinstance(whole, type) and issubclass(whole, BaseModel):
        # LangChain's reduced model has lost the validators; without injected arguments the whole one serves.
        model = whole if whole.model_fields.keys() == model.model_fields.keys() else model
    found: type[BaseModel] = model
    return found
