"""Whatever a tool's argument schema is, it is asked for strictly, and the tool gets what was meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, Field, field_validator

from arq_graph import Agent, create_guided_agent
from arq_graph.nodes import ToolCaller
from tests.brain import Raw, asked_by, brain
from tests.nodes import tool_shapes as shapes
from tests.reasoning.strict_subset import assert_strict

SHAPES = [pytest.param(*call, id=f"{call[0].name}-{number}") for number, call in enumerate(shapes.CALLS)]
pytestmark = pytest.mark.filterwarnings("ignore:Field name .* shadows")
MODES = ("arq", "cot", "direct")


def decided(tool, args, mode="arq"):
    """What the tool caller makes of a proposed call: the calls, the insights, and what it asked."""
    model = brain(call={tool.name: args})
    node = ToolCaller(model, Agent("Desk", "You help.", tools=[tool]), mode=mode)
    update = node.invoke({"messages": [HumanMessage("Go", id="h1")]})
    calls = update["messages"][0].tool_calls if "messages" in update else []
    return [call["args"] for call in calls], update["tool_insights"], asked_by(model, "tools")[0]


@pytest.mark.parametrize(("tool", "args", "result"), SHAPES)
def test_a_tool_gets_what_was_given(runs, tool, args, result):
    app = create_guided_agent(
        brain(call={tool.name: args}), Agent("Desk", "You help.", tools=[tool]), store=InMemoryStore()
    )
    messages = runs.invoke(app, {"messages": [("user", "Go")]})["messages"]
    assert [message.text for message in messages if message.type == "tool"] == [result]


@pytest.mark.parametrize(("tool", "args", "result"), SHAPES)
@pytest.mark.parametrize("mode", MODES)
def test_it_is_asked_in_the_strict_subset(tool, args, result, mode):
    calls, _, asked = decided(tool, args, mode)
    assert calls == [args]
    assert_strict(asked.schema)


def asked_types(tool):
    node = ToolCaller(brain(), Agent("Desk", "You help.", tools=[tool]))
    return {argument.name: argument for argument in node.batches[0].tools[0].arguments}


def test_what_the_strict_subset_cannot_say_is_asked_as_a_string_of_json():
    for odd in (shapes.open_ended, shapes.recursive):
        assert all(argument.as_json for argument in asked_types(odd).values())
    kept = {name: argument.as_json for name, argument in asked_types(shapes.SERVED).items()}
    assert kept == {
        "order-id": False,
        "Mode": False,
        "filter": False,
        "where": False,
        "untyped": True,
        "whatever": True,
    }


def test_a_field_called_default_is_asked_for_too():
    schema = asked_types(shapes.nested)["to"].schema
    assert list(schema["properties"]) == ["street", "zip", "default"]


def test_injected_arguments_are_hidden_from_the_model():
    assert list(asked_types(shapes.injected)) == ["order"]


def test_the_prompt_names_types_in_words_and_required_arguments():
    _, _, asked = decided(shapes.choices, [])
    shown = {argument["name"]: argument for argument in asked.section("tools")[0]["arguments"]}
    assert shown["speed"]["type"] == 'one of "slow", "fast"'
    assert shown["speed"]["required"] is True
    assert asked_types(shapes.SERVED)["where"].type == "string or null"


def test_an_argument_that_is_no_property_name_has_a_key_that_the_prompt_tells():
    _, _, asked = decided(shapes.SERVED, [])
    shown = {argument["name"]: argument.get("key") for argument in asked.section("tools")[0]["arguments"]}
    assert shown["order-id"] == "argument_1"
    assert shown["where"] is None


def test_keys_never_collide():
    clash = shapes.mcp(
        "clash", {"type": "object", "properties": {"argument_2": {"type": "string"}, "B": {"type": "string"}}}
    )
    assert decided(clash, {"argument_2": "x", "B": "y"})[0] == [{"argument_2": "x", "B": "y"}]


def test_given_and_null_is_not_the_same_as_not_given():
    @tool
    def note(text: str | None = "default") -> str:
        """Note something."""
        return repr(text)

    assert decided(note, {"text": None})[0] == [{"text": None}]
    assert decided(note, {})[0] == [{}]
    assert note.invoke({"text": None}) == "None"
    assert note.invoke({}) == "'default'"


def test_given_and_null_for_a_required_argument_that_takes_no_null_is_missing():
    calls, insights, _ = decided(shapes.dashed, {"order": None})
    assert calls == []
    assert [(insight.kind, insight.argument) for insight in insights] == [("missing", "order")]


def test_given_and_null_for_an_argument_with_a_default_that_takes_no_null_is_invalid():
    calls, insights, _ = decided(shapes.optional, {"note": "x", "tags": None})
    assert calls == []
    assert [(insight.kind, insight.argument) for insight in insights] == [("invalid", "tags")]


def test_every_missing_argument_is_an_insight_of_its_own():
    calls, insights, _ = decided(shapes.plain, {"days": 2})
    assert calls == []
    assert [insight.argument for insight in insights] == ["order_id", "weight", "fast"]
    assert {insight.kind for insight in insights} == {"missing"}
    assert insights[0].arguments == {"days": 2}
    assert insights[0].description == "order id"


@pytest.mark.parametrize(
    ("tool", "args", "argument", "problem"),
    [
        (shapes.dated, {"on": "soon", "price": "1", "either": 1}, "on", "valid date"),
        (shapes.nested, {"to": {"street": "x"}, "lines": [{"product": "x", "count": 0}]}, "lines", "greater"),
        (shapes.choices, {"size": "huge", "speed": "slow", "level": 1}, "size", "small"),
        (shapes.open_ended, {"data": Raw("{no json"), "anything": 1, "pair": [1, "x"]}, "data", "not JSON"),
        (shapes.open_ended, {"data": {}, "anything": 1, "pair": [1]}, "pair", "required"),
        (shapes.plain, {"order_id": "x", "days": {"a": 1}, "weight": 1, "fast": True}, "days", "integer"),
        (shapes.SERVED, {"order-id": "B-1"}, "order-id", "does not match"),
        (shapes.SERVED, {"order-id": "A-1", "filter": {"late": "yes"}}, "filter", "boolean"),
        (shapes.OLD_DRAFT, {"unit": {}}, "unit", "code"),
    ],
)
def test_an_invalid_argument_says_why_in_the_tool_s_own_words(tool, args, argument, problem):
    calls, insights, _ = decided(tool, args)
    assert calls == []
    (insight,) = insights
    assert (insight.kind, insight.argument) == ("invalid", argument)
    assert problem in insight.problem


def test_a_rule_between_arguments_is_an_invalid_call():
    either = shapes.mcp(
        "either",
        {
            "type": "object",
            "properties": {"mail": {"type": "string"}, "phone": {"type": "string"}},
            "anyOf": [{"required": ["mail"]}, {"required": ["phone"]}],
        },
    )
    calls, (insight,), _ = decided(either, {})
    assert calls == []
    assert (insight.kind, insight.argument, insight.description) == ("invalid", None, "From a server.")
    assert decided(either, {"phone": "1"})[0] == [{"phone": "1"}]


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/Nowhere"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.invalid/schema.json"}}},
        {"type": "object", "properties": {"a": {"type": "strnig"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
    ],
)
def test_a_schema_that_is_broken_is_an_invalid_call_and_no_crash(broken):
    calls, insights, _ = decided(shapes.mcp("broken", broken), {"a": "x"})
    assert calls == []
    assert {insight.kind for insight in insights} == {"invalid"}


def test_a_validator_of_the_tool_is_heard():
    class Booking(BaseModel):
        guests: int = Field(description="How many.")

        @field_validator("guests")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("tables are for two, four or six")
            return value

    @tool(args_schema=Booking)
    def book(guests: int) -> str:
        """Book a table."""
        return str(guests)

    calls, (insight,), _ = decided(book, {"guests": 3})
    assert calls == []
    assert "tables are for two" in insight.problem


def test_arguments_of_pydantic_s_first_version_work_too():
    from pydantic import v1

    class Old(v1.BaseModel):
        order: str
        count: int = 1

    @tool(args_schema=Old)
    def old(order: str, count: int = 1) -> str:
        """An old tool."""
        return f"{order} {count}"

    calls, _, asked = decided(old, {"order": "A-1"})
    assert calls == [{"order": "A-1"}]
    assert_strict(asked.schema)


def test_no_length_of_json_or_depth_of_brackets_is_a_crash():
    for value in ("[" * 100_000, "9" * 10_000, "NaN"):
        _, insights, _ = decided(shapes.open_ended, {"data": Raw(value), "anything": 1, "pair": [1, "x"]})
        assert {insight.kind for insight in insights} == {"invalid"}


def test_the_call_that_is_made_can_be_written_as_json():
    (args,), _, _ = decided(shapes.open_ended, {"data": {"ü": [1]}, "anything": None, "pair": [1, "x"]})
    parsed: dict[str, Any] = json.loads(json.dumps(args))
    assert parsed == args
