"""The examples run, and do what they say."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, ScriptedChatModel, create_guided_agent
from arq_graph.milestones import (
    MilestoneGraph,
    Suite,
    Transcript,
    check_milestones,
    read_milestones,
    read_transcript,
    read_transcripts,
    score,
)

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run_turns(app: Any, turns: list[str]) -> list[dict[str, Any]]:
    thread = {"configurable": {"thread_id": "1"}}
    return [app.invoke({"messages": [("user", text)]}, thread) for text in turns]


def get_active(state: dict[str, Any]) -> set[str]:
    return {match["guideline"] for match in state["guideline_matches"] if match["active"]}


@pytest.fixture(scope="module")
def desk() -> list[dict[str, Any]]:
    agent = Agent.from_yaml(EXAMPLES / "order_desk" / "agent.yaml")
    turns = (EXAMPLES / "order_desk" / "conversation.txt").read_text(encoding="utf-8").splitlines()
    assert len(turns) >= 5
    return run_turns(create_guided_agent("offline", agent, checkpointer=MemorySaver()), turns)


def test_the_desk_welcomes_once_and_keeps_to_plain_words_throughout(desk: list[dict[str, Any]]) -> None:
    assert ["welcome" in get_active(state) for state in desk] == [True] + [False] * (len(desk) - 1)
    assert all("plain-words" in get_active(state) for state in desk)
    replies = [message.text for message in desk[-1]["messages"] if isinstance(message, AIMessage)]
    assert sum("thank you for writing to Northwind Outdoor" in reply for reply in replies) == 1
    assert not any("get_order_details" in reply for reply in replies)


def test_the_desk_asks_looks_up_and_acts_on_what_it_finds(desk: list[dict[str, Any]]) -> None:
    assert [(i["kind"], i["argument"]) for i in desk[0]["tool_insights"]] == [("missing", "order_id")]
    called = [call for m in desk[1]["messages"] if isinstance(m, AIMessage) for call in m.tool_calls]
    assert [(call["name"], call["args"]) for call in called] == [
        ("get_order_details", {"order_id": "ORD-1002"})
    ]
    assert "at-warehouse" in get_active(desk[1])  # what a tool found activates it in the same turn
    assert "expedited shipping" in desk[1]["messages"][-1].text
    done = [m for m in desk[-1]["messages"] if isinstance(m, ToolMessage) and m.name == "expedite_shipping"]
    assert [m.status for m in done] == ["success"]
    assert "Have a great day outdoors!" in desk[-1]["messages"][-1].text


LATE = "My order ORD-1004 is late, where is it?"


@pytest.mark.parametrize(
    ("turns", "milestone"),
    [
        ([LATE, "Yes, I take the discount.", "Goodbye!"], "apply_discount"),
        ([LATE, "No, thanks, not necessary.", "Goodbye!"], "Goodwill Declined"),
        (["I want to cancel my order.", "Then I want to speak to a human."], "hand_over_to_human"),
        *(
            pytest.param(turns, milestone, marks=pytest.mark.slow)
            for turns, milestone in (
                (["Where is my order ORD-1001?", "Thanks, goodbye!"], "Delivery Day Told"),
                (["Where is my order ORD-1003?", "Yes, it did. Goodbye!"], "Condition Asked"),
                (["Where is my order ORD-1004?", "I am angry! Give me a human!"], "hand_over_to_human"),
            )
        ),
    ],
)
def test_each_goal_of_the_desk_is_reached_on_its_own_path(turns: list[str], milestone: str) -> None:
    agent = Agent.from_yaml(EXAMPLES / "order_desk" / "agent.yaml")
    graph = read_milestones(EXAMPLES / "order_desk" / "milestones.yaml")
    tools = list(agent.toolbox.values())
    assert list(check_milestones(graph, tools)) == []
    state = run_turns(create_guided_agent("offline", agent, checkpointer=MemorySaver()), turns)[-1]
    reached = score(graph, read_transcript(state["messages"]), tools=tools)
    assert (reached.goal_completed, reached.progress_rate) == (True, 1)
    assert milestone in reached.path_taken


def test_the_desks_suite_has_each_wish_from_each_kind_of_user_in_a_world_of_its_own() -> None:
    suite = Suite.from_yaml(EXAMPLES / "order_desk" / "suite.yaml")
    assert len(suite.scenarios) == 15
    assert {scenario.user.kind for scenario in suite.scenarios} == {"helpful", "perturbed", "unhelpful"}
    for scenario in suite.scenarios:
        assert scenario.goal in scenario.milestones
        assert scenario.world is not None
        first, second = scenario.world(), scenario.world()
        first.expedite_shipping("ORD-1002")
        assert first.get_order_details("ORD-1002")["shipping"] == "expedited"
        assert second.get_order_details("ORD-1002")["shipping"] == "standard"


def test_guided_nodes_stand_beside_an_apps_own_router_and_sub_agent() -> None:
    app = load("drop_in_nodes").build()
    answers = {"When are you open on Monday?": "9 to 18", "How long is my loan?": "due on Friday"}
    for text, answer in answers.items():
        assert answer in app.invoke({"messages": [("user", text)]})["messages"][-1].text


def test_the_graph_wired_by_hand_does_what_the_compiled_one_does() -> None:
    agent = Agent.from_yaml(EXAMPLES / "order_desk" / "agent.yaml")
    turns = ["Hi, where is my order?", "It is ORD-1003."]
    by_hand = run_turns(load("wired_by_hand").build("offline", agent), turns)
    compiled = run_turns(create_guided_agent("offline", agent, checkpointer=MemorySaver()), turns)
    assert [m.text for m in by_hand[-1]["messages"]] == [m.text for m in compiled[-1]["messages"]]
    assert get_active(by_hand[-1]) == get_active(compiled[-1])


def test_an_agent_of_create_agent_follows_the_guidelines_and_rents_the_bike_after_a_yes() -> None:
    example = load("middleware_agent")
    states = run_turns(example.build(ScriptedChatModel(example.SCRIPT)), example.TURNS)
    assert states[1]["messages"][-1].text.endswith('Rent bike (bike: "B-7")\nReply yes to go ahead.')
    ran = [message.text for message in states[-1]["messages"] if isinstance(message, ToolMessage)]
    assert ran == ["bike B-7 is free at Harbour", "B-7 is rented"]


def test_the_restaurant_blueprint_answers_every_query_in_its_stage() -> None:
    answer = load("restaurant").recommend()
    assert list(answer.value.model_dump()) == ["diet", "in_range", "answer", "fits_everyone"]


def test_a_domain_query_of_the_reply_lands_in_its_stage() -> None:
    example = load("domain_reply")
    properties = list(example.ClinicReply.response_schema()["properties"])
    assert (
        properties.index("urgency") < properties.index("revisions") < properties.index("gives_no_diagnosis")
    )
    reply = example.app().invoke({"messages": [("user", "Hello, can I have an appointment for my knee?")]})
    assert "We will find a time for you." in reply["messages"][-1].text


def test_a_blueprint_node_writes_its_channel() -> None:
    angry = {"messages": [("user", "I am so angry! The third broken lamp!")]}
    assert load("sentiment_node").build().invoke(angry)["mood"] in {"calm", "annoyed", "angry"}


SCORES = """
picked up            goal reached     progress 100%
delivered            goal reached     progress 100%
stopped half-way     goal missed      progress 25%
                     - stopped after 'find_bikes'; next could be reserve_bike, Nothing Free
failed call          goal missed      progress 25%
                     - stopped after 'find_bikes'; next could be reserve_bike, Nothing Free
forbidden word       goal missed      progress 100%
                     - forbidden at event 6: agent says /(?i)card number/
invented argument    goal reached     progress 100%
                     - nobody gave this to the call at event 6: address
waiting list         goal undecided   progress 40% to 100%
                     - a judge or a person has to say: Customer Agrees To Wait
same look-up again   goal reached     progress 100%
                     - the same call again at events 4, 10
"""


def test_any_agents_conversations_are_scored_from_two_files(capsys: pytest.CaptureFixture[str]) -> None:
    load("score_any_agent/score_any_agent").main()
    assert capsys.readouterr().out == SCORES.lstrip()


def test_a_planner_and_a_speaker_wired_by_hand_tow_the_boat_once_the_customer_agrees() -> None:
    example = load("planner_and_speaker")
    turns = ["At which berth is boat S-3?", "Please tow boat S-3 away.", "Yes, please."]
    for app in (example.planner("offline"), example.speaker("offline")):
        states = run_turns(app, turns)
        ran = [[m.name for m in state["messages"] if isinstance(m, ToolMessage)] for state in states]
        assert ran == [["find_boat"], ["find_boat"], ["find_boat", "tow_boat"]]
        assert "B4" in states[0]["messages"][-1].text
        values = app.get_state({"configurable": {"thread_id": "1"}}).values
        if "progress" in values:
            assert set(values["progress"][-1]["reached"]) == {"Start", "find_boat", "tow_boat", "End"}


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        # The customer said all that would have been asked; another hotel was booked than the one that was checked.
        ("hotel_booking", {"everything asked": True, "told at once": True, "another hotel": False}),
        ("retail_policy", {"by the book": True, "identity checked late": False, "changed twice": False}),
        # Other calls lead to the same files; moving the original does not.
        ("file_archive", {"copied and renamed": True, "copied at once": True, "original moved": False}),
    ],
)
def test_rules_of_others_can_be_expressed_and_tell_good_conversations_from_bad_ones(
    name: str, outcomes: dict[str, bool]
) -> None:
    folder = EXAMPLES / "public_rules"
    graph = read_milestones(folder / f"{name}.yaml")
    assert not check_milestones(graph)
    results = {}
    for transcript in read_transcripts(folder / f"{name}.jsonl"):
        assert isinstance(transcript, Transcript)
        results[transcript.id] = score(graph, transcript)
    assert {id: result.goal_completed for id, result in results.items()} == outcomes
    if name == "retail_policy":
        assert [event.event for event in results["identity checked late"].forbidden] == [2]
        # The first attempt failed, the second is the one that is allowed.
        assert [event.event for event in results["changed twice"].forbidden] == [9]
    if name == "hotel_booking":
        assert "Booked" in results["another hotel"].frontier


def run_clinic(*turns: str) -> list[dict[str, Any]]:
    agent = Agent.from_yaml(EXAMPLES / "journeys" / "agent.yaml")
    return run_turns(create_guided_agent("offline", agent, checkpointer=MemorySaver()), list(turns))


def get_settled_steps(state: dict[str, Any], outcome: str) -> list[str]:
    (journey,) = state["journeys"][0]["journeys"]
    return [step["step"] for step in journey["steps"] if step["state"] == outcome]


def test_the_clinic_books_a_later_time_when_none_of_the_first_suits() -> None:
    turns = (EXAMPLES / "journeys" / "conversation.txt").read_text(encoding="utf-8").splitlines()
    states = run_clinic(*turns)
    assert 'Book (slot: "B1")\nReply yes to go ahead.' in states[-2]["messages"][-1].text
    tools = [message.name for message in states[-1]["messages"] if isinstance(message, ToolMessage)]
    assert tools == ["find_times", "find_later_times", "book"]
    assert get_settled_steps(states[-1], "skipped") == ["call"]
    assert states[-1]["journeys"][0]["journeys"][0]["state"] == "done"


def test_the_clinic_books_at_once_what_suits_and_minds_a_guideline_on_the_way() -> None:
    turns = (
        "I need an appointment, and it is urgent.",
        "My knee hurts.",
        "I take A2, one of the times offered.",
    )
    states = run_clinic(*turns, "Yes")
    assert "please call 555 0100 now" in states[0]["messages"][-1].text
    assert get_settled_steps(states[-1], "done") == ["reason", "times", "offer", "book"]
    assert get_settled_steps(states[-1], "skipped") == ["later", "offer-later", "call"]


def test_the_clinic_has_the_customer_call_when_no_time_suits() -> None:
    turns = (
        "I need an appointment.",
        "My knee.",
        "None of the times suits.",
        "The later times do not suit either.",
    )
    state = run_clinic(*turns)[-1]
    assert "Please call us on 555 0100" in state["messages"][-1].text
    assert get_settled_steps(state, "skipped") == ["book"]


@pytest.fixture(scope="module")
def bank() -> list[dict[str, Any]]:
    agent = Agent.from_yaml(EXAMPLES / "bank_desk" / "agent.yaml")
    turns = (EXAMPLES / "bank_desk" / "conversation.txt").read_text(encoding="utf-8").splitlines()
    return run_turns(create_guided_agent("offline", agent, checkpointer=MemorySaver()), turns)


def test_the_bank_says_nothing_that_was_not_written_for_it(bank: list[dict[str, Any]]) -> None:
    replies = [
        message.text for message in bank[-1]["messages"] if isinstance(message, AIMessage) and message.text
    ]
    assert replies[2:6] == [
        "Shall we send a new card to the address that we have?",
        "A debit card costs nothing, and a credit card 30 euros a year. A new card after a loss costs 10 euros.",
        "Your new card will arrive by 2026-12-07. The PIN stays the same.",
        "Please keep to a civil tone. How can I help you?",
    ]
    assert replies[-1].startswith("A colleague of the bank")


def test_the_bank_goes_through_its_journeys_until_a_colleague_takes_over(bank: list[dict[str, Any]]) -> None:
    (record,) = bank[-1]["journeys"]
    assert [(journey["journey"], journey["state"]) for journey in record["journeys"]] == [
        ("lost", "done"),
        ("dispute", "done"),
    ]
    results = [message for message in bank[-1]["messages"] if isinstance(message, ToolMessage)]
    assert [message.name for message in results] == [
        "find_card",
        "block_card",
        "send_card",
        "find_payment",
        "open_dispute",
        "hand_over",
    ]
    assert bank[-1]["takeover"]["summary"]["journeys"][0].startswith("lost (done)")
    assert bank[-1]["messages"][-1].text == "Are you there?"


def test_the_bank_s_journey_measures_its_conversation(bank: list[dict[str, Any]]) -> None:
    agent = Agent.from_yaml(EXAMPLES / "bank_desk" / "agent.yaml")
    result = score(MilestoneGraph.from_journey(agent, "lost"), read_transcript(bank[-1]["messages"]))
    assert result.goal_completed is True


def test_the_table_of_examples_lists_each_of_them_and_its_commands_name_files_that_exist() -> None:
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w./]+)`", table, re.MULTILINE)) | {"README.md", "orders.py"}
    entries = {path.name for path in EXAMPLES.iterdir() if not path.name.startswith((".", "__"))}
    entries |= {f"evaluators/{path.name}" for path in (EXAMPLES / "evaluators").glob("*.py")}
    assert listed | {"evaluators"} == entries
    commanded = set(re.findall(r"examples/[\w./]+", table))
    assert [name for name in commanded if not (EXAMPLES.parent / name).exists()] == []
