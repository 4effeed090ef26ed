"""Which guidelines the matcher finds active, and why."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Agent, AppliedGuideline, Guideline, InputError, SpecError
from arq_graph.agent.state import GuidelineMatch
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


def matches(runs, specification, judge=None, state=HELLO, mode="arq", **options):
    model = brain(judge=judge)
    node = GuidelineMatcher(model, specification, mode=mode, **options)
    found = runs.invoke(node, state)["guideline_matches"]
    return {match.guideline: match for match in found}, model


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_six_is_the_lowest_score_that_activates(runs, mode):
    two = agent(Guideline("a", "do a"), Guideline("b", "do b"))
    judge = {"G1": {"score": 6, "should_apply": True}, "G2": {"score": 5, "should_apply": True}}
    found, _ = matches(runs, two, judge, mode=mode)
    assert {id: match.active for id, match in found.items()} == {"G1": True, "G2": False}


@pytest.mark.parametrize("mode", ["cot", "direct"])
def test_without_queries_should_apply_decides(runs, mode):
    found, _ = matches(runs, GREET, {"G1": {"score": 9, "should_apply": False}}, mode=mode)
    assert not found["G1"].active


def test_every_judgement_is_kept_with_its_rationale(runs):
    judge = {"G1": {"score": 3, "condition_application_rationale": "They only said goodbye."}}
    found, _ = matches(runs, GREET, judge)
    match = found["G1"]
    assert (match.active, match.score, match.turn) == (False, 3, "h1")
    assert match.rationale == "They only said goodbye."
    assert match.origin == "model"


def test_free_reasoning_is_kept_as_the_rationale(runs):
    model = brain(judge={"G1": 9})
    answer = model._answer
    model._answer = lambda call: {**answer(call), "reasoning": "They greet."}
    (match,) = runs.invoke(GuidelineMatcher(model, GREET, mode="cot"), HELLO)["guideline_matches"]
    assert match.rationale == "They greet."


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_a_guideline_may_be_called_reasoning(runs, mode):
    named = agent(Guideline("they ask why", "give reasons", id="reasoning"))
    found, _ = matches(runs, named, {"reasoning": 9}, mode=mode)
    assert found["reasoning"].active


def test_a_setting_that_does_not_exist_is_an_error():
    with pytest.raises(
        InputError, match="on_failure is 'ignore': it must be one of 'raise', 'activate', 'skip'"
    ):
        GuidelineMatcher(brain(), GREET, on_failure="ignore")


def test_an_action_that_was_done_is_not_taken_again(runs):
    found, _ = matches(runs, GREET, {"G1": DONE})
    assert (found["G1"].active, found["G1"].previously_applied) == (False, "fully")


def test_a_missing_functional_part_makes_the_action_due_again(runs):
    judge = {
        "G1": {
            **PARTIALLY,
            "is_missing_part_cosmetic_or_functional": "functional",
            "guideline_should_reapply": True,
            "should_apply": True,
        }
    }
    found, model = matches(runs, GREET, judge)
    assert found["G1"].active
    assert len(model.calls) == 1


def test_a_missing_cosmetic_part_counts_as_done(runs):
    found, _ = matches(runs, GREET, {"G1": PARTIALLY})
    assert not found["G1"].active


def test_a_continuous_action_is_taken_however_often_it_was(runs):
    judge = {"G1": {**DONE, "guideline_is_continuous": True, "should_apply": True}}
    found, _ = matches(runs, GREET, judge)
    assert found["G1"].active
    assert found["G1"].continuous is True


def test_what_is_known_to_be_continuous_is_not_asked(runs):
    two = agent(Guideline("a", "do a", continuous=True), Guideline("b", "do b", continuous=False))
    _, model = matches(runs, two, {})
    questions = {
        name: set(body["properties"]) for name, body in asked_by(model, "matcher")[0].schema["$defs"].items()
    }
    assert "guideline_is_continuous" not in questions["OneTimeJudgement"]
    assert not any("previously" in name for name in questions["ConditionJudgement"])


def test_a_contradiction_is_asked_again_once_and_corrected(runs):
    def corrected(asked):
        return 9 if asked.complaint else {"score": 9, "should_apply": False}

    found, model = matches(runs, GREET, {"G1": corrected})
    assert found["G1"].active
    assert len(model.calls) == 2
    assert "GuidelineJudgement.G1.should_apply" in asked_by(model, "matcher")[1].complaint
    assert found["G1"].remarks == ()


def test_a_contradiction_that_stays_is_decided_by_the_leading_answers_and_remarked(runs):
    found, model = matches(runs, GREET, {"G1": {"score": 9, "should_apply": False}})
    assert found["G1"].active
    assert len(model.calls) == 2
    assert any("after a second look still" in remark for remark in found["G1"].remarks)


def test_one_guidelines_contradiction_does_not_remark_on_another(runs):
    two = agent(Guideline("a", "do a"), Guideline("b", "do b"))
    found, _ = matches(runs, two, {"G1": {"score": 9, "should_apply": False}, "G2": 9})
    assert found["G2"].remarks == ()


def test_the_score_decides_over_condition_applies_and_the_disagreement_is_recorded(runs):
    judge = {"G1": {"score": 8, "condition_applies": "no", "should_apply": True}}
    found, _ = matches(runs, GREET, judge)
    assert found["G1"].active
    assert found["G1"].remarks == ("condition_applies is no, the score 8 decides",)


def test_a_guideline_that_is_reinstated_in_other_words_is_remarked(runs):
    judge = {"G1": {"score": 9, "should_apply": True, "condition_applies": "yes", "action": "wave"}}
    found, _ = matches(runs, GREET, judge)
    assert found["G1"].remarks == ("the model reinstated another action than the guideline's",)


def test_a_missing_answer_to_a_query_that_applies_is_asked_again(runs):
    def partly(asked):
        return PARTIALLY if asked.complaint else {**PARTIALLY, "is_missing_part_cosmetic_or_functional": None}

    found, model = matches(runs, GREET, {"G1": partly})
    assert not found["G1"].active
    assert "is_missing_part_cosmetic_or_functional" in asked_by(model, "matcher")[1].complaint


def test_a_condition_that_is_always_true_is_judged_for_repetition_only(runs):
    always = agent(Guideline(None, "greet"))
    assert matches(runs, always, {"G1": {"score": 1, "should_apply": True}})[0]["G1"].active
    assert not matches(runs, always, {"G1": DONE})[0]["G1"].active


def test_a_contradiction_about_a_condition_that_holds_is_asked_again_whatever_its_score(runs):
    always = agent(Guideline(None, "greet"))
    found, model = matches(runs, always, {"G1": {**DONE, "score": 2, "should_apply": True}})
    assert not found["G1"].active
    assert len(model.calls) == 2


def test_a_continuous_action_without_condition_needs_no_model(runs):
    found, model = matches(runs, agent(Guideline(None, "be polite", continuous=True)))
    assert (found["G1"].active, found["G1"].origin) == (True, "code")
    assert model.calls == []


def test_a_condition_may_be_a_function_of_the_state(runs):
    def is_vip(state):
        """The customer is a VIP."""
        return (state.get("variables") or {}).get("tier") == "vip"

    vip = agent(Guideline(is_vip, "be fast", continuous=True), Guideline(is_vip, "thank them"))
    found, model = matches(runs, vip, {"G2": 9})
    assert [match.active for match in found.values()] == [False, False]
    assert model.calls == []
    found, model = matches(runs, vip, {"G2": 9}, {**HELLO, "variables": {"tier": "vip"}})
    assert [match.active for match in found.values()] == [True, True]
    (asked,) = asked_by(model, "matcher")
    assert asked.now == {"turn": "M1", "judge": ["G2"], "holds": ["G2"]}
    assert asked.section("guidelines")[0]["condition"] == "The customer is a VIP."


def test_a_condition_function_that_fails_says_which_guideline(runs):
    def broken(state):
        return state["nothing"]

    with pytest.raises(SpecError, match=r"condition of guideline G1 raised KeyError.*True or False"):
        matches(runs, agent(Guideline(broken, "help")))


def test_what_was_applied_earlier_is_shown_as_evidence(runs):
    said = [HumanMessage("Hi", id="h1"), AIMessage("Hello!", id="a1"), HumanMessage("Hi?", id="h2")]
    applied = [
        AppliedGuideline(guideline="G1", turn="h1", message="a1"),
        AppliedGuideline(guideline="gone", turn="h1", message="a1"),
    ]
    _, model = matches(runs, GREET, {}, {"messages": said, "applied_guidelines": applied})
    assert asked_by(model, "matcher")[0].now["applied"] == [{"guideline": "G1", "reply": "M2"}]


def test_relations_are_applied_to_what_was_matched(runs):
    related = agent(
        Guideline("a", "do a", entails=["G2"]),
        Guideline("b", "do b"),
        Guideline("c", "do c", overrides=["G4"]),
        Guideline("d", "do d"),
        Guideline("e", "do e", depends_on=["G4"]),
    )
    found, _ = matches(runs, related, {"G1": 8, "G3": 7, "G4": 9, "G5": 9})
    assert {id: match.active for id, match in found.items()} == {
        "G1": True,
        "G2": True,
        "G3": True,
        "G4": False,
        "G5": False,
    }
    assert (found["G2"].origin, found["G2"].score, found["G2"].matched) == ("relation", 8, False)
    assert found["G2"].remarks == ("active because G1 entails it",)
    assert found["G4"].matched
    assert found["G4"].remarks == ("not active: overridden by G3",)


def test_matches_of_another_turn_are_ignored(runs):
    earlier = GuidelineMatch(guideline="G1", turn="h0", active=True, matched=True, score=9)
    found, _ = matches(runs, GREET, {"G1": 2}, {**HELLO, "guideline_matches": [earlier]})
    assert (found["G1"].active, found["G1"].turn) == (False, "h1")


def test_the_paper_s_temperature_is_sent_unless_the_model_has_its_own(runs):
    for own, sent in ((None, 0.15), (0.7, 0.7)):
        model = brain(temperature=own)
        runs.invoke(GuidelineMatcher(model, GREET), HELLO)
        assert model.calls[0].kwargs.get("temperature") == sent
