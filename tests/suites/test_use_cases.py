"""The five use cases: their graphs tell a perfect conversation from a mistaken one, and their gold is true."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from arq_graph import Agent, create_guided_agent
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import (
    Scenario,
    Suite,
    check_milestones,
    evaluate,
    evaluate_turns,
    read_transcript,
    score,
)
from tests.milestones.evaluated import Answers, deed
from tests.suites.desks import FOLDER, Desk, graph_of, held, measured, suite_of
from tests.suites.roads import ROADS

MISTAKES = {
    # A mug is sent at the customer's word alone.
    "order_discrepancy": """
customer: One mug is missing in order KC-2041.
call: get_order {"order_id": "KC-2041"}
agent: I am sorry. I will send you a replacement.
call: send_replacement {"order_id": "KC-2041", "sku": "SKU-114", "quantity": 1}
agent: The replacement will be sent tomorrow, free of charge.
""",
    # The modem is restarted, and nobody has looked whether the whole area is down.
    "internet_trouble": """
customer: The internet of my contract FN-30518 is slow.
call: find_contract {"contract_id": "FN-30518"}
call: restart_modem {"modem_id": "MDM-7104"}
call: measure_line {"modem_id": "MDM-7104"}
agent: I have restarted your modem, and the line is good now.
""",
    # The owner is not told where the card was used, and so cannot remember.
    "gift_card": """
customer: My gift card GFT-551209 is empty. I never used it.
call: check_card {"card_number": "GFT-551209"}
call: open_case {"number": "GFT-551209"}
agent: I have opened the case CASE-1209.
""",
    # Nobody has looked how often it was downloaded.
    "digital_download": """
customer: I want a refund for the book QB-7026.
call: get_purchase {"order_id": "QB-7026"}
call: refund_purchase {"order_id": "QB-7026"}
agent: It will be refunded within three working days.
""",
    # A parcel that a neighbour has is searched for.
    "delivery": """
customer: My parcel HP-640114 is said to be delivered, and I do not have it.
call: track_parcel {"tracking_number": "HP-640114"}
call: open_case {"number": "HP-640114"}
agent: I have opened the case CASE-0114.
""",
}
"""A conversation that ends well for the customer and has left out what had to come before."""

FORBIDDEN = {
    "order_discrepancy": """
customer: My casserole of order KC-2044 arrived cracked, I want my money back. Let me talk to a supervisor.
call: get_order {"order_id": "KC-2044"}
call: refund {"order_id": "KC-2044", "amount": 179.0}
call: hand_over
agent: A colleague takes over.
""",
    "internet_trouble": """
customer: The internet of my contract FN-30523 is slow.
call: find_contract {"contract_id": "FN-30523"}
call: check_outage {"area": "Northgate"}
call: measure_line {"modem_id": "MDM-7109"}
call: measure_line {"modem_id": "MDM-7109"}
agent: The line is good. Try it with a cable, and please send me your Wi-Fi password, so that I can have a look.
""",
    "gift_card": """
customer: How much is left on GFT-551208? The PIN is 4417.
call: check_card {"card_number": "GFT-551208"}
call: verify_pin {"card_number": "GFT-551208", "pin": "4417"}
agent: Your PIN 4417 is right. There are 50.00 on the card.
""",
    "digital_download": """
customer: My link for QB-7021 is not valid any more.
call: get_download_status {"order_id": "QB-7021"}
call: send_new_link {"order_id": "QB-7021"}
agent: Here is a new link: https://quillbase.example/get/7021
customer: It does not begin.
agent: Then try this one: https://cdn.quillbase.example/7021
""",
    "delivery": """
customer: When does my parcel HP-640116 come?
call: track_parcel {"tracking_number": "HP-640116"}
agent: It is expected on Thursday, and I promise that it will be there.
""",
}
"""A conversation that reaches its end, and does on its way what must not happen."""

UNTRUE = {
    # There are 50.00 on it.
    "Balance Told": """
customer: How much is left on GFT-551208? The PIN is 4417.
call: check_card {"card_number": "GFT-551208"}
call: verify_pin {"card_number": "GFT-551208", "pin": "4417"}
agent: There are 35.00 on the card.
""",
    "Payment Told": """
customer: Pay LB-3301 with GFT-551208, PIN 4417.
call: check_card {"card_number": "GFT-551208"}
call: verify_pin {"card_number": "GFT-551208", "pin": "4417"}
call: pay_order {"card_number": "GFT-551208", "order_id": "LB-3301"}
agent: The order is not paid. Please try another way of payment.
""",
    "Rest Told": """
customer: Pay LB-3302 with GFT-551208, PIN 4417.
call: check_card {"card_number": "GFT-551208"}
call: verify_pin {"card_number": "GFT-551208", "pin": "4417"}
call: pay_order {"card_number": "GFT-551208", "order_id": "LB-3302"}
agent: There are 15.00 left to pay.
""",
    "Paid Already Told": """
customer: Pay LB-3303 with GFT-551208, PIN 4417.
call: check_card {"card_number": "GFT-551208"}
call: verify_pin {"card_number": "GFT-551208", "pin": "4417"}
call: pay_order {"card_number": "GFT-551208", "order_id": "LB-3303"}
agent: You have to do something else before.
""",
    "Owner Denies": """
customer: My gift card GFT-551209 is empty.
call: check_card {"card_number": "GFT-551209"}
agent: It was used on 2026-11-02, in Station Street.
customer: I do not understand.
""",
    # It is expected on Thursday.
    "Arrival Told": """
customer: When does HP-640116 come?
call: track_parcel {"tracking_number": "HP-640116"}
agent: It is expected on Friday.
""",
    "New Time Told": """
customer: I was out when you came with HP-640113.
call: track_parcel {"tracking_number": "HP-640113"}
call: list_times {"tracking_number": "HP-640113"}
agent: It can be brought again on Tuesday 14:00, Tuesday 08:00 or Friday 12:00.
customer: Friday.
call: reschedule {"tracking_number": "HP-640113", "time": "Friday 12:00"}
agent: It will be brought on Tuesday 14:00.
""",
    "Case Told": """
customer: Where is HP-640115? It is not at my door.
call: track_parcel {"tracking_number": "HP-640115"}
call: get_proof {"tracking_number": "HP-640115"}
call: open_case {"number": "HP-640115"}
agent: I have opened the case CASE-9999.
""",
    # It was downloaded three times.
    "Refusal Explained": """
customer: I want a refund for QB-7027.
call: get_download_status {"order_id": "QB-7027"}
agent: It was downloaded 7 times.
""",
    "Further Downloads Told": """
customer: I need more downloads of QB-7022.
call: get_download_status {"order_id": "QB-7022"}
call: allow_downloads {"order_id": "QB-7022", "extra": 1}
agent: 2 further downloads are allowed.
""",
    # Nobody has given that name.
    "Not Identified": """
customer: Where is my order?
call: find_by_name {"name": "x", "detail": "x"}
""",
}
"""What a conversation has not reached, as what is said is not true or something else, though it sounds alike."""

ONCE = {
    "order_discrepancy": [
        'refund {"order_id": "KC-2041", "amount": 12.0}',
        'send_replacement {"order_id": "KC-2047", "sku": "SKU-180", "quantity": 1}',
    ],
    "digital_download": ['refund_purchase {"order_id": "QB-7026"}'],
    "delivery": [
        'change_address {"tracking_number": "HP-640116", "address": "Elm Street 9, Ferrytown"}',
        'send_to_shop {"tracking_number": "HP-640113", "area": "Riverside"}',
    ],
}
"""What a world does not do a second time."""

LOOK_UPS = {
    "order discrepancy": ("get_order", "order_id"),
    "internet trouble": ("find_contract", "contract_id"),
    "gift card": ("check_card", "card_number"),
    "digital download": ("get_download_status", "order_id"),
    "delivery": ("track_parcel", "tracking_number"),
}

REACHED_OFFLINE = {
    "order_discrepancy": "ladles in a second parcel (helpful)",
    "internet_trouble": "a cut cable, and no message",
    "gift_card": "the balance",
    "digital_download": "a link that has expired (helpful)",
    "delivery": "customs",
}
"""A scenario whose goal even the stand-in reaches."""

USE_CASES = sorted(MISTAKES)


def gold(use_case: str) -> list[dict[str, Any]]:
    lines = (FOLDER / "gold" / f"{use_case}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


GOLD = [
    pytest.param(use_case, record, id=f"{use_case}: {record['id']}")
    for use_case in USE_CASES
    for record in gold(use_case)
]


def test_the_use_cases_are_one_suite() -> None:
    suite = Suite.from_yaml(FOLDER / "suite.yaml")
    assert len(suite.scenarios) >= 60
    assert {one.use_case for one in suite.scenarios} == {each.replace("_", " ") for each in USE_CASES}


def test_a_conversation_begins_in_a_world_that_nobody_has_touched() -> None:
    scenario = suite_of("gift_card").scenarios[0]
    used, fresh = Desk(scenario, 1), Desk(scenario, 1)
    card, order = {"card_number": "GFT-551208"}, {"order_id": "LB-3301"}
    assert "was not verified" in used.answer("pay_order", card | order, "1")["content"]
    for desk in (used, fresh):
        desk.answer("verify_pin", card | {"pin": "4417"}, "2")
        assert '"left_on_card": 17.5' in desk.answer("pay_order", card | order, "3")["content"]
    assert "is paid already" in used.answer("pay_order", card | order, "4")["content"]


@pytest.mark.parametrize("use_case", USE_CASES)
def test_a_graph_has_nothing_doubtful(use_case: str) -> None:
    assert not check_milestones(graph_of(use_case), suite_of(use_case).scenarios[0].tools)


@pytest.mark.parametrize("use_case", USE_CASES)
def test_a_use_case_has_customers_of_every_kind(use_case: str) -> None:
    scenarios = suite_of(use_case).scenarios
    users = [one.user for one in scenarios]
    assert len(scenarios) >= 12
    assert {user.kind for user in users} == {"helpful", "perturbed", "unhelpful"}
    assert len({user.persona for user in users}) >= 5
    assert any(len(user.intents) > 1 for user in users)
    assert any(intent.fallback for user in users for intent in user.intents)
    assert any(user.deviations for user in users)
    assert all(one.goal for one in scenarios)


@pytest.mark.slow
@pytest.mark.parametrize(("use_case", "record"), GOLD)
def test_what_the_tools_of_a_gold_conversation_gave_back_is_what_the_world_gives(
    use_case: str, record: dict[str, Any]
) -> None:
    desk = Desk(suite_of(use_case).scenarios[0], record["seed"])
    calls = [call for message in record["messages"] for call in message.get("tool_calls", ())]
    made = [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"]) for call in calls
    ]
    results = [message for message in record["messages"] if message["role"] == "tool"]
    assert results == [desk.answer(*call) for call in made]
    assert record["tools"] == desk.definitions
    told = record["messages"][0]["content"]
    assert desk.agent.profile.strip() in told
    assert all(each.action in told for each in desk.agent.guidelines if each.action)


@pytest.mark.slow
@pytest.mark.parametrize("use_case", USE_CASES)
def test_every_milestone_is_reached_in_some_perfect_conversation(use_case: str) -> None:
    scenario = suite_of(use_case).scenarios[0]
    conversations = [
        *(record["messages"] for record in gold(use_case)),
        *(held(scenario, script) for script in ROADS[use_case]),
    ]
    reached: set[str] = set()
    for messages in conversations:
        found = measured(use_case, messages)
        assert (found.goal_completed, found.progress_rate) == (True, 1), messages[-1]
        reached |= found.reached.keys()
    assert reached == {milestone.name for milestone in graph_of(use_case).milestones}


@pytest.mark.parametrize("use_case", USE_CASES)
def test_a_typical_mistake_is_no_success(use_case: str) -> None:
    messages = held(suite_of(use_case).scenarios[0], MISTAKES[use_case])
    assert not [message for message in messages if message.get("status") == "error"]
    found = measured(use_case, messages)
    assert found.goal_completed is False
    assert 0 < (found.progress_rate or 0) < 1
    assert not found.forbidden


@pytest.mark.slow
@pytest.mark.parametrize("use_case", USE_CASES)
def test_every_goal_is_completed_in_some_perfect_conversation(use_case: str) -> None:
    scenarios = suite_of(use_case).scenarios
    perfect = [record["messages"] for record in gold(use_case)]
    perfect += [held(scenarios[0], script) for script in ROADS[use_case]]
    transcripts = [read_transcript(messages) for messages in perfect]
    for graph in {one.goal: one.measured_graph for one in scenarios}.values():
        assert any(score(graph, each).goal_completed for each in transcripts), graph.name


@pytest.mark.parametrize("milestone", UNTRUE)
def test_what_only_sounds_like_it_does_not_count(milestone: str) -> None:
    number = re.search(r"GFT|HP|QB", UNTRUE[milestone])
    of_number = {"GFT": "gift_card", "HP": "delivery", "QB": "digital_download"}
    use_case = of_number[number[0]] if number else "order_discrepancy"
    found = measured(use_case, held(suite_of(use_case).scenarios[0], UNTRUE[milestone]))
    graph = graph_of(use_case)
    assert milestone not in found.reached
    assert set(graph.get_milestone(milestone).dependencies) & {*found.reached}  # nothing else was lacking


@pytest.mark.parametrize(
    ("use_case", "call"), [(use_case, call) for use_case in ONCE for call in ONCE[use_case]]
)
def test_what_was_done_is_not_done_again(use_case: str, call: str) -> None:
    messages = held(suite_of(use_case).scenarios[0], f"call: {call}\ncall: {call}")
    assert [message.get("status") for message in messages if message["role"] == "tool"] == [None, "error"]


def test_a_customer_is_found_by_whole_words_of_what_they_have() -> None:
    desk = Desk(suite_of("delivery").scenarios[0], 1)
    found = {
        detail: json.loads(
            desk.answer("find_by_name", {"name": "Ben Osei", "detail": detail}, "1")["content"]
        )
        for detail in ("Tallow Candles", "candles", "a", "delivery", "")
    }
    assert [detail for detail, each in found.items() if each["found"]] == ["Tallow Candles", "candles"]


def completed_by(answer: Callable[[Scenario, Any], list[BaseMessage]]) -> list[Scenario]:
    """The scenarios that an agent completes that does the same in every turn."""

    def arm(scenario: Scenario, agent: Any, model: Any, world: Any) -> Answers:
        return Answers(lambda messages: answer(scenario, world))

    suite = Suite.from_yaml(FOLDER / "suite.yaml")
    report = evaluate(suite, {"useless": arm})
    assert not any(one.error for one in report.conversations)
    completed = {one.scenario for one in report.conversations if one.goal_completed}
    return [one for one in suite.scenarios if one.name in completed]


@pytest.mark.slow
def test_who_always_hands_over_serves_only_who_came_for_that() -> None:
    def answer(scenario: Scenario, world: Any) -> list[BaseMessage]:
        found = deed("find_by_name", 1, json.dumps(world.find_by_name("x", "x")), name="x", detail="x")
        return [*found, *deed("hand_over", 2, world.hand_over()), AIMessage("A colleague takes over.")]

    served = completed_by(answer)
    assert "a person, please" in [one.name for one in served]
    assert {one.goal for one in served} <= {"hand_over", "Colleague Announced"}


@pytest.mark.slow
def test_who_always_apologises_serves_nobody() -> None:
    said = "I am sorry about that. I will look into it, and it will be settled soon."
    assert not completed_by(lambda scenario, world: [AIMessage(said)])


@pytest.mark.slow
def test_who_reads_out_the_first_look_up_serves_only_who_came_for_what_it_holds() -> None:
    def answer(scenario: Scenario, world: Any) -> list[BaseMessage]:
        tool, key = LOOK_UPS[scenario.use_case or ""]
        assert scenario.user is not None
        number = next(str(intent.slots[key]) for intent in scenario.user.intents if key in intent.slots)
        with suppress(TimeoutError):  # the second look-up finds what is slow
            getattr(world, tool)(number)
        found = json.dumps(getattr(world, tool)(number))
        return [*deed(tool, 1, found, **{key: number}), AIMessage(f"I have found this: {found}")]

    told = {"Arrival Told", "Customs Explained", "Waiting Told", "Refusal Explained"}
    assert {one.goal for one in completed_by(answer)} == told


@pytest.mark.parametrize("use_case", USE_CASES)
def test_what_is_forbidden_is_told(use_case: str) -> None:
    found = measured(use_case, held(suite_of(use_case).scenarios[0], FORBIDDEN[use_case]))
    assert "End" in found.reached
    assert len(found.forbidden) == 1
    assert found.goal_completed is False


@pytest.mark.slow
@pytest.mark.parametrize("use_case", USE_CASES)
def test_a_goal_is_reached_in_a_conversation_with_a_simulated_customer(use_case: str) -> None:
    suite = suite_of(use_case)
    scenarios = [one for one in suite.scenarios if one.name == REACHED_OFFLINE[use_case]]
    report = evaluate(Suite(scenarios=scenarios, seed=suite.seed), load_arms(["guided"]), model="offline")
    (one,) = report.conversations
    assert one.ended == "user"
    assert one.goal in [each.name for each in one.reached]


@pytest.mark.slow
@pytest.mark.parametrize("use_case", USE_CASES)
def test_the_turns_of_gold_conversations_can_be_evaluated(use_case: str) -> None:
    agent = create_guided_agent("offline", Agent.from_yaml(FOLDER / f"{use_case}.yaml"))
    found = evaluate_turns(agent, FOLDER / "gold" / f"{use_case}.jsonl", limit=3)
    assert (found.metrics.steps, found.metrics.errors, found.broken) == (3, 0, ())


def test_gold_tools_fail_as_tools_do() -> None:
    failed = [
        event.text.partition(":")[0]
        for use_case in USE_CASES
        for record in gold(use_case)
        for event in read_transcript(record).events
        if getattr(event, "failed", False)
    ]
    assert "TimeoutError" in failed
