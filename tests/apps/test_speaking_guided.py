"""Speaking in the guided agent: guidelines are matched and tools gated as before, and what is said is the draft."""

from __future__ import annotations

import pytest

from arq_graph import InputError, create_guided_agent
from arq_graph.nodes.events import ReplySent, Spoke
from tests.apps.desk import active, desk, kinds, late, says
from tests.brain import asked_by, brain
from tests.planning import planner
from tests.planning import say as planned
from tests.speaking import act, ask, say, speaker, think

A1 = {"order_id": "A-1"}


def both(script, **others):
    """A model that speaks by a script and answers everything else like `brain`."""
    return speaker(script, otherwise=brain(**others))


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_the_speaker_stands_in_the_place_of_the_tool_caller(runs, mode):
    model = both([act("get_order", A1), say("It is late.")], judge={"G1": 9}, reply="I am sorry, it is late.")
    app = create_guided_agent(model, desk(), speaking=True, policies=[], mode=mode)
    state = runs.invoke(app, says("Where is A-1?"))
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert state["messages"][-1].content == "I am sorry, it is late."
    assert [(move.kind, move.text) for move in state["moves"]] == [
        ("act", "get_order"),
        ("speak", "It is late."),
    ]
    assert active(state) == ["G1", "G4"]
    assert asked_by(model, "tools") == []


def test_what_it_says_is_the_draft_of_the_reply_and_its_events_come_in_order(runs):
    model = both(
        [think("Nothing to look up."), say("We are open.")], reply=lambda asked: asked.section("draft")
    )
    app = create_guided_agent(model, desk(), speaking=True)
    state = runs.invoke(app, says("Are you open?"))
    assert state["messages"][-1].content == "We are open."
    assert len([message for message in state["messages"] if message.type == "ai"]) == 1
    events = list(app.stream(says("Are you open?"), stream_mode="custom"))
    spoken = [event for event in events if isinstance(event, Spoke | ReplySent)]
    assert [(type(event), getattr(event, "draft", None)) for event in spoken] == [
        (Spoke, True),
        (ReplySent, None),
    ]


def test_it_takes_the_tools_that_a_result_has_made_available(runs):
    model = both([act("get_order", A1), act("give_discount", A1), say("Here.")], judge={"G1": 9, "G2": late})
    state = runs.invoke(create_guided_agent(model, desk(), speaking=True), says("Where is A-1?"))
    assert [m.content for m in state["messages"] if m.type == "tool"] == ["A-1 is late", "5% off A-1"]
    assert [asked.now["candidates"] for asked in asked_by(model, "speaker")] == [
        ["get_order"],
        ["get_order", "give_discount"],
        ["get_order", "give_discount"],
    ]


def test_a_tool_that_no_active_guideline_grants_never_runs(runs):
    model = both([act("give_discount", A1)], judge={"G1": 9}, reply="I cannot.")
    state = runs.invoke(create_guided_agent(model, desk(), speaking=True), says("Give me a discount on A-1"))
    assert kinds(state) == ["human", "ai"]


def test_a_call_that_waits_for_the_customer_is_put_to_them_by_code(runs):
    put = "Shall I look up A-1?"
    moves = [act("get_order", A1), ask(put, asks_for=[("get_order", None)])]
    model = both(moves, judge={"G1": 9}, reply=lambda asked: asked.section("draft"))
    agent = desk(confirm={"get_order": "customer"})
    state = runs.invoke(create_guided_agent(model, agent, speaking=True, policies=[]), says("Where is A-1?"))
    (insight,) = asked_by(model, "message")[0].section("insights")
    assert (insight["kind"], state["messages"][-1].content) == ("confirm", insight["question"])


def test_where_the_draft_names_internals_too_the_fallback_goes_out(runs):
    model = planner([planned("get_order says no.")], reply="get_order knows.")
    state = runs.invoke(create_guided_agent(model, desk(fallback="Sorry."), planning="react"), says("Hi"))
    assert state["messages"][-1].content == "Sorry."


def test_planning_and_speaking_exclude_each_other():
    with pytest.raises(InputError, match="planning or speaking, not both"):
        create_guided_agent("offline", desk(), speaking=True, planning="react")


def test_policies_without_a_speaker_are_refused():
    with pytest.raises(InputError, match="speaking=True"):
        create_guided_agent("offline", desk(), policies=[])


def test_a_model_for_each_module_names_the_speaker():
    with pytest.raises(InputError, match="no model is given for speaker"):
        create_guided_agent(
            {"matcher": "offline", "tools": "offline", "message": "offline"}, desk(), speaking=True
        )
    create_guided_agent(dict.fromkeys(["matcher", "speaker", "message"], "offline"), desk(), speaking=True)
