"""A tool's arguments: asked for as decisions, parsed from the answer, and validated by the tool's own schema.

Each argument is named as the tool takes it, and asked for as a decision, `{given, value}`. If it isn't given, the
tool's default applies; if it is given and null, None is passed. A type that fits the strict subset of JSON Schema is
asked for as it is. Any other (open objects, tuples, recursion, any value) is asked for as a string that holds JSON.

Before a person is asked to agree to a call, `ToolSchema.complete` runs its arguments through the tool's own model. What
comes out is stored, shown, and passed to the tool.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal
from zlib import crc32

from langchain_core.tools import BaseTool
from pydantic import ValidationError, WithJsonSchema, create_model

from arq_graph.agent.json_schema import describe_type, find_schema_errors, inline_references
from arq_graph.agent.tool_model import (
    ToolModel,
    are_same_values,
    find_overwritten_names,
    find_unstorable,
    get_tool_model,
)
from arq_graph.agent.tools import get_argument_schema, get_json_schema
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, query, respond
from arq_graph.reasoning.schema import NotStrict, drop_optional_nulls, make_strict_schema
from arq_graph.reasoning.sections import as_json

# A name that could be taken for the property of another argument doesn't serve as a property's name.
_PROPERTY_NAME = re.compile(r"(?!argument_\d+$)[a-z][A-Za-z0-9_]{0,63}")


class ArgumentDecision(ARQ):
    """One argument of the call."""

    value_in_context: str | None = query(
        "Where is the value, with its id and in its own words? Null: nowhere."
    )
    already_provided_and_needed_again: bool | None = query(
        "If somewhere: was it said for an earlier need, and is it needed anew? Else null."
    )
    customer_should_provide_it: bool | None = query(
        "If nowhere: is it for the customer to provide? Else null."
    )
    problematic_to_guess: bool | None = query(
        "If nowhere, and required: would guessing it do harm? Else null."
    )
    given: bool = respond("Is there a value to pass? Never one that nobody gave.")


@dataclass(frozen=True)
class Argument:
    """One argument of a tool.

    `name` is the name that the tool takes it by, `property_name` its property in the blueprint, `type` its type in
    words. `source` is its schema, if possible without references, and `schema` the strict one, or None if its value is
    asked for as a string that holds JSON.
    """

    name: str
    property_name: str
    type: str
    required: bool
    description: str
    source: Mapping[str, Any]
    schema: dict[str, Any] | None

    @property
    def choices(self) -> list[Any] | None:
        """The values that it may have, if its schema lists them."""
        return self.schema.get("enum") if self.schema else None

    def describe(self) -> dict[str, Any]:
        """Return the argument as the prompt shows it."""
        entry: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "description": self.description,
        }
        if self.property_name != self.name:
            entry["key"] = self.property_name
        if self.choices is not None:
            entry["one_of"] = self.choices
        return entry


@dataclass(frozen=True)
class Problem:
    """A missing or invalid argument; `argument` is None if the problem is with the call as a whole."""

    argument: Argument | None
    kind: Literal["missing", "invalid"]
    message: str = ""

    @property
    def argument_name(self) -> str:
        """The argument's name; "" for the call as a whole."""
        return self.argument.name if self.argument else ""


class ToolSchema:
    """The arguments of one tool, whose schema is a Pydantic model or a JSON schema.

    `defaults` are the defaults in its schema.
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
            arguments.append(_make_argument(number, name, part, schema, name in required))
            if "default" in part:
                self.defaults[name] = part["default"]
        self.arguments = tuple(arguments)
        self._arguments_by_name = {argument.name: argument for argument in arguments}

    def make_call_identity(self, arguments: Mapping[str, Any]) -> str:
        """Return a text that is equal for equal calls: with the defaults, and values as the tool parses them."""
        values = {}
        for name, value in arguments.items():
            values[name] = value.strip() if isinstance(value, str) else value
        if self._model is not None:
            with suppress(Exception):  # a tool's own validator may raise anything
                dumped = self._model.dump(self._model.validate(values))
                values = {name: dumped.get(name, value) for name, value in values.items()}
        return json.dumps([self.name, self.defaults | values], sort_keys=True, default=str)

    def is_repetition(self, arguments: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        """Return True if a proposed call equals an earlier one.

        What was generated for the earlier call, such as a key or a time, doesn't tell them apart.
        """
        compared: dict[str, Any] = {}
        for name, value in earlier.items():
            argument = self._arguments_by_name.get(name)
            is_optional = argument is not None and not argument.required
            is_generated = self._model is not None and is_optional and name not in self.defaults
            if name in arguments or not is_generated:
                compared[name] = value
        return self.make_call_identity(arguments) == self.make_call_identity(compared)

    def make_blueprint(self, basis: type[ARQ] | None = None) -> type[ARQ]:
        """Return a blueprint with one decision per argument; `basis` is asked before each value."""
        description = "Each argument."
        if basis is None:
            description = "Each argument; below a score of 5, none needs to be given."
        fields: dict[str, Any] = {}
        for argument in self.arguments:
            decision = _make_decision(json.dumps(argument.schema), basis)
            fields[argument.property_name] = (decision, respond(argument.description))
        return create_model(f"{self.name}_arguments", __base__=InnerARQ, __doc__=description, **fields)

    def parse(self, answer: Any) -> tuple[dict[str, Any], list[Problem]]:
        """Return the arguments that an answer gives, and the problems with them.

        `answer` is an instance of the blueprint; None if the tool has no arguments.
        """
        arguments: dict[str, Any] = {}
        problems: dict[str, Problem] = {}
        for argument in self.arguments:
            decision = getattr(answer, argument.property_name)
            if not decision.given:
                continue
            value = decision.value
            if argument.schema is not None:
                value = drop_optional_nulls(value, argument.source)
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
        """Return arguments under the names that the tool takes; LangChain shows a model the names of fields."""
        return self._model.rename(arguments) if self._model else dict(arguments)

    def validate(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """Return the problems that the tool's own schema finds with arguments, at most one for each of them."""
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
        """Return the arguments that the tool itself makes of these, with its defaults, and the problems with them.

        They are what a person agrees to: the tool takes every one of them, and changes none any more.
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
        return completed, [_make_loss_problem(lost)] if lost else []

    def _complete_by_model(
        self, model: ToolModel, arguments: Mapping[str, Any], overwritten: Sequence[str]
    ) -> tuple[dict[str, Any], list[Problem]]:
        try:
            first = model.validate(arguments)
            completed = model.dump(first)
            second = model.validate(completed)
            again = model.dump(second)
            lost = model.find_excluded(first, overwritten)
        except Exception as error:  # a tool's own validator may raise anything
            _warn_of_failed_check(self.name, error)
            message = (
                "this tool's arguments cannot be validated a second time, as its own model gives them back"
            )
            return dict(arguments), [Problem(None, "invalid", message)]
        if lost:
            return dict(arguments), [_make_loss_problem(lost)]
        # A default isn't validated the first time: it may be 5 first, and a Decimal then, which is the same.
        if first != second and not are_same_values(completed, again):
            change = _describe_change(completed, again)
            message = f"this tool's arguments change each time they are validated: {change}"
            return dict(arguments), [Problem(None, "invalid", message)]
        return again, self.validate(again)

    def _find_errors(self, arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each error of the tool's schema with its argument's name, "" for the call as a whole."""
        for name, value in arguments.items():
            # No confirmation question shows an unknown argument, so none may reach the tool, even if its schema is
            # open.
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
                yield next(iter(self.rename({name: None})), name), item["msg"]
        except Exception as error:  # a tool's own validator may raise anything
            _warn_of_failed_check(self.name, error)
            yield "", "the tool's own check of these arguments failed"


def _make_loss_problem(names: Sequence[str]) -> Problem:
    message = f"LangChain does not pass {', '.join(names)} to the tool; rename it, or do not exclude it"
    return Problem(None, "invalid", message)


def _describe_change(values: Mapping[str, Any], again: Mapping[str, Any]) -> str:
    """Return which values are others the second time."""
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


def name_in_words(name: str) -> str:
    """Return a name in code as words, such as "cancel order" for `cancel_order`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name).lower()


def _make_argument(
    number: int, name: str, schema: Mapping[str, Any], root: Mapping[str, Any], is_required: bool
) -> Argument:
    source: Mapping[str, Any] = schema
    strict_schema: dict[str, Any] | None = None
    with suppress(NotStrict):
        source = inline_references(schema, root)
        strict_schema = make_strict_schema(source, optional_as_null=True)
        strict_schema.pop("description", None)
    is_property_name = _PROPERTY_NAME.fullmatch(name) and not hasattr(ARQ, name)
    return Argument(
        name=name,
        property_name=name if is_property_name else f"argument_{number}",
        type=describe_type(schema),
        required=is_required,
        description=str(schema.get("description") or name_in_words(name)),
        source=source,
        schema=strict_schema,
    )


@lru_cache(maxsize=1024)  # making a class takes long
def _make_decision(schema_json: str, basis: type[ARQ] | None) -> type[ARQ]:
    """Return the decision on a value of one type, shared by all arguments of that type.

    Args:
        schema_json: The type's strict schema as JSON; `null` if the value is a string that holds JSON.
        basis: Queries that are asked before the value.
    """
    if basis is not None:
        decision = _make_decision(schema_json, None)
        name = f"{basis.__name__}_{decision.__name__}"
        # The fields of the last base come first.
        return create_model(name, __base__=(decision, basis), __doc__=decision.__doc__)
    schema = json.loads(schema_json)
    value: Any
    if schema is None:
        name = "json"
        value = (str | None, respond("The value as a string that holds JSON, null if not given."))
    else:
        name = schema["type"] if schema.keys() == {"type"} else f"{crc32(schema_json.encode()):x}"
        nullable: Any = Annotated[Any, WithJsonSchema({"anyOf": [schema, {"type": "null"}]})]
        value = (nullable, respond("The value, null if not given."))
    return create_model(
        f"Decision_{name}", __base__=ArgumentDecision, __doc__=ArgumentDecision.__doc__, value=value
    )
