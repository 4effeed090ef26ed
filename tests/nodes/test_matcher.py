"""The matcher: which guidelines it activates and why, how it groups them into calls, and what a re-match asks."""

import json
import warnings

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, Guideline, Reasoner, ScriptedChatModel, errors, query
from arq_graph.nodes import ConditionJudgement, GuidelineMatcher, Judgement
from tests.brain import DONE, brain, get_prompts
from tests.order_tools import get_order, ran
from tests.schemas import without_null

HELLO = HumanMessage("Hello", id="h1")
AFTER_TOOL = [HELLO, *ran()]
PARTIALLY = {
    **DONE,
    "guideline_previously_applied": "partially",
    "is_missing_part_cosmetic_or_functional": "cosmetic",
}
FUNCTIONAL = {**PARTIALLY, "is_missing_part_cosmetic_or_functional": "functional", "should_apply": True}
CONTINUOUS = {"score": 9, "guideline_is_continuous": True, "should_apply": True}
UNKNOWN = {"score": 4, "condition_applies": "not_known_yet", "condition_application_rationale": "the date"}
INDEPENDENT = {"score": 2, "could_a_tool_change_that": False}


def make_agent(*guidelines, tools=()):
    return Agent("Desk", "You help.", guidelines, tools=tools)


def make_guidelines(count, **fields):
    return [Guideline(f"condition {n}", f"action {n}", **fields) for n in range(1, count + 1)]


def run_pass(node, messages=(HELLO,), stored=(), **state):
    """Run one matching pass; return its records by guideline id."""
    update = node.invoke({"messages": list(messages), "guideline_matches": list(stored), **state})
    return {record["guideline"]: record for record in update["guideline_matches"]}


def rematch(node, records):
    return run_pass(node, AFTER_TOOL, records.values())


def match(agent, judge=None, *, mode="arq", **state):
    """Return the records by guideline id, and the model."""
    model = brain(judge=judge)
    return run_pass(GuidelineMatcher(model, agent, mode=mode), **state), model


def list_active(records):
    return [id for id, record in records.items() if record["active"]]


def list_judged(model):
    return sorted(prompt.now["judge"] for prompt in get_prompts(model, "matcher"))


def list_properties(prompt):
    """Return the properties of each guideline's judgement."""
    properties = {}
    for guideline in prompt.section("guidelines"):
        schema = prompt.schema["properties"][guideline["id"]]
        properties[guideline["id"]] = without_null(schema)["properties"]
    return properties


GREET = make_agent(Guideline("the customer greets", "greet back"))
ALWAYS = make_agent(Guideline(None, "greet"))


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


def is_vip(state):
    """The customer is a VIP."""
    return state["variables"].get("tier") == "vip"


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


# --- batches and re-matches ------------------------------------------------------------------------------------------


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


# --- stored matches and failures -------------------------------------------------------------------------------------


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
