"""A tool's arguments: asked for strictly, whatever their schema is, and passed as they were meant."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langgraph.prebuilt import InjectedState, InjectedStore
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, Field, field_validator

from arq_graph import Agent, Guideline, ReAct, ToolCalling, create_guided_agent
from arq_graph.nodes import ToolCaller
from tests.brain import act, brain, get_prompts, say
from tests.order_tools import get_calls
from tests.reasoning.strict_subset import assert_strict


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Tree:
    name: str
    parts: list[Tree]


class Line(BaseModel):
    """What is ordered."""

    product: str
    count: int = Field(1, ge=1)
    default: bool = Field(False, description="Whether it is the usual one.")


@tool
def scalars(days: int, weight: float, fast: bool, on: date, price: Decimal, either: int | str) -> str:
    """Single values."""
    return repr((days, weight, fast, on, price, either))


@tool
def choices(
    size: Size,
    speed: Literal["slow", "fast"],
    level: Literal[1, 2, None],
    tags: list[str] = ["a"],  # noqa: B006
) -> str:
    """Enumerations."""
    return repr((size, speed, level, tags))


@tool
def nested(lines: list[Line], tree: Tree, several: set[int]) -> str:
    """Models in lists, a dataclass that holds itself, and a set."""
    return repr(([line.model_dump() for line in lines], tree.parts[0].name, several))


@tool
def open_ended(data: dict[str, Any], anything: Any, pair: tuple[int, str]) -> str:
    """What the strict subset cannot say."""
    return repr((data, anything, pair))


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # LangChain makes a model whose fields shadow methods

    @tool
    def awkward(copy: str, schema: str, argument_1: int, json: bool) -> str:
        """Names that a model class has already."""
        return repr((copy, schema, argument_1, json))


@tool
def final_answer(last_customer_message: str) -> str:
    """A name that a planner's prompt has already, and an argument of a name that the tool caller's has."""
    return last_customer_message


@tool("get-order.v2")
def dashed(order: str) -> str:
    """A name with a hyphen and a dot."""
    return order


@tool
def injected(
    order: str,
    state: Annotated[dict, InjectedState],
    call_id: Annotated[str, InjectedToolCallId],
    store: Annotated[BaseStore, InjectedStore()],
    secret: Annotated[str, InjectedToolArg] = "kept",
) -> str:
    """Arguments that the runtime gives."""
    return repr((order, len(state["messages"]), call_id.startswith("call_"), store is not None, secret))


def make_mcp_tool(name: str, properties: dict[str, Any], **keywords: Any) -> StructuredTool:
    """A tool that comes with a JSON schema, as MCP servers give it."""

    def run(**arguments: Any) -> str:
        return repr(arguments)

    schema = {"type": "object", "properties": properties, **keywords}
    return StructuredTool(name=name, description="From a server.", args_schema=schema, func=run)


TEXT = {"type": "string"}
SERVED = make_mcp_tool(
    "served",
    {
        "order-id": {"type": "string", "pattern": "^A-", "description": "The order."},
        "Mode": {"enum": ["a", "b"], "default": "a"},
        "filter": {"$ref": "#/$defs/Filter"},
        "where": {"type": ["string", "null"]},
        "free": {},
        "any": True,
    },
    required=["order-id"],
    **{"$defs": {"Filter": {"type": "object", "properties": {"late": {"type": "boolean"}}}}},
)
OLD_DRAFT = make_mcp_tool(
    "old_draft",
    {"unit": {"$ref": "#/definitions/Unit"}},
    definitions={"Unit": {"type": "object", "properties": {"code": TEXT}, "required": ["code"]}},
    additionalProperties=False,
    **{"$schema": "http://json-schema.org/draft-07/schema#"},
)
CLASH = make_mcp_tool("clash", {"argument_2": TEXT, "B": TEXT})

SCALARS = {"days": 2, "weight": 1.5, "fast": True, "on": "2026-03-01", "price": "1.10", "either": "x"}
LINES = [{"product": "tea", "count": 2, "default": True}]
CHOICES = {"size": "large", "speed": "fast", "level": None, "tags": []}
TREE = {"name": "a", "parts": [{"name": "b", "parts": []}]}
NESTED = {"lines": LINES, "tree": TREE, "several": [1, 2]}
OPEN = {"data": {"a": [1, None]}, "anything": {"b": 2}, "pair": [1, "x"]}
SERVED_ARGUMENTS = {
    "order-id": "A-1",
    "Mode": "b",
    "filter": {"late": True},
    "where": None,
    "free": [1],
    "any": 2,
}
CALLS: list[tuple[Any, dict[str, Any], str]] = [
    (injected, {"order": "A-1"}, "('A-1', 2, True, True, 'kept')"),
    (scalars, SCALARS, "(2, 1.5, True, datetime.date(2026, 3, 1), Decimal('1.10'), 'x')"),
    (nested, NESTED, f"({LINES}, 'b', {{1, 2}})"),
    (choices, CHOICES, "(<Size.LARGE: 'large'>, 'fast', None, [])"),
    (open_ended, OPEN, "({'a': [1, None]}, {'b': 2}, (1, 'x'))"),
    (awkward, {"copy": "a", "schema": "b", "argument_1": 3, "json": True}, "('a', 'b', 3, True)"),
    (final_answer, {"last_customer_message": "Hi"}, "Hi"),
    (dashed, {"order": "A-1"}, "A-1"),
    (SERVED, SERVED_ARGUMENTS, repr(SERVED_ARGUMENTS)),
    (CLASH, {"argument_2": "x", "B": "y"}, "{'argument_2': 'x', 'B': 'y'}"),
    (OLD_DRAFT, {"unit": {"code": "kg"}}, "{'unit': {'code': 'kg'}}"),
]
"""A tool, the arguments it is called with, and the result that shows what it received."""
TOOLS = [tool for tool, _, _ in CALLS]
pytestmark = pytest.mark.filterwarnings("ignore:Field name .* shadows")


def propose(tool, args):
    """Propose a call to the tool caller; return the arguments of its calls, its insights, and its prompt."""
    model = brain(call={tool.name: args})
    node = ToolCaller(model, Agent("Desk", "You help.", tools=[tool]), mode="direct")
    update = node.invoke({"messages": [HumanMessage("Go", id="h1")]})
    return [args for _, args in get_calls(update)], update["tool_insights"], get_prompts(model, "tools")[0]


def propose_refused(tool, args):
    """Propose a call that is not made; return the kind and the argument of each insight."""
    calls, insights, _ = propose(tool, args)
    assert calls == []
    return [(insight["kind"], insight.get("argument")) for insight in insights]


def describe_arguments(tool):
    """The arguments of a tool as the prompt shows them, by name."""
    _, _, prompt = propose(tool, [])
    return {argument["name"]: argument for argument in prompt.section("tools")[0]["arguments"]}


KEYS = {
    "matcher": {"score", "should_apply"},
    "tools": {"should_run", "score", "repeat_is_justified"},
    "message": {"content", "followed"},
}


def check_schemas(model):
    """Fail unless all schemas are strict and have the keys that endpoints may rely on."""
    for call in model.calls:
        assert_strict(call.schema)
        assert all(f"'{key}'" in str(call.schema) for key in KEYS.get(call.module, ()))


MOVES = [act(tool.name, args) for tool, args, _ in CALLS]


@pytest.mark.parametrize(
    ("strategy", "mode", "answers"),
    [
        (ToolCalling(), "arq", {"call": {move.tool: move.args for move in MOVES}}),
        (ReAct(max_steps=20), "direct", {"moves": [*MOVES, say()]}),
    ],
    ids=["tools", "react"],
)
def test_every_tool_is_asked_for_strictly_and_gets_its_arguments(strategy, mode, answers):
    model = brain(**answers)
    agent = Agent("Desk", "You help.", tools=TOOLS)
    app = create_guided_agent(model, agent, strategy=strategy, mode=mode, store=InMemoryStore())
    messages = app.invoke({"messages": [("user", "Go")]}, {"recursion_limit": 100})["messages"]
    results = {message.name: message.text for message in messages if message.type == "tool"}
    assert results == {tool.name: result for tool, _, result in CALLS}
    check_schemas(model)


def test_the_prompt_names_types_in_words_and_required_arguments_and_none_that_are_injected():
    assert list(describe_arguments(injected)) == ["order"]
    speed = describe_arguments(choices)["speed"]
    assert (speed["type"], speed["required"]) == ('one of "slow", "fast"', True)
    served = describe_arguments(SERVED)
    assert served["where"]["type"] == "string or null"
    assert (served["order-id"]["key"], served["where"].get("key")) == ("argument_1", None)


def test_tools_of_one_name_are_each_asked_for_by_their_own_arguments():
    def find_book(title: Annotated[str, "The title of a book."]) -> str:
        return title

    def find_song(title: Annotated[str, "The title of a song."]) -> str:
        return title

    asked_for: list[str] = []
    for function in (find_book, find_song, find_book):
        find = StructuredTool.from_function(function, name="find", description="Find it.")
        model = brain(call={"find": {"title": "Yesterday"}})
        create_guided_agent(model, Agent("Shop", "You help.", tools=[find])).invoke(
            {"messages": [("user", "Go")]}
        )
        call = next(call for call in model.calls if call.module == "tools")
        asked_for.append("book" if "title of a book" in str(call.schema) else "song")
    assert asked_for == ["book", "song", "book"]


def test_given_and_null_is_not_the_same_as_not_given():
    @tool
    def note(text: str | None = "default") -> str:
        """Note something."""
        return repr(text)

    assert propose(note, {"text": None})[0] == [{"text": None}]
    assert propose(note, {})[0] == [{}]
    assert propose_refused(dashed, {"order": None}) == [("missing", "order")]


def test_every_missing_argument_is_an_insight_of_its_own_that_says_what_it_means():
    assert propose_refused(choices, {"level": 2}) == [("missing", "size"), ("missing", "speed")]
    _, insights, _ = propose(injected, {})
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
EITHER = make_mcp_tool("either", {"mail": TEXT, "phone": TEXT}, anyOf=ONE_OF)


@pytest.mark.parametrize(
    ("tool", "args", "argument", "problem"),
    [
        (scalars, {**SCALARS, "on": "soon"}, "on", "valid date"),
        (choices, {**CHOICES, "tags": None}, "tags", "valid list"),
        (open_ended, {**OPEN, "pair": [1]}, "pair", "required"),
        (open_ended, {**OPEN, "data": "[" * 100_000}, "data", "not JSON"),
        (SERVED, {"order-id": "B-1"}, "order-id", "does not match"),
        (OLD_DRAFT, {"unit": {}}, "unit", "code"),
        (book, {"guests": 3}, "guests", "tables are for two"),  # the tool's own validator
        (EITHER, {}, None, "is not valid under any"),  # a rule between arguments
    ],
)
def test_an_invalid_argument_says_why_in_the_tool_s_own_words(tool, args, argument, problem):
    calls, (insight,), _ = propose(tool, args)
    assert (calls, insight["kind"], insight["argument"]) == ([], "invalid", argument)
    assert problem in insight["problem"]


GUIDELINES = [
    Guideline("x", "do it"),
    Guideline("x", "do it", continuous=True),
    Guideline("x", "do it", continuous=False),
    Guideline(None, "do it"),
    Guideline(None, "do it", continuous=False),
]


@pytest.mark.parametrize(
    ("strategy", "mode"),
    [("respact", "arq"), pytest.param("pre-act", "cot", marks=pytest.mark.slow)],
)
def test_every_schema_is_strict_and_has_the_keys_that_endpoints_may_rely_on(strategy, mode):
    agent = Agent("Desk", "You help.", GUIDELINES, tools=TOOLS, confirm={"scalars": "customer"})
    model = brain(moves=[say("Hello.")], reply="Hello.")
    create_guided_agent(model, agent, strategy=strategy, mode=mode).invoke({"messages": [("user", "Hi")]})
    check_schemas(model)
    matching = get_prompts(model, "matcher")[0]
    assert set(matching.schema["required"]) - {"reasoning"} == set(matching.now["judge"])
