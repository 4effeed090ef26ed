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


def agent(*guidelines, **fields):
    return Agent("Desk", "You help.", guidelines, **fields)


GREET = agent(Guideline("the customer greets", "greet back"))


def match(specification, judge=None, state=HELLO, mode="arq", **options):
    """The matches by guideline id, and the model."""
    model = brain(judge=judge)
    found = GuidelineMatcher(model, specification, mode=mode, **options).invoke(state)["guideline_matches"]
    return {record["guideline"]: record for record in found}, model


def active(found):
    return [id for id, record in found.items() if record["active"]]


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_six_is_the_lowest_score_that_activates(mode):
    three = agent(Guideline("a", "do a"), Guideline("b", "do b"), Guideline("c", "do c"))
    judge = {"G1": {"score": 6, "should_apply": True}, "G2": {"score": 5, "should_apply": True}, "G3": DONE}
    assert active(match(three, judge, mode=mode)[0]) == ["G1"]


def test_every_judgement_is_kept_with_its_rationale_and_its_agent():
    found, _ = match(
        GREET, {"G1": {"score": 3, "condition_application_rationale": "They only said goodbye."}}
    )
    record = found["G1"]
    assert (record["agent"], record["turn"], record["active"], record["score"]) == ("Desk", "h1", False, 3)
    assert (record["rationale"], record["origin"]) == ("They only said goodbye.", "model")


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


def test_a_condition_that_is_always_true_is_judged_for_repetition_only():
    always = agent(Guideline(None, "greet"))
    found, model = match(always, {"G1": {"score": 1, "should_apply": True}})
    assert active(found) == ["G1"]
    assert "condition_applies" not in str(asked_by(model, "matcher")[0].schema)
    assert active(match(always, {"G1": DONE})[0]) == []


def test_what_code_knows_for_good_needs_no_model():
    known = agent(Guideline(None, "be polite", continuous=True), Guideline(is_vip))
    found, model = match(known, state={**HELLO, "variables": {"tier": "vip"}})
    assert [(record["active"], record["origin"]) for record in found.values()] == [(True, "code")] * 2
    assert model.calls == []


def is_vip(state):
    """The customer is a VIP."""
    return (state.get("variables") or {}).get("tier") == "vip"


def test_a_condition_may_be_a_function_of_the_state():
    vip = agent(Guideline(is_vip, "be fast", continuous=True), Guideline(is_vip, "thank them"))
    found, model = match(vip, {"G2": 9})
    assert active(found) == []
    assert model.calls == []
    found, model = match(vip, {"G2": 9}, {**HELLO, "variables": {"tier": "vip"}})
    assert active(found) == ["G1", "G2"]
    (asked,) = asked_by(model, "matcher")
    assert asked.now == {"turn": "M1", "judge": ["G2"], "holds": ["G2"]}
    assert asked.section("guidelines")[0]["condition"] == "The customer is a VIP."


def test_a_condition_function_that_fails_says_which_guideline():
    with pytest.raises(errors.SpecError, match=r"condition of guideline G1 raised KeyError.*True or False"):
        match(agent(Guideline(lambda state: state["nothing"], "help")))


# --- observations ----------------------------------------------------------------------------------------------------


def look_up(order: str) -> str:
    """Look up an order."""
    return order


OBSERVED = agent(
    Guideline("they name an order", tools=[look_up], id="named"),
    Guideline("they greet", "greet back", depends_on=["named"]),
)


def test_of_an_observation_only_the_condition_is_judged_and_relations_hang_on_it():
    found, model = match(OBSERVED, {"named": {"score": 9, "should_apply": False}, "G2": 9})
    assert active(found) == ["named", "G2"]
    assert active(match(OBSERVED, {"named": 2, "G2": 9})[0]) == []
    judged = asked_by(model, "matcher")[0].schema["$defs"]
    assert not any(
        "application" in judged[name]["properties"] for name in judged if name == "ConditionJudgement"
    )


# --- whether the action is due ---------------------------------------------------------------------------------------


def test_a_missing_functional_part_makes_the_action_due_again_and_a_cosmetic_one_does_not():
    functional = {
        **PARTIALLY,
        "is_missing_part_cosmetic_or_functional": "functional",
        "guideline_should_reapply": True,
        "should_apply": True,
    }
    found, model = match(GREET, {"G1": functional})
    assert active(found) == ["G1"]
    assert len(model.calls) == 1
    assert active(match(GREET, {"G1": PARTIALLY})[0]) == []
    found, model = match(GREET, {"G1": {**functional, "guideline_should_reapply": False}})
    assert active(found) == ["G1"]
    assert "a functional part is missing" in asked_by(model, "matcher")[1].complaint


def test_a_continuous_action_is_taken_however_often_it_was_and_what_was_done_is_not_asked():
    lasting = {"score": 9, "guideline_is_continuous": True, "should_apply": True}
    for done in (DONE, {"guideline_previously_applied": None, "guideline_should_reapply": None}):
        found, model = match(GREET, {"G1": {**done, **lasting}})
        assert (active(found), found["G1"]["continuous"]) == (["G1"], True)
        assert len(model.calls) == 1


def test_what_is_known_to_be_continuous_is_not_asked():
    two = agent(Guideline("a", "do a", continuous=True), Guideline("b", "do b", continuous=False))
    _, model = match(two)
    questions = {
        name: set(body["properties"]) for name, body in asked_by(model, "matcher")[0].schema["$defs"].items()
    }
    assert "application" not in questions["ConditionJudgement"]
    assert "guideline_is_continuous" not in questions["OneTimeApplication"]


def test_a_contradiction_is_asked_again_once_and_corrected():
    def corrected(asked):
        return 9 if asked.complaint else {"score": 9, "should_apply": False}

    found, model = match(GREET, {"G1": corrected})
    assert active(found) == ["G1"]
    assert len(model.calls) == 2
    assert "GuidelineJudgement.G1.should_apply" in asked_by(model, "matcher")[1].complaint
    assert found["G1"]["remarks"] == []


def test_a_contradiction_that_stays_is_decided_by_the_leading_answers_and_remarked_on_that_guideline_alone():
    two = agent(Guideline("a", "do a"), Guideline("b", "do b"))
    found, model = match(two, {"G1": {"score": 9, "should_apply": False}, "G2": 9})
    assert active(found) == ["G1", "G2"]
    assert len(model.calls) == 2
    assert "after a second look still" in found["G1"]["remarks"][0]
    assert found["G2"]["remarks"] == []


def test_a_contradiction_about_a_condition_that_code_knows_is_asked_again_whatever_its_score():
    found, model = match(agent(Guideline(None, "greet")), {"G1": {**DONE, "score": 2, "should_apply": True}})
    assert active(found) == []
    assert len(model.calls) == 2


def test_where_the_condition_holds_the_action_has_to_be_judged():
    def later(asked):
        return DONE if asked.complaint else {"score": 9, "condition_applies": "yes", "application": None}

    found, model = match(GREET, {"G1": later})
    assert active(found) == []
    assert "G1.application" in asked_by(model, "matcher")[1].complaint


def test_a_missing_answer_to_a_query_that_applies_is_asked_again():
    missing = dict.fromkeys(("is_missing_part_cosmetic_or_functional", "guideline_should_reapply"))
    for query in missing:
        said = {**PARTIALLY, query: None}
        _, model = match(GREET, {"G1": lambda asked, said=said: PARTIALLY if asked.complaint else said})
        assert query in asked_by(model, "matcher")[1].complaint


# --- evidence, relations, settings -----------------------------------------------------------------------------------

TALK = [HumanMessage("Hi", id="h1"), AIMessage("Hello! Which order?", id="a1"), HumanMessage("A-1", id="h2")]


def applied(*ids):
    return [{"agent": "Desk", "guideline": id, "turn": "h1", "message": "a1"} for id in ids]


def test_what_was_applied_earlier_is_shown_as_evidence():
    _, model = match(GREET, {}, {"messages": TALK, "applied_guidelines": applied("G1", "gone")})
    assert asked_by(model, "matcher")[0].now["applied"] == [{"guideline": "G1", "reply": "M2"}]


def test_what_waits_for_an_argument_that_was_asked_for_is_unfinished_and_not_done():
    waiting = {"agent": "Desk", "turn": "h1", "tool": "look_up", "kind": "missing", "argument": "order"}
    state = {"messages": TALK, "applied_guidelines": applied("G1"), "tool_insights": [waiting]}
    _, model = match(agent(Guideline("they ask", "look it up", tools=[look_up])), {}, state)
    now = asked_by(model, "matcher")[0].now
    assert now["unfinished"] == ["G1"]
    assert "applied" not in now


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


def test_matches_of_another_turn_or_another_agent_are_ignored_and_those_of_others_kept():
    kept = {"agent": "Shop", "guideline": "G1", "turn": "h1", "active": True, "matched": True}
    earlier = {"agent": "Desk", "guideline": "G1", "turn": "h0", "active": True, "matched": True, "score": 9}
    update = GuidelineMatcher(brain(judge={"G1": 2}), GREET).invoke(
        {**HELLO, "guideline_matches": [kept, earlier]}
    )
    other, own = update["guideline_matches"]
    assert other == kept
    assert (own["agent"], own["turn"], own["active"]) == ("Desk", "h1", False)


def test_the_paper_s_temperature_is_sent_unless_the_model_has_its_own():
    for own, sent in ((None, 0.15), (0.7, 0.7)):
        model = brain(temperature=own)
        GuidelineMatcher(model, GREET).invoke(HELLO)
        assert model.calls[0].kwargs.get("temperature") == sent
