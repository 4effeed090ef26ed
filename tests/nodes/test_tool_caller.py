"""Which of the proposed calls are made, and what becomes of the others."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, Guideline, InputError, RefusalError, ToolInsight
from arq_graph.agent.state import GuidelineMatch
from arq_graph.nodes import ToolCaller
from tests.brain import Call, asked_by, brain

ASKED = HumanMessage("Where is A-1?", id="h1")


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The number.
    """
    return order_id


def cancel(order_id: str) -> str:
    """Cancel an order.

    Args:
        order_id: The number.
    """
    return order_id


def search(words: str) -> str:
    """Search the help pages.

    Args:
        words: What for.
    """
    return words


DESK = Agent(
    "Desk",
    "You help with orders.",
    [
        Guideline("they ask about an order", "look it up", tools=[get_order]),
        Guideline("they cancel", "cancel it", tools=[cancel]),
    ],
    tools=[search],
)
A1 = {"order_id": "A-1"}
RAN = [
    ASKED,
    AIMessage("", tool_calls=[{"name": "get_order", "args": A1, "id": "c1", "type": "tool_call"}]),
    ToolMessage("it is late", tool_call_id="c1", name="get_order"),
]


def matched(*ids, turn="h1"):
    return [GuidelineMatch(guideline=id, turn=turn, active=True, matched=True, score=9) for id in ids]


def decide(runs, call, *, active=("G1", "G2"), messages=(ASKED,), insights=(), **options):
    model = brain(call=call)
    state = {
        "messages": list(messages),
        "guideline_matches": matched(*active),
        "tool_insights": list(insights),
    }
    update = runs.invoke(ToolCaller(model, DESK, **options), state)
    calls = [(c["name"], c["args"]) for m in update.get("messages", ()) for c in m.tool_calls]
    return calls, update.get("tool_insights"), model


def said(insights, tool="get_order"):
    return [(insight.kind, insight.problem) for insight in insights if insight.tool == tool]


def test_only_tools_that_active_guidelines_grant_and_those_always_available_are_offered(runs):
    _, insights, model = decide(runs, {}, active=["G2"])
    assert [asked.now["candidates"] for asked in asked_by(model, "tools")] in (
        [["cancel"], ["search"]],
        [["search"], ["cancel"]],
    )
    assert {insight.tool for insight in insights} == {"cancel", "search"}
    offered = next(asked for asked in asked_by(model, "tools") if asked.now["candidates"] == ["cancel"])
    assert offered.now == {
        "turn": "M1",
        "candidates": ["cancel"],
        "active": ["G2"],
        "other_candidates": ["search"],
    }


def test_a_call_that_is_called_for_is_made(runs):
    calls, insights, _ = decide(runs, {"get_order": A1})
    assert calls == [("get_order", A1)]
    (insight,) = [insight for insight in insights if insight.tool == "get_order"]
    assert (insight.kind, insight.score, insight.turn, insight.arguments) == ("run", 9, "h1", A1)


@pytest.mark.parametrize(
    ("verdict", "problem"),
    [
        ({"score": 4}, "score 4 is below 5"),
        ({"should_run": False}, "the model says that it should not run"),
        ({"potentially_better_tool_name": "cancel"}, "cancel fits better"),
    ],
)
def test_a_call_that_is_not_called_for_is_declined_and_says_why(runs, verdict, problem):
    calls, insights, _ = decide(runs, {"get_order": Call(A1, verdict)})
    assert calls == []
    assert said(insights) == [("declined", problem)]


@pytest.mark.parametrize(
    "verdict",
    [
        {"score": 5},
        {"potentially_better_tool_name": "cancel", "better_tool_should_run_in_tandem": True},
        {"potentially_better_tool_name": "get_order"},
        {"potentially_better_tool_name": "no_such_tool"},
    ],
)
def test_a_better_tool_counts_only_if_it_is_another_candidate_and_not_in_tandem(runs, verdict):
    assert decide(runs, {"get_order": Call(A1, verdict)})[0] == [("get_order", A1)]


def test_a_better_tool_that_is_no_candidate_now_changes_nothing(runs):
    better = Call(A1, {"potentially_better_tool_name": "cancel"})
    assert decide(runs, {"get_order": better}, active=["G1"])[0] == [("get_order", A1)]


def again(**verdict):
    return {"get_order": lambda asked: Call(A1, verdict)}


def test_a_staged_call_is_repeated_where_that_is_justified(runs):
    assert decide(runs, again(repeat_is_justified=True), messages=RAN)[0] == [("get_order", A1)]


def test_the_same_call_of_an_earlier_turn_is_not_staged(runs):
    messages = [*RAN, AIMessage("It is late.", id="a1"), HumanMessage("And now?", id="h2")]
    model = brain(call={"get_order": A1})
    state = {"messages": messages, "guideline_matches": matched("G1", turn="h2")}
    assert "messages" in runs.invoke(ToolCaller(model, DESK), state)
    assert "staged" not in asked_by(model, "tools")[0].now


def test_two_equal_calls_in_one_answer_are_made_once(runs):
    calls, insights, _ = decide(runs, {"get_order": [A1, A1, {"order_id": "A-2"}]})
    assert calls == [("get_order", A1), ("get_order", {"order_id": "A-2"})]
    assert ("declined", "the same call was proposed twice") in said(insights)


def test_a_candidate_without_a_call_leaves_a_record(runs):
    _, insights, _ = decide(runs, {})
    assert said(insights) == [("declined", "no call was proposed")]


def test_what_ran_earlier_in_the_turn_stays_on_record(runs):
    ran = ToolInsight(turn="h1", tool="get_order", kind="run", arguments=A1)
    old = ToolInsight(turn="h0", tool="search", kind="run")
    _, insights, _ = decide(runs, {}, messages=RAN, insights=[ran, old])
    assert insights[0] == ran
    assert old not in insights


def test_without_a_candidate_no_model_is_asked(runs):
    agent = Agent("Desk", "You help.", DESK.guidelines)
    model = brain()
    update = runs.invoke(ToolCaller(model, agent), {"messages": [ASKED], "guideline_matches": matched_none()})
    assert update == {"tool_insights": []}
    assert model.calls == []


def matched_none():
    return [GuidelineMatch(guideline="G1", turn="h1", active=False, matched=False, score=2)]


def test_several_tools_can_be_decided_on_in_one_call(runs):
    calls, _, model = decide(runs, {"get_order": A1, "cancel": A1}, tools_per_call=3)
    assert calls == [("get_order", A1), ("cancel", A1)]
    (asked,) = asked_by(model, "tools")
    assert asked.now["candidates"] == ["get_order", "cancel", "search"]
    assert asked.call.metadata["arq_batch"] == "get_order+cancel+search"


def test_a_tool_of_the_batch_that_is_no_candidate_is_never_called(runs):
    calls, insights, _ = decide(runs, {"cancel": A1}, active=["G1"], tools_per_call=3)
    assert calls == []
    assert {insight.tool for insight in insights} == {"get_order", "search"}


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_every_mode_calls_the_same_tools(runs, mode):
    assert decide(runs, {"get_order": A1}, mode=mode)[0] == [("get_order", A1)]


def test_a_tool_prompt_names_the_guidelines_that_grant_the_tool(runs):
    _, _, model = decide(runs, {}, tools_per_call=3)
    shown = {tool["name"]: tool["granted_by"] for tool in asked_by(model, "tools")[0].section("tools")}
    assert [guideline["id"] for guideline in shown["get_order"]] == ["G1"]
    assert shown["search"] == []


def test_a_refusal_of_the_model_is_an_error(runs):
    refused = AIMessage("", additional_kwargs={"refusal": "I cannot do that."})
    model = brain()
    model._answer = lambda call: refused
    with pytest.raises(RefusalError, match="tools"):
        runs.invoke(ToolCaller(model, DESK), {"messages": [ASKED], "guideline_matches": matched("G1")})


def test_a_tool_may_be_called_like_a_query_of_the_prompt(runs):
    def last_customer_message(number: int) -> str:
        """Read a message."""
        return str(number)

    node = ToolCaller(
        brain(call={"last_customer_message": {"number": 1}}),
        Agent("Desk", "You help.", tools=[last_customer_message]),
    )
    (message,) = runs.invoke(node, {"messages": [ASKED]})["messages"]
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [
        ("last_customer_message", {"number": 1})
    ]


def test_tools_per_call_must_make_sense():
    with pytest.raises(InputError, match="tools_per_call must be at least 1, not 0"):
        ToolCaller(brain(), DESK, tools_per_call=0)
