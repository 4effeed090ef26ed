"""Tools that a YAML file describes, so that an agent can be tried before its tools exist.

The file says what a model sees of each tool, and what its calls return. An agent's file names such a tool as
"bank_tools.yaml:send_money".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Annotated, Any, Self

from langchain_core.tools import StructuredTool, ToolException
from pydantic import AfterValidator, JsonValue, RootModel, model_validator

from arq_graph.agent.json_schema import find_schema_errors
from arq_graph.agent.part import Part, Text, has_value_or_error
from arq_graph.agent.spec_errors import Place, Problem, make_validation_error
from arq_graph.agent.yaml_file import parse_model, read_text
from arq_graph.errors import SpecError, suggestion


def _read_schema(value: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict):
        return {"const": value}
    from jsonschema import Draft202012Validator, SchemaError

    keywords = Draft202012Validator.VALIDATORS.keys() | {"default", "description", "examples", "title"}
    for key in value:
        # JSON Schema ignores unknown keywords, so a typo would remove a bound silently.
        if key not in keywords:
            raise ValueError(f"has {key!r}, which is not a keyword of JSON Schema")
    try:
        Draft202012Validator.check_schema(value)
    except SchemaError as error:
        raise ValueError(f"is not a JSON Schema: {error.message}") from None
    return value


SchemaField = Annotated[dict[str, JsonValue], AfterValidator(_read_schema)]


class Outcome(Part):
    """The outcome of a call: a value or an error."""

    returns: JsonValue = None
    error: Text | None = None

    @model_validator(mode="after")
    def _require_outcome(self) -> Self:
        if not has_value_or_error(self, "returns"):
            raise ValueError("must have either `returns` or `error`")
        return self

    def list_placeholders(self) -> list[str]:
        """Return the names that stand for arguments (`$name`) in the value or error."""
        return Template(json.dumps([self.returns, self.error])).get_identifiers()


class Case(Outcome):
    """The outcome of calls with certain arguments.

    Args:
        when: By the name of an argument, its value, or a JSON Schema that the value fits.
        returns: What such a call returns; `$name` stands for an argument's value.
        error: What the model is told if such a call fails; `$name` stands for an argument's value.
    """

    when: Mapping[Text, Annotated[Any, AfterValidator(_read_schema)]]


class ToolDescription(Outcome):
    """A tool that is described instead of implemented.

    Args:
        description: What the tool does, for the model.
        arguments: By its name, each argument's JSON Schema; one with a `default` may be left out.
        cases: The outcomes of calls with certain arguments; the first that fits decides.
        returns: What every other call returns; `$name` stands for an argument's value.
        error: What the model is told if every other call fails; `$name` stands for an argument's value.
    """

    description: Text
    arguments: Mapping[Text, SchemaField] = {}
    cases: tuple[Case, ...] = ()

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        problems = list(self._find_unknown_arguments())
        problems.extend(self._find_wrong_defaults())
        if problems:
            raise make_validation_error(*problems)
        return self

    def _find_unknown_arguments(self) -> Iterator[Problem]:
        for index, case in enumerate(self.cases):
            yield from self._check_names(list(case.when) + case.list_placeholders(), ("cases", index))
        yield from self._check_names(self.list_placeholders(), ())

    def _check_names(self, names: list[str], place: Place) -> Iterator[Problem]:
        for name in names:
            if name not in self.arguments:
                yield place, f"names {name!r}, which is not an argument of the tool"

    def _find_wrong_defaults(self) -> Iterator[Problem]:
        for name, schema in self.arguments.items():
            if "default" in schema:
                arguments = {name: schema["default"]}
                for _, problem in find_schema_errors({"properties": {name: schema}}, arguments):
                    yield ("arguments", name, "default"), f"does not fit the argument: {problem}"

    def call(self, /, **arguments: Any) -> Any:
        """Return the result of a call; a call fails if its arguments don't fit the schema."""
        messages = []
        for name, problem in find_schema_errors(_make_object_schema(self.arguments), arguments):
            messages.append(f"{name}: {problem}".removeprefix(": "))
        if messages:
            raise ToolException("; ".join(messages))
        for name, schema in self.arguments.items():
            if "default" in schema:
                arguments.setdefault(name, schema["default"])
        outcome = self._choose_outcome(arguments)
        if outcome.error is not None:
            raise ToolException(_fill(outcome.error, arguments))
        return _fill(outcome.returns, arguments)

    def _choose_outcome(self, arguments: Mapping[str, Any]) -> Outcome:
        for case in self.cases:
            if not any(find_schema_errors(_make_object_schema(case.when), arguments)):
                return case
        return self

    def make_tool(self, name: str) -> StructuredTool:
        """Make the tool with that name.

        Its schema looks like one that Pydantic makes from a function, so that replacing the tool by a function doesn't
        change any prompt.
        """
        properties = {}
        for argument, schema in self.arguments.items():
            titled = {"title": argument.title().replace("_", " ")} | schema
            properties[argument] = dict(sorted(titled.items()))
        tool_schema = _make_object_schema(properties) | {"description": self.description, "title": name}
        return StructuredTool(
            name=name,
            description=self.description,
            args_schema=dict(sorted(tool_schema.items())),
            func=self.call,
            handle_tool_error=True,  # the model gets the text of the error unchanged
        )


class ToolFile(RootModel[dict[Text, ToolDescription]]):
    """A file of tools, by name."""


def load_described_tool(reference: str, folder: Path | None) -> StructuredTool:
    """Load the tool that a file names as "file.yaml:tool"."""
    file, _, name = reference.rpartition(":")
    path = (folder or Path()) / file
    tools = _load_tools(str(path), read_text(path, file_kind="file of tools"))
    if name not in tools:
        hint = suggestion(name, tools)
        raise SpecError(
            f"names {reference!r}, but the file has no tool {name!r}{hint} (it has: {', '.join(tools)})"
        )
    return tools[name]


@lru_cache(maxsize=64)  # all agents share the tools of a file, until its text changes
def _load_tools(path: str, text: str) -> dict[str, StructuredTool]:
    file = parse_model(text, ToolFile, file_kind="file of tools", source=path)
    return {name: description.make_tool(name) for name, description in file.root.items()}


def _make_object_schema(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": dict(properties), "type": "object"}
    required = [name for name, argument in properties.items() if "default" not in argument]
    if required:
        schema["required"] = required
    return schema


def _fill(value: JsonValue, arguments: Mapping[str, Any]) -> Any:
    """Replace `$name` by the values of arguments, anywhere in a value."""
    if isinstance(value, dict):
        return {key: _fill(item, arguments) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, arguments) for item in value]
    if not isinstance(value, str):
        return value
    if value[:1] == "$" and value[1:] in arguments:
        return arguments[value[1:]]
    texts = {name: _format_value(argument) for name, argument in arguments.items()}
    return Template(value).safe_substitute(texts)


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.15g}"  # 50.0 is 50, as in JSON
    return json.dumps(value, ensure_ascii=False)
