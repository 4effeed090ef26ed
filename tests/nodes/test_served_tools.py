"""Tools that come with a JSON schema, as real servers write them: asked for, shown, agreed to, and called."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent
from tests.brain import act, brain, get_prompts, say
from tests.reasoning.strict_subset import assert_strict

SERVED = yaml.safe_load(Path(__file__).with_name("served_tools.yaml").read_text(encoding="utf-8"))
THREAD: Any = {"configurable": {"thread_id": "1"}}
TEXT = {"type": "string"}


class Served:
    """An agent with one tool of a server; `ran` are the arguments that reached it."""

    def __init__(
        self, schema: Any, arguments: Any, *, name: str = "served", title: Any = None, strategy: Any = "tools"
    ) -> None:
        self.ran: list[dict[str, Any]] = []

        async def run(**arguments: Any) -> str:
            self.ran.append(arguments)
            return "done"

        tool = StructuredTool(
            name=name, description="T.", coroutine=run, args_schema=schema, metadata={"title": title}
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            guideline = Guideline("they ask", "do it", tools=[tool])
        self.warnings = [str(warning.message) for warning in caught]
        agent = Agent("Desk", "You help.", [guideline], confirm={name: "customer"})
        moves = [act(name, arguments), say("Fine.")]
        self.model = brain({"G1": 9}, call={name: arguments}, moves=moves, reply="Fine.", wants=lambda: True)
        self.app = create_guided_agent(
            self.model, agent, strategy=strategy, mode="direct", checkpointer=MemorySaver()
        )

    def say(self, text: str) -> str:
        messages = self.app.invoke({"messages": [("user", text)]}, THREAD)["messages"]
        return str(messages[-1].text)

    @property
    def problems(self) -> list[str]:
        verdicts = self.app.get_state(THREAD).values["tool_insights"]
        return [verdict["problem"] for verdict in verdicts]


@pytest.mark.parametrize("strategy", ["tools", pytest.param("react", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", SERVED, ids=[case["name"] for case in SERVED])
def test_a_tool_of_a_real_server_is_asked_for_shown_and_called(case, strategy):
    served = Served(
        case["schema"], case["arguments"], name=case["name"], title=case.get("title"), strategy=strategy
    )
    assert served.warnings == []
    reply = served.say("Do it, please.")
    for call in served.model.calls:
        assert_strict(call.schema)
    if "problem" in case:
        assert served.problems[0] == case["problem"]
    else:
        assert reply.split("\n")[-2] == case["question"]
    served.say("yes")
    expected = [] if "problem" in case else [case.get("runs", case["arguments"])]
    assert json.dumps(served.ran, sort_keys=True) == json.dumps(expected, sort_keys=True)


ANY_OF = {
    "type": "object",
    "anyOf": [
        {"properties": {"content": TEXT, "kind": {"const": "text"}}, "required": ["content"]},
        {"properties": {"url": TEXT, "kind": {"const": "link"}}, "required": ["url"]},
    ],
}
ALL_OF = {
    "allOf": [{"$ref": "#/definitions/Order"}, {"properties": {"note": TEXT}}],
    "definitions": {"Order": {"type": "object", "properties": {"order_id": TEXT}, "required": ["order_id"]}},
}
LOST = {"type": "object", "properties": {"a": {"$ref": "data:application/json,{}"}}}
LOST_IN_A_NAMED_SCHEMA = {
    "$id": "https://shop.example/order",
    "type": "object",
    "properties": {"a": {"$ref": "#item"}, "b": {"$ref": "#/$defs/Order"}},
    "$defs": {"Item": {"$anchor": "item", **TEXT}},
}
UNKNOWN_TYPE = {"type": "object", "properties": {"a": {"type": "text"}}}
BROKEN_PATTERN = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(", "maxLength": 3}}}
UNKNOWN_KEYWORD = {"type": "object", "properties": {"a": {**TEXT, "x-order": 1, "nullable": False}}}
CENTS = {"type": "object", "properties": {"amount": {"type": "number", "multipleOf": 0.01}}}
DRAFT_4 = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "object",
    "properties": {"n": {"type": "integer", "maximum": 9, "exclusiveMaximum": True}},
}


@pytest.mark.parametrize(
    ("schema", "arguments", "problem"),
    [
        (ANY_OF, {"url": "https://x.example", "kind": "link"}, None),
        (ANY_OF, {"kind": "text"}, "is not valid under any of the given schemas"),
        (ALL_OF, {"order_id": "A-1", "note": "n"}, None),
        (ALL_OF, {"note": "n"}, ""),  # it is missing
        (CENTS, {"amount": 19.99}, None),
        (CENTS, {"amount": 1e300}, None),
        (CENTS, {"amount": 0.015}, "0.015 is not a multiple of 0.01"),
        (DRAFT_4, {"n": 9}, "9 is greater than or equal to the maximum of 9"),
        (UNKNOWN_KEYWORD, {"a": "x"}, None),
        (BROKEN_PATTERN, {"a": "xxxx"}, "'xxxx' is too long"),
    ],
)
def test_the_tool_s_own_schema_decides(schema, arguments, problem):
    served = Served(schema, arguments)
    served.say("Do it, please.")
    if problem is not None:
        assert problem in served.problems[0]
    served.say("yes")
    assert served.ran == ([arguments] if problem is None else [])


@pytest.mark.parametrize(
    ("schema", "flaw"),
    [
        (LOST_IN_A_NAMED_SCHEMA, "the reference '#/$defs/Order' leads nowhere"),
        (LOST, "the reference 'data:application/json,{}' leads nowhere"),
        (UNKNOWN_TYPE, "'text' is not valid under any of the given schemas"),
        (BROKEN_PATTERN, "'(' is not a pattern that is understood here"),
    ],
)
def test_what_cannot_be_checked_is_a_warning_and_left_to_the_tool(schema, flaw):
    is_asked_as_json = schema in (LOST, UNKNOWN_TYPE)
    served = Served(schema, {"a": '"x"' if is_asked_as_json else "x"})
    assert flaw in served.warnings[0]
    served.say("Do it, please.")
    served.say("yes")
    assert served.ran == [{"a": "x"}]


NAMES = ["copy", "json", "tool_json", "_hidden", "a/b", "n" * 128]


@pytest.mark.parametrize(
    ("name", "strategy"), [*((name, "tools") for name in NAMES), ("copy", "react"), ("a/b", "respact")]
)
def test_a_tool_may_have_any_name_that_mcp_allows(name, strategy):
    served = Served({"type": "object", "properties": {"a": TEXT}}, {"a": "x"}, name=name, strategy=strategy)
    served.say("Do it, please.")
    served.say("yes")
    assert served.ran == [{"a": "x"}]


def test_no_error_of_python_s_enters_the_prompt_of_the_reply():
    served = Served({"type": "object", "properties": {"a": {}}}, {"a": "{not json"})
    served.say("Do it, please.")
    (prompt,) = get_prompts(served.model, "message")
    assert [insight["problem"] for insight in prompt.section("insights")] == ["the value is not JSON"]
