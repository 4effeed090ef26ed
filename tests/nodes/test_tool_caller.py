"""The tool caller: which of the proposed calls are made, and what becomes of the others."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Agent, Guideline, create_guided_agent
from arq_graph.nodes import ToolCaller, route_calls
from tests.brain import act, brain, get_prompts
from tests.order_tools import A1, cancel, get_calls, get_order, ran, search

ASKED = HumanMessage("Where is A-1?", id="h1")
RAN = [ASKED, *ran()]
A2 = {"order_id": "A-2"}
LOOK_UP = Guideline("they ask about an order", "look it up", tools=[get_order])
CANCEL = Guideline("they cancel", "cancel it", tools=[cancel])
DESK = Agent("Desk", "You help with orders.", [LOOK_UP, CANCEL], tools=[search])


def decide(call, *, active=("G1", "G2"), messages=(ASKED,), insights=(), mode="direct", **options):
    """Run a tool caller once; return its calls, its insights, and the model."""
    model = brain(call=call)
    matches = [
        {"agent": "Desk", "turn": "h1", "guideline": id, "active": id in active, "matched": id in active}
        for id in ("G1", "G2")
    ]
    state = {
        "messages": list(messages),
        "guideline_matches": matches,
        "tool_insights": list(insights),
    }
    update = ToolCaller(model, DESK, mode=mode, **options).invoke(state)
    return get_calls(update), update.get("tool_insights"), model


def list_verdicts(insights, tool="get_order"):
    return [(insight["kind"], insight["problem"]) for insight in insights if insight["tool"] == tool]


def test_each_tool_that_a_guideline_grants_or_that_is_always_available_is_asked_about_by_itself():
    calls, insights, model = decide({"get_order": A1, "search": {"words": "x"}}, active=["G2"])
    assert calls == [("search", {"words": "x"})]
    prompts = {prompt.now["candidates"][0]: prompt for prompt in get_prompts(model, "tools")}
    assert prompts.keys() == {"cancel", "search"} == {insight["tool"] for insight in insights}
    assert list_verdicts(insights, "cancel") == [("declined", "no call was proposed")]
    now = {"turn": "M1", "candidates": ["cancel"], "active": ["G2"], "other_candidates": ["search"]}
    assert prompts["cancel"].now == now
    (guideline,) = prompts["cancel"].section("tools")[0]["granted_by"]
    assert (guideline["id"], prompts["search"].section("tools")[0]["granted_by"]) == ("G2", [])


BETTER = "potentially_better_tool_name"


@pytest.mark.parametrize(
    ("verdict", "problem"),
    [
        ({"score": 4}, "score 4 is below 5"),
        ({"score": 5}, None),
        ({"should_run": False}, "the model says that it should not run"),
        ({BETTER: "search"}, "search fits better"),
        ({BETTER: "search", "better_tool_should_run_in_tandem": True}, None),
        ({BETTER: "get_order"}, None),  # itself
        ({BETTER: "cancel"}, None),  # which no active guideline grants
    ],
)
def test_a_call_that_the_model_does_not_want_is_declined_with_its_reason(verdict, problem):
    calls, insights, _ = decide({"get_order": act("get_order", A1, **verdict)}, active=["G1"], mode="arq")
    assert calls == ([] if problem else [("get_order", A1)])
    assert list_verdicts(insights) == [("declined", problem) if problem else ("run", "")]


@pytest.mark.parametrize("justified", [True, False])
def test_a_call_is_made_again_in_a_turn_only_where_that_is_justified(justified):
    again = {"get_order": lambda _: act("get_order", A1, repeat_is_justified=justified)}
    calls, insights, _ = decide(again, messages=RAN)
    assert calls == ([("get_order", A1)] if justified else [])
    assert justified or "already made in this turn" in list_verdicts(insights)[0][1]


def test_two_equal_calls_in_one_answer_are_made_once():
    calls, insights, _ = decide({"get_order": [A1, A1, A2]})
    assert calls == [("get_order", A1), ("get_order", A2)]
    assert ("declined", "the same call was proposed twice") in list_verdicts(insights)


def test_what_a_reply_asked_for_is_open_for_one_turn():
    talk = [
        HumanMessage("Hi", id="h-1"),
        AIMessage("Which?"),
        HumanMessage("Hm", id="h0"),
        AIMessage("Which?"),
    ]
    missing = {"agent": "Desk", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    earlier = [{**missing, "turn": turn} for turn in ("h-1", "h0")]
    _, insights, _ = decide({}, messages=[*talk, ASKED], insights=earlier)
    assert [insight["turn"] for insight in insights if insight["kind"] == "missing"] == ["h0"]


def test_nothing_is_asked_without_a_candidate_or_after_the_last_round():
    model = brain(judge={"G1": 2})
    create_guided_agent(model, Agent("Desk", "You help.", [LOOK_UP])).invoke({"messages": [ASKED]})
    assert get_prompts(model, "tools") == []
    for max_rounds, agent, calls in ((1, "Desk", 0), (2, "Desk", 3), (1, "Another", 3)):
        history = [message.model_copy(update={"name": agent}) for message in ran()]
        _, _, model = decide({"get_order": A2}, messages=[ASKED, *history], max_rounds=max_rounds)
        assert len(model.calls) == calls


def test_a_tool_of_an_earlier_turns_insights_has_its_round_in_this_one():
    missing = {"agent": "Desk", "turn": "h0", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    match = {"agent": "Desk", "guideline": "G1", "turn": "h1", "active": True, "matched": True}
    talk = [HumanMessage("Hi", id="h0"), AIMessage("Which?"), ASKED]
    route = route_calls(Agent("Desk", "You help.", [LOOK_UP]), again="tools once more")
    state = {"messages": talk, "guideline_matches": [match]}
    for turn, destination in (("h0", "tools once more"), ("h1", "message")):
        assert route({**state, "tool_insights": [{**missing, "turn": turn}]}) == destination


@pytest.mark.parametrize(("granted_later", "rounds"), [(2, 2), (9, 4)])
def test_another_round_is_asked_for_only_where_a_tool_has_become_available(granted_later, rounds):
    judge = {"G1": 9, "G2": lambda prompt: granted_later if prompt.turn else 2}
    model = brain(judge=judge, call={"get_order": A1})
    agent = Agent("Desk", "You help.", DESK.guidelines)
    create_guided_agent(model, agent, mode="direct").invoke({"messages": [ASKED]})
    assert len(get_prompts(model, "tools")) == rounds
