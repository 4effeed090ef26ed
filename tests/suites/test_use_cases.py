"""The five use cases: their graphs tell perfect conversations from mistaken ones, and their gold data is correct."""

import json
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
from tests.suites.perfect_conversations import PERFECT_CONVERSATIONS
from tests.suites.use_case_desk import FOLDER, Desk, load_graph, load_suite, run_script, score_messages

MISTAKES = {
    # The agent sends a mug without looking at the packing record.
    "order_discrepancy": """
customer: One mug is missing in order KC-2041.
call: get_order {"order_id": "KC-2041"}
agent: I am sorry. I will send you a replacement.
call: send_replacement {"order_id": "KC-2041", "sku": "SKU-114", "quantity": 1}
agent: The replacement will be sent tomorrow, free of charge.
""",
    # The agent restarts the modem before it looks for an outage in the area.
    "internet_trouble": """
customer: The internet of my contract FN-30518 is slow.
call: find_contract {"contract_id": "FN-30518"}
call: restart_modem {"modem_id": "MDM-7104"}
call: measure_line {"modem_id": "MDM-7104"}
agent: I have restarted your modem, and the line is good now.
""",
    # The agent doesn't say where the card was used, so the owner can't remember.
    "gift_card": """
customer: My gift card GFT-551209 is empty. I never used it.
call: check_card {"card_number": "GFT-551209"}
call: open_case {"number": "GFT-551209"}
agent: I have opened the case CASE-1209.
""",
    # The agent doesn't look how often it was downloaded.
    "digital_download": """
customer: I want a refund for the book QB-7026.
call: get_purchase {"order_id": "QB-7026"}
call: refund_purchase {"order_id": "QB-7026"}
agent: It will be refunded within three working days.
""",
    # The agent opens a case for a parcel that a neighbour has.
    "delivery": """
customer: My parcel HP-640114 is said to be delivered, and I do not have it.
call: track_parcel {"tracking_number": "HP-640114"}
call: open_case {"number": "HP-640114"}
agent: I have opened the case CASE-0114.
""",
}
"""A conversation that ends well for the customer and leaves out a required step."""

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
"""A conversation that reaches End and does something forbidden before."""

FALSE_CLAIMS = {
    ("gift_card", "Balance Told"): """
customer: How much is left on GFT-551208? The PIN is 4417.
call: check_card {"card_number": "GFT-551208"}
call: verify_pin {"card_number": "GFT-551208", "pin": "4417"}
agent: There are 35.00 on the card.
""",
    ("gift_card", "Owner Denies"): """
customer: My gift card GFT-551209 is empty.
call: check_card {"card_number": "GFT-551209"}
agent: It was used on 2026-11-02, in Station Street.
customer: I do not understand.
""",
    ("delivery", "New Time Told"): """
customer: I was out when you came with HP-640113.
call: track_parcel {"tracking_number": "HP-640113"}
call: list_times {"tracking_number": "HP-640113"}
agent: It can be brought again on Tuesday 14:00, Tuesday 08:00 or Friday 12:00.
customer: Friday.
call: reschedule {"tracking_number": "HP-640113", "time": "Friday 12:00"}
agent: It will be brought on Tuesday 14:00.
""",
    ("delivery", "Case Told"): """
customer: Where is HP-640115? It is not at my door.
call: track_parcel {"tracking_number": "HP-640115"}
call: get_proof {"tracking_number": "HP-640115"}
call: open_case {"number": "HP-640115"}
agent: I have opened the case CASE-9999.
""",
    ("digital_download", "Refusal Explained"): """
customer: I want a refund for QB-7027.
call: get_download_status {"order_id": "QB-7027"}
agent: It was downloaded 7 times.
""",
    ("order_discrepancy", "Not Identified"): """
customer: Where is my order?
call: find_by_name {"name": "x", "detail": "x"}
""",
}
"""A conversation in which the agent says something false or unclear, so that the milestone isn't reached."""

UNREPEATABLE_CALLS = {
    "order_discrepancy": 'refund {"order_id": "KC-2041", "amount": 12.0}',
    "digital_download": 'refund_purchase {"order_id": "QB-7026"}',
    "delivery": 'send_to_shop {"tracking_number": "HP-640113", "area": "Riverside"}',
}

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
"""A scenario whose goal even the offline model reaches."""

USE_CASES = sorted(MISTAKES)


def read_gold(use_case: str) -> list[dict[str, Any]]:
    lines = (FOLDER / "gold" / f"{use_case}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def read_whole_suite() -> Suite:
    return Suite.from_yaml(FOLDER / "suite.yaml")


def test_the_five_use_cases_form_one_suite() -> None:
    suite = read_whole_suite()
    assert len(suite.scenarios) >= 60
    assert {scenario.use_case for scenario in suite.scenarios} == LOOK_UPS.keys()


def test_each_conversation_begins_in_a_fresh_world() -> None:
    scenario = load_suite("gift_card").scenarios[0]
    used, fresh = Desk(scenario), Desk(scenario)
    card, order = {"card_number": "GFT-551208"}, {"order_id": "LB-3301"}
    assert "was not verified" in used.call("pay_order", card | order)["content"]
    for desk in (used, fresh):
        desk.call("verify_pin", card | {"pin": "4417"})
        assert '"left_on_card": 17.5' in desk.call("pay_order", card | order)["content"]
    assert "is paid already" in used.call("pay_order", card | order)["content"]


@pytest.mark.parametrize("use_case", USE_CASES)
def test_a_graph_has_no_findings_and_its_suite_has_users_of_every_kind(use_case: str) -> None:
    scenarios = load_suite(use_case).scenarios
    assert not check_milestones(load_graph(use_case), scenarios[0].tools)
    assert all(scenario.goal for scenario in scenarios)
    users = [scenario.user for scenario in scenarios if scenario.user]
    assert {user.kind for user in users} == {"helpful", "perturbed", "unhelpful"}


@pytest.mark.slow
@pytest.mark.parametrize("use_case", USE_CASES)
def test_gold_conversations_show_the_tool_results_of_the_world_and_the_agents_rules(use_case: str) -> None:
    scenario = load_suite(use_case).scenarios[0]
    for record in read_gold(use_case):
        desk = Desk(scenario, record["seed"])
        results = []
        for message in record["messages"]:
            for call in message.get("tool_calls", ()):
                arguments = json.loads(call["function"]["arguments"])
                results.append(desk.call(call["function"]["name"], arguments, call["id"]))
        assert [message for message in record["messages"] if message["role"] == "tool"] == results
        assert record["tools"] == desk.definitions
        system_prompt = record["messages"][0]["content"]
        assert desk.agent.profile.strip() in system_prompt
        for guideline in desk.agent.guidelines:
            assert (guideline.action or "") in system_prompt


@pytest.mark.slow
@pytest.mark.parametrize("use_case", USE_CASES)
def test_perfect_conversations_reach_every_milestone_and_complete_every_goal(use_case: str) -> None:
    conversations = [record["messages"] for record in read_gold(use_case)]
    conversations += [run_script(use_case, script) for script in PERFECT_CONVERSATIONS[use_case]]
    reached: set[str] = set()
    for messages in conversations:
        result = score_messages(use_case, messages)
        assert (result.goal_completed, result.progress_rate) == (True, 1), messages[-1]
        reached |= result.reached.keys()
    assert reached == {milestone.name for milestone in load_graph(use_case).milestones}
    transcripts = [read_transcript(messages) for messages in conversations]
    graphs = {scenario.goal: scenario.measured_graph for scenario in load_suite(use_case).scenarios}
    for graph in graphs.values():
        assert any(score(graph, transcript).goal_completed for transcript in transcripts), graph.name


@pytest.mark.parametrize("use_case", USE_CASES)
def test_a_typical_mistake_is_not_a_success(use_case: str) -> None:
    messages = run_script(use_case, MISTAKES[use_case])
    assert not [message for message in messages if message.get("status") == "error"]
    result = score_messages(use_case, messages)
    assert result.goal_completed is False
    assert 0 < (result.progress_rate or 0) < 1
    assert not result.forbidden


@pytest.mark.parametrize("use_case", USE_CASES)
def test_something_forbidden_is_found_and_fails_the_goal(use_case: str) -> None:
    result = score_messages(use_case, run_script(use_case, FORBIDDEN[use_case]))
    assert "End" in result.reached
    assert len(result.forbidden) == 1
    assert result.goal_completed is False


@pytest.mark.parametrize(("use_case", "milestone"), FALSE_CLAIMS)
def test_a_false_claim_does_not_reach_its_milestone(use_case: str, milestone: str) -> None:
    result = score_messages(use_case, run_script(use_case, FALSE_CLAIMS[use_case, milestone]))
    assert milestone not in result.reached
    dependencies = load_graph(use_case).get_milestone(milestone).dependencies
    assert set(dependencies) & result.reached.keys(), "the claim is the only thing that is missing"


@pytest.mark.parametrize("use_case", UNREPEATABLE_CALLS)
def test_a_world_refuses_to_repeat_an_action(use_case: str) -> None:
    call = UNREPEATABLE_CALLS[use_case]
    messages = run_script(use_case, f"call: {call}\ncall: {call}")
    assert [message.get("status") for message in messages if message["role"] == "tool"] == [None, "error"]


def test_a_customer_is_found_by_whole_words_of_an_article() -> None:
    desk = Desk(load_suite("delivery").scenarios[0])
    matching = []
    for detail in ("Tallow Candles", "candles", "a", "delivery", ""):
        result = desk.call("find_by_name", {"name": "Ben Osei", "detail": detail})
        if json.loads(result["content"])["found"]:
            matching.append(detail)
    assert matching == ["Tallow Candles", "candles"]


def find_completed(answer: Callable[[Scenario, Any], list[BaseMessage]]) -> list[Scenario]:
    """Return the scenarios completed by an agent that does the same in every turn."""

    def arm(scenario: Scenario, agent: Any, model: Any, world: Any) -> Answers:
        return Answers(lambda messages: answer(scenario, world))

    suite = read_whole_suite()
    conversations = evaluate(suite, {"useless": arm}).conversations
    assert not any(record.error for record in conversations)
    completed = {record.scenario for record in conversations if record.goal_completed}
    return [scenario for scenario in suite.scenarios if scenario.name in completed]


@pytest.mark.slow
def test_an_agent_that_always_hands_over_serves_only_customers_who_want_a_person() -> None:
    def answer(scenario: Scenario, world: Any) -> list[BaseMessage]:
        found = deed("find_by_name", 1, json.dumps(world.find_by_name("x", "x")), name="x", detail="x")
        return [*found, *deed("hand_over", 2, world.hand_over()), AIMessage("A colleague takes over.")]

    completed = find_completed(answer)
    assert "a person, please" in [scenario.name for scenario in completed]
    assert {scenario.goal for scenario in completed} <= {"hand_over", "Colleague Announced"}


@pytest.mark.slow
def test_an_agent_that_always_apologises_serves_nobody() -> None:
    apology = "I am sorry about that. I will look into it, and it will be settled soon."
    assert not find_completed(lambda scenario, world: [AIMessage(apology)])


@pytest.mark.slow
def test_an_agent_that_reads_out_its_first_look_up_serves_only_customers_who_want_that() -> None:
    def answer(scenario: Scenario, world: Any) -> list[BaseMessage]:
        tool, key = LOOK_UPS[scenario.use_case or ""]
        assert scenario.user is not None
        number = next(str(intent.slots[key]) for intent in scenario.user.intents if key in intent.slots)
        with suppress(TimeoutError):  # some look-ups time out once
            getattr(world, tool)(number)
        result = json.dumps(getattr(world, tool)(number))
        return [*deed(tool, 1, result, **{key: number}), AIMessage(f"I have found this: {result}")]

    goals = {scenario.goal for scenario in find_completed(answer)}
    assert goals == {"Arrival Told", "Customs Explained", "Waiting Told", "Refusal Explained"}


@pytest.mark.slow
@pytest.mark.parametrize("use_case", USE_CASES)
def test_a_simulated_customer_reaches_a_goal_and_gold_turns_can_be_evaluated(use_case: str) -> None:
    suite = load_suite(use_case)
    scenarios = [scenario for scenario in suite.scenarios if scenario.name == REACHED_OFFLINE[use_case]]
    report = evaluate(Suite(scenarios=scenarios, seed=suite.seed), load_arms(["guided"]), model="offline")
    (record,) = report.conversations
    assert record.ended == "user"
    assert record.goal in [milestone.name for milestone in record.reached]
    agent = create_guided_agent("offline", Agent.from_yaml(FOLDER / f"{use_case}.yaml"))
    turns = evaluate_turns(agent, FOLDER / "gold" / f"{use_case}.jsonl", limit=3)
    assert (turns.metrics.steps, turns.metrics.errors, turns.broken) == (3, 0, ())
