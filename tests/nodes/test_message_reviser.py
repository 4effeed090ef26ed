"""The reply: what it is told, when it is revised, what is sent, and what is remembered of it."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import (
    Agent,
    AppliedGuideline,
    BlueprintError,
    Guideline,
    InputError,
    Reasoner,
    RefusalError,
    ToolInsight,
    UnsatisfiedError,
    Variable,
    query,
    verify,
)
from arq_graph.agent.state import GuidelineMatch
from arq_graph.nodes import MessageBlueprint, MessageReviser
from tests.brain import asked_by, brain

ASKED = HumanMessage("Where is my order?", id="h1")
DESK = Agent(
    "Desk",
    "You help with orders.",
    [
        Guideline("they ask", "tell the status", priority=2),
        Guideline(None, "be polite", continuous=True),
        Guideline("they are rude", "stay calm"),
    ],
    variables=[Variable("tier", "The customer's tier", "gold")],
    fallback="I cannot say.",
)
UNSOURCED = {"factual_information_provided": [{"fact": "it ships today", "source": None}]}


def matched(*ids, turn="h1"):
    return [GuidelineMatch(guideline=id, turn=turn, active=True, matched=True, score=8) for id in ids]


def reply(runs, said, *, messages=(ASKED,), active=("G1", "G2"), agent=DESK, channels=None, **options):
    model = brain(reply=said)
    state = {"messages": list(messages), "guideline_matches": matched(*active), **(channels or {})}
    update = runs.invoke(MessageReviser(model, agent, **options), state)
    return update, model


def test_the_reply_is_written_as_a_message(runs):
    update, _ = reply(runs, "It is on its way.")
    (message,) = update["messages"]
    assert (message.content, message.type) == ("It is on its way.", "ai")
    assert message.id
    (revision,) = update["revisions"]
    assert (revision.content, revision.sent, revision.violations, revision.turn) == (
        "It is on its way.",
        True,
        (),
        "h1",
    )


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_every_mode_gives_a_reply_and_what_it_follows(runs, mode):
    update, _ = reply(runs, {"content": "Hello", "followed": ["G2"]}, mode=mode)
    assert update["messages"][0].content == "Hello"
    assert [record.guideline for record in update["applied_guidelines"]] == ["G2"]


def test_only_the_active_guidelines_are_in_the_prompt(runs):
    _, model = reply(runs, "Hello")
    (asked,) = asked_by(model, "message")
    assert asked.section("active_guidelines") == [
        {"id": "G1", "condition": "they ask", "action": "tell the status", "priority": 2, "score": 8},
        {"id": "G2", "condition": None, "action": "be polite", "priority": 0, "score": 8},
    ]
    assert "stay calm" not in asked.prompt
    assert asked.section("variables")[0]["value"] == "gold"


def test_only_this_turn_s_open_insights_are_in_the_prompt(runs):
    insights = [
        ToolInsight(turn="h0", tool="cancel", kind="missing", argument="order_id"),
        ToolInsight(turn="h1", tool="look", kind="run"),
        ToolInsight(turn="h1", tool="look", kind="declined"),
        ToolInsight(turn="h1", tool="cancel", kind="invalid", argument="day", problem="not a date"),
    ]
    _, model = reply(runs, "Hello", channels={"tool_insights": insights})
    assert asked_by(model, "message")[0].section("insights") == [
        {"tool": "cancel", "kind": "invalid", "description": "", "argument": "day", "problem": "not a date"}
    ]


def test_what_the_reply_follows_is_remembered_and_counted(runs):
    before = [
        AppliedGuideline(guideline="G2", turn="h0", message="a0", times=3),
        AppliedGuideline(guideline="G3", turn="h0", message="a0"),
    ]
    said = {"content": "Hello", "followed": ["G2", "G1", "G9", "the insight"]}
    update, model = reply(runs, said, channels={"applied_guidelines": before})
    sent = update["messages"][0].id
    assert {r.guideline: (r.turn, r.message, r.times) for r in update["applied_guidelines"]} == {
        "G1": ("h1", sent, 1),
        "G2": ("h1", sent, 4),
        "G3": ("h0", "a0", 1),
    }
    assert len(model.calls) == 1


def test_a_violation_is_shown_to_the_model_for_one_more_revision(runs):
    update, model = reply(runs, [{"content": "It ships today.", **UNSOURCED}, "I do not know when it ships."])
    assert update["messages"][0].content == "I do not know when it ships."
    complaint = asked_by(model, "message")[1].complaint
    assert "MessageBlueprint.revisions[0].factual_information_provided[0]" in complaint
    assert "it has no source in this prompt" in complaint


def test_the_trace_names_the_query_that_failed_in_each_candidate(runs):
    update, _ = reply(runs, [{"content": "It ships today.", **UNSOURCED}, "I do not know."])
    first, second = update["revisions"]
    assert (first.content, first.sent) == ("It ships today.", False)
    assert first.violations[0].startswith("MessageBlueprint.revisions[0].factual_information_provided[0]: ")
    assert (second.content, second.sent, second.violations) == ("I do not know.", True, ())


def test_the_last_candidate_is_sent_when_none_is_acceptable(runs):
    update, model = reply(runs, [{"content": "Today.", **UNSOURCED}, {"content": "Tomorrow.", **UNSOURCED}])
    assert update["messages"][0].content == "Tomorrow."
    assert len(model.calls) == 2
    assert [revision.sent for revision in update["revisions"]] == [False, True]


def test_extra_revisions_are_bounded(runs):
    _, model = reply(runs, {"content": "Today.", **UNSOURCED}, extra_revisions=3)
    assert len(model.calls) == 4
    _, model = reply(runs, {"content": "Today.", **UNSOURCED}, extra_revisions=0)
    assert len(model.calls) == 1


def test_the_fallback_is_sent_when_that_is_set(runs):
    update, _ = reply(runs, {"content": "Today.", **UNSOURCED}, on_unsatisfied="fallback")
    assert update["messages"][0].content == "I cannot say."
    assert [(revision.content, revision.sent) for revision in update["revisions"]] == [
        ("Today.", False),
        ("Today.", False),
        ("I cannot say.", True),
    ]
    assert update["applied_guidelines"] == []


def test_an_error_is_raised_when_that_is_set_and_names_the_query(runs):
    with pytest.raises(
        UnsatisfiedError, match=r"within 2 answers: MessageBlueprint.revisions\[0\]"
    ) as caught:
        reply(runs, {"content": "Today.", **UNSOURCED}, on_unsatisfied="raise")
    assert len(caught.value.attempts) == 2


def test_a_setting_out_of_its_range_is_an_error():
    with pytest.raises(InputError, match="on_unsatisfied is 'fallbck': it must be one of"):
        MessageReviser(brain(), DESK, on_unsatisfied="fallbck")
    with pytest.raises(InputError, match="extra_revisions must be at least 0, not -1"):
        MessageReviser(brain(), DESK, extra_revisions=-1)


@pytest.mark.parametrize("content", ["", "   \n", "I used get_order.", "See G1 for that."])
def test_an_empty_reply_or_one_that_gives_internals_away_is_never_sent(runs, content):
    def get_order(order_id: str) -> str:
        """Look up."""
        return order_id

    agent = Agent("Desk", "You help.", DESK.guidelines, tools=[get_order], fallback="I cannot say.")
    update, model = reply(runs, content, agent=agent)
    assert update["messages"][0].content == "I cannot say."
    assert len(model.calls) == 2
    assert ".content: " in update["revisions"][0].violations[0]


def test_an_unusable_answer_sends_the_fallback_where_that_is_set(runs):
    model = brain()
    model._answer = lambda call: "no JSON here"
    node = MessageReviser(model, DESK, on_unsatisfied="fallback")
    update = runs.invoke(node, {"messages": [ASKED], "guideline_matches": matched("G1")})
    assert update["messages"][0].content == "I cannot say."
    with pytest.raises(BlueprintError):
        runs.invoke(MessageReviser(model, DESK), {"messages": [ASKED], "guideline_matches": matched("G1")})


def test_a_refusal_sends_the_fallback_where_that_is_set(runs):
    refused = AIMessage("", additional_kwargs={"refusal": "I will not."})
    model = brain()
    model._answer = lambda call: refused
    state = {"messages": [ASKED], "guideline_matches": matched("G1")}
    node = MessageReviser(model, DESK, on_unsatisfied="fallback")
    assert runs.invoke(node, state)["messages"][0].content == "I cannot say."
    with pytest.raises(RefusalError, match="message"):
        runs.invoke(MessageReviser(model, DESK), state)


class Clinic(MessageBlueprint):
    """Write the clinic's next message."""

    urgency: str = query("How urgent is it?")
    no_diagnosis: bool = verify("Is the reply free of any diagnosis?", must_be=True)


def test_a_domain_subclass_adds_its_queries_into_their_stages(runs):
    said = {"content": "Please come in.", "urgency": "high", "no_diagnosis": True}
    update, model = reply(runs, said, blueprint=Clinic)
    assert update["messages"][0].content == "Please come in."
    names = list(asked_by(model, "message")[0].schema["properties"])
    assert names.index("urgency") < names.index("revisions") < names.index("no_diagnosis")


def test_a_domain_verification_that_fails_is_asked_again_and_traced(runs):
    bad = {"content": "It is the flu.", "no_diagnosis": False}
    update, model = reply(runs, [bad, {"content": "Please come in.", "no_diagnosis": True}], blueprint=Clinic)
    assert update["messages"][0].content == "Please come in."
    assert "Clinic.no_diagnosis" in asked_by(model, "message")[1].complaint
    assert asked_by(model, "message")[1].complaint.count("no_diagnosis") == 1
    assert update["revisions"][0].violations[0].startswith("Clinic.no_diagnosis: ")


def test_a_domain_verification_that_keeps_failing_is_no_acceptable_reply(runs):
    bad = {"content": "It is the flu.", "no_diagnosis": False}
    update, _ = reply(runs, bad, blueprint=Clinic, on_unsatisfied="fallback")
    assert update["messages"][0].content == "I cannot say."
    with pytest.raises(UnsatisfiedError, match="no_diagnosis"):
        reply(runs, bad, blueprint=Clinic, on_unsatisfied="raise")


def test_the_last_of_several_revisions_is_sent(runs):
    def twice():
        one = {
            "followed": [],
            "offered_services": [],
            "instructions_broken": [],
            "revision_number": 1,
            "content": "Draft",
            "factual_information_provided": [{"fact": "x", "source": None}],
            "is_repeat_message": False,
        }
        two = {**one, "revision_number": 2, "content": "Better", "factual_information_provided": []}
        return {"revisions": [one, two]}

    model = brain()
    answer = model._answer
    model._answer = lambda call: {**answer(call), **twice()}
    state = {"messages": [ASKED], "guideline_matches": matched("G1")}
    assert runs.invoke(MessageReviser(model, DESK), state)["messages"][0].content == "Better"
    assert len(model.calls) == 1


def test_a_reasoner_of_your_own_can_be_given(runs):
    model = brain(reply="Hello")
    reasoner = Reasoner(model, module="message", mode="direct")
    state = {"messages": [ASKED], "guideline_matches": matched("G1")}
    assert runs.invoke(MessageReviser(reasoner, DESK), state)["messages"][0].content == "Hello"
    assert "context_evaluation" not in asked_by(model, "message")[0].schema["properties"]


def test_tool_results_of_this_turn_are_named_as_staged(runs):
    call = {"name": "look", "args": {}, "id": "c1", "type": "tool_call"}
    messages = [ASKED, AIMessage("", tool_calls=[call]), ToolMessage("late", tool_call_id="c1")]
    _, model = reply(runs, "Hello", messages=messages)
    assert asked_by(model, "message")[0].now == {"turn": "M1", "staged": ["T1"]}
