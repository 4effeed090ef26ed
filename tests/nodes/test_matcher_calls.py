"""How guidelines are grouped into calls, what a second look asks, and what becomes of a call that fails."""

from __future__ import annotations

import warnings

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, Guideline, errors
from arq_graph.nodes import GuidelineMatcher
from tests.brain import asked_by, brain

HELLO = [HumanMessage("Hello", id="h1")]
LOOKED_UP = [
    *HELLO,
    AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1", "type": "tool_call"}]),
    ToolMessage("it is late", tool_call_id="c1", name="look"),
]


def agent(*guidelines):
    return Agent("Desk", "You help.", guidelines)


def numbered(count, **fields):
    return [Guideline(f"condition {n}", f"action {n}", **fields) for n in range(1, count + 1)]


def look(node, messages=HELLO, before=()):
    update = node.invoke({"messages": messages, "guideline_matches": list(before)})
    return {record["guideline"]: record for record in update["guideline_matches"]}


def look_again(node, first):
    return look(node, LOOKED_UP, first.values())


def active(found):
    return [id for id, record in found.items() if record["active"]]


def judged(model):
    return sorted(asked.now["judge"] for asked in asked_by(model, "matcher"))


@pytest.mark.parametrize(("guidelines", "calls", "size"), [(20, 4, 5), (200, 20, 10)])
def test_batches_grow_with_the_number_of_guidelines_up_to_ten(guidelines, calls, size):
    model = brain()
    look(GuidelineMatcher(model, agent(*numbered(guidelines))))
    assert (len(judged(model)), max(map(len, judged(model)))) == (calls, size)


def test_guidelines_that_a_tool_result_can_activate_stand_together():
    model = brain()
    guidelines = [*numbered(4, sensitive_to_tools=False), *numbered(4)]
    look(GuidelineMatcher(model, agent(*guidelines), batch_size=3))
    assert judged(model) == [["G3", "G4"], ["G5", "G6", "G7"], ["G8", "G1", "G2"]]


def test_a_second_look_keeps_what_is_active_and_judges_the_rest_others_being_null():
    model = brain(judge={"G1": 9, "G2": 2, "G3": 9})
    node = GuidelineMatcher(model, agent(*numbered(3)))
    first = look(node)
    model.calls.clear()
    second = look_again(node, first)
    assert judged(model) == [["G2"]]
    assert (second["G1"], second["G3"]) == (first["G1"], first["G3"])


@pytest.mark.parametrize("fields", [{"sensitive_to_tools": False}, {}])
def test_a_second_look_leaves_alone_what_no_result_can_make_true(fields):
    said = {"score": 2, "could_a_tool_change_that": False}
    model = brain(judge={"G1": said, "G2": said})
    node = GuidelineMatcher(model, agent(*numbered(2, **fields)))
    first = look(node)
    model.calls.clear()
    assert look_again(node, first) == first
    assert model.calls == []


def test_the_designer_s_word_that_results_matter_goes_before_the_model_s_which_counts_for_its_turn_alone():
    said = {"score": 2, "could_a_tool_change_that": False}
    model = brain(judge={"G1": said, "G2": said})
    node = GuidelineMatcher(model, agent(*numbered(1, sensitive_to_tools=True), *numbered(1)))
    first = look(node)
    look_again(node, first)
    look(node, [*HELLO, AIMessage("Hi", id="a1"), HumanMessage("And?", id="h2")], first.values())
    assert judged(model) == [["G1"], ["G1", "G2"], ["G1", "G2"]]


def test_what_a_relation_made_of_a_guideline_stays_and_is_said_once_however_often_one_looks():
    model = brain(judge={"G1": 9, "G2": 9})
    related = [Guideline("a", "do a", entails=["G3"], overrides=["G2"]), *numbered(2)]
    node = GuidelineMatcher(model, agent(*related))
    first = look(node)
    model.calls.clear()
    assert look_again(node, look_again(node, first)) == first
    assert model.calls == []
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


# --- judgements that cannot be had -----------------------------------------------------------------------------------


def failing(*ids, **judge):
    broken = dict.fromkeys(ids, errors.BlueprintError("no valid answer"))
    return brain(judge={**judge, **broken})


def test_a_guideline_says_what_becomes_of_it_where_judging_it_fails_and_takes_no_other_down():
    guidelines = [*numbered(1, on_failure="activate"), *numbered(1, on_failure="skip"), *numbered(1)]
    node = GuidelineMatcher(failing("G1", "G2", G3=9), agent(*guidelines), batch_size=1)
    with pytest.warns(UserWarning, match="G1 is activated"), pytest.warns(UserWarning, match="G2 is skipped"):
        found = look(node)
    assert active(found) == ["G1", "G3"]
    assert (found["G2"]["origin"], found["G2"]["score"]) == ("failure", None)
    with pytest.raises(errors.BlueprintError, match="no valid answer"):
        look(GuidelineMatcher(failing("G3"), agent(*guidelines), batch_size=1))


@pytest.mark.parametrize("answers", [1, 2])
def test_a_judgement_that_is_left_out_is_asked_for_once_more_and_is_a_failure_then(answers):
    model = brain(judge={"G1": 9, "G2": 9})
    whole = model._answer

    def without_one(call):
        answer = whole(call)
        return {**answer, "G2": None} if len(model.calls) <= answers else answer

    model._answer = without_one
    node = GuidelineMatcher(model, agent(*numbered(2, on_failure="skip")))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = look(node)
    assert len(model.calls) == 2
    assert "GuidelineBatch.G2: it stands in `judge`" in asked_by(model, "matcher")[1].complaint
    assert active(found) == (["G1", "G2"] if answers == 1 else ["G1"])
    assert len(told) == answers - 1
