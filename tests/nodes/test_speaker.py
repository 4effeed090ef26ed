"""One move at a time: a thought changes nothing outside, a call or an utterance is a message."""

from __future__ import annotations

import pytest
from langgraph.graph import END, START, MessagesState, StateGraph

from arq_graph import Agent, BlueprintError, Guideline, GuidelineMatch, InputError, StateError
from arq_graph.nodes.speaking.dialogue_acts import HOUSEHOLD_ACTS
from arq_graph.nodes.speaking.speaker import Speaker
from tests.nodes.order_tools import A1, called, get_order, ran
from tests.nodes.speaker_desk import DESK, agent, customer, move, said
from tests.speaking import act, ask, say, speaker, think

ASKED = customer("Where is A-1?")


def test_a_call_is_made(runs):
    update, _ = move([act("get_order", A1)], ASKED, runs=runs)
    assert called(update) == [("get_order", A1)]
    assert [m.kind for m in update["moves"]] == ["act"]


def test_an_utterance_is_said(runs):
    update, _ = move([say("It is late.")], ASKED, *ran(), runs=runs)
    assert (said(update), called(update)) == ("It is late.", [])


def test_a_thought_is_observed_as_ok_and_followed_by_a_move(runs):
    update, asked = move([think("It may be late."), act("get_order", A1)], ASKED, runs=runs)
    assert called(update) == [("get_order", A1)]
    assert asked[1].section("thoughts") == [{"thought": "It may be late.", "observed": "OK"}]
    assert [(m.kind, m.text) for m in update["moves"]] == [("think", "It may be late."), ("act", "get_order")]


def test_thoughts_are_bounded():
    thoughts = iter(range(100))
    update, asked = move(lambda _: think(f"thought {next(thoughts)}"), ASKED, max_thoughts=2)
    assert len(asked) == 2 + 3, "two thoughts, and the candidates of one move"
    assert said(update) == DESK.fallback
    assert [m.kind for m in update["moves"]] == ["think", "think", "speak"]


def test_the_same_thought_does_not_count_twice():
    update, asked = move([think("It may be late."), think("it may  be late."), say("It is late.")], ASKED)
    assert "thought before" in asked[2].complaint
    assert [m.kind for m in update["moves"]] == ["think", "speak"]


def test_thoughts_of_this_turn_are_remembered_after_a_call():
    update, _ = move([think("It may be late."), act("get_order", A1)], ASKED)
    later, asked = move([say("It is.")], ASKED, *ran(), state={"moves": update["moves"]})
    assert asked[0].section("thoughts") == [{"thought": "It may be late.", "after": "M1", "observed": "OK"}]
    assert [m.kind for m in later["moves"]] == ["think", "act", "speak"]
    next_turn, asked = move([say("Yes.")], customer("And now?", "h2"), state={"moves": later["moves"]})
    assert asked[0].section("thoughts") is None
    assert len(next_turn["moves"]) == 1


def test_a_call_that_failed_is_not_made_again():
    update, asked = move(
        [act("get_order", A1), say("I cannot look it up.")], ASKED, *ran("Error: down", status="error")
    )
    assert "has failed already" in asked[1].complaint
    assert said(update) == "I cannot look it up."


def test_an_utterance_gives_away_no_tool_and_no_id():
    update, asked = move([say("get_order says T1."), say("It is late.")], ASKED, *ran())
    assert "'get_order' is internal" in asked[1].complaint
    assert said(update) == "It is late."


def test_an_empty_utterance_is_never_said():
    update, _ = move([say("  ")], ASKED)
    assert said(update) == DESK.fallback
    assert (update["moves"][-1].by_code, update["moves"][-1].category) == (True, "alternative_suggestion")


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_every_mode_has_the_move_and_its_labels(mode):
    update, _ = move([ask("Which order is it?")], customer("Where is it?"), mode=mode)
    assert update["moves"][-1].category == "probing_question"


@pytest.mark.parametrize(
    ("flags", "category"),
    [
        ({"mentions_failure": True, "closes": True, "asks": True}, "alternative_suggestion"),
        ({"closes": True, "asks": True, "states_belief": True}, "follow_up"),
        ({}, "status_update"),
        ({"states_belief": True}, "assumption_verification"),
        ({"states_belief": True, "asks": True, "offers_choice": True}, "assumption_verification"),
        ({"asks": True, "offers_choice": True}, "clarification_request"),
        ({"asks": True}, "probing_question"),
    ],
)
def test_an_utterance_is_labelled_after_it(flags, category):
    update, _ = move([say("Some words.", **flags)], ASKED)
    assert update["messages"][-1].response_metadata["speech"]["category"] == category
    assert update["moves"][-1].category == category


def test_a_question_mark_makes_a_question_whatever_the_model_says():
    update, _ = move([say("Which one?", asks=False)], ASKED)
    assert update["moves"][-1].category == "probing_question"


def test_speech_can_be_limited_to_the_acts_of_a_household_helper():
    update, asked = move(
        [ask("Where is the mug?", dialogue_act="ReqForObjLocAndOD")], ASKED, dialogue_acts="household"
    )
    assert update["moves"][-1].dialogue_act == "ReqForObjLocAndOD"
    assert asked[0].section("dialogue_acts") == dict(HOUSEHOLD_ACTS)
    assert len(HOUSEHOLD_ACTS) == 10


def test_an_act_that_is_not_in_the_list_is_no_answer():
    with pytest.raises(BlueprintError):
        move([ask("Where?", dialogue_act="Sing")], ASKED, dialogue_acts={"Ask": "ask something"})


def test_free_speech_is_not_asked_for_an_act():
    _, asked = move([say("Hello.")], ASKED)
    assert "dialogue_act" not in str(asked[0].schema)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_steps": 0},
        {"max_questions": -1},
        {"max_thoughts": 1.5},
        {"max_results": True},
        {"setting": "theatre"},
        {"dialogue_acts": "opera"},
        {"dialogue_acts": {}},
        {"dialogue_acts": {"a b": "x"}},
        {"dialogue_acts": {"Ask": " "}},
    ],
)
def test_a_setting_out_of_its_range_is_told(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Speaker(speaker([]), DESK, **wrong)


def test_a_channel_of_another_type_is_told():
    with pytest.raises(StateError, match="'moves'"):
        move([say("Hi.")], ASKED, state={"moves": [1]})


def test_it_works_alone_in_a_graph_that_knows_only_messages(runs):
    builder = StateGraph(MessagesState)
    builder.add_node("speak", Speaker(speaker([think("Greet."), say("Hello!")]), Agent("Desk", "You help.")))
    builder.add_edge(START, "speak")
    builder.add_edge("speak", END)
    state = runs.invoke(builder.compile(), {"messages": [("user", "Hi")]})
    assert [m.text for m in state["messages"]] == ["Hi", "Hello!"]


def test_the_head_and_the_schema_stay_the_same_over_a_conversation():
    _, first = move([say("Which one?")], customer("Hi"))
    _, second = move([say("It is late.")], customer("Hi"), agent("Which one?"), customer("A-1", "h2"), *ran())
    assert first[0].head == second[0].head
    assert first[0].schema == second[0].schema
    assert second[0].tail.startswith(first[0].tail.partition("\n</conversation>")[0])


def test_a_tool_is_granted_by_its_guideline():
    guided = Agent("Desk", "You help.", [Guideline("they ask for an order", "look it up", tools=[get_order])])

    def with_match(active):
        match = GuidelineMatch(guideline="G1", turn="h1", active=active, matched=active)
        script = [act("get_order", A1), say("I cannot.")]
        return move(script, ASKED, desk=guided, state={"guideline_matches": [match]})

    update, asked = with_match(True)
    assert called(update) == [("get_order", A1)]
    assert asked[0].section("active_guidelines")[0]["id"] == "G1"
    update, asked = with_match(False)
    assert (called(update), said(update)) == ([], "I cannot.")
    assert asked[0].now["candidates"] == []


def test_a_world_of_another_type_is_told():
    with pytest.raises(StateError, match="'world'"):
        move([say("Hi.")], ASKED, in_world=True, state={"world": {"done": False}})
