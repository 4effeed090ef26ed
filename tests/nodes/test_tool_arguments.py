"""Whatever a tool's argument schema is, it is asked for strictly, and the tool gets what was meant."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, Field, field_validator

from arq_graph import Agent, create_guided_agent
from arq_graph.nodes import ToolCaller
from tests.brain import Raw, act, asked_by, brain, say
from tests.nodes import tool_shapes as shapes
from tests.nodes.order_tools import called
from tests.reasoning.strict_subset import assert_strict

SHAPES = [pytest.param(*call, id=f"{call[0].name}-{number}") for number, call in enumerate(shapes.CALLS)]
pytestmark = pytest.mark.filterwarnings("ignore:Field name .* shadows")


def decided(tool, args):
    """What the tool caller makes of a proposed call: the arguments of calls, the insights, and what it asked."""
    model = brain(call={tool.name: args})
    node = ToolCaller(model, Agent("Desk", "You help.", tools=[tool]), mode="direct")
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
def test_a_tool_is_asked_for_strictly_and_gets_what_was_given(tool, args, result):
    agent = Agent("Desk", "You help.", tools=[tool])
    for strategy, mode in (("tools", "arq"), ("react", "direct")):
        model = brain(moves=[act(tool.name, args), say()])
        app = create_guided_agent(model, agent, strategy=strategy, mode=mode, store=InMemoryStore())
        messages = app.invoke({"messages": [("user", "Go")]})["messages"]
        assert [message.text for message in messages if message.type == "tool"] == [result]
        for call in model.calls:
            assert_strict(call.schema)


def test_the_prompt_names_types_in_words_and_required_arguments_and_none_that_are_injected():
    assert list(shown(shapes.injected)) == ["order"]
    speed = shown(shapes.choices)["speed"]
    assert (speed["type"], speed["required"]) == ('one of "slow", "fast"', True)
    served = shown(shapes.SERVED)
    assert served["where"]["type"] == "string or null"
    assert (served["order-id"]["key"], served["where"].get("key")) == ("argument_1", None)


def test_given_and_null_is_not_the_same_as_not_given():
    @tool
    def note(text: str | None = "default") -> str:
        """Note something."""
        return repr(text)

    assert decided(note, {"text": None})[0] == [{"text": None}]
    assert decided(note, {})[0] == [{}]
    assert refused(shapes.dashed, {"order": None}) == [("missing", "order")]


def test_every_missing_argument_is_an_insight_of_its_own_that_says_what_it_means():
    assert refused(shapes.choices, {"level": 2}) == [("missing", each) for each in ("size", "speed")]
    _, insights, _ = decided(shapes.injected, {})
    assert (insights[0]["arguments"], insights[0]["description"]) == ({}, "order")


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


ONE_OF = [{"required": ["mail"]}, {"required": ["phone"]}]
EITHER = shapes.mcp("either", {"mail": shapes.TEXT, "phone": shapes.TEXT}, anyOf=ONE_OF)
LOST, ODD = {"$ref": "data:application/json,{}"}, {"type": "string", "pattern": "("}  # nothing is fetched


@pytest.mark.parametrize(
    ("tool", "args", "argument", "problem"),
    [
        (shapes.scalars, {**shapes.SCALARS, "on": "soon"}, "on", "valid date"),
        (shapes.nested, {**shapes.NESTED, "lines": [{"product": "x", "count": 0}]}, "lines", "greater"),
        (shapes.choices, {**shapes.CHOSEN, "tags": None}, "tags", "valid list"),
        (shapes.open_ended, {**shapes.OPEN, "pair": [1]}, "pair", "required"),
        (shapes.open_ended, {**shapes.OPEN, "data": Raw("{no json")}, "data", "not JSON"),
        (shapes.open_ended, {**shapes.OPEN, "data": Raw("[" * 100_000)}, "data", "not JSON"),
        (shapes.SERVED, {"order-id": "B-1"}, "order-id", "does not match"),
        (shapes.OLD_DRAFT, {"unit": {}}, "unit", "code"),
        (book, {"guests": 3}, "guests", "tables are for two"),  # the tool's own validator
        (EITHER, {}, None, "is not valid under any"),  # a rule between arguments
        (shapes.mcp("broken", {"a": LOST}), {"a": "x"}, None, "schema cannot be used"),
        (shapes.mcp("broken", {"a": ODD}), {"a": "x"}, None, "schema cannot be used"),
    ],
)
def test_an_invalid_argument_says_why_in_the_tool_s_own_words(tool, args, argument, problem):
    calls, (insight,), _ = decided(tool, args)
    assert (calls, insight["kind"], insight["argument"]) == ([], "invalid", argument)
    assert problem in insight["problem"]
