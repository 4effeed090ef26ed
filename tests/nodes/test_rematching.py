"""How the matcher groups guidelines into calls, what a re-match asks, what is stored, and what a failure leaves."""

import json
import warnings

import pytest
from langchain_core.messages import ToolMessage

from arq_graph import Guideline, ScriptedChatModel, errors, query
from arq_graph.nodes import ConditionJudgement, GuidelineMatcher, Judgement
from tests.brain import DONE, brain, get_prompts
from tests.nodes.matching import (
    AFTER_TOOL,
    GREET,
    HELLO,
    INDEPENDENT,
    UNKNOWN,
    is_vip,
    list_active,
    list_judged,
    list_properties,
    make_agent,
    make_guidelines,
    match,
    rematch,
    run_pass,
)
from tests.order_tools import get_order


@pytest.mark.parametrize(("guidelines", "calls", "size"), [(20, 4, 5), (200, 20, 10)])
def test_batches_grow_with_the_number_of_guidelines_up_to_ten(guidelines, calls, size):
    _, model = match(make_agent(*make_guidelines(guidelines)))
    assert (len(list_judged(model)), max(map(len, list_judged(model)))) == (calls, size)


def test_guidelines_that_a_tool_can_activate_share_batches():
    model = brain()
    guidelines = [*make_guidelines(4, sensitive_to_tools=False), *make_guidelines(4)]
    run_pass(GuidelineMatcher(model, make_agent(*guidelines), batch_size=3))
    assert list_judged(model) == [["G3", "G4"], ["G5", "G6", "G7"], ["G8", "G1", "G2"]]


@pytest.mark.parametrize(
    ("fields", "judgement", "is_judged_again"),
    [
        ({}, 9, False),  # active ones stay active
        ({}, 2, True),
        ({}, INDEPENDENT, False),
        ({"sensitive_to_tools": False}, 2, False),
        ({"sensitive_to_tools": True}, 2, True),
    ],
)
@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_rematch_judges_what_a_result_can_change_and_keeps_the_rest(fields, judgement, is_judged_again, mode):
    model = brain(judge={"G1": judgement, "G2": 2})
    agent = make_agent(*make_guidelines(1, **fields), *make_guidelines(1), tools=[get_order])
    node = GuidelineMatcher(model, agent, mode=mode)
    first = run_pass(node)
    second = rematch(node, first)
    assert ("G1" in get_prompts(model, "matcher")[1].now["judge"]) is is_judged_again
    assert is_judged_again or second["G1"] == first["G1"]


def test_an_endpoint_that_does_not_say_what_a_tool_could_change_is_asked_again_after_a_result():
    model = ScriptedChatModel(lambda _: json.dumps({"G1": {"score": 2, "should_apply": False}}))
    node = GuidelineMatcher(model, make_agent(*make_guidelines(1), tools=[get_order]), mode="direct")
    first = run_pass(node)
    assert len(model.calls) == 1
    rematch(node, first)
    assert len(model.calls) == 2


def test_rematch_repeats_relations_without_repeating_remarks():
    model = brain(judge={"G1": 9, "G2": 9})
    agent = make_agent(Guideline("a", "do a", entails=["G3"], overrides=["G2"]), *make_guidelines(2))
    node = GuidelineMatcher(model, agent)
    first = run_pass(node)
    assert rematch(node, rematch(node, first)) == first
    assert len(model.calls) == 1
    assert first["G2"]["remarks"] == ["not active: overridden by G1"]


def test_a_guideline_that_nothing_entails_any_more_is_again_as_it_was_judged():
    judge = {"G1": 9, "G2": 2, "G3": 2}
    guidelines = [Guideline("a", "do a", entails=["G2"]), *make_guidelines(1)]
    guidelines.append(Guideline("c", "do c", overrides=["G1"], sensitive_to_tools=True))
    node = GuidelineMatcher(brain(judge=judge), make_agent(*guidelines, tools=[get_order]))
    first = run_pass(node)
    assert (first["G2"]["active"], first["G2"]["origin"]) == (True, "relation")
    judge["G3"] = 9
    second = rematch(node, first)
    assert (second["G2"]["active"], second["G2"]["origin"]) == (False, "model")


def test_condition_function_can_become_true_after_a_tool_ran():
    def has_result(state):
        return any(isinstance(message, ToolMessage) for message in state["messages"])

    guidelines = [Guideline(has_result, "a", continuous=True), Guideline(has_result, "b")]
    node = GuidelineMatcher(brain(judge={"G2": 9}), make_agent(*guidelines))
    first = run_pass(node)
    assert list_active(first) == []
    assert list_active(rematch(node, first)) == ["G1", "G2"]


def test_compact_matches_lead_to_the_same_passes():
    judge = {"G1": 9, "G2": INDEPENDENT, "G3": DONE, "G4": UNKNOWN, "G7": INDEPENDENT, "G9": 9}
    vip = Guideline(is_vip, "be fast", continuous=True)
    agent = make_agent(*make_guidelines(7), vip, Guideline("h", "h", overrides=["G1"]), tools=[get_order])
    outcomes = {}
    for keep in ("all", "active"):
        model = brain(judge=judge)
        node = GuidelineMatcher(model, agent, keep_matches=keep)
        first = node.invoke({"messages": [HELLO]})["guideline_matches"]
        second = node.invoke({"messages": AFTER_TOOL, "guideline_matches": first})["guideline_matches"]
        active = [record for record in second if record["active"]]
        outcomes[keep] = (active, list_judged(model))
    assert outcomes["active"] == outcomes["all"]
    records = {record["guideline"]: record for record in first}
    # Active, overridden, done and unknown ones; then one for each other outcome.
    assert list(records) == ["G1", "G3", "G4", "G9", "G2", "G5", "G8"]
    merged = (records["G2"]["other_guidelines"], records["G5"]["other_guidelines"])
    assert merged == (["G7"], ["G6"])
    assert records["G4"]["rationale"] and not records["G5"]["rationale"]


def test_on_failure_decides_and_other_guidelines_are_unaffected():
    error = errors.BlueprintError("no valid answer")
    guidelines = [
        *make_guidelines(1, on_failure="activate"),
        *make_guidelines(1, on_failure="skip"),
        *make_guidelines(1),
    ]
    model = brain(judge={"G1": error, "G2": error, "G3": 9})
    node = GuidelineMatcher(model, make_agent(*guidelines), batch_size=1, keep_matches="active")
    with pytest.warns(UserWarning, match="G1 is activated"), pytest.warns(UserWarning, match="G2 is skipped"):
        records = run_pass(node)
    assert list_active(records) == ["G1", "G3"]
    assert (records["G2"]["origin"], records["G2"]["score"]) == ("failure", None)
    assert "judging it failed" in records["G2"]["rationale"]
    with pytest.raises(errors.BlueprintError, match="no valid answer"):
        match(GREET, {"G1": error})


@pytest.mark.parametrize("answers", [1, 2])
def test_missing_judgement_is_asked_once_more_and_then_fails(answers):
    model = brain(judge={"G1": 9, "G2": lambda prompt: 9 if prompt.complaint and answers == 1 else None})
    node = GuidelineMatcher(model, make_agent(*make_guidelines(2, on_failure="skip")))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        records = run_pass(node)
    assert "GuidelineBatch.G2: it is listed in `judge`" in get_prompts(model, "matcher")[1].complaint
    assert list_active(records) == (["G1", "G2"] if answers == 1 else ["G1"])
    assert (len(model.calls), len(caught)) == (2, answers - 1)


class Evidence(Judgement):
    """A guideline."""

    evidence: str = query("Which words of the customer's show it?")


class Doubt(ConditionJudgement):
    """A guideline."""

    condition_application_rationale: str = query("What speaks against it?")


def test_own_queries_are_asked_about_the_guidelines_that_they_fit():
    agent = make_agent(
        Guideline("they greet", "greet", id="G1"),
        Guideline("they greet", id="G2"),
        Guideline(None, "greet", id="G3"),
    )
    model = brain(judge={"G1": 9})
    assert "G1" in list_active(run_pass(GuidelineMatcher(model, agent, judgement=Evidence)))
    run_pass(GuidelineMatcher(model, agent, judgement=Doubt))
    with_evidence, *_, with_doubt = map(list_properties, get_prompts(model, "matcher"))
    # An added query stands among the leading queries, before the response.
    for id, response in {
        "G1": ["score", "should_apply"],
        "G2": ["score"],
        "G3": ["score", "should_apply"],
    }.items():
        properties = list(with_evidence[id])
        assert properties[properties.index("evidence") + 1 :] == response
    # A changed query stands in place of the shipped one, where that is asked.
    assert list(with_doubt["G1"]) == [name for name in with_evidence["G1"] if name != "evidence"]
    rationale = with_doubt["G1"]["condition_application_rationale"]
    assert rationale["description"] == "What speaks against it?"
    assert "condition_application_rationale" not in with_doubt["G3"]
    with pytest.raises(errors.InputError, match="must be Judgement or a subclass"):
        GuidelineMatcher(model, GREET, judgement=Guideline)
