"""Single turns: the figures on cases worked out by hand, and the steps, actions and answers that they are made of."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph.milestones import Call, Message, Transcript, evaluate_turns, read_transcript
from tests.milestones.conversations import called, conversation, user


def calls(*tools, **arguments):
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "1"} for tool in tools])


def several(*numbers):
    return AIMessage("", tool_calls=[{"name": "get", "args": {"id": each}, "id": "1"} for each in numbers])


MALFORMED = AIMessage("", invalid_tool_calls=[{"name": "get", "args": "{", "id": "1", "error": ""}])


def talk_of(truths):
    """A conversation whose steps are these actions: a text is an answer, a message has calls."""
    events = [Message("user", "go")]
    for number, truth in enumerate(truths):
        if isinstance(truth, str):
            events.append(Message("agent", truth, number))
        else:
            events += [Call(each["name"], each["args"], step=number) for each in truth.tool_calls]
            events += [Call(each["name"], {}, malformed="{") for each in truth.invalid_tool_calls]
    return Transcript(tuple(events))


def compared(*pairs):
    """Steps of true and predicted actions, compared; an exception is raised by the agent."""
    predicted = iter([pair[1] for pair in pairs])

    def predict(_history):
        now = next(predicted)
        if isinstance(now, Exception):
            raise now
        return now

    return evaluate_turns(predict, talk_of([pair[0] for pair in pairs]))


def steps_of(transcript):
    return [(each.step, each.truth.label) for each in evaluate_turns(lambda _: "", transcript).outcomes]


def test_each_message_of_the_agent_is_a_step_the_calls_in_it_together():
    call = [{"id": str(n), "function": {"name": name, "arguments": "{}"}} for n, name in enumerate("bac")]
    transcript = read_transcript(
        [
            {"role": "assistant", "content": "Hello!"},  # nothing was asked for yet
            {"role": "user", "content": "both"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": call[:2]},
            {"role": "tool", "tool_call_id": "0", "content": "one"},
            {"role": "tool", "tool_call_id": "1", "content": "two"},
            {"role": "assistant", "content": "", "tool_calls": call[2:]},
            {"role": "tool", "tool_call_id": "2", "content": "three"},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": "Done."},
            {"role": "assistant", "content": "Anything else?"},
        ]
    )
    assert steps_of(transcript) == [(1, "a + b"), (2, "c"), (3, "final answer"), (4, "final answer")]
    events = (Message("user", "hi", 0), Call("a", {}, step=1), Call("b", {}, step=2))
    assert steps_of(Transcript(events)) == [(1, "a"), (2, "b")]
    assert steps_of(conversation(user("both"), called("a"), called("b"))) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (AIMessage("Let me see.", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "1"}]), "f"),
        (MALFORMED, "get"),
        (calls("g", "f", a=1), "f + g"),
        ({"role": "assistant", "content": "hi"}, "final answer"),
        (AIMessage(""), "nothing"),
        ("half \ud800", "final answer"),
        (HumanMessage("hi"), None),
        (None, None),
    ],
)
def test_an_agent_gives_a_message_or_a_text_and_else_it_is_an_error_of_that_step(value, label):
    first, second = compared(("hi", value), ("hi", "hi")).outcomes
    assert (first.predicted and first.predicted.label) == label
    assert ((first.error is not None), second.error) == (label is None, None)


@pytest.mark.parametrize(
    ("truth", "predicted", "matched", "parameters"),
    [
        ("Late.", AIMessage("Late.", tool_calls=calls("get").tool_calls), False, None),
        (calls("get", "get"), calls("get"), False, None),
        (calls("get"), calls("get", "get"), False, None),
        (calls("get", "cancel"), calls("cancel", "get"), True, True),
        (calls("get", id=1), calls("get", id="1"), True, False),
        (calls("get"), MALFORMED, True, False),
        (several(1, 2), several(2, 1), True, True),
        (several(1, 1), several(1, 2), True, False),
        (MALFORMED, calls("get"), True, None),
    ],
)
def test_which_actions_and_parameters_are_the_same(truth, predicted, matched, parameters):
    (outcome,) = compared((truth, predicted)).outcomes
    assert (outcome.matched, outcome.parameters) == (matched, parameters)


def shown(figure):
    """The fields of a figure, in their order."""
    return tuple(figure.model_dump().values())


def test_each_figure_is_the_one_worked_out_by_hand():
    figures = compared(
        ("one two three four", "one two three four"),  # right, similarity 1
        ("one two three four", "one two five six"),  # right; 2 · 2 / (4 + 4) = 0.5
        ("yes", calls("a")),  # a call instead of the answer
        ("yes", ValueError("boom")),  # an error
        (calls("a", x=1), calls("a", x=1)),  # right
        (calls("a", x=1), calls("a", x=2)),  # right, other parameters
        (calls("a", "a", "b"), calls("a", "b", "b")),  # wrong tools; a and b are correct calls
        (calls("b"), "no"),  # an answer instead of the call
        (calls("b"), ""),  # nothing
        (calls("b"), calls("c")),  # wrong tool
    ).metrics
    assert (figures.steps, figures.conversations, figures.errors) == (10, 1, 1)
    # Right actions: steps 1, 2, 5, 6. Steps with the right tools: 5 and 6; all parameters right: 5.
    assert shown(figures.action_recall) == (4, 10, 0.4)
    assert shown(figures.parameter_match) == (1, 2, 0.5)
    # True calls 1 + 1 + 3 + 1 + 1 + 1 = 8; predicted 1 (step 3) + 1 + 1 + 3 + 1 (step 10) = 7; correct 1 + 1 + 2 = 4.
    assert shown(figures.tool_calls) == (4, 7, 8, 4 / 7, 4 / 8, 8 / 15)
    # True answers: steps 1 to 4; predicted: 1, 2 and 8; correct: 1 and 2.
    assert shown(figures.final_answers) == (2, 3, 4, 2 / 3, 2 / 4, 4 / 7)
    assert (figures.similarity.n, figures.similarity.mean) == (2, 0.75)
    mistaken = ["a + a + b → a + b + b", "b → c", "b → final answer", "b → nothing"]
    mistaken += ["final answer → a", "final answer → error"]
    assert [f"{each.truth} → {each.predicted}" for each in figures.mistaken] == mistaken


def test_a_figure_over_nothing_is_none_and_not_zero():
    figures = compared(("hi", "hi")).metrics
    assert figures.tool_calls.precision is figures.tool_calls.f1 is figures.parameter_match.rate is None
    missed = compared((calls("a"), "hi")).metrics
    assert (missed.tool_calls.precision, missed.tool_calls.recall, missed.tool_calls.f1) == (None, 0, 0)
    assert missed.similarity.mean is None


@pytest.mark.parametrize(
    ("truth", "predicted", "score"),
    [
        ("Your order is late.", "your ORDER is late", 1),
        ("ﬁne", "fine", 1),
        ("东京天气", "东京", 2 / 3),
        (":)", ":(", 0),
        ("a b c d", "a d b c", 3 / 4),
        ("a b c", "c b a", 1 / 3),
        ("a a b", "a c", 2 / 5),
    ],
)
def test_answers_are_compared_by_their_words_in_their_order(truth, predicted, score):
    assert compared((truth, predicted)).outcomes[0].similarity == pytest.approx(score)
