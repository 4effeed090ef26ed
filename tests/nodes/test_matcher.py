"""The matcher: which guidelines it activates and why, and what it asks about each."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Guideline, Reasoner, ScriptedChatModel, errors
from arq_graph.nodes import GuidelineMatcher
from tests.brain import DONE, brain, get_prompts
from tests.nodes.matching import (
    ALWAYS,
    CONTINUOUS,
    FUNCTIONAL,
    GREET,
    PARTIALLY,
    UNKNOWN,
    is_vip,
    list_active,
    list_properties,
    make_agent,
    make_guidelines,
    match,
    run_pass,
)
from tests.order_tools import get_order


@pytest.mark.parametrize("mode", ["arq", "direct"])
def test_score_of_six_activates_unless_action_was_done(mode):
    judge = {"G1": {"score": 6, "should_apply": True}, "G2": {"score": 5, "should_apply": True}, "G3": DONE}
    records, _ = match(make_agent(*make_guidelines(3)), judge, mode=mode)
    assert list_active(records) == ["G1"]


@pytest.mark.parametrize(
    ("agent", "judgement", "is_active", "complaint"),
    [
        (GREET, PARTIALLY, False, None),  # a cosmetic part counts as done
        (GREET, {**FUNCTIONAL, "guideline_should_reapply": True}, True, None),
        (GREET, FUNCTIONAL, True, "a functional part is missing"),
        (GREET, {**DONE, **CONTINUOUS}, True, None),
        (GREET, {"score": 9, "should_apply": False}, True, "GuidelineJudgement.G1.should_apply"),
        (GREET, {"score": 9, "condition_applies": "yes", "application": None}, False, "G1.application"),
        (GREET, {**PARTIALLY, "guideline_should_reapply": None}, False, "guideline_should_reapply"),
        # If the condition is always true, only the repetition is judged, whatever the score.
        (ALWAYS, {"score": 1, "should_apply": True}, True, None),
        (ALWAYS, {**DONE, "score": 2, "should_apply": True}, False, "G1.should_apply"),
    ],
)
def test_leading_answers_decide_if_the_action_is_due(agent, judgement, is_active, complaint):
    """A contradiction is asked again once."""
    model = brain(judge={"G1": lambda prompt: PARTIALLY if prompt.complaint and not is_active else judgement})
    records = run_pass(GuidelineMatcher(model, agent))
    assert records["G1"]["active"] is is_active
    assert complaint is None or complaint in get_prompts(model, "matcher")[1].complaint
    assert len(model.calls) == (2 if complaint else 1)


def test_remaining_contradiction_becomes_a_remark_on_its_guideline_only():
    contradictory = {"score": 9, "should_apply": False}
    judge = {"G1": contradictory, "G2": lambda prompt: 9 if prompt.complaint else contradictory}
    records, _ = match(make_agent(*make_guidelines(2)), judge)
    assert list_active(records) == ["G1", "G2"]
    assert "still contradictory when asked again" in records["G1"]["remarks"][0]
    assert records["G2"]["remarks"] == []


def test_unknown_condition_is_inactive_and_names_the_missing_information():
    record = match(GREET, {"G1": UNKNOWN})[0]["G1"]
    assert (record["active"], record["missing_information"]) == (False, "the date")
    record = match(GREET, {"G1": {**UNKNOWN, "score": 9, "should_apply": True}})[0]["G1"]
    assert record["missing_information"] == ""


def test_score_decides_over_condition_applies_and_oddities_become_remarks():
    odd = {"score": 8, "condition_applies": "no", "action": "wave", "should_apply": True}
    records, _ = match(GREET, {"G1": odd})
    assert list_active(records) == ["G1"]
    assert records["G1"]["remarks"] == [
        "the model reinstated another action than the guideline's",
        "condition_applies is no, the score 8 decides",
    ]


@pytest.mark.parametrize(
    ("guideline", "definition", "absent"),
    [
        (Guideline("a", "do a", continuous=True), "ContinuousJudgement", "application"),
        (Guideline("a", "do a", continuous=False), "OneTimeApplication", "guideline_is_continuous"),
        (Guideline(None, "do a"), "ActionJudgement", "condition_applies"),
        (Guideline("a"), "ObservationJudgement", "should_apply"),
    ],
)
def test_known_properties_of_a_guideline_are_not_asked(guideline, definition, absent):
    _, model = match(make_agent(guideline))
    assert absent not in get_prompts(model, "matcher")[0].schema["$defs"][definition]["properties"]


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
@pytest.mark.parametrize("tools", [[], [get_order]])
def test_a_tool_is_asked_about_only_if_there_are_tools_and_the_designer_has_not_answered(tools, mode):
    agent = make_agent(*make_guidelines(1), *make_guidelines(1, sensitive_to_tools=True), tools=tools)
    _, model = match(agent, mode=mode)
    (prompt,) = get_prompts(model, "matcher")
    properties = list_properties(prompt)
    assert ("could_a_tool_change_that" in properties["G1"]) is bool(tools)
    assert "could_a_tool_change_that" not in properties["G2"]
    assert ("<tools>" in prompt.text) is bool(tools)


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_an_endpoint_may_answer_what_is_asked_about_other_guidelines_only(mode):
    def answer(call):
        judgement = {"score": 9, "should_apply": False}
        if mode == "arq":
            reasons = {"condition": "they greet", "condition_application_rationale": "They do."}
            judgement |= {**reasons, "condition_applies": "yes", "could_a_tool_change_that": False}
        reasoning = {"reasoning": "They greet."} if mode == "cot" else {}
        return json.dumps({**reasoning, "G1": judgement})

    model = ScriptedChatModel(answer)
    records = run_pass(GuidelineMatcher(model, make_agent(Guideline("they greet")), mode=mode))
    assert (list_active(records), len(model.calls)) == (["G1"], 1)


def test_a_prompt_explains_only_what_it_needs():
    _, model = match(make_agent(Guideline("they greet"), Guideline("they leave")))
    (prompt,) = get_prompts(model, "matcher")
    for word in ("continuous action", "`applied`", "`holds`", "`unfinished`"):
        assert word not in prompt.text


def test_long_condition_may_be_reinstated_in_short():
    condition = "all of these are true:\n" + "- the customer wants to rent a car\n" * 5
    records, _ = match(
        make_agent(Guideline(condition, "greet")), {"G1": {"score": 2, "condition": "rents a car"}}
    )
    assert records["G1"]["remarks"] == []


def test_code_evaluates_condition_functions_and_decides_without_a_model_where_it_can():
    polite = Guideline(None, "be polite", continuous=True)
    agent = make_agent(Guideline(is_vip, "be fast", continuous=True), Guideline(is_vip, "thank them"), polite)
    records, model = match(agent, {"G2": 9})
    outcomes = [(record["active"], record["origin"]) for record in records.values()]
    assert outcomes == [(False, "code"), (False, "code"), (True, "code")]
    assert model.calls == []
    records, model = match(agent, {"G2": 9}, variables={"tier": "vip"})
    assert list_active(records) == ["G1", "G2", "G3"]
    (prompt,) = get_prompts(model, "matcher")
    assert prompt.now == {"turn": "M1", "judge": ["G2"], "holds": ["G2"]}
    assert prompt.section("guidelines")[0]["condition"] == "The customer is a VIP."


@pytest.mark.parametrize(
    ("condition", "problem"),
    [(lambda state: state["nothing"], "raised KeyError"), (lambda _: "no", "returned 'no'")],
)
def test_failing_condition_function_is_an_error_that_names_the_guideline(condition, problem):
    with pytest.raises(errors.SpecError, match=rf"condition of guideline G1 {problem}.*True or False"):
        match(make_agent(Guideline(condition, "help")))


def test_applied_guidelines_are_evidence_unless_their_tool_awaits_an_argument():
    messages = [
        HumanMessage("Hi", id="h1"),
        AIMessage("Hello! Which order?", id="a1"),
        HumanMessage("A-1", id="h2"),
    ]
    missing = {"agent": "Desk", "turn": "h1", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    applied = [
        {"agent": "Desk", "guideline": id, "turn": "h1", "message_id": "a1"} for id in ("G1", "G2", "gone")
    ]
    desk = make_agent(Guideline("they greet", "greet back"), Guideline("they ask", "tell", tools=[get_order]))
    _, model = match(desk, messages=messages, applied_guidelines=applied, tool_insights=[missing])
    now = get_prompts(model, "matcher")[0].now
    assert (now["applied"], now["unfinished"]) == ([{"guideline": "G1", "reply": "M2"}], ["G2"])


def test_relations_apply_to_matches_including_observations():
    agent = make_agent(
        Guideline("a", tools=[get_order], entails=["G2"]),
        Guideline("b", "do b"),
        Guideline("c", "do c", overrides=["G4"]),
        Guideline("d", "do d"),
        Guideline("e", "do e", depends_on=["G4"]),
        Guideline("f", "do f", depends_on=["G1"]),
    )
    judge = {"G1": {"score": 8, "should_apply": False}, "G3": 7, "G4": 9, "G5": 9, "G6": 9}
    records, _ = match(agent, judge)
    assert list_active(records) == ["G1", "G2", "G3", "G6"]
    entailed = records["G2"]
    assert (entailed["origin"], entailed["score"], entailed["matched"]) == ("relation", 8, False)
    assert entailed["remarks"] == ["active because G1 entails it"]
    assert (records["G4"]["matched"], records["G4"]["remarks"]) == (True, ["not active: overridden by G3"])
    assert list_active(match(agent, {**judge, "G1": 2})[0]) == ["G3"]


def test_temperature_of_the_paper_is_a_default():
    model = brain()
    for temperature in (None, 0.4):
        run_pass(GuidelineMatcher(Reasoner(model), GREET, temperature=temperature))
    assert [call.kwargs["temperature"] for call in model.calls] == [0.15, 0.4]
