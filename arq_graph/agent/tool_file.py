"""Tools that a YAML file describes instead of a function: what a model sees of them, and what their calls give.

So an agent can be tried before its tools exist. Such a tool is named as "bank_tools.yaml:send_money".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Annotated, Any, Self

from langchain_core.tools import StructuredTool, ToolException
from pydantic import AfterValidator, JsonValue, RootModel, model_validator

from arq_graph.agent.parts import Part, Text
from arq_graph.agent.spec_errors import Place, Problem, misfits
from arq_graph.agent.tools import schema_errors
from arq_graph.agent.yaml_file import parse_model, read_text
from arq_graph.errors import SpecError, suggestion


def _schema(value: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict):
        return {"const": value}
    from jsonschema import Draft202012Validator, SchemaError

    known = [*Draft202012Validator.VALIDATORS, "default", "description", "examples", "title"]
    for word in value:
        if word not in known:  # JSON Schema itself takes any word, so a typo would lift a bound in silence
            raise ValueError(f"has {word!r}, which is no keyword of JSON Schema{suggestion(word, known)}")
    try:
        Draft202012Validator.check_schema(value)
    except SchemaError as error:
        raise ValueError(f"is no JSON Schema: {error.message}") from None
    return value


def _object(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    required = [name for name, schema in properties.items() if "default" not in schema]
    return {"properties": dict(properties), **({"required": required} if required else {}), "type": "object"}


class Outcome(Part):
    """What a call gives: a value or an error."""

    returns: JsonValue = None
    error: Text | None = None

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if len(self.model_fields_set & {"returns", "error"}) != 1:
            raise ValueError("must have either `returns` or `error`")
        return self


class Case(Outcome):
    """What calls with certain arguments give.

    Args:
        when: By the name of an argument, its value, or a JSON Schema that the value fits.
        returns: What such a call gives; `$name` stands for an argument's value.
        error: What the model is told where such a call fails; `$name` stands for an argument's value.
    """

    when: Mapping[Text, Annotated[Any, AfterValidator(_schema)]]


class ToolDescription(Outcome):
    """A tool that is described instead of written.

    Args:
        description: What the tool does, for the model.
        arguments: By its name, each argument's JSON Schema; one with a `default` may be left out.
        cases: What calls with certain arguments give; the first that fits decides.
        returns: What every other call gives; `$name` stands for an argument's value.
        error: What the model is told where every other call fails; `$name` stands for an argument's value.
    """

    description: Text
    arguments: Mapping[Text, Annotated[dict[str, JsonValue], AfterValidator(_schema)]] = {}
    cases: tuple[Case, ...] = ()

    @model_validator(mode="after")
    def _names_its_arguments(self) -> Self:
        outcomes: tuple[Outcome, ...] = (*self.cases, self)
        wrong: list[Problem] = []
        for at, outcome in enumerate(outcomes):
            when: Mapping[str, Any] = getattr(outcome, "when", {})
            template = Template(json.dumps([outcome.returns, outcome.error]))
            for name in [*when, *template.get_identifiers()]:
                if name not in self.arguments:
                    near = suggestion(name, self.arguments)
                    place: Place = ("cases", at) if at < len(self.cases) else ()
                    wrong.append((place, f"names {name!r}, which is no argument of the tool{near}"))
        for name, schema in self.arguments.items():
            if "default" in schema:
                for _, problem in schema_errors({"properties": {name: schema}}, {name: schema["default"]}):
                    wrong.append((("arguments", name, "default"), f"does not fit the argument: {problem}"))
        if wrong:
            raise misfits(*wrong)
        return self

    def call(self, /, **arguments: Any) -> Any:
        """Answer a call; one whose arguments do not fit the schema fails."""
        if wrong := [*schema_errors(_object(self.arguments), arguments)]:
            raise ToolException("; ".join(": ".join(filter(None, each)) for each in wrong))
        defaults = {name: each["default"] for name, each in self.arguments.items() if "default" in each}
        arguments = defaults | arguments
        fitting = (case for case in self.cases if not any(schema_errors(_object(case.when), arguments)))
        outcome = next(fitting, self)
        if outcome.error is not None:
            raise ToolException(_filled(outcome.error, arguments))
        return _filled(outcome.returns, arguments)

    def tool(self, name: str) -> StructuredTool:
        """Make the tool of that name.

        Its schema is written as Pydantic writes a function's, so that no prompt changes where one takes its place.
        """
        shown = {
            each: dict(sorted({"title": each.title().replace("_", " "), **schema}.items()))
            for each, schema in self.arguments.items()
        }
        schema = {"description": self.description, **_object(shown), "title": name}
        return StructuredTool(
            name=name,
            description=self.description,
            args_schema=dict(sorted(schema.items())),
            func=self.call,
            handle_tool_error=True,  # the model is told the error's text as it was written
        )


class ToolFile(RootModel[dict[Text, ToolDescription]]):
    """A file of tools, by name."""


def described_tool(reference: str, folder: Path | None) -> StructuredTool:
    """The tool that a file names as "file.yaml:tool"."""
    file, _, name = reference.rpartition(":")
    path = (folder or Path()) / file
    tools = _tools(str(path), read_text(path, what="file of tools"))
    if name not in tools:
        near = suggestion(name, tools)
        raise SpecError(
            f"names {reference!r}, but the file has no tool {name!r}{near} (it has: {', '.join(tools)})"
        )
    return tools[name]


@lru_cache(maxsize=64)
def _tools(path: str, text: str) -> dict[str, StructuredTool]:
    """All tools of a file; the same ones, until it changes, for all who name them."""
    read = parse_model(text, ToolFile, what="file of tools", source=path)
    return {name: described.tool(name) for name, described in read.root.items()}


def _filled(value: JsonValue, arguments: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, arguments) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, arguments) for each in value]
    if not isinstance(value, str):
        return value
    if value[:1] == "$" and value[1:] in arguments:
        return arguments[value[1:]]
    return Template(value).safe_substitute({name: _text(each) for name, each in arguments.items()})


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"  # 50.0 is 50, as in JSON
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
