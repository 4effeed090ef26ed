"""A tool's arguments: how they are asked, read, and held against the tool's own schema, which decides.

Each argument is asked as a decision, `{given, value}`. Not given, the tool's default applies; given and null, None is
passed. What fits the strict subset of JSON schema is asked in its own type; what does not (open objects, tuples,
recursion, anything) is asked as a string that holds JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any
from zlib import crc32

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError, WithJsonSchema, create_model

from arq_graph.agent.tools import argument_schema, schema_errors
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, query, respond
from arq_graph.reasoning.schema import NotStrict, strict_schema

_KEY = re.compile(r"(?!argument_\d+$)[a-z][A-Za-z0-9_]{0,63}")


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
    """One argument of a tool: its `schema` is the strict one, None where it is asked as a string that holds JSON."""

    name: str
    key: str
    type: str
    required: bool
    description: str
    schema: dict[str, Any] | None

    def describe(self) -> dict[str, Any]:
        """The argument as the prompt shows it."""
        entry: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "description": self.description,
        }
        if self.key != self.name:
            entry["key"] = self.key
        if self.schema and "enum" in self.schema:
            entry["one_of"] = self.schema["enum"]
        return entry


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
        properties = self._schema.get("properties") or {}
        self.arguments = tuple(
            self._argument(f"argument_{number}", name, entry if isinstance(entry, Mapping) else {})
            for number, (name, entry) in enumerate(properties.items(), start=1)  # `true` stands for any value
        )
        self.defaults: Mapping[str, Any] = {
            name: entry["default"]
            for name, entry in properties.items()
            if isinstance(entry, Mapping) and "default" in entry
        }
        title = (tool.metadata or {}).get("title")
        self.title = str(title) if title else name_in_words(tool.name).capitalize()
        """The tool as a customer reads it: its title, or its name in words."""

    def _argument(self, number: str, name: str, described: Mapping[str, Any]) -> Argument:
        definitions = {**(self._schema.get("definitions") or {}), **(self._schema.get("$defs") or {})}
        try:
            strict = strict_schema(_inlined(described, definitions))
            schema = {key: value for key, value in strict.items() if key != "description"}
        except NotStrict:
            schema = None
        return Argument(
            name=name,
            key=name if _KEY.fullmatch(name) and not hasattr(ARQ, name) else number,
            type=_type_in_words(described),
            required=name in (self._schema.get("required") or ()),
            description=str(described.get("description") or name_in_words(name)),
            schema=schema,
        )

    def make_key(self, arguments: Mapping[str, Any]) -> str:
        """A call as text that calls share which do the same: defaults spelled out, values as the tool reads them."""
        given = {
            name: value.strip() if isinstance(value, str) else value for name, value in arguments.items()
        }
        if self._model is not None:
            with suppress(Exception):  # a tool's own validator may raise anything
                given = self._model.model_validate(given).model_dump(mode="json", exclude_unset=True)
        return json.dumps([self.name, {**self.defaults, **given}], sort_keys=True, default=str)

    def make_blueprint(self, basis: type[ARQ] | None = None) -> type[ARQ]:
        """A blueprint with one decision for each argument, and before each value what it rests on, if that is asked."""
        words = "Each argument." if basis else "Each argument; below a score of 5, none needs to be given."
        fields: dict[str, Any] = {
            each.key: (_decision(json.dumps(each.schema), basis), respond(each.description))
            for each in self.arguments
        }
        return create_model(f"{self.name}_arguments", __base__=InnerARQ, __doc__=words, **fields)

    def parse(self, decisions: Any) -> tuple[dict[str, Any], list[Problem]]:
        """The arguments that an answer gives, and what is missing or invalid; a call can only be made without.

        `decisions` is None where the tool has no arguments.
        """
        arguments: dict[str, Any] = {}
        problems: dict[str, Problem] = {}
        for argument in self.arguments:
            decision = getattr(decisions, argument.key)
            if not decision.given:
                continue
            value = decision.value
            if argument.schema is None and value is not None:
                try:
                    value = json.loads(value)
                except (ValueError, RecursionError) as error:
                    why = f"the value is not JSON: {error}"
                    problems[argument.name] = Problem(argument, "invalid", why)
                    continue
            arguments[argument.name] = value
        for problem in self.validate(arguments):
            problems.setdefault(problem.argument.name if problem.argument else "", problem)
        return arguments, list(problems.values())

    def validate(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """Hold arguments against the tool's own schema; one problem for each argument at most."""
        problems: dict[str, Problem] = {}
        by_name = {argument.name: argument for argument in self.arguments}
        # What no question would show must not reach the tool, even if its schema is open.
        unknown = [(name, f"the tool has no argument {name!r}") for name in arguments if name not in by_name]
        for name, message in [*unknown, *self._errors(dict(arguments))]:
            argument = by_name.get(name)
            # A null that the schema does not take, for an argument it cannot do without, is no value.
            is_missing = argument is not None and argument.required and arguments.get(name) is None
            found = Problem(argument, "missing") if is_missing else Problem(argument, "invalid", message)
            problems.setdefault(name, found)
        return list(problems.values())

    def _errors(self, arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """What the tool's schema finds wrong, each with the argument's name, "" for the whole."""
        if self._model is None:
            yield from schema_errors(self._schema, arguments)  # as MCP's tools have one
            return
        try:
            self._model.model_validate(arguments)
        except ValidationError as error:
            for item in error.errors(include_url=False, include_context=False, include_input=False):
                yield str(item["loc"][0]) if item["loc"] else "", item["msg"]
        except Exception as error:  # a tool's own validator may raise anything
            yield "", f"{type(error).__name__}: {error}"


def _model_of(tool: BaseTool) -> type[BaseModel] | None:
    """The model that validates a tool's arguments; None where its JSON schema does."""
    # LangChain's reduced model has lost the validators; without injected arguments the whole one serves.
    whole, reduced = (
        model if isinstance(model, type) and issubclass(model, BaseModel) else None
        for model in (tool.args_schema, tool.tool_call_schema)
    )
    return (
        whole if whole and reduced and whole.model_fields.keys() == reduced.model_fields.keys() else reduced
    )


@lru_cache(maxsize=1024)
def _decision(schema: str, basis: type[ARQ] | None) -> type[ARQ]:
    """The decision on a value of one type, shared by all arguments that have it; making a class takes long."""
    strict = json.loads(schema)
    value: Any
    if basis is not None:
        # Fields of a class further right come first.
        decision = _decision(schema, None)
        name = f"{basis.__name__}_{decision.__name__}"
        return create_model(name, __base__=(decision, basis), __doc__=decision.__doc__)
    if strict is None:
        name, value, question = "json", str | None, "The value as a string that holds JSON"
    else:
        name = strict["type"] if strict.keys() == {"type"} else f"{crc32(schema.encode()):x}"
        value, question = Annotated[Any, WithJsonSchema({"anyOf": [strict, {"type": "null"}]})], "The value"
    return create_model(
        f"Decision_{name}",
        __base__=ArgumentDecision,
        __doc__=ArgumentDecision.__doc__,
        value=(value, respond(f"{question}, null if not given.")),
    )


def _inlined(schema: Any, definitions: Mapping[str, Any], seen: tuple[str, ...] = ()) -> Any:
    """Replace references by what they refer to; a recursive one cannot be inlined."""
    if isinstance(schema, list):
        return [_inlined(item, definitions, seen) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    if (reference := schema.get("$ref")) is not None:
        place, _, name = str(reference).rpartition("/")
        if name in seen or name not in definitions or place not in ("#/$defs", "#/definitions"):
            raise NotStrict(f"{reference} refers to itself or to nothing")
        return _inlined(definitions[name], definitions, (*seen, name))
    return {key: _inlined(value, definitions, seen) for key, value in schema.items()}


def _type_in_words(property: Any) -> str:
    if not isinstance(property, Mapping):
        return "any"
    if "anyOf" in property:
        return " or ".join(dict.fromkeys(_type_in_words(option) for option in property["anyOf"]))
    if "enum" in property:
        return "one of " + ", ".join(json.dumps(value) for value in property["enum"][:12])
    if "$ref" in property:
        return str(property["$ref"]).rsplit("/", 1)[-1]
    kind = property.get("format") or property.get("type", "any")
    if kind == "array" and isinstance(property.get("items"), Mapping):
        return f"list of {_type_in_words(property['items'])}"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def name_in_words(name: str) -> str:
    """A name in code as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name).lower()
