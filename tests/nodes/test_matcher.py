"""Which guidelines the matcher finds active and why, how they are grouped into calls, and what a second look asks."""

from __future__ import annotations

import warnings

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, Guideline, Reasoner, errors, query
from arq_graph.nodes import ConditionJudgement, GuidelineMatcher, Judgement
from tests.brain import DONE, asked_by, brain
from tests.order_tools import get_order, ran

HELLO = HumanMessage("Hello", id="h1")
LOOKED_UP = [HELLO, *ran()]
PARTIALLY = {
    **DONE,
    "guideline_previously_applied": "partially",
    "is_missing_part_cosmetic_or_functional": "cosmetic",
}
FUNCTIONAL = {**PARTIALLY, "is_missing_part_cosmetic_or_functional": "functional", "should_apply": True}
LASTING = {"score": 9, "guideline_is_continuous": True, "should_apply": True}
NOTHING_DONE = {"guideline_previously_applied": None, "guideline_should_reapply": None}


def agent(*guidelines):
    return Agent("Desk", "You help.", guidelines)


def numbered(count, **fields):
    return [Guideline(f"condition {n}", f"action {n}", **fields) for n in range(1, count + 1)]


def look(node, messages=(HELLO,), before=(), **state):
    """What a node finds in one look, by guideline id."""
    update = node.invoke({"messages": list(messages), "guideline_matches": list(before), **state})
    return {record["guideline"]: record for record in update["guideline_matches"]}


def look_again(node, first):
    return look(node, LOOKED_UP, first.values())


def match(specification, judge=None, *, mode="arq", **state):
    """The matches by guideline id, and the model."""
    model = brain(judge=judge)
    return look(GuidelineMatcher(model, specification, mode=mode), **state), model


def active(found):
    return [id for id, record in found.items() if record["active"]]


def judged(model):
    return sorted(asked.now["judge"] for asked in asked_by(model, "matcher"))


GREET = agent(Guideline("the customer greets", "greet back"))
ALWAYS = agent(Guideline(None, "greet"))


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_six_is_the_lowest_score_that_activates_and_what_was_done_is_not_due(mode):
    judge = {"G1": {"score": 6, "should_apply": True}, "G2": {"score": 5, "should_apply": True}, "G3": DONE}
    assert active(match(agent(*numbered(3)), judge, mode=mode)[0]) == ["G1"]


@pytest.mark.parametrize(
    ("specification", "said", "is_active", "complaint"),
    [
        (GREET, PARTIALLY, False, None),  # a cosmetic part counts for nothing
        (GREET, {**FUNCTIONAL, "guideline_should_reapply": True}, True, None),
        (GREET, FUNCTIONAL, True, "a functional part is missing"),
        (GREET, {**DONE, **LASTING}, True, None),
        (GREET, {**NOTHING_DONE, **LASTING}, True, None),  # what was done is not asked
        (GREET, {"score": 9, "should_apply": False}, True, "GuidelineJudgement.G1.should_apply"),
        (GREET, {"score": 9, "condition_applies": "yes", "application": None}, False, "G1.application"),
        (GREET, {**PARTIALLY, "is_missing_part_cosmetic_or_functional": None}, False, "is_missing_part"),
        (GREET, {**PARTIALLY, "guideline_should_reapply": None}, False, "guideline_should_reapply"),
        # Of a condition that is always true only the repetition is judged, whatever its score.
        (ALWAYS, {"score": 1, "should_apply": True}, True, None),
        (ALWAYS, DONE, False, None),
        (ALWAYS, {**DONE, "score": 2, "should_apply": True}, False, "G1.should_apply"),
    ],
)
def test_whether_the_action_is_due_is_what_the_leading_answers_say(specification, said, is_active, complaint):
    """A contradiction is asked again once."""
    model = brain(judge={"G1": lambda asked: PARTIALLY if asked.complaint and not is_active else said})
    found = look(GuidelineMatcher(model, specification))
    assert found["G1"]["active"] is is_active
    assert complaint is None or complaint in asked_by(model, "matcher")[1].complaint
    assert len(model.calls) == (2 if complaint else 1)


def test_a_contradiction_that_stays_is_remarked_on_and_no_other_guideline_s():
    wrong = {"score": 9, "should_apply": False}
    judge = {"G1": wrong, "G2": lambda asked: 9 if asked.complaint else wrong}
    found, _ = match(agent(*numbered(2)), judge)
    assert active(found) == ["G1", "G2"]
    assert "still contradictory when asked again" in found["G1"]["remarks"][0]
    assert found["G2"]["remarks"] == []


def test_a_condition_that_is_not_known_yet_is_inactive_and_says_what_would_decide_it():
    why = "when the appointment is"
    unknown = {"score": 4, "condition_applies": "not_known_yet", "condition_application_rationale": why}
    found, _ = match(GREET, {"G1": unknown})
    assert (found["G1"]["active"], found["G1"]["missing_information"], found["G1"]["rationale"]) == (
        False,
        why,
        why,
    )
    for known in (2, 9, {**unknown, "score": 9, "should_apply": True}):
        assert match(GREET, {"G1": known})[0]["G1"]["missing_information"] == ""


def test_the_score_decides_over_condition_applies_and_what_is_odd_is_remarked():
    odd = {"score": 8, "condition_applies": "no", "action": "wave", "should_apply": True}
    found, _ = match(GREET, {"G1": odd})
    assert active(found) == ["G1"]
    assert found["G1"]["remarks"] == [
        "the model reinstated another action than the guideline's",
        "condition_applies is no, the score 8 decides",
    ]


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


def is_vip(state):
    """The customer is a VIP."""
    return state["variables"].get("tier") == "vip"


def test_what_code_knows_for_good_needs_no_model_and_a_condition_may_be_a_function_of_the_state():
    lasting = Guideline(None, "be polite", continuous=True)
    vip = agent(Guideline(is_vip, "be fast", continuous=True), Guideline(is_vip, "thank them"), lasting)
    found, model = match(vip, {"G2": 9})
    known = [(record["active"], record["origin"]) for record in found.values()]
    assert known == [(False, "code"), (False, "code"), (True, "code")]
    assert model.calls == []
    found, model = match(vip, {"G2": 9}, variables={"tier": "vip"})
    assert active(found) == ["G1", "G2", "G3"]
    (asked,) = asked_by(model, "matcher")
    assert asked.now == {"turn": "M1", "judge": ["G2"], "holds": ["G2"]}
    assert asked.section("guidelines")[0]["condition"] == "The customer is a VIP."


@pytest.mark.parametrize(
    ("condition", "problem"),
    [(lambda state: state["nothing"], "raised KeyError"), (lambda _: "no", "returned 'no'")],
)
def test_a_condition_function_that_fails_or_says_neither_yes_nor_no_is_told_with_its_guideline(
    condition, problem
):
    with pytest.raises(errors.SpecError, match=rf"condition of guideline G1 {problem}.*True or False"):
        match(agent(Guideline(condition, "help")))


TALK = [HumanMessage("Hi", id="h1"), AIMessage("Hello! Which order?", id="a1"), HumanMessage("A-1", id="h2")]


def test_what_was_applied_is_evidence_but_what_waits_for_an_argument_is_unfinished():
    waiting = {"agent": "Desk", "turn": "h1", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    applied = [
        {"agent": "Desk", "guideline": id, "turn": "h1", "message_id": "a1"} for id in ("G1", "G2", "gone")
    ]
    desk = agent(Guideline("they greet", "greet back"), Guideline("they ask", "tell", tools=[get_order]))
    _, model = match(desk, messages=TALK, applied_guidelines=applied, tool_insights=[waiting])
    now = asked_by(model, "matcher")[0].now
    assert (now["applied"], now["unfinished"]) == ([{"guideline": "G1", "reply": "M2"}], ["G2"])


def test_relations_are_applied_to_what_was_matched_observations_too():
    related = agent(
        Guideline("a", tools=[get_order], entails=["G2"]),
        Guideline("b", "do b"),
        Guideline("c", "do c", overrides=["G4"]),
        Guideline("d", "do d"),
        Guideline("e", "do e", depends_on=["G4"]),
        Guideline("f", "do f", depends_on=["G1"]),
    )
    judge = {"G1": {"score": 8, "should_apply": False}, "G3": 7, "G4": 9, "G5": 9, "G6": 9}
    found, _ = match(related, judge)
    assert active(found) == ["G1", "G2", "G3", "G6"]
    assert (found["G2"]["origin"], found["G2"]["score"], found["G2"]["matched"]) == ("relation", 8, False)
    assert found["G2"]["remarks"] == ["active because G1 entails it"]
    assert (found["G4"]["matched"], found["G4"]["remarks"]) == (True, ["not active: overridden by G3"])
    assert active(match(related, {**judge, "G1": 2})[0]) == ["G3"]


@pytest.mark.parametrize(
    ("model_s", "reasoner_s", "own", "sent"),
    [(None, None, None, 0.15), (0.7, None, None, 0.7), (None, 0.0, None, 0.0), (None, 0.0, 0.4, 0.4)],
)
def test_the_paper_s_temperature_is_sent_unless_the_model_the_reasoner_or_the_step_has_its_own(
    model_s, reasoner_s, own, sent
):
    model = brain(temperature=model_s)
    look(GuidelineMatcher(Reasoner(model, temperature=reasoner_s), GREET, temperature=own))
    assert [call.kwargs.get("temperature") for call in model.calls] == [sent]


# --- batches, and a second look --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("guidelines", "calls", "size"), [(20, 4, 5), (200, 20, 10)])
def test_batches_grow_with_the_number_of_guidelines_up_to_ten(guidelines, calls, size):
    _, model = match(agent(*numbered(guidelines)))
    assert (len(judged(model)), max(map(len, judged(model)))) == (calls, size)


def test_guidelines_that_a_tool_result_can_activate_stand_together():
    model = brain()
    guidelines = [*numbered(4, sensitive_to_tools=False), *numbered(4)]
    look(GuidelineMatcher(model, agent(*guidelines), batch_size=3))
    assert judged(model) == [["G3", "G4"], ["G5", "G6", "G7"], ["G8", "G1", "G2"]]


SETTLED = {"score": 2, "could_a_tool_change_that": False}


@pytest.mark.parametrize(
    ("guideline", "said", "is_judged_again"),
    [
        ({}, 9, False),  # what is active stays
        ({}, 2, True),
        ({}, SETTLED, False),
        ({"sensitive_to_tools": False}, 2, False),
        ({"sensitive_to_tools": True}, SETTLED, True),  # the designer's word goes before the model's
    ],
)
def test_a_second_look_judges_what_a_result_may_make_true_and_keeps_the_rest(
    guideline, said, is_judged_again
):
    model = brain(judge={"G1": said, "G2": 2})
    node = GuidelineMatcher(model, agent(*numbered(1, **guideline), *numbered(1)))
    first = look(node)
    second = look_again(node, first)
    assert ("G1" in asked_by(model, "matcher")[1].now["judge"]) is is_judged_again
    assert is_judged_again or second["G1"] == first["G1"]


def test_what_was_settled_is_judged_anew_in_the_next_turn():
    model = brain(judge={"G1": SETTLED})
    node = GuidelineMatcher(model, GREET)
    look(node, TALK, look(node).values())
    assert judged(model) == [["G1"], ["G1"]]


def test_what_a_relation_made_of_a_guideline_stays_and_is_said_once_however_often_one_looks():
    model = brain(judge={"G1": 9, "G2": 9})
    node = GuidelineMatcher(
        model, agent(Guideline("a", "do a", entails=["G3"], overrides=["G2"]), *numbered(2))
    )
    first = look(node)
    assert look_again(node, look_again(node, first)) == first
    assert len(model.calls) == 1
    assert first["G2"]["remarks"] == ["not active: overridden by G1"]


def test_a_guideline_that_came_up_in_a_second_look_can_override_one_of_the_first():
    model = brain(judge={"G1": lambda asked: 9 if asked.turn else 2, "G2": 9})
    node = GuidelineMatcher(model, agent(Guideline("a", "do a", overrides=["G2"]), Guideline("b", "do b")))
    first = look(node)
    assert active(first) == ["G2"]
    assert active(look_again(node, first)) == ["G1"]


def test_a_condition_function_may_come_true_after_a_tool_ran():
    def looked_up(state):
        return any(isinstance(message, ToolMessage) for message in state["messages"])

    guidelines = [Guideline(looked_up, "a", continuous=True), Guideline(looked_up, "b")]
    node = GuidelineMatcher(brain(judge={"G2": 9}), agent(*guidelines))
    first = look(node)
    assert active(first) == []
    assert active(look_again(node, first)) == ["G1", "G2"]


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_a_thread_may_keep_what_is_of_later_use_and_the_second_look_and_the_gate_go_by_it_all_the_same():
    unknown = {"score": 4, "condition_applies": "not_known_yet"}
    judge = {"G1": 9, "G2": SETTLED, "G3": DONE, "G4": unknown, "G7": SETTLED}
    guidelines = [
        *numbered(7),
        Guideline(is_vip, "be fast", continuous=True),
        Guideline("h", "h", overrides=["G1"]),
    ]
    looks = {}
    for keep in ("all", "active"):
        model = brain(judge={**judge, "G9": 9})
        node = GuidelineMatcher(model, agent(*guidelines), keep_matches=keep)
        first = node.invoke({"messages": [HELLO]})["guideline_matches"]
        again = node.invoke({"messages": LOOKED_UP, "guideline_matches": first})["guideline_matches"]
        looks[keep] = ([each for each in again if each["active"]], judged(model), len(first), len(again))
    assert looks["active"][:2] == looks["all"][:2]
    assert (looks["all"][2:], looks["active"][2:]) == ((9, 9), (7, 7))
    by_id = {record["guideline"]: record for record in first}
    # Active, overridden, done already and not known yet; then what code knows, what is settled, and the others.
    assert list(by_id) == ["G1", "G3", "G4", "G9", "G2", "G5", "G8"]
    assert (by_id["G2"]["other_guidelines"], by_id["G5"]["other_guidelines"]) == (["G7"], ["G6"])
    assert by_id["G4"]["rationale"] and not by_id["G5"]["rationale"]


# --- judgements that cannot be had -----------------------------------------------------------------------------------


def test_a_guideline_says_what_becomes_of_it_where_judging_it_fails_and_takes_no_other_down():
    broken = errors.BlueprintError("no valid answer")
    guidelines = [*numbered(1, on_failure="activate"), *numbered(1, on_failure="skip"), *numbered(1)]
    model = brain(judge={"G1": broken, "G2": broken, "G3": 9})
    node = GuidelineMatcher(model, agent(*guidelines), batch_size=1, keep_matches="active")
    with pytest.warns(UserWarning, match="G1 is activated"), pytest.warns(UserWarning, match="G2 is skipped"):
        found = look(node)
    assert active(found) == ["G1", "G3"]
    assert (found["G2"]["origin"], found["G2"]["score"]) == ("failure", None)
    assert "judging it failed" in found["G2"]["rationale"]
    with pytest.raises(errors.BlueprintError, match="no valid answer"):
        match(GREET, {"G1": broken})


@pytest.mark.parametrize("answers", [1, 2])
def test_a_judgement_that_is_left_out_is_asked_for_once_more_and_is_a_failure_then(answers):
    model = brain(judge={"G1": 9, "G2": lambda asked: 9 if asked.complaint and answers == 1 else None})
    node = GuidelineMatcher(model, agent(*numbered(2, on_failure="skip")))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = look(node)
    assert "GuidelineBatch.G2: it stands in `judge`" in asked_by(model, "matcher")[1].complaint
    assert active(found) == (["G1", "G2"] if answers == 1 else ["G1"])
    assert (len(model.calls), len(told)) == (2, answers - 1)


class Evidence(Judgement):
    """A guideline."""

    evidence: str = query("Which words of the customer's show it?")


class Doubt(ConditionJudgement):
    """A guideline."""

    condition_application_rationale: str = query("What speaks against it?")


def test_queries_of_one_s_own_are_asked_about_the_guidelines_that_they_fit():
    kinds = [
        Guideline("they greet", "greet", id="G1"),
        Guideline("they greet", id="G2"),
        Guideline(None, "greet", id="G3"),
    ]
    model = brain(judge={"G1": 9})
    found = look(GuidelineMatcher(model, agent(*kinds), judgement=Evidence))
    assert "G1" in active(found)
    GuidelineMatcher(model, agent(*kinds), judgement=Doubt).invoke({"messages": [HELLO]})
    first, second = (
        {id: entry["anyOf"][0]["properties"] for id, entry in each.schema["properties"].items()}
        for each in (asked_by(model, "matcher")[0], asked_by(model, "matcher")[-1])
    )
    # Among the leading queries of each, before the response.
    assert all(list(each)[-3:] == ["evidence", "score", "should_apply"] for each in first.values())
    # In the place of the shipped query, where that is asked.
    assert list(second["G1"]) == [name for name in first["G1"] if name != "evidence"]
    assert second["G1"]["condition_application_rationale"]["description"] == "What speaks against it?"
    assert "condition_application_rationale" not in second["G3"]
    with pytest.raises(errors.InputError, match="must be Judgement or a subclass"):
        GuidelineMatcher(model, GREET, judgement=Guideline)
