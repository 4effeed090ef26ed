"""Whatever a tool's argument schema is, it is asked for strictly, and the tool gets what was meant."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, Field, field_validator, v1

from arq_graph import Agent, create_guided_agent
from arq_graph.nodes import ToolCaller
from tests.brain import Raw, act, asked_by, brain, say
from tests.nodes import tool_shapes as shapes
from tests.nodes.order_tools import called
from tests.reasoning.strict_subset import assert_strict

SHAPES = [pytest.param(*call, id=f"{call[0].name}-{number}") for number, call in enumerate(shapes.CALLS)]
pytestmark = pytest.mark.filterwarnings("ignore:Field name .* shadows")


def decided(tool, args, mode="direct"):
    """What the tool caller makes of a proposed call: the arguments of calls, the insights, and what it asked."""
    model = brain(call={tool.name: args})
    node = ToolCaller(model, Agent("Desk", "You help.", tools=[tool]), mode=mode)
    update = node.invoke({"messages": [HumanMessage("Go", id="h1")]})
    return [args for _, args in called(update)], update["tool_insights"], asked_by(model, "tools")[0]


def refused(tool, args):
    """The kind and the argument of each insight into a call that is not made."""
    calls, insights, _ = decided(tool, args)
    assert calls == []
    return [(insight["kind"], insight.get("argument")) for insight in insights]


def shown(tool):
    """The arguments of a tool as the prompt shows them, by name."""
    _, _, asked = decided(tool, [])
    return {argument["name"]: argument for argument in asked.section("tools")[0]["arguments"]}


@pytest.mark.parametrize(("tool", "args", "result"), SHAPES)
@pytest.mark.parametrize("strategy", ["tools", "react"])
def test_a_tool_gets_what_was_given(strategy, tool, args, result):
    agent = Agent("Desk", "You help.", tools=[tool])
    model = brain(moves=[act(tool.name, args), say()])
    app = create_guided_agent(model, agent, strategy=strategy, mode="direct", store=InMemoryStore())
    messages = app.invoke({"messages": [("user", "Go")]})["messages"]
    assert [message.text for message in messages if message.type == "tool"] == [result]


@pytest.mark.parametrize(("tool", "args", "result"), SHAPES)
@pytest.mark.parametrize("mode", ["arq", "cot"])
def test_it_is_asked_in_the_strict_subset(tool, args, result, mode):
    calls, _, asked = decided(tool, args, mode)
    assert calls == [args]
    assert_strict(asked.schema)


def test_what_the_strict_subset_cannot_say_is_asked_as_a_string_of_json():
    _, insights, _ = decided(shapes.open_ended, {"data": Raw("{no json"), "anything": 1, "pair": [1, "x"]})
    assert [(insight["argument"], "not JSON" in insight["problem"]) for insight in insights] == [
        ("data", True)
    ]


def test_injected_arguments_are_hidden_from_the_model():
    assert list(shown(shapes.injected)) == ["order"]


def test_the_prompt_names_types_in_words_and_required_arguments():
    speed = shown(shapes.choices)["speed"]
    assert (speed["type"], speed["required"]) == ('one of "slow", "fast"', True)
    served = shown(shapes.SERVED)
    assert served["where"]["type"] == "string or null"
    assert (served["order-id"]["key"], served["where"].get("key")) == ("argument_1", None)


def test_keys_of_arguments_that_are_no_property_names_never_collide():
    properties = {"argument_2": {"type": "string"}, "B": {"type": "string"}}
    clash = shapes.mcp("clash", {"type": "object", "properties": properties})
    assert decided(clash, {"argument_2": "x", "B": "y"})[0] == [{"argument_2": "x", "B": "y"}]


def test_given_and_null_is_not_the_same_as_not_given():
    @tool
    def note(text: str | None = "default") -> str:
        """Note something."""
        return repr(text)

    assert decided(note, {"text": None})[0] == [{"text": None}]
    assert decided(note, {})[0] == [{}]
    assert refused(shapes.dashed, {"order": None}) == [("missing", "order")]
    assert refused(shapes.optional, {"note": "x", "tags": None}) == [("invalid", "tags")]


def test_every_missing_argument_is_an_insight_of_its_own_that_says_what_it_means():
    assert refused(shapes.plain, {"days": 2}) == [
        ("missing", each) for each in ("order_id", "weight", "fast")
    ]
    _, insights, _ = decided(shapes.plain, {"days": 2})
    assert (insights[0]["arguments"], insights[0]["description"]) == ({"days": 2}, "order id")


@pytest.mark.parametrize(
    ("tool", "args", "argument", "problem"),
    [
        (shapes.dated, {"on": "soon", "price": "1", "either": 1}, "on", "valid date"),
        (shapes.nested, {"to": {"street": "x"}, "lines": [{"product": "x", "count": 0}]}, "lines", "greater"),
        (shapes.choices, {"size": "huge", "speed": "slow", "level": 1}, "size", "small"),
        (shapes.open_ended, {"data": {}, "anything": 1, "pair": [1]}, "pair", "required"),
        (shapes.plain, {"order_id": "x", "days": {"a": 1}, "weight": 1, "fast": True}, "days", "integer"),
        (shapes.SERVED, {"order-id": "B-1"}, "order-id", "does not match"),
        (shapes.SERVED, {"order-id": "A-1", "filter": {"late": "yes"}}, "filter", "boolean"),
        (shapes.OLD_DRAFT, {"unit": {}}, "unit", "code"),
    ],
)
def test_an_invalid_argument_says_why_in_the_tool_s_own_words(tool, args, argument, problem):
    assert refused(tool, args) == [("invalid", argument)]
    assert problem in decided(tool, args)[1][0]["problem"]


def test_a_rule_between_arguments_is_an_invalid_call():
    either = shapes.mcp(
        "either",
        {
            "type": "object",
            "properties": {"mail": {"type": "string"}, "phone": {"type": "string"}},
            "anyOf": [{"required": ["mail"]}, {"required": ["phone"]}],
        },
    )
    assert refused(either, {}) == [("invalid", None)]
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
    assert {kind for kind, _ in refused(shapes.mcp("broken", broken), {"a": "x"})} == {"invalid"}


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

    assert refused(book, {"guests": 3}) == [("invalid", "guests")]
    assert "tables are for two" in decided(book, {"guests": 3})[1][0]["problem"]


def test_arguments_of_pydantic_s_first_version_work_too():
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


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 10_000, "NaN"], ids=["deep", "long", "no number"])
def test_no_length_of_json_or_depth_of_brackets_is_a_crash(value):
    given = {"data": Raw(value), "anything": 1, "pair": [1, "x"]}
    assert {kind for kind, _ in refused(shapes.open_ended, given)} == {"invalid"}
