"""A tool's arguments as a blueprint, and an answer as the tool's arguments.

Each argument is a decision, `{given, value}`: not given, the tool's default applies; given and null, None is
passed. What fits the strict subset of JSON schema is asked in its own type; what does not (open objects, tuples,
recursion, anything) is asked as a string that holds JSON. The tool's own schema has the last word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any
from zlib import crc32

from langchain_core.tools import BaseTool
from pydantic import WithJsonSchema, create_model

from arq_graph.nodes.argument_checks import check_of, schema_of
from arq_graph.reasoning.blueprint import ARQ, query, respond
from arq_graph.reasoning.schema import NotStrict, strict_schema

_KEY = re.compile(r"[a-z][A-Za-z0-9_]{0,63}")
_NUMBERED = re.compile(r"argument_\d+")


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

    Args:
        name: The name the tool knows it by.
        key: The property that asks for it.
        type: Its type in words, for the prompt.
        required: Whether the tool demands it.
        description: What it means.
        as_json: Whether it is asked as a string that holds JSON.
        schema: The strict schema of its value; None where it is asked as JSON.
    """

    name: str
    key: str
    type: str
    required: bool
    description: str
    as_json: bool
    schema: dict[str, Any] | None

    def shown(self) -> dict[str, Any]:
        """The argument as the prompt shows it."""
        entry = {
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
    """An argument that is missing or invalid."""

    argument: Argument | None
    kind: str
    message: str = ""


class ToolArguments:
    """How one tool's arguments are asked and read.

    Args:
        tool: A LangChain tool; its `tool_call_schema` may be a Pydantic model or a JSON schema.
    """

    def __init__(self, tool: BaseTool) -> None:
        self.tool = tool
        self.name = tool.name
        self._check = check_of(tool)
        schema = schema_of(tool)
        definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
        required = set(schema.get("required") or ())
        self.arguments = tuple(
            _argument(number, name, property, definitions, name in required)
            for number, (name, property) in enumerate((schema.get("properties") or {}).items(), start=1)
        )

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """What the tool takes for an argument that is not given, where its schema says so."""
        properties = schema_of(self.tool).get("properties") or {}
        return {
            name: entry["default"]
            for name, entry in properties.items()
            if isinstance(entry, Mapping) and "default" in entry
        }

    @cached_property
    def title(self) -> str:
        """The tool as a customer reads it: its title, or its name in words."""
        title = (self.tool.metadata or {}).get("title")
        return str(title) if title else _plain(self.name).capitalize()

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The arguments' names as a customer reads them."""
        return {argument.name: argument.name.replace("_", " ") for argument in self.arguments}

    def settled(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as calls that do the same share them: defaults spelled out, texts without space around them."""
        given = {
            name: value.strip() if isinstance(value, str) else value for name, value in arguments.items()
        }
        return {**self.defaults, **given}

    def key(self, arguments: Mapping[str, Any]) -> str:
        """A call as text that calls share which do the same."""
        return json.dumps([self.name, self.settled(arguments)], sort_keys=True, default=str)

    @property
    def blueprint(self) -> type[ARQ]:
        """A blueprint with one decision for each argument."""
        fields: dict[str, Any] = {
            argument.key: (_decision(argument), respond(argument.description)) for argument in self.arguments
        }
        return create_model(
            f"{self.name}_arguments",
            __base__=ARQ,
            __doc__="Each argument; below a score of 5, none needs to be given.",
            **fields,
        )

    def blueprint_with(self, basis: type[ARQ]) -> type[ARQ]:
        """A blueprint with one decision for each argument, and before each value what it rests on.

        Args:
            basis: What is asked of each value.
        """
        fields: dict[str, Any] = {
            argument.key: (_with_basis(_decision(argument), basis), respond(argument.description))
            for argument in self.arguments
        }
        return create_model(f"{self.name}_arguments", __base__=ARQ, __doc__="Each argument.", **fields)

    def read(self, decisions: Any) -> tuple[dict[str, Any], list[Problem]]:
        """Turn an answer into the tool's arguments, and say what is missing or invalid.

        Returns:
            The arguments that were given, and the problems; the call can only be made without any.
        """
        arguments: dict[str, Any] = {}
        problems: list[Problem] = []
        for argument in self.arguments:
            decision = getattr(decisions, argument.key)
            if not decision.given:
                if argument.required:
                    problems.append(Problem(argument, "missing"))
                continue
            value = decision.value
            if argument.as_json and value is not None:
                try:
                    value = json.loads(value)
                except (ValueError, RecursionError) as error:
                    problems.append(Problem(argument, "invalid", f"the value is not JSON: {error}"))
                    continue
            arguments[argument.name] = value
        known = {problem.argument.name for problem in problems if problem.argument}
        return arguments, problems + [
            problem
            for problem in self.validate(arguments)
            if problem.argument is None or problem.argument.name not in known
        ]

    def validate(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """Hold arguments against the tool's own schema; one problem for each argument at most."""
        by_name = {argument.name: argument for argument in self.arguments}
        problems: dict[str, Problem] = {}
        for error in self._check(arguments):
            argument = by_name.get(error.argument)
            # A null that the schema does not take, for an argument it cannot do without, is no value.
            nulled = argument is not None and argument.required and arguments.get(argument.name) is None
            kind = "missing" if error.missing or nulled else "invalid"
            problems.setdefault(error.argument, Problem(argument, kind, error.message))
        return list(problems.values())


def _argument(
    number: int, name: str, property: Any, definitions: Mapping[str, Any], required: bool
) -> Argument:
    described = property if isinstance(property, Mapping) else {}  # `true` stands for any value
    try:
        schema = strict_schema(_inlined(described, definitions))
    except NotStrict:
        schema = None
    fits = _KEY.fullmatch(name) and not _NUMBERED.fullmatch(name) and not hasattr(ARQ, name)
    return Argument(
        name=name,
        key=name if fits else f"argument_{number}",
        type=_in_words(described),
        required=required,
        description=str(described.get("description") or _plain(name)),
        as_json=schema is None,
        schema=schema,
    )


def _decision(argument: Argument) -> type[ArgumentDecision]:
    if argument.schema is None:
        return _decision_on("json")
    return _decision_on(json.dumps(_undescribed(argument.schema)))


@lru_cache(maxsize=1024)
def _with_basis(decision: type[ArgumentDecision], basis: type[ARQ]) -> type[ARQ]:
    # Fields of a class further right come first.
    return create_model(
        f"{basis.__name__}_{decision.__name__}", __base__=(decision, basis), __doc__=decision.__doc__
    )


@lru_cache(maxsize=1024)
def _decision_on(schema: str) -> type[ArgumentDecision]:
    """The decision on a value of one type, shared by all arguments that have it; making a class takes long."""
    value: Any
    if schema == "json":
        name, value, question = "json", str | None, "The value as a string that holds JSON"
    else:
        strict = json.loads(schema)
        name = strict["type"] if strict.keys() == {"type"} else f"{crc32(schema.encode()):x}"
        value = Annotated[Any, WithJsonSchema({"anyOf": [strict, {"type": "null"}]})]
        question = "The value"
    return create_model(
        f"Decision_{name}",
        __base__=ArgumentDecision,
        __doc__=ArgumentDecision.__doc__,
        value=(value, respond(f"{question}, null if not given.")),
    )


def _undescribed(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "description"}


def _inlined(schema: Any, definitions: Mapping[str, Any], seen: tuple[str, ...] = ()) -> Any:
    """Replace references by what they refer to; a recursive one cannot be inlined.

    Raises:
        NotStrict: A type that holds itself.
    """
    if isinstance(schema, list):
        return [_inlined(item, definitions, seen) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    if (reference := schema.get("$ref")) is not None:
        place, _, name = str(reference).rpartition("/")
        if name in seen or name not in definitions or place not in ("#/$defs", "#/definitions"):
            raise NotStrict(f"{reference} refers to itself or to nothing")
        return _inlined(definitions[name], definitions, (*seen, name))
    inlined = {key: _inlined(value, definitions, seen) for key, value in schema.items() if key != "default"}
    if isinstance(properties := schema.get("properties"), Mapping):
        # Names of the tool's own choice, `default` and `$ref` among them.
        inlined["properties"] = {
            name: _inlined(value, definitions, seen) for name, value in properties.items()
        }
    return inlined


def _in_words(property: Any) -> str:
    if not isinstance(property, Mapping):
        return "any"
    if "anyOf" in property:
        return " or ".join(dict.fromkeys(_in_words(option) for option in property["anyOf"]))
    if "enum" in property:
        return "one of " + ", ".join(json.dumps(value) for value in property["enum"][:12])
    if "$ref" in property:
        return str(property["$ref"]).rsplit("/", 1)[-1]
    kind = property.get("format") or property.get("type", "any")
    if kind == "array" and isinstance(property.get("items"), Mapping):
        return f"list of {_in_words(property['items'])}"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _plain(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name).lower()
