"""The reply: what it is told, when it is revised, what is sent, and what is remembered of it."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph

from arq_graph import Agent, AgentState, Guideline, ScriptedChatModel, Term, Variable, errors, query, verify
from arq_graph.nodes import MessageBlueprint, MessageReviser
from tests.brain import asked_by, brain
from tests.order_tools import cancel, get_order, ran

ASKED = HumanMessage("Where is my order?", id="h1")
UNSOURCED = {"factual_information_provided": [{"fact": "it ships today", "source": None}]}


DESK = Agent(
    "Desk",
    "You help with orders.",
    [
        Guideline("they ask", "tell the status", priority=2, tools=[get_order]),
        Guideline(None, "be polite", continuous=True),
        Guideline("they are rude", "stay calm", overrides=["G5"], tools=[cancel]),
        Guideline("they name an order"),
        Guideline("they want advice", "offer a call"),
    ],
    glossary=[Term("ETA", "When it comes.")],
    variables=[Variable(name="tier", description="The customer's tier", value="gold")],
    confirm={"cancel": "customer"},
    fallback="I cannot say.",
)


def matched(*ids, **fields):
    found = {"agent": "Desk", "turn": "h1", "active": True, "matched": True, "score": 8}
    return [{**found, "guideline": id, **fields} for id in ids]


def insight(**fields):
    return {"agent": "Desk", "turn": "h1", "tool": "cancel", **fields}


CONFIRM = insight(kind="confirm", arguments={"order_id": "A-1"}, granted_by=["G3"])


def reply(said, *, messages=(ASKED,), active=("G1", "G2"), channels=None, **options):
    """What the reviser writes, and the model."""
    model = brain(reply=said)
    state = {"messages": list(messages), "guideline_matches": matched(*active), **(channels or {})}
    return MessageReviser(model, DESK, **options).invoke(state), model


def text(update):
    return update["messages"][0].text


def section(model, name, number=0):
    return asked_by(model, "message")[number].section(name)


def test_the_active_guidelines_that_have_an_action_are_in_the_prompt_and_what_they_override():
    matches = [*matched("G1", "G3", "G4"), *matched("G5", active=False)]
    matches += matched("G2", active=False, matched=False)
    _, model = reply("Hello", channels={"guideline_matches": matches})
    assert section(model, "active_guidelines") == [
        {"id": "G1", "condition": "they ask", "action": "tell the status", "priority": 2, "score": 8},
        {"id": "G3", "condition": "they are rude", "action": "stay calm", "priority": 0, "score": 8},
    ]
    assert section(model, "set_aside") == [
        {"id": "G5", "condition": "they want advice", "action": "offer a call", "replaced_by": ["G3"]}
    ]
    assert "be polite" not in asked_by(model, "message")[0].prompt
    assert [section(model, "variables")[0][name] for name in ("id", "value")] == ["V1", "gold"]
    assert (section(model, "glossary")[0]["id"], section(model, "profile")["id"]) == ("K1", "P")


def test_what_is_open_in_this_turn_is_an_insight_each_with_an_id():
    insights = [
        insight(turn="h0", kind="missing", argument="order_id"),
        *(insight(kind=kind) for kind in ("run", "declined")),
        insight(kind="invalid", argument="day", problem="not a date"),
    ]
    unknown = matched("G5", active=False, matched=False, missing_information="when it was ordered")
    channels = {"tool_insights": insights, "guideline_matches": [*matched("G1"), *unknown]}
    _, model = reply("Hello", channels=channels)
    invalid, undecided = section(model, "insights")
    told = [invalid[name] for name in ("id", "kind", "argument", "problem")]
    assert told == ["I1", "invalid", "day", "not a date"]
    told = [undecided[name] for name in ("id", "kind", "action", "what_would_decide_it")]
    assert told == ["I2", "not_known_yet", "offer a call", "when it was ordered"]


def test_the_tools_of_the_turn_are_described_whether_they_ran_or_may_run():
    _, model = reply("Hello", messages=[ASKED, *ran(tool="cancel")])
    described = {each["name"]: each["description"] for each in section(model, "tool_descriptions")}
    assert described == {"get_order": "Look up an order. It is free.", "cancel": "Cancel an order. For good."}
    assert asked_by(model, "message")[0].now == {"turn": "M1", "staged": ["T1"]}


PLANNED = {"plan": [{"agent": "Desk", "turn": "h1", "final_answer": "It ships on Monday."}]}


@pytest.mark.parametrize(("draft", "sent"), [("It ships on Monday.", "It ships on Monday."), ("", "Hello")])
def test_a_writer_of_ones_own_leaves_its_draft_in_a_channel(draft, sent):
    model = brain(reply={"content": ""} if draft else "Hello")
    graph = StateGraph(AgentState)
    graph.add_node("write", lambda _: {"my_draft": draft}, input_schema=AgentState)
    graph.add_node("message", MessageReviser(model, DESK, draft_key="my_draft"))
    graph.add_edge(START, "write")
    graph.add_edge("write", "message")
    state = graph.compile().invoke({"messages": [ASKED], "guideline_matches": matched("G1"), **PLANNED})
    assert (section(model, "draft"), state["messages"][-1].text) == (draft or None, sent)


@pytest.mark.parametrize("mode", ["arq", "direct"])
def test_a_draft_that_needs_no_change_is_not_written_again(mode):
    update, model = reply({"content": "", "followed": ["G1"]}, channels=PLANNED, mode=mode)
    assert section(model, "draft") == "It ships on Monday."
    assert text(update) == "It ships on Monday."
    assert update["revisions"][0]["content"] == "It ships on Monday."


def test_a_draft_is_held_to_the_same_rules_and_sent_where_what_replaces_it_is_worse():
    leaking = {"plan": [{**PLANNED["plan"][0], "final_answer": "I called get_order."}]}
    update, _ = reply(["", "It ships."], channels=leaking)
    assert "'get_order' is internal" in update["revisions"][0]["violations"][0]
    assert text(update) == "It ships."
    assert text(reply("I called get_order.", channels=leaking)[0]) == "I cannot say."
    update, _ = reply("I called get_order.", channels=PLANNED)
    assert text(update) == "It ships on Monday."
    assert update["revisions"][-1]["violations"] == ["no candidate was acceptable: the draft was sent"]


@pytest.mark.parametrize(
    ("said", "options", "above", "complaint"),
    [
        (["Anything else?", "It is final."], {}, "It is final.\n\n", "code's own question stands below it"),
        (["Anything else؟", "It is final."], {}, "It is final.\n\n", "code's own question stands below it"),
        (["It is final. <!--", "It is < 5."], {}, "It is < 5.\n\n", "could hide code's own question"),
        ("Anything else&#63;", {}, "", "could hide code's own question"),
        ("```mermaid", {}, "", "could hide code's own question"),
        ("It is final.\u202e", {}, "", "could hide code's own question"),
        ("Anything else?", {"on_unsatisfied": "fallback"}, "", "code's own question stands below it"),
        ("Anything else?", {"extra_revisions": 3}, "", "code's own question stands below it"),
        ("I ran get_order.", {}, "", "is internal"),
    ],
)
def test_what_asks_beside_code_s_own_question_or_hides_it_is_revised_once_then_that_goes_alone(
    said, options, above, complaint
):
    update, model = reply(said, active=("G3",), channels={"tool_insights": [CONFIRM]}, **options)
    assert text(update) == above + section(model, "insights")[0]["question"]
    assert complaint in asked_by(model, "message")[1].complaint
    assert len(model.calls) == 2
    assert bool(update["applied_guidelines"]) is bool(above)


def test_what_the_reply_follows_is_remembered_and_counted():
    once = {"turn": "h0", "message_id": "a0"}
    before = [
        {"agent": "Desk", "guideline": "G2", "times": 3, **once},
        {"agent": "Desk", "guideline": "G3", **once},
        {"agent": "Shop", "guideline": "G1", **once},
    ]
    said = {"content": "Hello", "followed": ["G2", "G1", "G9", "the insight"]}
    update, model = reply(said, channels={"applied_guidelines": before})
    other, *own = update["applied_guidelines"]
    assert other == before[2]
    sent = update["messages"][0]
    kept = {record["guideline"]: (record["turn"], record["message_id"], record["times"]) for record in own}
    assert kept == {"G1": ("h1", sent.id, 1), "G2": ("h1", sent.id, 4), "G3": ("h0", "a0", 1)}
    assert (sent.name, len(model.calls)) == ("Desk", 1)


DAYS = [{"content": f"Day {number}.", **UNSOURCED} for number in range(9)]


@pytest.mark.parametrize(
    ("said", "options", "candidates", "sent"),
    [
        # It is revised once, and shown what was wrong.
        ([DAYS[0], "I do not know."], {}, ["Day 0."], "I do not know."),
        (DAYS, {"extra_revisions": 0}, [], "Day 0."),  # with its faults on record
        (DAYS, {"extra_revisions": 3}, ["Day 0.", "Day 1.", "Day 2."], "Day 3."),
        (DAYS, {"on_unsatisfied": "fallback"}, ["Day 0.", "Day 1."], "I cannot say."),
        ("   \n", {}, ["", ""], "I cannot say."),  # is never sent
        ("\u200b", {}, ["\u200b"] * 2, "I cannot say."),  # nor is what nobody sees
        ("See G1 for that.", {}, ["See G1 for that."] * 2, "I cannot say."),
    ],
)
def test_a_reply_is_revised_within_bounds_and_what_was_not_sent_is_kept_in_the_trace(
    said, options, candidates, sent
):
    update, model = reply(said, **options)
    assert text(update) == sent
    assert [each["content"].strip() for each in update["revisions"] if not each["sent"]] == candidates
    assert [each["content"] for each in update["revisions"] if each["sent"]] == [sent]
    assert len(model.calls) == 1 + options.get("extra_revisions", 1)
    for asked in asked_by(model, "message")[1:]:
        assert "MessageBlueprint.revisions[0]." in asked.complaint
    followed = [] if sent == DESK.fallback else ["G1", "G2"]
    assert [record["guideline"] for record in update["applied_guidelines"]] == followed


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("no JSON here", errors.BlueprintError),
        (AIMessage("", additional_kwargs={"refusal": "I will not."}), errors.RefusalError),
    ],
)
def test_an_unusable_answer_or_a_refusal_sends_the_fallback_where_that_is_set(answer, error):
    model = ScriptedChatModel(lambda call: answer)
    state = {"messages": [ASKED], "guideline_matches": matched("G1")}
    assert text(MessageReviser(model, DESK, on_unsatisfied="fallback").invoke(state)) == "I cannot say."
    with pytest.raises(error):
        MessageReviser(model, DESK).invoke(state)
    with pytest.raises(errors.ModelUnavailableError):  # whatever is set
        reply(errors.ModelUnavailableError("down"), on_unsatisfied="fallback")


def test_the_last_of_several_revisions_is_sent():
    one = {"revision_number": 1, "content": "Draft", "followed": [], "is_repeat_message": False, **UNSOURCED}
    one |= {"offered_services": [], "instructions_broken": []}
    two = {**one, "revision_number": 2, "content": "Better", "factual_information_provided": []}
    update, model = reply({"revisions": [one, two]})
    assert (text(update), len(model.calls)) == ("Better", 1)


class Clinic(MessageBlueprint):
    """Write the clinic's next message."""

    urgency: str = query("How urgent is it?")
    no_diagnosis: bool = verify("Is the reply free of any diagnosis?", must_be=True)


def test_a_domain_subclass_adds_its_queries_into_their_stages_and_holds_the_reply_to_them():
    bad = {"content": "It is the flu.", "no_diagnosis": False}
    update, model = reply([bad, {"content": "Come in.", "no_diagnosis": True}], blueprint=Clinic)
    assert text(update) == "Come in."
    names = list(asked_by(model, "message")[0].schema["properties"])
    assert names.index("urgency") < names.index("revisions") < names.index("no_diagnosis")
    assert asked_by(model, "message")[1].complaint.count("Clinic.no_diagnosis") == 1
    assert update["revisions"][0]["violations"][0].startswith("Clinic.no_diagnosis: ")
