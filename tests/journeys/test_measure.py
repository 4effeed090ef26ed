"""The file that guides an agent measures its conversations: the milestone graph of a journey."""

import json
from typing import Any

import pytest
from langchain_core.messages import messages_to_dict

from arq_graph import Journey, JourneyStep
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones import (
    MilestoneGraph,
    Score,
    Verdict,
    check_milestones,
    dump_milestones,
    parse_milestones,
    read_transcript,
    score,
)
from tests.journeys.random_walks import walk
from tests.journeys.returns import Talk, exchange, get_order, make_shop, refund

A301 = {"order_id": "A-301"}
ASKS = {"asks_for_something": True}


def measure(talk: Talk, messages: Any = None) -> Score:
    graph = MilestoneGraph.from_journey(talk.agent, "return")
    return score(graph, read_transcript(messages or talk.state["messages"]))


def return_lamp(**calls: Any) -> Talk:
    talk = Talk()
    talk.call.update(calls)
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS | {"answered_by": "M1"}
    talk.steps["return-exchange"] = {"condition_holds": "no"}
    talk.say("Order A-301 is broken, I want to return it.")
    return talk


def make_graph(*steps: JourneyStep, **others: Journey) -> MilestoneGraph:
    journeys = [Journey("return", "the customer wants to return an item", steps), *others.values()]
    return MilestoneGraph.from_journey(make_shop(journeys=journeys), "return")


def test_each_step_is_a_milestone_and_those_with_conditions_may_be_skipped():
    graph = MilestoneGraph.from_journey(make_shop(), "return")
    types = {milestone.name: milestone.type for milestone in graph.milestones}
    assert types == {"Start": "NFC", "order": "FC", "reason": "NFC", "refund": "FC", "exchange": "FC"} | {
        "close": "NFC",
        "End": "NFC",
    }
    assert [milestone.name for milestone in graph.milestones if milestone.optional] == ["refund", "exchange"]
    assert list(graph.pred["close"]) == ["refund", "exchange"]
    assert graph.get_milestone("refund").description == "when the item is faulty: refund it"
    assert check_milestones(graph, make_shop().toolbox.values()) == ()
    assert parse_milestones(dump_milestones(graph)).milestones == graph.milestones


def test_a_step_with_several_tools_is_done_by_one_of_them():
    graph = make_graph(
        JourneyStep("return", "take it back", tools=[refund, exchange]),
        JourneyStep("close", "sum up", after="return"),
    )
    join = graph.get_milestone("return")
    assert (join.type, join.requires) == ("Aggregator", "any")
    assert join.dependencies == ("return/refund", "return/exchange")


def test_a_journey_that_is_a_step_has_its_milestones_in_the_other_ones_graph():
    identify = Journey("identify", None, [JourneyStep("name", "ask for the name")])
    graph = make_graph(
        JourneyStep("who", journey="identify"),
        JourneyStep("order", "look the order up", tools=[get_order], after="who"),
        identify=identify,
    )
    assert list(graph) == ["Start", "who/name", "who", "order", "End"]
    assert graph.get_milestone("who/name").step == "identify-name"


def test_parts_of_a_step_that_may_be_skipped_may_be_skipped_too():
    identify = Journey("identify", None, [JourneyStep("name", "ask for the name")])
    graph = make_graph(
        JourneyStep("who", journey="identify", condition="the customer has an account"),
        JourneyStep("pay", "pay it", tools=[refund, exchange], condition="it was paid", after="who"),
        JourneyStep("close", "sum up", after="pay"),
        identify=identify,
    )
    assert graph.get_milestone("who/name").optional
    assert graph.get_milestone("close").dependencies == ("pay, if needed",)
    assert score(graph, read_transcript([{"role": "user", "content": "Hi"}])).frontier == (
        "who/name",
        "pay/refund",
        "pay/exchange",
        "close",
    )


def test_a_journey_that_may_end_without_its_last_steps_says_so_in_a_milestone():
    graph = make_graph(
        JourneyStep("order", "look the order up", tools=[get_order]),
        JourneyStep("refund", "refund it", condition="it is faulty", after="order", tools=[refund]),
    )
    assert graph.get_milestone("End").dependencies == ("refund", "nothing left to do")
    assert not graph.get_milestone("refund").optional
    assert graph.get_milestone("nothing left to do").description == "none of these holds: it is faulty"


def test_a_step_may_follow_one_that_was_passed_by():
    graph = make_graph(
        JourneyStep("phone", "ask for the number"),
        JourneyStep("mail", "ask for the address"),
        JourneyStep("order", "look the order up", tools=[get_order], after=["phone", "mail"]),
        JourneyStep("label", "send a label", tools=[refund], after="mail"),
    )
    # Once the order was looked up without it, the address isn't asked for, and what comes after it opens.
    assert graph.get_milestone("label").dependencies == ("mail or order",)
    assert graph.get_milestone("order").dependencies == ("phone", "mail")


def test_an_unknown_journey_is_an_error_that_names_the_nearest():
    with pytest.raises(SpecError, match=r"agent 'Shop' has no journey of id 'retrun'.*`return`"):
        MilestoneGraph.from_journey(make_shop(), "retrun")


def test_the_path_of_an_agents_file_is_refused():
    with pytest.raises(InputError, match=r"agent is a str: make one .*Agent.from_yaml\(path\)"):
        MilestoneGraph.from_journey("shop.yaml", "return")  # type: ignore[arg-type]


def test_a_conversation_is_measured_by_what_the_agent_records():
    talk = return_lamp(refund=A301)
    result = measure(talk)
    assert list(result.reached) == ["Start", "order", "reason", "refund", "close", "End"]
    assert (result.goal_completed, result.progress_rate) == (True, 1.0)
    texts = [event.text for event in read_transcript(talk.state["messages"]).events]
    assert [texts[result.reached[name] - 1] for name in ("order", "reason", "refund", "close")] == [
        'get_order({"order_id": "A-301"})',
        "A-301 has a lamp",
        'refund({"order_id": "A-301"})',
        "This is answer 1.",
    ]


def test_a_journey_that_has_not_begun_is_measured_as_nothing():
    talk = Talk()
    talk.judge["return"] = 2
    talk.say("When do you close?")
    assert measure(talk).progress_rate == 0.0


def test_a_step_that_is_open_again_stays_reached():
    talk = return_lamp()
    talk.steps["return-reason"] = ASKS
    talk.journeys = {"changed": [{"step": "return-reason", "answered_by": None}]}
    before = measure(talk).progress_rate
    talk.say("No, it is something else.")
    assert talk.journey["reason"] == "open"
    assert "reason" in measure(talk).reached
    assert measure(talk).progress_rate == before
    talk.state["messages"] = talk.state["messages"][-1:]  # the last message alone says it, too
    assert "reason" in measure(talk).observations.events


def test_a_step_that_was_skipped_is_not_reached_and_keeps_nothing_from_it():
    talk = return_lamp(refund=A301)
    result = measure(talk)
    assert talk.journey["exchange"] == "skipped"
    assert "exchange" not in result.reached and "exchange" not in result.undecided
    assert result.coverage == 5 / 6


def test_what_was_done_is_read_from_exported_messages():
    talk = return_lamp(refund=A301)
    exported = json.loads(json.dumps(messages_to_dict(talk.state["messages"])))
    assert measure(talk, exported).reached == measure(talk).reached


def test_a_call_that_did_no_step_counts_for_none():
    steps = [
        JourneyStep("card", "refund it", condition="it was paid by card", tools=[refund]),
        JourneyStep("cash", "refund it", condition="it was paid in cash", tools=[refund]),
        JourneyStep("close", "sum up", after=["card", "cash"]),
    ]
    talk = Talk(make_shop(journeys=[Journey("return", "the customer wants to return an item", steps)]))
    talk.steps["return-cash"] = {"condition_holds": "no"}
    talk.call["refund"] = A301
    talk.say("I want my money back, to my card.")
    assert list(measure(talk).reached) == ["Start", "card", "close", "End"]


FOREIGN = [
    {"role": "user", "content": "I want to return A-301. It is broken."},
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "get_order", "arguments": A301}]},
    {"role": "tool", "tool_call_id": "1", "content": "A-301 has a lamp"},
    {"role": "assistant", "tool_calls": [{"id": "2", "name": "refund", "arguments": A301}]},
    {"role": "tool", "tool_call_id": "2", "content": "refunded A-301"},
    {"role": "assistant", "content": "You get your money back."},
]


def test_of_another_agent_the_calls_count_and_a_judge_decides_the_rest():
    graph = MilestoneGraph.from_journey(make_shop(), "return")
    without = score(graph, read_transcript(FOREIGN))
    assert without.undecided == ("reason", "close")
    assert without.goal_completed is None
    verdicts = [
        Verdict("reason", True, 1, "It is broken"),
        Verdict("close", True, 6, "You get your money back"),
    ]
    judged = score(graph, read_transcript(FOREIGN), judge=lambda *_: verdicts)
    assert judged.goal_completed is True
    # The reason was known before the order was looked up, and so at once after it.
    assert (judged.reached["order"], judged.reached["reason"], judged.reached["refund"]) == (2, 2, 4)


def test_no_judge_decides_what_the_agent_has_recorded():
    talk = Talk()
    talk.steps["return-reason"] = ASKS
    talk.call["get_order"] = A301
    talk.say("I want to return A-301.")
    graph = MilestoneGraph.from_journey(talk.agent, "return")
    verdict = Verdict("reason", True, 1, "I want to return A-301.")
    result = score(graph, read_transcript(talk.state["messages"]), judge=lambda *_: [verdict])
    assert "reason" not in result.reached
    assert result.judgement.reasons["reason"] == "[not counted: the agent's records decide it]"


def test_the_measure_of_random_conversations_agrees_with_the_records():
    walks = [walk(seed) for seed in range(20)]
    assert {walk.seed: wrong for walk in walks if (wrong := walk.find_disagreements())} == {}
    assert min(sum(walk.has_ended for walk in walks), sum(walk.reopened > 0 for walk in walks)) > 3


@pytest.mark.slow
def test_the_measure_of_many_random_conversations_agrees_with_the_records():
    for seed in range(20, 520):
        assert walk(seed).find_disagreements() == [], seed
