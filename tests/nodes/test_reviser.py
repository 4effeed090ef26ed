"""The reply: what its prompt shows, when it is revised, what is sent, and what is stored about it."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph

from arq_graph import Agent, AgentState, Guideline, ScriptedChatModel, Term, Variable, errors, query, verify
from arq_graph.nodes import MessageBlueprint, MessageReviser
from tests.brain import brain, get_prompts
from tests.order_tools import cancel, get_order, ran

QUESTION = HumanMessage("Where is my order?", id="h1")
UNSOURCED = {"factual_information_provided": [{"fact": "it ships today", "source": None}]}
PLAN = {"plan": [{"agent": "Desk", "turn": "h1", "final_answer": "It ships on Monday."}]}
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


def make_matches(*ids, **fields):
    match = {"agent": "Desk", "turn": "h1", "active": True, "matched": True, "score": 8}
    return [{**match, "guideline": id, **fields} for id in ids]


def make_verdict(**fields):
    return {"agent": "Desk", "turn": "h1", "tool": "cancel", **fields}


def revise(reply, *, messages=(QUESTION,), active=("G1", "G2"), channels=None, **options):
    """Return the reviser's update, and the model."""
    model = brain(reply=reply)
    state = {"messages": list(messages), "guideline_matches": make_matches(*active), **(channels or {})}
    return MessageReviser(model, DESK, **options).invoke(state), model


def get_text(update):
    return update["messages"][0].text


def read_section(model, name):
    return get_prompts(model, "message")[0].section(name)


def test_prompt_shows_active_guidelines_with_an_action_and_overridden_ones():
    matches = [*make_matches("G1", "G3", "G4"), *make_matches("G5", active=False)]
    matches += make_matches("G2", active=False, matched=False)
    _, model = revise("Hello", channels={"guideline_matches": matches})
    assert read_section(model, "active_guidelines") == [
        {"id": "G1", "condition": "they ask", "action": "tell the status", "priority": 2, "score": 8},
        {"id": "G3", "condition": "they are rude", "action": "stay calm", "priority": 0, "score": 8},
    ]
    assert read_section(model, "set_aside") == [
        {"id": "G5", "condition": "they want advice", "action": "offer a call", "replaced_by": ["G3"]}
    ]
    assert "be polite" not in get_prompts(model, "message")[0].text
    (variable,) = read_section(model, "variables")
    assert (variable["id"], variable["value"]) == ("V1", "gold")
    assert (read_section(model, "glossary")[0]["id"], read_section(model, "profile")["id"]) == ("K1", "P")


def test_open_arguments_and_unknown_conditions_are_insights_with_ids():
    insights = [
        make_verdict(turn="h0", kind="missing", argument="order_id"),
        make_verdict(kind="run"),
        make_verdict(kind="declined"),
        make_verdict(kind="invalid", argument="day", problem="not a date"),
    ]
    unknown = make_matches("G5", active=False, matched=False, missing_information="when it was ordered")
    channels = {"tool_insights": insights, "guideline_matches": [*make_matches("G1"), *unknown]}
    _, model = revise("Hello", channels=channels)
    invalid, not_known = read_section(model, "insights")
    fields = ("id", "kind", "argument", "problem")
    assert [invalid[name] for name in fields] == ["I1", "invalid", "day", "not a date"]
    fields = ("id", "kind", "action", "what_would_decide_it")
    assert [not_known[name] for name in fields] == [
        "I2",
        "not_known_yet",
        "offer a call",
        "when it was ordered",
    ]


def test_tools_that_ran_or_may_run_are_described():
    _, model = revise("Hello", messages=[QUESTION, *ran(tool="cancel")])
    tools = {tool["name"]: tool["description"] for tool in read_section(model, "tool_descriptions")}
    assert tools == {"get_order": "Look up an order. It is free.", "cancel": "Cancel an order. For good."}
    assert get_prompts(model, "message")[0].now == {"turn": "M1", "staged": ["T1"]}


@pytest.mark.parametrize(("draft", "sent"), [("It ships on Monday.", "It ships on Monday."), ("", "Hello")])
def test_draft_can_come_from_another_channel(draft, sent):
    model = brain(reply={"content": ""} if draft else "Hello")
    graph = StateGraph(AgentState)
    graph.add_node("write", lambda _: {"my_draft": draft}, input_schema=AgentState)
    graph.add_node("message", MessageReviser(model, DESK, draft_key="my_draft"))
    graph.add_edge(START, "write")
    graph.add_edge("write", "message")
    state = graph.compile().invoke({"messages": [QUESTION], "guideline_matches": make_matches("G1"), **PLAN})
    assert (read_section(model, "draft"), state["messages"][-1].text) == (draft or None, sent)


def test_draft_is_checked_too_and_sent_if_its_replacement_is_worse():
    leaking = {"plan": [{**PLAN["plan"][0], "final_answer": "I called get_order."}]}
    update, _ = revise(["", "It ships."], channels=leaking)
    assert "'get_order' is internal" in update["revisions"][0]["violations"][0]
    assert get_text(update) == "It ships."
    assert get_text(revise("I called get_order.", channels=leaking)[0]) == "I cannot say."
    update, _ = revise("I called get_order.", channels=PLAN)
    assert get_text(update) == "It ships on Monday."
    assert update["revisions"][-1]["violations"] == ["no candidate was acceptable: the draft was sent"]


@pytest.mark.parametrize(
    ("reply", "options", "above", "complaint"),
    [
        (
            ["Anything else?", "It is final."],
            {},
            "It is final.\n\n",
            "the confirmation question follows below",
        ),
        (["It is final. <!--", "It is < 5."], {}, "It is < 5.\n\n", "could hide code's own question"),
        ("Anything else؟", {}, "", "the confirmation question follows below"),
        ("Anything else&#63;", {}, "", "could hide code's own question"),
        ("```mermaid", {}, "", "could hide code's own question"),
        ("It is final.\u202e", {}, "", "could hide code's own question"),
        ("Anything else?", {"on_unsatisfied": "fallback"}, "", "the confirmation question follows below"),
        ("Anything else?", {"extra_revisions": 3}, "", "the confirmation question follows below"),
        ("I ran get_order.", {}, "", "is internal"),
    ],
)
def test_reply_that_conflicts_with_the_confirmation_question_is_revised_once_and_then_left_out(
    reply, options, above, complaint
):
    pending = make_verdict(kind="confirm", arguments={"order_id": "A-1"}, granted_by=["G3"])
    update, model = revise(reply, active=("G3",), channels={"tool_insights": [pending]}, **options)
    assert get_text(update) == above + read_section(model, "insights")[0]["question"]
    assert complaint in get_prompts(model, "message")[1].complaint
    assert len(model.calls) == 2
    assert bool(update["applied_guidelines"]) is bool(above)


def test_followed_guidelines_are_stored_and_counted():
    earlier = {"turn": "h0", "message_id": "a0"}
    stored = [
        {"agent": "Desk", "guideline": "G2", "times": 3, **earlier},
        {"agent": "Desk", "guideline": "G3", **earlier},
        {"agent": "Shop", "guideline": "G1", **earlier},
    ]
    reply = {"content": "Hello", "followed": ["G2", "G1", "G9", "the insight"]}
    update, model = revise(reply, channels={"applied_guidelines": stored})
    other, *own = update["applied_guidelines"]
    assert other == stored[2]
    sent = update["messages"][0]
    records = {record["guideline"]: (record["turn"], record["message_id"], record["times"]) for record in own}
    assert records == {"G1": ("h1", sent.id, 1), "G2": ("h1", sent.id, 4), "G3": ("h0", "a0", 1)}
    assert (sent.name, len(model.calls)) == ("Desk", 1)


DAYS = [{"content": f"Day {number}.", **UNSOURCED} for number in range(9)]


@pytest.mark.parametrize(
    ("reply", "options", "candidates", "sent"),
    [
        ([DAYS[0], "I do not know."], {}, ["Day 0."], "I do not know."),
        (DAYS, {"extra_revisions": 0}, [], "Day 0."),  # with its violations in the record
        (DAYS, {"extra_revisions": 3}, ["Day 0.", "Day 1.", "Day 2."], "Day 3."),
        (DAYS, {"on_unsatisfied": "fallback"}, ["Day 0.", "Day 1."], "I cannot say."),
        ("\u200b", {}, ["\u200b"] * 2, "I cannot say."),  # invisible text is never sent
        ("See G1 for that.", {}, ["See G1 for that."] * 2, "I cannot say."),
    ],
)
def test_reply_is_revised_within_bounds_and_rejected_candidates_are_stored(reply, options, candidates, sent):
    update, model = revise(reply, **options)
    assert get_text(update) == sent
    rejected = [record["content"] for record in update["revisions"] if not record["sent"]]
    assert rejected == candidates
    assert [record["content"] for record in update["revisions"] if record["sent"]] == [sent]
    assert len(model.calls) == 1 + options.get("extra_revisions", 1)
    for prompt in get_prompts(model, "message")[1:]:
        assert "MessageBlueprint.revisions[0]." in prompt.complaint
    followed = [] if sent == DESK.fallback else ["G1", "G2"]
    assert [record["guideline"] for record in update["applied_guidelines"]] == followed


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("no JSON here", errors.BlueprintError),
        (AIMessage("", additional_kwargs={"refusal": "I will not."}), errors.RefusalError),
    ],
)
def test_on_unsatisfied_fallback_also_replaces_invalid_answers_and_refusals(answer, error):
    model = ScriptedChatModel(lambda call: answer)
    state = {"messages": [QUESTION], "guideline_matches": make_matches("G1")}
    assert get_text(MessageReviser(model, DESK, on_unsatisfied="fallback").invoke(state)) == "I cannot say."
    with pytest.raises(error):
        MessageReviser(model, DESK).invoke(state)
    with pytest.raises(errors.ModelUnavailableError):
        revise(errors.ModelUnavailableError("down"), on_unsatisfied="fallback")


def test_last_of_several_revisions_is_sent():
    first = {"revision_number": 1, "content": "Draft", "followed": [], "is_repeat_message": False}
    first |= {**UNSOURCED, "offered_services": [], "instructions_broken": []}
    second = {**first, "revision_number": 2, "content": "Better", "factual_information_provided": []}
    update, model = revise({"revisions": [first, second]})
    assert (get_text(update), len(model.calls)) == ("Better", 1)


class Clinic(MessageBlueprint):
    """Write the clinic's next message."""

    urgency: str = query("How urgent is it?")
    no_diagnosis: bool = verify("Is the reply free of any diagnosis?", must_be=True)


def test_subclass_adds_queries_to_their_stages_and_its_verification_counts():
    rejected = {"content": "It is the flu.", "no_diagnosis": False}
    update, model = revise([rejected, {"content": "Come in.", "no_diagnosis": True}], blueprint=Clinic)
    assert get_text(update) == "Come in."
    names = list(get_prompts(model, "message")[0].schema["properties"])
    assert names.index("urgency") < names.index("revisions") < names.index("no_diagnosis")
    assert get_prompts(model, "message")[1].complaint.count("Clinic.no_diagnosis") == 1
    assert update["revisions"][0]["violations"][0].startswith("Clinic.no_diagnosis: ")
