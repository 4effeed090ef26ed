"""How guidelines are grouped into calls, what a second look asks, and what becomes of a call that fails."""

from __future__ import annotations

import warnings

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, BlueprintError, Guideline, ModelRequestError
from arq_graph.nodes import GuidelineMatcher
from arq_graph.nodes.batching import default_batch_size
from tests.brain import asked_by, brain

HELLO = [HumanMessage("Hello", id="h1")]
LOOKED_UP = [
    *HELLO,
    AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1", "type": "tool_call"}]),
    ToolMessage("it is late", tool_call_id="c1", name="look"),
]
BROKEN = [BlueprintError("no valid answer"), "not JSON"]


class Forbidden(Exception):
    status_code = 403


def agent(*guidelines):
    return Agent("Desk", "You help.", guidelines)


def numbered(count, **fields):
    return [Guideline(f"condition {n}", f"action {n}", **fields) for n in range(1, count + 1)]


def one_each(guidelines):
    return 1


def run(runs, node, messages=HELLO, **channels):
    return {
        m.guideline: m for m in runs.invoke(node, {"messages": messages, **channels})["guideline_matches"]
    }


def judged(model):
    return sorted(asked.now["judge"] for asked in asked_by(model, "matcher"))


@pytest.mark.parametrize(("guidelines", "size"), [(1, 5), (20, 5), (100, 5), (101, 6), (200, 10), (5000, 10)])
def test_batches_grow_with_the_number_of_guidelines_up_to_ten(guidelines, size):
    assert default_batch_size(guidelines) == size


def test_twenty_guidelines_are_judged_in_four_calls(runs):
    model = brain()
    run(runs, GuidelineMatcher(model, agent(*numbered(20))))
    assert judged(model) == [[f"G{n}" for n in range(k, k + 5)] for k in (1, 11, 16, 6)]


def test_the_batch_size_is_a_policy_of_the_users(runs):
    model = brain()
    run(runs, GuidelineMatcher(model, agent(*numbered(3)), batch_size=one_each))
    assert judged(model) == [["G1"], ["G2"], ["G3"]]


def test_guidelines_that_a_tool_result_can_activate_stand_together():
    guidelines = [*numbered(4, sensitive_to_tools=False), *numbered(4)]
    node = GuidelineMatcher(brain(), agent(*guidelines), batch_size=lambda count: 3)
    assert [[g.id for g in batch.guidelines] for batch in node.batches] == [
        ["G5", "G6", "G7"],
        ["G8"],
        ["G1", "G2", "G3"],
        ["G4"],
    ]


def test_a_second_look_keeps_what_is_active_and_judges_the_rest(runs):
    model = brain(judge={"G1": 9, "G2": 2, "G3": 9})
    node = GuidelineMatcher(model, agent(*numbered(3)))
    first = run(runs, node)
    model.calls.clear()
    second = run(runs, node, LOOKED_UP, guideline_matches=list(first.values()))
    assert judged(model) == [["G2"]]
    assert (second["G1"], second["G3"]) == (first["G1"], first["G3"])


def test_a_second_look_leaves_alone_what_no_tool_result_can_make_true(runs):
    model = brain()
    node = GuidelineMatcher(model, agent(*numbered(2, sensitive_to_tools=False)))
    first = run(runs, node)
    model.calls.clear()
    assert run(runs, node, LOOKED_UP, guideline_matches=list(first.values())) == first
    assert model.calls == []


def test_a_second_look_does_not_judge_what_is_active_because_another_entails_it(runs):
    model = brain(judge={"G1": 9})
    node = GuidelineMatcher(model, agent(Guideline("a", "do a", entails=["G2"]), Guideline("b", "do b")))
    first = run(runs, node)
    model.calls.clear()
    assert run(runs, node, LOOKED_UP, guideline_matches=list(first.values())) == first
    assert model.calls == []


def test_what_a_relation_removed_says_so_once_however_often_one_looks(runs):
    model = brain(judge={"G1": 9, "G2": 9})
    node = GuidelineMatcher(model, agent(Guideline("a", "do a", overrides=["G2"]), Guideline("b", "do b")))
    matches = run(runs, node)
    for _ in range(2):
        matches = run(runs, node, LOOKED_UP, guideline_matches=list(matches.values()))
    assert matches["G2"].remarks == ("not active: overridden by G1",)


def test_a_guideline_that_came_up_in_a_second_look_can_override_one_of_the_first(runs):
    model = brain(judge={"G1": lambda asked: 9 if asked.turn else 2, "G2": 9})
    node = GuidelineMatcher(model, agent(Guideline("a", "do a", overrides=["G2"]), Guideline("b", "do b")))
    first = run(runs, node)
    second = run(runs, node, LOOKED_UP, guideline_matches=list(first.values()))
    assert [match.active for match in first.values()] == [False, True]
    assert [match.active for match in second.values()] == [True, False]


def test_a_second_look_does_not_hold_filler_about_other_guidelines_against_the_model(runs):
    def filler(asked):
        return {"score": 9, "should_apply": "G1" in asked.now["judge"]}

    model = brain(judge={"G1": filler})
    node = GuidelineMatcher(model, agent(*numbered(2)))
    first = run(runs, node)
    model.calls.clear()
    run(runs, node, LOOKED_UP, guideline_matches=list(first.values()))
    assert len(model.calls) == 1


def test_a_condition_function_may_come_true_after_a_tool_ran(runs):
    def looked_up(state):
        return any(isinstance(message, ToolMessage) for message in state["messages"])

    model = brain(judge={"G2": 9})
    node = GuidelineMatcher(
        model, agent(Guideline(looked_up, "a", continuous=True), Guideline(looked_up, "b"))
    )
    first = run(runs, node)
    second = run(runs, node, LOOKED_UP, guideline_matches=list(first.values()))
    assert [match.active for match in first.values()] == [False, False]
    assert [match.active for match in second.values()] == [True, True]


def failing(*ids, **judge):
    return brain(judge={**judge, **dict.fromkeys(ids, BlueprintError("no valid answer"))})


def test_a_failing_batch_raises_by_default(runs):
    with pytest.raises(BlueprintError, match="no valid answer"):
        run(runs, GuidelineMatcher(failing("G2"), agent(*numbered(3)), batch_size=one_each))


@pytest.mark.parametrize(("on_failure", "active"), [("activate", True), ("skip", False)])
def test_a_failing_batch_does_not_take_the_others_down(runs, on_failure, active):
    model = failing("G2", G1=9)
    node = GuidelineMatcher(model, agent(*numbered(3)), batch_size=one_each, on_failure=on_failure)
    with pytest.warns(UserWarning, match="guideline G2 is .*: judging it failed"):
        matches = run(runs, node)
    assert [match.active for match in matches.values()] == [True, active, False]
    assert (matches["G2"].origin, matches["G2"].score) == ("failure", None)


def test_a_rule_that_must_never_be_missed_says_so_itself(runs):
    guidelines = [Guideline("a", "do a", on_failure="activate"), Guideline("b", "do b")]
    node = GuidelineMatcher(failing("G1", "G2"), agent(*guidelines), batch_size=one_each, on_failure="skip")
    with pytest.warns(UserWarning):
        matches = run(runs, node)
    assert [match.active for match in matches.values()] == [True, False]
    node = GuidelineMatcher(
        failing("G2"), agent(guidelines[1], Guideline("c", "d", on_failure="skip")), batch_size=one_each
    )
    with pytest.warns(UserWarning, match="G2 is skipped"):
        assert not run(runs, node)["G2"].active


def test_a_model_that_never_answers_in_json_fails_with_its_texts(runs):
    model = brain()
    model._answer = lambda call: "I would rather not say."
    with pytest.raises(BlueprintError) as caught:
        run(runs, GuidelineMatcher(model, GREETING))
    assert {attempt.text for attempt in caught.value.attempts} == {"I would rather not say."}


GREETING = agent(Guideline("the customer greets", "greet back"))


def test_a_rejected_request_is_an_error_of_the_library(runs):
    model = brain()
    model._answer = lambda call: Forbidden("no such key")
    with pytest.raises(ModelRequestError, match="key"):
        run(runs, GuidelineMatcher(model, GREETING))


def test_a_skipped_guideline_is_judged_again_after_tools_ran(runs):
    model = brain(judge={"G1": lambda asked: 9 if asked.turn else BlueprintError("no valid answer")})
    node = GuidelineMatcher(model, GREETING, on_failure="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = run(runs, node)
    assert run(runs, node, LOOKED_UP, guideline_matches=list(first.values()))["G1"].active
