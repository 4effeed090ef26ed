"""Which guidelines the matcher finds active, and why."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Agent, Guideline, errors
from arq_graph.nodes import GuidelineMatcher
from tests.brain import DONE, asked_by, brain

HELLO = {"messages": [HumanMessage("Hello", id="h1")]}
PARTIALLY = {
    **DONE,
    "guideline_previously_applied": "partially",
    "is_missing_part_cosmetic_or_functional": "cosmetic",
}
FUNCTIONAL = {**PARTIALLY, "is_missing_part_cosmetic_or_functional": "functional", "should_apply": True}
LASTING = {"score": 9, "guideline_is_continuous": True, "should_apply": True}
NOTHING_DONE = {"guideline_previously_applied": None, "guideline_should_reapply": None}


def agent(*guidelines, **fields):
    return Agent("Desk", "You help.", guidelines, **fields)


GREET = agent(Guideline("the customer greets", "greet back"))
ALWAYS = agent(Guideline(None, "greet"))


def match(specification, judge=None, state=HELLO, mode="arq", **options):
    """The matches by guideline id, and the model."""
    model = brain(judge=judge)
    found = GuidelineMatcher(model, specification, mode=mode, **options).invoke(state)["guideline_matches"]
    return {record["guideline"]: record for record in found}, model


def active(found):
    return [id for id, record in found.items() if record["active"]]


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_six_is_the_lowest_score_that_activates_and_what_was_done_is_not_due(mode):
    three = agent(Guideline("a", "do a"), Guideline("b", "do b"), Guideline("c", "do c"))
    judge = {"G1": {"score": 6, "should_apply": True}, "G2": {"score": 5, "should_apply": True}, "G3": DONE}
    assert active(match(three, judge, mode=mode)[0]) == ["G1"]


@pytest.mark.parametrize(
    ("specification", "said", "is_active", "complaint"),
    [
        (GREET, PARTIALLY, False, None),  # a cosmetic part counts for nothing
        (GREET, {**FUNCTIONAL, "guideline_should_reapply": True}, True, None),
        (GREET, FUNCTIONAL, True, "a functional part is missing"),
        (GREET, {**DONE, **LASTING}, True, None),
        (GREET, {**NOTHING_DONE, **LASTING}, True, None),  # what was done is not asked
        (GREET, {"score": 9, "should_apply": False}, True, "G1.should_apply"),
        (GREET, {"score": 9, "condition_applies": "yes", "application": None}, False, "G1.application"),
        # Of a condition that is always true only the repetition is judged, whatever its score.
        (ALWAYS, {"score": 1, "should_apply": True}, True, None),
        (ALWAYS, DONE, False, None),
        (ALWAYS, {**DONE, "score": 2, "should_apply": True}, False, "G1.should_apply"),
    ],
)
def test_whether_the_action_is_due_is_what_the_leading_answers_say(specification, said, is_active, complaint):
    found, model = match(specification, {"G1": said})
    assert found["G1"]["active"] is is_active
    assert complaint is None or complaint in asked_by(model, "matcher")[1].complaint
    assert len(model.calls) == (2 if complaint else 1)


def test_a_guideline_may_be_called_reasoning_as_the_free_reasoning_is():
    named = agent(Guideline("they ask why", "give reasons", id="reasoning"))
    found, _ = match(named, {"reasoning": 9}, mode="cot")
    assert (active(found), found["reasoning"]["rationale"]) == (["reasoning"], "-")


# --- whether the condition holds -------------------------------------------------------------------------------------


def test_a_condition_that_is_not_known_yet_is_inactive_and_says_what_would_decide_it():
    unknown = {
        "score": 4,
        "condition_applies": "not_known_yet",
        "condition_application_rationale": "when the appointment is",
    }
    found, _ = match(GREET, {"G1": unknown})
    assert (found["G1"]["active"], found["G1"]["undecided"]) == (False, "when the appointment is")
    assert found["G1"]["rationale"] == "when the appointment is"
    for known in (2, 9, {**unknown, "score": 9, "should_apply": True}):
        assert match(GREET, {"G1": known})[0]["G1"]["undecided"] == ""


def test_the_score_decides_over_condition_applies_and_what_is_odd_is_remarked():
    odd = {"score": 8, "condition_applies": "no", "action": "wave", "should_apply": True}
    found, _ = match(GREET, {"G1": odd})
    assert active(found) == ["G1"]
    assert found["G1"]["remarks"] == [
        "the model reinstated another action than the guideline's",
        "condition_applies is no, the score 8 decides",
    ]


def is_vip(state):
    """The customer is a VIP."""
    return (state.get("variables") or {}).get("tier") == "vip"


def test_what_code_knows_for_good_needs_no_model_and_a_condition_may_be_a_function_of_the_state():
    lasting = Guideline(None, "be polite", continuous=True)
    vip = agent(Guideline(is_vip, "be fast", continuous=True), Guideline(is_vip, "thank them"), lasting)
    found, model = match(vip, {"G2": 9})
    assert [(record["active"], record["origin"]) for record in found.values()] == [
        (False, "code"),
        (False, "code"),
        (True, "code"),
    ]
    assert model.calls == []
    found, model = match(vip, {"G2": 9}, {**HELLO, "variables": {"tier": "vip"}})
    assert active(found) == ["G1", "G2", "G3"]
    (asked,) = asked_by(model, "matcher")
    assert asked.now == {"turn": "M1", "judge": ["G2"], "holds": ["G2"]}
    assert asked.section("guidelines")[0]["condition"] == "The customer is a VIP."


def test_a_condition_function_that_fails_says_which_guideline():
    with pytest.raises(errors.SpecError, match=r"condition of guideline G1 raised KeyError.*True or False"):
        match(agent(Guideline(lambda state: state["nothing"], "help")))


def look_up(order: str) -> str:
    """Look up an order."""
    return order


def test_relations_hang_on_an_observation_too():
    observed = agent(
        Guideline("they name an order", tools=[look_up], id="named"),
        Guideline("they greet", "greet back", depends_on=["named"]),
    )
    assert active(match(observed, {"named": {"score": 9, "should_apply": False}, "G2": 9})[0]) == [
        "named",
        "G2",
    ]
    assert active(match(observed, {"named": 2, "G2": 9})[0]) == []


@pytest.mark.parametrize(
    ("guideline", "asked", "unasked"),
    [
        (Guideline("they name an order"), "ConditionJudgement", "application"),
        (Guideline("a", "do a", continuous=True), "ConditionJudgement", "application"),
        (Guideline("a", "do a", continuous=False), "OneTimeApplication", "guideline_is_continuous"),
        (Guideline(None, "do a"), "ActionJudgement", "condition_applies"),
    ],
)
def test_what_is_known_of_a_guideline_is_not_asked(guideline, asked, unasked):
    _, model = match(agent(guideline))
    assert unasked not in asked_by(model, "matcher")[0].schema["$defs"][asked]["properties"]


# --- whether the action is due ---------------------------------------------------------------------------------------


def test_a_contradiction_is_asked_again_once_then_the_leading_answers_decide_and_it_is_remarked_on():
    def corrected(asked):
        return 9 if asked.complaint else {"score": 9, "should_apply": False}

    two = agent(Guideline("a", "do a"), Guideline("b", "do b"))
    found, model = match(two, {"G1": {"score": 9, "should_apply": False}, "G2": corrected})
    assert active(found) == ["G1", "G2"]
    assert len(model.calls) == 2
    assert "GuidelineJudgement.G1.should_apply" in asked_by(model, "matcher")[1].complaint
    assert "after a second look still" in found["G1"]["remarks"][0]
    assert found["G2"]["remarks"] == []


def test_a_missing_answer_to_a_query_that_applies_is_asked_again():
    missing = dict.fromkeys(("is_missing_part_cosmetic_or_functional", "guideline_should_reapply"))
    for query in missing:
        said = {**PARTIALLY, query: None}
        _, model = match(GREET, {"G1": lambda asked, said=said: PARTIALLY if asked.complaint else said})
        assert query in asked_by(model, "matcher")[1].complaint


# --- evidence, relations, settings -----------------------------------------------------------------------------------

TALK = [HumanMessage("Hi", id="h1"), AIMessage("Hello! Which order?", id="a1"), HumanMessage("A-1", id="h2")]


def test_what_was_applied_is_evidence_but_what_waits_for_an_argument_is_unfinished():
    waiting = {"agent": "Desk", "turn": "h1", "tool": "look_up", "kind": "missing", "argument": "order"}
    applied = [
        {"agent": "Desk", "guideline": id, "turn": "h1", "message": "a1"} for id in ("G1", "G2", "gone")
    ]
    state = {"messages": TALK, "applied_guidelines": applied, "tool_insights": [waiting]}
    desk = agent(Guideline("they greet", "greet back"), Guideline("they ask", "look it up", tools=[look_up]))
    now = asked_by(match(desk, {}, state)[1], "matcher")[0].now
    assert now["applied"] == [{"guideline": "G1", "reply": "M2"}]
    assert now["unfinished"] == ["G2"]


def test_relations_are_applied_to_what_was_matched():
    related = agent(
        Guideline("a", "do a", entails=["G2"]),
        Guideline("b", "do b"),
        Guideline("c", "do c", overrides=["G4"]),
        Guideline("d", "do d"),
        Guideline("e", "do e", depends_on=["G4"]),
    )
    found, _ = match(related, {"G1": 8, "G3": 7, "G4": 9, "G5": 9})
    assert active(found) == ["G1", "G2", "G3"]
    assert (found["G2"]["origin"], found["G2"]["score"], found["G2"]["matched"]) == ("relation", 8, False)
    assert found["G2"]["remarks"] == ["active because G1 entails it"]
    assert (found["G4"]["matched"], found["G4"]["remarks"]) == (True, ["not active: overridden by G3"])


def test_the_paper_s_temperature_is_sent_unless_the_model_has_its_own():
    for own, sent in ((None, 0.15), (0.7, 0.7)):
        model = brain(temperature=own)
        GuidelineMatcher(model, GREET).invoke(HELLO)
        assert model.calls[0].kwargs.get("temperature") == sent
