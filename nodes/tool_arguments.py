"""A tool's arguments: parsed from an answer, and validated by the tool's own schema.

Before a person is asked to agree to a call, `ToolSchema.complete` validates its arguments with the tool's own model.
The result is stored, shown, and passed to the tool.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from langchain_core.tools import BaseTool
from pydantic import ValidationError, create_model

from arq_graph.agent.json_schema import find_schema_errors
from arq_graph.agent.tool_model import (
    ToolModel,
    are_same_values,
    find_overwritten_names,
    find_unstorable,
    get_tool_model,
)
from arq_graph.agent.tools import get_argument_schema, get_json_schema
from arq_graph.nodes.argument_decisions import Argument, make_argument, make_decision
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, respond
from arq_graph.reasoning.schema import drop_optional_nulls
from arq_graph.reasoning.sections import as_json


@dataclass(frozen=True)
class Problem:
    """A missing or invalid argument; `argument` is None if the call as a whole is invalid."""

    argument: Argument | None
    kind: Literal["missing", "invalid"]
    message: str = ""

    @property
    def argument_name(self) -> str:
        """The argument's name; "" for the call as a whole."""
        return self.argument.name if self.argument else ""


class ToolSchema:
    """The arguments of one tool, whose schema is a Pydantic model or a JSON schema.

    Attributes:
        base_tool: The tool.
        name: Its name.
        arguments: Its arguments, in order.
        defaults: The defaults in its schema, by argument.
    """

    def __init__(self, tool: BaseTool) -> None:
        self.base_tool = tool
        self.name = tool.name
        self._model: ToolModel | None = get_tool_model(tool)
        schema = get_argument_schema(tool)
        required = schema.get("required") or ()
        arguments: list[Argument] = []
        self.defaults: dict[str, Any] = {}
        for number, (name, part) in enumerate(schema["properties"].items(), start=1):
            if not isinstance(part, Mapping):
                part = {}  # `true` allows any value
            arguments.append(make_argument(number, name, part, schema, name in required))
            if "default" in part:
                self.defaults[name] = part["default"]
        self.arguments = tuple(arguments)
        self._arguments_by_name = {argument.name: argument for argument in arguments}

    def make_call_identity(self, arguments: Mapping[str, Any]) -> str:
        """Return a text that is equal for equal calls: with the defaults, and values as the tool parses them."""
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            values[name] = value.strip() if isinstance(value, str) else value
        if self._model is not None:
            parsed: Mapping[str, Any] = {}
            with suppress(Exception):  # a tool's own validator may raise anything
                parsed = self._model.dump(self._model.validate(values))
            for name in values.keys() & parsed.keys():
                values[name] = parsed[name]
        return json.dumps([self.name, self.defaults | values], sort_keys=True, default=str)

    def is_repetition(self, arguments: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return True if a proposed call repeats an earlier one.

        Values that the tool's model generated for the earlier call, such as a key or a time, aren't compared.
        """
        compared: dict[str, Any] = {}
        for name, value in earlier.items():
            argument = self._arguments_by_name.get(name)
            is_optional = argument is not None and not argument.required
            may_be_generated = self._model is not None and is_optional and name not in self.defaults
            if name in arguments or not may_be_generated:
                compared[name] = value
        return self.make_call_identity(arguments) == self.make_call_identity(compared)

    def make_blueprint(
        self, basis: type[ARQ] | None = None, description: str = "Each argument."
    ) -> type[ARQ]:
        """Return a blueprint with one decision per argument; `basis` is asked before each value."""
        fields: list[tuple[str, str, str]] = []
        for argument in self.arguments:
            fields.append((argument.property_name, argument.description, json.dumps(argument.strict_schema)))
        return _make_arguments_blueprint(f"{self.name}_arguments", description, basis, tuple(fields))

    def parse(self, answer: Any) -> tuple[dict[str, Any], list[Problem]]:
        """Return the arguments in an answer, and the problems with them.

        `answer` is an instance of the blueprint; None if the tool takes no arguments.
        """
        arguments: dict[str, Any] = {}
        problems: dict[str, Problem] = {}
        for argument in self.arguments:
            decision = getattr(answer, argument.property_name)
            if not decision.given:
                continue
            value = decision.value
            if argument.strict_schema is not None:
                value = drop_optional_nulls(value, argument.inlined_schema)
            elif value is not None:
                try:
                    value = json.loads(value)
                except (ValueError, RecursionError):
                    problems[argument.name] = Problem(argument, "invalid", "the value is not JSON")
                    continue
            arguments[argument.name] = value
        for problem in self.validate(arguments):
            problems.setdefault(problem.argument_name, problem)
        return arguments, list(problems.values())

    def rename(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments under the tool's input names, since a chat model may know them by the fields' names."""
        return self._model.rename(arguments) if self._model else dict(arguments)

    def _get_input_name(self, field: str) -> str:
        """Return the name under which the tool takes a field of its model; an error may name either."""
        return next(iter(self.rename({field: None})), field)

    def validate(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """Return the problems that the tool's own schema finds, at most one for each argument."""
        problems: dict[str, Problem] = {}
        for name, message in self._find_errors(dict(arguments)):
            argument = self._arguments_by_name.get(name)
            # A required argument that is null has no value, if its schema refuses null.
            is_missing = argument is not None and argument.required and arguments.get(name) is None
            if is_missing or (argument is not None and name not in arguments):
                problems.setdefault(name, Problem(argument, "missing"))
            else:
                problems.setdefault(name, Problem(argument, "invalid", message))
        return list(problems.values())

    def complete(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
        """Return the arguments as the tool itself completes and converts them, and the problems with them.

        A person can agree to these: the tool receives all of them, and won't change them again.
        """
        if problems := self.validate(arguments):
            return dict(arguments), problems
        overwritten = find_overwritten_names(self.base_tool)
        if self._model is not None:
            return self._complete_by_model(self._model, arguments, overwritten)
        completed = dict(arguments)
        for name, default in self.defaults.items():
            with_default = {name: default} | completed
            if not self.validate(with_default):
                completed = with_default
        lost = [name for name in overwritten if name in completed]
        if lost:
            return completed, [_make_loss_problem(lost)]
        return completed, []

    def _complete_by_model(
        self, model: ToolModel, arguments: Mapping[str, Any], overwritten: Sequence[str]
    ) -> tuple[dict[str, Any], list[Problem]]:
        try:
            first = model.validate(arguments)
            completed = model.dump(first)
            second = model.validate(completed)
            completed_again = model.dump(second)
            lost = model.find_excluded(first, overwritten)
        except Exception as error:  # a tool's own validator may raise anything
            _warn_of_failed_check(self.name, error)
            message = (
                "this tool's arguments cannot be validated a second time, as its own model gives them back"
            )
            return dict(arguments), [Problem(None, "invalid", message)]
        if lost:
            return dict(arguments), [_make_loss_problem(lost)]
        # A default isn't validated the first time: it may be 5 first and a Decimal then, which is the same value.
        if first != second and not are_same_values(completed, completed_again):
            change = _describe_change(completed, completed_again)
            message = f"this tool's arguments change each time they are validated: {change}"
            return dict(arguments), [Problem(None, "invalid", message)]
        return completed_again, self.validate(completed_again)

    def _find_errors(self, arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each error with the name of its argument, or "" if it is about the call as a whole."""
        for name, value in arguments.items():
            # Even an open schema must not let an unknown argument through: no confirmation question would show it.
            if name not in self._arguments_by_name:
                yield name, f"the tool has no argument {name!r}"
            elif problem := find_unstorable(value):
                yield name, problem
        if self._model is None:
            yield from find_schema_errors(get_json_schema(self.base_tool), arguments)
            return
        try:
            self._model.validate(arguments)
        except ValidationError as error:
            for item in error.errors(include_url=False, include_context=False, include_input=False):
                name = str(item["loc"][0]) if item["loc"] else ""
                yield self._get_input_name(name), item["msg"]
        except Exception as error:  # a tool's own validator may raise anything
            _warn_of_failed_check(self.name, error)
            yield "", "the tool's own check of these arguments failed"


def _make_loss_problem(names: Sequence[str]) -> Problem:
    message = f"LangChain does not pass {', '.join(names)} to the tool; rename it, or do not exclude it"
    return Problem(None, "invalid", message)


def _describe_change(values: Mapping[str, Any], again: Mapping[str, Any]) -> str:
    """Return which values differ after the second validation."""
    changes: list[str] = []
    for name, value in values.items():
        if name not in again or not are_same_values(value, again[name]):
            changes.append(f"{name} is {as_json(value)} first, then {as_json(again.get(name))}")
    return "; ".join(changes)


def _warn_of_failed_check(tool: str, error: Exception) -> None:
    warnings.warn(
        f"the tool {tool!r} was not called, since its own check of the arguments raised {type(error).__name__}: "
        f"{error}. A validator refuses a value with ValueError",
        stacklevel=2,
    )


@lru_cache(maxsize=256)  # making a class takes long, and the next agent may have the same tool
def _make_arguments_blueprint(
    name: str, description: str, basis: type[ARQ] | None, arguments: Sequence[tuple[str, str, str]]
) -> type[ARQ]:
    """Make a blueprint of arguments, each given as its property, its description and its schema."""
    fields: dict[str, Any] = {}
    for property_name, argument_description, schema_json in arguments:
        fields[property_name] = (make_decision(schema_json, basis), respond(argument_description))
    return create_model(name, __base__=InnerARQ, __doc__=description, **fields)
