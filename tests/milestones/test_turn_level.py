"""Turn-level figures on cases worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph.errors import InputError
from arq_graph.milestones import Call, Message, Result, Transcript, read_transcript
from arq_graph.milestones.turn_level.actions import Action, action_of
from arq_graph.milestones.turn_level.comparison import StepOutcome, compare
from arq_graph.milestones.turn_level.metrics import TurnMetrics, turn_metrics
from arq_graph.milestones.turn_level.steps import steps_of
from arq_graph.milestones.values import same_value
from tests.milestones.conversations import agent, called, conversation, user


def calls(*tools: str, **arguments: object) -> Action:
    return Action(tuple(Call(tool, arguments) for tool in tools))


def says(text: str) -> Action:
    return Action(answer=text)


# --- the steps of a conversation


def test_each_action_of_the_agent_is_a_step_with_what_was_before_it():
    transcript = conversation(
        user("Where is A-1?"), called("get", id="A-1"), agent("Late."), user("Oh."), agent("Yes.")
    )
    steps = list(steps_of(transcript))
    assert [(step.number, step.event, step.truth.label) for step in steps] == [
        (1, 2, "get"),
        (2, 4, "final answer"),
        (3, 6, "final answer"),
    ]
    assert steps[0].history == transcript.events[:1]
    assert steps[2].history == transcript.events[:5]


def test_the_calls_of_one_message_and_its_words_are_one_step():
    transcript = read_transcript(
        [
            {"role": "user", "content": "both"},
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [
                    {"id": "1", "function": {"name": "b", "arguments": "{}"}},
                    {"id": "2", "function": {"name": "a", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": "one"},
            {"role": "tool", "tool_call_id": "2", "content": "two"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "3", "function": {"name": "c", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "3", "content": "three"},
            {"role": "assistant", "content": "Done."},
            {"role": "assistant", "content": "Anything else?"},
        ]
    )
    assert [step.truth.label for step in steps_of(transcript)] == [
        "a + b",
        "c",
        "final answer",
        "final answer",
    ]
    assert next(steps_of(transcript)).truth.kind == "call"


def test_consecutive_calls_of_different_messages_are_two_steps():
    events = (Message("user", "hi", 0), Call("a", {}, None, None, 1), Call("b", {}, None, None, 2))
    assert [step.truth.label for step in steps_of(Transcript(events))] == ["a", "b"]


def test_a_greeting_before_anything_was_asked_and_an_empty_message_are_no_steps():
    transcript = conversation(agent("Hello!"), user("Hi"), agent(""), agent("How can I help?"))
    assert [step.truth.answer for step in steps_of(transcript)] == ["How can I help?"]
    assert list(steps_of(conversation(agent("Is anybody there?")))) == []


# --- what an agent's output is


def test_actions_are_read_from_messages_texts_and_objects():
    call = {"name": "f", "args": {"a": 1}, "id": "1"}
    assert action_of("hi") == says("hi")
    assert action_of(AIMessage("Let me see.", tool_calls=[call])) == Action(
        (Call("f", {"a": 1}, "1", None, 0),), "Let me see."
    )
    assert action_of({"calls": [{"tool": "f", "arguments": {"a": 1}}]}) == calls("f", a=1)
    assert action_of({"answer": "hi"}) == says("hi")
    assert action_of({"role": "assistant", "content": "hi"}) == says("hi")
    broken = AIMessage("", invalid_tool_calls=[{"name": "f", "args": "{", "id": "1", "error": ""}])
    assert action_of(broken).calls[0].malformed == "{"
    assert action_of(AIMessage("")).kind == "nothing"


@pytest.mark.parametrize(
    "value", [None, 3, HumanMessage("hi"), {"calls": "f"}, {"answer": 3}, {"calls": [{"arguments": {}}]}]
)
def test_what_is_no_action_is_said_to_be_none(value):
    with pytest.raises(InputError):
        action_of(value)


# --- parameters


@pytest.mark.parametrize(
    ("truth", "predicted"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1200.5}, {"a": 1.2005e3}),
        ({"a": " caf\u00e9"}, {"a": "cafe\u0301\n"}),
        ({"a": [1, {"b": "x"}]}, {"a": [1.0, {"b": "x "}]}),
        ({"a": 1, "b": None}, {"a": 1}),
        ({"a": {"b": None}}, {"a": {}}),
        ({"a": float("nan")}, {"a": float("nan")}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
    ],
)
def test_the_same_parameters_however_they_are_written(truth, predicted):
    assert same_value(truth, predicted)
    assert same_value(predicted, truth)


@pytest.mark.parametrize(
    ("truth", "predicted"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": False}),
        ({"a": 0}, {"a": None}),
        ({"a": ""}, {}),
        ({"a": False}, {}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": []}, {"a": {}}),
        ({"a": [None]}, {"a": []}),
        ({"a": "Smith"}, {"a": "smith"}),
        ({"a": "007"}, {"a": "7"}),
        ({"a": "1,200"}, {"a": "1200"}),
        ({"a": 2**53}, {"a": 2**53 + 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": "2024-05-01"}, {"a": "1 May 2024"}),
    ],
)
def test_other_parameters(truth, predicted):
    assert not same_value(truth, predicted)
    assert not same_value(predicted, truth)


# --- one step


@pytest.mark.parametrize(
    ("truth", "predicted", "matched", "confusion"),
    [
        (says("Late."), says("It is late."), True, None),
        (says("Late."), calls("get"), False, "called_instead_of_answering"),
        (says("Late."), Action(calls("get").calls, "Late."), False, "called_instead_of_answering"),
        (says("Late."), Action(), False, "no_action"),
        (says("Late."), says("  "), False, "no_action"),
        (calls("get"), says("Late."), False, "answered_instead_of_calling"),
        (calls("get"), calls("cancel"), False, "wrong_tool"),
        (calls("get", "get"), calls("get"), False, "wrong_tool"),
        (calls("get"), calls("get", "get"), False, "wrong_tool"),
        (calls("get", "cancel"), calls("cancel", "get"), True, None),
        (calls("get", id=1), calls("get", id=2), True, "wrong_parameters"),
        (calls("get", id=1), calls("get", id=1.0), True, None),
        (Action(calls("get").calls, "Let me see."), calls("get"), True, None),
        (calls("get"), Action(), False, "no_action"),
        (calls("get"), None, False, "error"),
    ],
)
def test_how_a_step_went_wrong(truth, predicted, matched, confusion):
    outcome = compare(truth, predicted)
    assert (outcome.matched, outcome.confusion) == (matched, confusion)
    assert (outcome.error is not None) == (predicted is None)


def test_parallel_calls_pair_up_by_tool_and_parameters_in_any_order():
    truth = Action((Call("get", {"id": 1}), Call("get", {"id": 2}), Call("ping", {})))
    swapped = Action((Call("ping", {}), Call("get", {"id": 2}), Call("get", {"id": 1})))
    twice = Action((Call("ping", {}), Call("get", {"id": 1}), Call("get", {"id": 1})))
    assert compare(truth, swapped).parameters is True
    assert compare(truth, twice).parameters is False


def test_parameters_are_judged_only_where_the_tool_is_right():
    assert compare(calls("get", id=1), calls("cancel", id=1)).parameters is None
    assert compare(says("a"), says("a")).parameters is None


def test_malformed_arguments_match_nothing_and_a_malformed_truth_is_not_judged():
    malformed = Action((Call("get", {}, None, "{"),))
    assert compare(calls("get"), malformed).parameters is False
    assert compare(calls("get"), malformed).matched
    assert compare(malformed, calls("get")).parameters is None
    assert compare(malformed, calls("get")).confusion is None


def test_similarity_stands_where_both_are_answers():
    assert compare(says("It is late"), says("it is late!")).similarity == 1
    assert compare(says("It is late"), calls("get")).similarity is None
    assert compare(says("a"), says("b"), similarity=lambda a, b: 0.25).similarity == 0.25


def test_a_true_action_that_is_nothing_cannot_be_compared_with():
    with pytest.raises(InputError, match="neither words nor calls"):
        compare(Action(), says("hi"))


# --- the figures


def test_each_figure_is_the_one_worked_out_by_hand():
    pairs = [
        (says("one two three four"), says("one two three four")),  # right, similarity 1
        (says("one two three four"), says("one two five six")),  # right; 2 · 2 / (4 + 4) = 0.5
        (says("yes"), calls("a")),  # a call instead of the answer
        (says("yes"), None),  # an error
        (calls("a", x=1), calls("a", x=1)),  # right
        (calls("a", x=1), calls("a", x=2)),  # right, other parameters
        (calls("a", "a", "b"), calls("a", "b", "b")),  # wrong tools; a and b are correct calls
        (calls("b"), says("no")),  # an answer instead of the call
        (calls("b"), Action()),  # nothing
        (calls("b"), calls("c")),  # wrong tool
    ]
    outcomes = [compare(*pair, id="talk", step=number) for number, pair in enumerate(pairs, 1)]
    figures = turn_metrics(outcomes)
    assert (figures.steps, figures.conversations, figures.errors) == (10, 1, 1)
    # Right actions: steps 1, 2, 5, 6.
    assert (figures.action_recall.count, figures.action_recall.n, figures.action_recall.rate) == (4, 10, 0.4)
    # True calls 1 + 1 + 3 + 1 + 1 + 1 = 8; predicted 1 (step 3) + 1 + 1 + 3 + 1 (step 10) = 7; correct 1 + 1 + 2 = 4.
    tools = figures.tool_calls
    assert (tools.correct, tools.predicted, tools.actual) == (4, 7, 8)
    assert (tools.precision, tools.recall, tools.f1) == (4 / 7, 4 / 8, 8 / 15)
    # True answers: steps 1 to 4; predicted: 1, 2 and 8; correct: 1 and 2.
    answers = figures.final_answers
    assert (answers.correct, answers.predicted, answers.actual) == (2, 3, 4)
    assert (answers.precision, answers.recall, answers.f1) == (2 / 3, 2 / 4, 4 / 7)
    # Steps with the right tools: 5 and 6; all parameters right: 5.
    assert (figures.parameter_match.count, figures.parameter_match.n, figures.parameter_match.rate) == (
        1,
        2,
        0.5,
    )
    assert (figures.similarity.n, figures.similarity.mean) == (2, 0.75)
    assert figures.confusion == {
        "called_instead_of_answering": 1,
        "answered_instead_of_calling": 1,
        "wrong_tool": 2,
        "wrong_parameters": 1,
        "no_action": 1,
        "error": 1,
        "no_prediction": 0,
    }
    assert {(each.truth, each.predicted): each.count for each in figures.mistaken} == {
        ("final answer", "a"): 1,
        ("final answer", "error"): 1,
        ("a + a + b", "a + b + b"): 1,
        ("b", "final answer"): 1,
        ("b", "nothing"): 1,
        ("b", "c"): 1,
    }


def test_a_figure_over_nothing_is_none_and_not_zero():
    figures = turn_metrics([])
    assert figures.action_recall.rate is None
    assert figures.tool_calls.precision is figures.tool_calls.recall is figures.tool_calls.f1 is None
    assert figures.final_answers.f1 is figures.parameter_match.rate is figures.similarity.mean is None
    only_answers = turn_metrics([compare(says("hi"), says("hi"))])
    assert only_answers.tool_calls.f1 is None
    assert only_answers.parameter_match.rate is None
    missed = turn_metrics([compare(calls("a"), says("hi"))]).tool_calls
    assert (missed.precision, missed.recall, missed.f1) == (None, 0, 0)


def test_figures_and_outcomes_survive_json():
    outcome = compare(calls("a", x=[1, {"y": None}]), None, error="boom \ud800")
    assert StepOutcome.model_validate_json(outcome.model_dump_json()) == outcome
    figures = turn_metrics([outcome])
    assert TurnMetrics.model_validate_json(figures.model_dump_json()) == figures


texts = st.text("ab c.\u00e9", max_size=8)
values = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats()
    | texts
    | st.lists(st.integers(0, 2), max_size=2)
)
some_calls = st.builds(
    Call,
    st.sampled_from(["f", "g"]),
    st.dictionaries(st.sampled_from("xyz"), values, max_size=3),
    st.none(),
    st.none() | st.just("{"),
)
actions = st.builds(Action, st.lists(some_calls, max_size=3).map(tuple), texts)
truths = actions.filter(lambda action: action.kind != "nothing")


@given(st.lists(st.tuples(truths, st.none() | actions), max_size=6))
@settings(max_examples=60)
def test_every_figure_is_between_0_and_1_and_the_counts_add_up(pairs):
    outcomes = [compare(truth, predicted, step=number) for number, (truth, predicted) in enumerate(pairs, 1)]
    figures = turn_metrics(outcomes)
    for measured in (figures.tool_calls, figures.final_answers):
        assert measured.correct <= min(measured.predicted, measured.actual)
        assert all(
            0 <= rate <= 1 for rate in (measured.precision, measured.recall, measured.f1) if rate is not None
        )
    for rate in (figures.action_recall.rate, figures.parameter_match.rate, figures.similarity.mean):
        assert rate is None or 0 <= rate <= 1
    wrong = sum(figures.confusion.values()) - figures.confusion["wrong_parameters"]
    assert figures.action_recall.count + wrong == figures.steps == len(pairs)
    assert sum(each.count for each in figures.mistaken) == wrong


@given(st.lists(truths, min_size=1, max_size=6))
@settings(max_examples=60)
def test_the_truth_itself_as_prediction_gives_all_1(actions):
    figures = turn_metrics([compare(truth, truth) for truth in actions])
    rates = [
        figures.action_recall.rate,
        figures.tool_calls.f1,
        figures.final_answers.f1,
        figures.similarity.mean,
        figures.parameter_match.rate,
    ]
    assert set(rates) <= {1, None}
    assert figures.action_recall.rate == 1
    assert not any(figures.confusion.values())


def test_a_call_after_a_result_is_another_step_even_where_the_record_names_none():
    transcript = conversation(user("both"), called("a"), called("b"))
    assert [step.truth.label for step in steps_of(transcript)] == ["a", "b"]


def test_results_do_not_count_as_actions():
    transcript = Transcript((Message("user", "hi"), Call("a", {}), Result(2, "a", "ok")))
    assert len(list(steps_of(transcript))) == 1
