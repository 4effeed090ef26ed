"""Agents built in Python, and the values that can be tools."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import Tool, tool

from arq_graph import Agent, Guideline, ScriptedChatModel, Term, Variable
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones import Limits, MilestoneGraph, Scenario, Suite, UserSpec, evaluate
from arq_graph.nodes import GuidelineMatcher


class Shelf:
    """A class that no JSON schema describes."""


def get_order(order_id: str) -> str:
    """Look an order up."""
    return f"order {order_id}"


async def cancel(order_id: str, reason: str) -> str:
    """Cancel an order."""
    return order_id + reason


def untyped(order_id) -> str:  # type: ignore[no-untyped-def]
    """Look an order up."""
    return str(order_id)


def undocumented(order_id: str) -> str:
    return order_id


def opaque(shelf: Shelf) -> str:
    """Look a shelf up."""
    return str(shelf)


@tool("get_order")
def another_get_order(order_id: str) -> str:
    """Look an order up elsewhere."""
    return order_id


@tool("get order")
def with_space(order_id: str) -> str:
    """Look an order up."""
    return order_id


def make_agent(*guidelines: Guideline, **fields: Any) -> Agent:
    return Agent("Order desk", "A friendly clerk.", guidelines, **fields)


def test_an_id_that_the_designer_used_is_skipped() -> None:
    agent = make_agent(Guideline("a", "b", id="G2"), Guideline("c", "d"), Guideline("e", "f"))
    assert [guideline.id for guideline in agent.guidelines] == ["G2", "G3", "G4"]


async def is_first_message(state: Any) -> bool:
    return len(state["messages"]) == 1


async def test_a_condition_may_be_async() -> None:
    agent = make_agent(Guideline(is_first_message, "be quick", continuous=True))
    matcher = GuidelineMatcher(ScriptedChatModel([]), agent)
    for texts, is_active in ((["hello"], True), (["hello", "hi"], False)):
        state = {"messages": [HumanMessage(text, id=text) for text in texts]}
        for update in (matcher.invoke(state), await matcher.ainvoke(state)):
            assert [match["active"] for match in update["guideline_matches"]] == [is_active]


@pytest.mark.parametrize(
    ("confirmation", "message"),
    [
        ({"by": "customer", "ask": "Cancel {order_id}?"}, r"ask` must hold \{order_id\} and \{reason\}, and"),
        ({"by": "customer", "ask": "{order} {order_id} {reason}"}, "nothing else in braces"),
        ({"by": "customer", "ask": "{order_id:>99999999} {reason}"}, "nothing else in braces"),
        ({"by": "customer", "ask": "{order_id {reason}"}, "nothing else in braces"),
        ({"by": "operator", "ask": "{order_id} {reason}"}, "an operator sees the call itself"),
    ],
)
def test_a_question_to_the_customer_has_every_argument_and_nothing_else(confirmation, message):
    with pytest.raises(SpecError, match=message):
        Agent("n", "p", tools=[cancel], confirm={"cancel": confirmation})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Guideline("a", ""), "Guideline: `action` must have at least 1 character"),
        (lambda: Guideline("  ", "b"), "`condition` is ''; .* always applies, leave it out"),
        (lambda: Guideline(None, None), "neither a condition nor an action"),
        (lambda: Guideline(True, "b"), "`condition` must be text, {function"),
        (lambda: Guideline("rules:is_vip", "b"), r'looks like a function.*\{function: "rules:is_vip"\}'),
        (lambda: Guideline("a", "b", id="a b"), "an id is 1 to 64 of the characters"),
        (lambda: Guideline("a", "b", id="model_dump"), "choose another id"),
        (lambda: Guideline("a", "b", id="T3"), "prompts and answers do not use for something else"),
        (lambda: Guideline("a", "b", entails="G2"), "`entails` must be a list, but is 'G2'"),
        (lambda: Guideline("a", "b", depends_on=["G2", 3]), r"`depends_on\[1\]` must be text"),
        (
            lambda: Variable("a", "b", len),
            r"`value` must be plain data \(what is computed .*, but is <built-in",
        ),
        (lambda: make_agent(tools=get_order), "`tools` must be a list, but is <function get_order"),
        (
            lambda: make_agent("x"),
            r"Agent: `guidelines\[0\]` must be a mapping \(its keys: condition, .*\), but",
        ),
        (
            lambda: make_agent(glossary=[Term("Arc", "x"), Term("ARC", "y")]),
            r"glossary\[1\].name` is used twice",
        ),
        (lambda: make_agent(tools=[get_order, another_get_order]), "holds a second tool called 'get_order'"),
    ],
)
def test_a_mistake_is_reported_with_the_expected_value(make: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        make()
    assert (caught.value.file, caught.value.line) == (None, None)


def test_one_function_on_two_guidelines_is_one_tool() -> None:
    second = Guideline("c", "d", tools=[get_order, cancel, get_order])
    agent = make_agent(Guideline("a", "b", tools=[get_order]), second)
    assert agent.grants == {"get_order": ("G1", "G2"), "cancel": ("G2",)}
    assert list(agent.toolbox) == ["get_order", "cancel"]
    assert not agent.always_available


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (untyped, "its argument order_id must have a type hint, .* write `order_id: str`"),
        (undocumented, "'undocumented', which cannot be a tool: Function must have a docstring"),
        (len, "argument obj must .* be given by it"),
        (opaque, "'opaque', which cannot be a tool: .* A tool has a docstring, and named, typed"),
        (partial(get_order, "17"), "but is functools.partial"),
        (Tool(name="t", func=str, description="d"), "'t', .*: it takes one nameless text"),
        (with_space, "called 'get order', but names are"),
        ("string:digits", "must be a LangChain tool, a function or .* but is '0123456789'"),
        ("orders.get", 'must be "module:function", "file.yaml:name" or hand_over, but is \'orders.get\''),
        ("shop/orders.py:get", "names the module 'shop/orders.py', which is not on Python's search path"),
    ],
)
def test_an_unusable_tool_is_reported_with_what_to_do(value: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make_agent(Guideline("a", "b", tools=[value]))


def run_suite(folder: Path, agent: Agent, world: Any = None, **options: Any) -> Any:
    """Run one conversation whose results are stored in a folder."""
    user = UserSpec.model_validate({"intents": [{"request": "A lamp?"}]})
    graph = MilestoneGraph.from_actions([{"name": "get_order", "kwargs": {}}])
    suite = Suite([Scenario("lamp", user, graph, agent, world, limits=Limits(turns=1))])
    app = RunnableLambda(lambda _: {"messages": [AIMessage("No.")]})
    return evaluate(suite, {"app": app}, results=folder / "results.jsonl", **options)


@pytest.mark.parametrize(
    ("module", "part"), [("shop", "the agent's tools"), ("rules", "the agent's guidelines")]
)
def test_a_run_is_not_resumed_if_the_source_of_a_function_changed(tmp_path, module, part):
    (tmp_path / "shop.py").write_text("def get_order(id: str) -> int:\n    'Get it.'\n    return 1\n")
    (tmp_path / "rules.py").write_text("def vip(state):\n    return True\n")
    file = tmp_path / "agent.yaml"
    guideline = "{condition: {function: rules:vip}, action: a}"
    file.write_text("{name: n, profile: p, tools: [shop:get_order], guidelines: [" + guideline + "]}")
    run_suite(tmp_path, Agent.from_yaml(file))
    assert run_suite(tmp_path, Agent.from_yaml(file), resume=True).conversations
    with (tmp_path / f"{module}.py").open("a") as source:
        source.write("TAX = 2\n")
    with pytest.raises(InputError, match=part) as caught:
        run_suite(tmp_path, Agent.from_yaml(file), resume=True)
    assert str(caught.value).count("of scenario") == 1


def test_a_run_is_not_resumed_if_the_arguments_of_the_world_changed(tmp_path: Path) -> None:
    agent = make_agent(tools=[get_order])
    run_suite(tmp_path, agent, partial(dict, get_order=get_order))
    assert run_suite(tmp_path, agent, partial(dict, get_order=get_order), resume=True).conversations
    with pytest.raises(InputError, match="the world of scenario"):
        run_suite(tmp_path, agent, partial(dict, get_order=cancel), resume=True)
