"""An agent as a designer builds it in Python."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda

from arq_graph import Agent, Guideline, ScriptedChatModel, Term, Variable
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones import Limits, MilestoneGraph, Scenario, Suite, UserSpec, evaluate
from arq_graph.nodes import GuidelineMatcher


def get_order(order_id: str) -> str:
    """Look an order up."""
    return f"order {order_id}"


def cancel(order_id: str, reason: str) -> str:
    """Cancel an order."""
    return order_id + reason


def agent(*guidelines: Guideline, **fields: Any) -> Agent:
    return Agent("Order desk", "A friendly clerk.", guidelines, **fields)


def test_a_number_that_a_designer_gave_away_is_skipped() -> None:
    made = agent(Guideline("a", "b", id="G2"), Guideline("c", "d"), Guideline("e", "f"))
    assert [guideline.id for guideline in made.guidelines] == ["G2", "G3", "G4"]


def test_an_agent_does_not_change_once_it_is_made() -> None:
    made = agent(Guideline("a", "b", tools=[get_order]))
    with pytest.raises(ValueError, match="frozen"):
        made.guidelines[0].action = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.toolbox["x"] = made.toolbox["get_order"]  # type: ignore[index]


async def asks_a_service(state: Any) -> bool:
    return len(state["messages"]) == 1


async def test_a_condition_may_be_async() -> None:
    made = agent(Guideline(asks_a_service, "be quick", continuous=True))
    matcher = GuidelineMatcher(ScriptedChatModel([]), made)
    for said, active in ((["hello"], True), (["hello", "hi"], False)):
        state = {"messages": [HumanMessage(text, id=text) for text in said]}
        for update in (matcher.invoke(state), await matcher.ainvoke(state)):
            assert [match["active"] for match in update["guideline_matches"]] == [active]


def test_an_observation_has_a_condition_alone() -> None:
    observed = agent(
        Guideline("the customer is a member", tools=[get_order]), Guideline("a", "b", entails=["G1"])
    )
    assert observed.guidelines[0].action is None
    assert observed.relations.resolve({"G2": 7}).active == {"G1": 7, "G2": 7}


def test_who_confirms_a_call_is_said_in_a_word_or_with_the_question() -> None:
    asked = {"by": "customer", "ask": "Soll ich {order_id} nachschlagen? {{verbindlich}}"}
    made = Agent("n", "p", tools=[get_order, cancel], confirm={"get_order": asked, "cancel": "operator"})
    assert (made.confirm["get_order"].by, made.confirm["get_order"].ask) == ("customer", asked["ask"])
    assert (made.confirm["cancel"].by, made.confirm["cancel"].ask) == ("operator", None)
    assert made.confirmed_by("customer", "interrupt") == {"get_order"}


@pytest.mark.parametrize(
    ("by", "ask", "message"),
    [
        ("customer", "Cancel {order_id}?", r"ask` must hold \{order_id\} and \{reason\}, and nothing else"),
        ("customer", "Cancel {order} for {order_id} and {reason}?", "nothing else in braces"),
        ("customer", "Cancel {order_id:>99999999} for {reason}?", "nothing else in braces"),
        ("customer", "Cancel {order_id!r} for {reason}?", "nothing else in braces"),
        ("customer", "Cancel {order_id for {reason}?", "nothing else in braces"),
        ("operator", "Cancel {order_id} for {reason}?", "an operator sees the call itself"),
    ],
)
def test_a_question_says_every_argument_to_the_customer_and_nothing_else(
    by: str, ask: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        Agent("n", "p", tools=[cancel], confirm={"cancel": {"by": by, "ask": ask}})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Guideline("a", ""), "Guideline: `action` must have at least 1 character"),
        (
            lambda: Guideline("  ", "b"),
            "`condition` is ''; for a guideline that always applies, leave it out",
        ),
        (lambda: Guideline(None, None), "neither a condition nor an action"),
        (lambda: Guideline(True, "b"), "`condition` must be text, {function"),  # type: ignore[arg-type]
        (lambda: Guideline("rules:is_vip", "b"), r'looks like a function.*\{function: "rules:is_vip"\}'),
        (lambda: Guideline("a", "b", id="T3"), "prompts or answers use for something else"),
        (lambda: Guideline("a", "b", id="a b"), "an id is 1 to 64 of the characters"),
        (lambda: Guideline("a", "b", id="model_dump"), "choose another id"),
        (lambda: Guideline("a", "b", entails="G2"), "`entails` must be a list, but is 'G2'"),
        (lambda: Guideline("a", "b", depends_on=["G2", 3]), r"`depends_on\[1\]` must be text"),  # type: ignore[list-item]
        (lambda: Guideline("a", "b", priority=True), "must be a whole number, but is True"),
        (lambda: Guideline("a", "b", tool=[get_order]), "did you mean `tools`"),  # type: ignore[call-arg]
        (lambda: Variable("a", "b", {(1, 2): 3}), "`value"),  # type: ignore[dict-item]
        (lambda: agent(tools=get_order), "`tools` must be a list, but is the function get_order"),
        (lambda: agent("x"), r"Agent: `guidelines\[0\]` must be a mapping, but is 'x'"),  # type: ignore[arg-type]
        (lambda: Agent("n"), "Agent: `profile` is missing"),  # type: ignore[call-arg]
        (
            lambda: agent(glossary=[Term("Arc", "x"), Term("ARC", "y")]),
            r"glossary\[1\].name` stands here twice",
        ),
    ],
)
def test_a_mistake_is_told_with_what_was_expected(make: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        make()
    assert (caught.value.file, caught.value.line) == (None, None)


def test_other_functions_take_the_place_of_tools() -> None:
    def from_the_test(order_id: str) -> str:
        """Look an order up in a list."""
        return f"listed {order_id}"

    made = agent(Guideline("a", "b", tools=[get_order]), tools=[cancel])
    other = made.with_tools({"get_order": from_the_test})
    assert other.toolbox["get_order"].invoke({"order_id": "1"}) == "listed 1"
    assert (other.grants, other.toolbox["cancel"]) == (made.grants, made.toolbox["cancel"])
    with pytest.raises(
        SpecError, match=r"no tool called 'get_ordr' to be replaced; did you mean `get_order`"
    ):
        made.with_tools({"get_ordr": from_the_test})
    with pytest.raises(SpecError, match=r"the tool 'get_order' must be .* but is 'x'"):
        made.with_tools({"get_order": "x"})


def hold(folder: Path, agent: Agent, world: Any = None, **options: Any) -> Any:
    """One conversation, whose results are kept in a folder."""
    user = UserSpec.model_validate({"intents": [{"request": "A lamp?"}]})
    graph = MilestoneGraph.from_actions([{"name": "get_order", "kwargs": {}}])
    suite = Suite([Scenario("lamp", user, graph, agent, world, limits=Limits(turns=1))])
    app = RunnableLambda(lambda _: {"messages": [AIMessage("No.")]})
    return evaluate(suite, {"app": app}, results=folder / "results.jsonl", **options)


@pytest.mark.parametrize(
    ("changed", "told"), [("shop", "the agent's tools"), ("rules", "the agent's guidelines")]
)
def test_a_run_is_not_gone_on_with_once_the_source_of_a_function_changed(
    tmp_path: Path, changed: str, told: str
) -> None:
    (tmp_path / "shop.py").write_text("def get_order(id: str) -> int:\n    'Get it.'\n    return 1\n")
    (tmp_path / "rules.py").write_text("def vip(state):\n    return True\n")
    file = tmp_path / "agent.yaml"
    rule = "{condition: {function: rules:vip}, action: a}"
    file.write_text("{name: n, profile: p, tools: [shop:get_order], guidelines: [" + rule + "]}")
    hold(tmp_path, Agent.from_yaml(file))
    assert hold(tmp_path, Agent.from_yaml(file), resume=True).conversations
    with (tmp_path / f"{changed}.py").open("a") as source:
        source.write("TAX = 2\n")
    with pytest.raises(InputError, match=told) as error:
        hold(tmp_path, Agent.from_yaml(file), resume=True)
    assert str(error.value).count("of scenario") == 1


def test_a_run_is_not_gone_on_with_in_a_world_of_other_arguments(tmp_path: Path) -> None:
    made = agent(tools=[get_order])
    hold(tmp_path, made, partial(dict, get_order=get_order))
    assert hold(tmp_path, made, partial(dict, get_order=get_order), resume=True).conversations
    with pytest.raises(InputError, match="the world of scenario"):
        hold(tmp_path, made, partial(dict, get_order=cancel), resume=True)
