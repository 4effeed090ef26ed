"""A tool's arguments: asked for as decisions, parsed from the answer, and validated by the tool's own schema.

Each argument is asked for as a decision, `{given, value}`. If it isn't given, the tool's default applies; if it is
given and null, None is passed. A type that fits the strict subset of JSON Schema is asked for as it is. Any other (open
objects, tuples, recursion, any value) is asked for as a string that holds JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal
from zlib import crc32

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError, WithJsonSchema, create_model

from arq_graph.agent.tools import find_schema_errors, get_argument_schema
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, query, respond
from arq_graph.reasoning.schema import NotStrict, make_strict_schema

MAX_SHOWN_CHOICES = 12
"""How many values of an enum the prompt shows as an argument's type."""

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

    `property_name` is its property in the blueprint, `type` its type in words, `schema` its strict schema, or None if
    its value is asked for as a string that holds JSON.
    """

    name: str
    property_name: str
    type: str
    required: bool
    description: str
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

    `title` is the tool's title, or its name in words, for the customer; `defaults` are the defaults in its schema.
    """

    def __init__(self, tool: BaseTool) -> None:
        self.base_tool = tool
        self.name = tool.name
        self._model = _find_model(tool)
        self._schema = get_argument_schema(tool)
        title = (tool.metadata or {}).get("title")
        self.title = str(title) if title else name_in_words(tool.name).capitalize()

        definitions = dict(self._schema.get("definitions") or {})
        definitions.update(self._schema.get("$defs") or {})
        required = self._schema.get("required") or ()
        arguments: list[Argument] = []
        self.defaults: dict[str, Any] = {}
        properties = self._schema.get("properties") or {}
        for number, (name, schema) in enumerate(properties.items(), start=1):
            if not isinstance(schema, Mapping):
                schema = {}  # `true` allows any value
            arguments.append(_make_argument(number, name, schema, definitions, name in required))
            if "default" in schema:
                self.defaults[name] = schema["default"]
        self.arguments = tuple(arguments)

    def make_call_identity(self, arguments: Mapping[str, Any]) -> str:
        """Return a text that is equal for equal calls: with the defaults, and values as the tool parses them."""
        values = {}
        for name, value in arguments.items():
            values[name] = value.strip() if isinstance(value, str) else value
        if self._model is not None:
            with suppress(Exception):  # a tool's own validator may raise anything
                values = self._model.model_validate(values).model_dump(mode="json", exclude_unset=True)
        return json.dumps([self.name, self.defaults | values], sort_keys=True, default=str)

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
            if argument.schema is None and value is not None:
                try:
                    value = json.loads(value)
                except (ValueError, RecursionError) as error:
                    message = f"the value is not JSON: {error}"
                    problems[argument.name] = Problem(argument, "invalid", message)
                    continue
            arguments[argument.name] = value
        for problem in self.validate(arguments):
            problems.setdefault(problem.argument_name, problem)
        return arguments, list(problems.values())

    def validate(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """Return the problems that the tool's own schema finds with arguments, at most one for each of them."""
        arguments_by_name = {argument.name: argument for argument in self.arguments}
        # No confirmation question shows an unknown argument, so none may reach the tool, even if its schema is open.
        errors: list[tuple[str, str]] = []
        for name in arguments:
            if name not in arguments_by_name:
                errors.append((name, f"the tool has no argument {name!r}"))
        errors += self._find_errors(dict(arguments))
        problems: dict[str, Problem] = {}
        for name, message in errors:
            argument = arguments_by_name.get(name)
            # A required argument that is null has no value, if its schema refuses null.
            is_missing = argument is not None and argument.required and arguments.get(name) is None
            if is_missing:
                problems.setdefault(name, Problem(argument, "missing"))
            else:
                problems.setdefault(name, Problem(argument, "invalid", message))
        return list(problems.values())

    def _find_errors(self, arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each error of the tool's schema with its argument's name, "" for the call as a whole."""
        if self._model is None:
            yield from find_schema_errors(self._schema, arguments)  # as for tools of MCP servers
            return
        try:
            self._model.model_validate(arguments)
        except ValidationError as error:
            for item in error.errors(include_url=False, include_context=False, include_input=False):
                name = str(item["loc"][0]) if item["loc"] else ""
                yield name, item["msg"]
        except Exception as error:  # a tool's own validator may raise anything
            yield "", f"{type(error).__name__}: {error}"


def name_in_words(name: str) -> str:
    """Return a name in code as words, such as "cancel order" for `cancel_order`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name).lower()


def _find_model(tool: BaseTool) -> type[BaseModel] | None:
    """Return the model that validates a tool's arguments, or None if its JSON schema does."""
    full, reduced = _as_model(tool.args_schema), _as_model(tool.tool_call_schema)
    # LangChain's model without injected arguments has lost the validators. Where nothing is injected, both have the
    # same fields, and the full one serves.
    if full and reduced and full.model_fields.keys() == reduced.model_fields.keys():
        return full
    return reduced


def _as_model(schema: Any) -> type[BaseModel] | None:
    return schema if isinstance(schema, type) and issubclass(schema, BaseModel) else None


def _make_argument(
    number: int,
    name: str,
    schema: Mapping[str, Any],
    definitions: Mapping[str, Any],
    is_required: bool,
) -> Argument:
    strict_schema: dict[str, Any] | None = None
    with suppress(NotStrict):
        strict_schema = make_strict_schema(_inline_references(schema, definitions))
        strict_schema.pop("description", None)
    is_property_name = _PROPERTY_NAME.fullmatch(name) and not hasattr(ARQ, name)
    return Argument(
        name=name,
        property_name=name if is_property_name else f"argument_{number}",
        type=_describe_type(schema),
        required=is_required,
        description=str(schema.get("description") or name_in_words(name)),
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


def _inline_references(schema: Any, definitions: Mapping[str, Any], parents: tuple[str, ...] = ()) -> Any:
    """Replace each `$ref` by its definition; `parents` are the names of the definitions around it.

    Raises:
        NotStrict: A reference is recursive or leads nowhere.
    """
    if isinstance(schema, list):
        return [_inline_references(item, definitions, parents) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    reference = schema.get("$ref")
    if reference is None:
        return {key: _inline_references(value, definitions, parents) for key, value in schema.items()}
    place, _, name = str(reference).rpartition("/")
    if name in parents or name not in definitions or place not in ("#/$defs", "#/definitions"):
        raise NotStrict(f"{reference} refers to itself or to nothing")
    return _inline_references(definitions[name], definitions, (*parents, name))


def _describe_type(schema: Any) -> str:
    """Return a type in words, such as "list of integer or null"."""
    if not isinstance(schema, Mapping):
        return "any"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_describe_type, schema["anyOf"])))
    if "enum" in schema:
        return "one of " + ", ".join(map(json.dumps, schema["enum"][:MAX_SHOWN_CHOICES]))
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    kind = schema.get("format") or schema.get("type", "any")
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"list of {_describe_type(schema['items'])}"
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    return str(kind)
