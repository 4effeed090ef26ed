"""Single turns: the figures on cases worked out by hand, and their steps, actions and answers."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph.milestones import Call, Message, Transcript, evaluate_turns, read_transcript
from tests.milestones.conversations import called, conversation, user


def calls(*tools, **arguments):
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "1"} for tool in tools])


def get_calls(*ids):
    return AIMessage("", tool_calls=[{"name": "get", "args": {"id": id}, "id": "1"} for id in ids])


MALFORMED = AIMessage("", invalid_tool_calls=[{"name": "get", "args": "{", "id": "1", "error": ""}])


def make_transcript(actions):
    """Return a conversation with these steps: a text is an answer, a message has calls."""
    events = [Message("user", "go")]
    for number, action in enumerate(actions):
        if isinstance(action, str):
            events.append(Message("agent", action, number))
            continue
        for call in action.tool_calls:
            events.append(Call(call["name"], call["args"], step=number))
        for call in action.invalid_tool_calls:
            events.append(Call(call["name"], {}, malformed="{"))
    return Transcript(tuple(events))


def compare_actions(*pairs):
    """Evaluate steps of true and predicted actions; an exception is raised by the agent."""
    true_actions, predicted_actions = zip(*pairs, strict=True)
    remaining = iter(predicted_actions)

    def predict(_history):
        action = next(remaining)
        if isinstance(action, Exception):
            raise action
        return action

    return evaluate_turns(predict, make_transcript(true_actions))


def list_steps(transcript):
    outcomes = evaluate_turns(lambda _: "", transcript).outcomes
    return [(outcome.step, outcome.truth.label) for outcome in outcomes]


def test_each_message_of_the_agent_is_a_step_with_all_its_calls():
    tool_calls = []
    for number, name in enumerate("bac"):
        tool_calls.append({"id": str(number), "function": {"name": name, "arguments": "{}"}})
    transcript = read_transcript(
        [
            {"role": "assistant", "content": "Hello!"},  # nothing was asked for yet
            {"role": "user", "content": "both"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": tool_calls[:2]},
            {"role": "tool", "tool_call_id": "0", "content": "one"},
            {"role": "tool", "tool_call_id": "1", "content": "two"},
            {"role": "assistant", "content": "", "tool_calls": tool_calls[2:]},
            {"role": "tool", "tool_call_id": "2", "content": "three"},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": "Done."},
            {"role": "assistant", "content": "Anything else?"},
        ]
    )
    assert list_steps(transcript) == [(1, "a + b"), (2, "c"), (3, "final answer"), (4, "final answer")]


def test_calls_of_different_messages_are_different_steps():
    events = (Message("user", "hi", 0), Call("a", {}, step=1), Call("b", {}, step=2))
    assert list_steps(Transcript(events)) == [(1, "a"), (2, "b")]
    assert list_steps(conversation(user("both"), called("a"), called("b"))) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("output", "label"),
    [
        (AIMessage("Let me see.", tool_calls=calls("f").tool_calls), "f"),
        (MALFORMED, "get"),
        (calls("g", "f", a=1), "f + g"),
        ({"role": "assistant", "content": "hi"}, "final answer"),
        (AIMessage(""), "nothing"),
        ("half \ud800", "final answer"),
        (HumanMessage("hi"), None),
        (None, None),
    ],
)
def test_an_output_is_an_agents_message_or_text_or_else_an_error_of_that_step(output, label):
    first, second = compare_actions(("hi", output), ("hi", "hi")).outcomes
    if label is None:
        assert (first.predicted, first.error is None) == (None, False)
    else:
        assert (first.predicted.label, first.error) == (label, None)
    assert second.error is None


@pytest.mark.parametrize(
    ("truth", "predicted", "matched", "parameters"),
    [
        ("Late.", AIMessage("Late.", tool_calls=calls("get").tool_calls), False, None),
        (calls("get", "get"), calls("get"), False, None),
        (calls("get"), calls("get", "get"), False, None),
        (calls("get", "cancel"), calls("cancel", "get"), True, True),
        (calls("get", id=1), calls("get", id="1"), True, False),
        (calls("get"), MALFORMED, True, False),
        (get_calls(1, 2), get_calls(2, 1), True, True),
        (get_calls(1, 1), get_calls(1, 2), True, False),
        (MALFORMED, calls("get"), True, None),
    ],
)
def test_actions_match_by_tools_and_parameters_in_any_order(truth, predicted, matched, parameters):
    (outcome,) = compare_actions((truth, predicted)).outcomes
    assert (outcome.matched, outcome.parameters) == (matched, parameters)


def test_each_figure_is_the_one_worked_out_by_hand():
    metrics = compare_actions(
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

    def list_values(figure):
        return tuple(figure.model_dump().values())

    assert (metrics.steps, metrics.conversations, metrics.errors) == (10, 1, 1)
    # Right actions: steps 1, 2, 5, 6. Steps with the right tools: 5 and 6; all parameters right: 5.
    assert list_values(metrics.action_recall) == (4, 10, 0.4)
    assert list_values(metrics.parameter_match) == (1, 2, 0.5)
    # True calls 1 + 1 + 3 + 1 + 1 + 1 = 8; predicted 1 (step 3) + 1 + 1 + 3 + 1 (step 10) = 7; correct 1 + 1 + 2 = 4.
    assert list_values(metrics.tool_calls) == (4, 7, 8, 4 / 7, 4 / 8, 8 / 15)
    # True answers: steps 1 to 4; predicted: 1, 2 and 8; correct: 1 and 2.
    assert list_values(metrics.final_answers) == (2, 3, 4, 2 / 3, 2 / 4, 4 / 7)
    assert (metrics.similarity.n, metrics.similarity.mean) == (2, 0.75)
    assert [f"{mistake.truth} → {mistake.predicted}" for mistake in metrics.mistaken] == [
        "a + a + b → a + b + b",
        "b → c",
        "b → final answer",
        "b → nothing",
        "final answer → a",
        "final answer → error",
    ]


def test_a_figure_over_nothing_is_none_and_not_zero():
    metrics = compare_actions(("hi", "hi")).metrics
    assert metrics.tool_calls.precision is metrics.tool_calls.f1 is metrics.parameter_match.rate is None
    metrics = compare_actions((calls("a"), "hi")).metrics
    assert (metrics.tool_calls.precision, metrics.tool_calls.recall, metrics.tool_calls.f1) == (None, 0, 0)
    assert metrics.similarity.mean is None


@pytest.mark.parametrize(
    ("truth", "predicted", "similarity"),
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
def test_answers_are_compared_by_their_words_in_order(truth, predicted, similarity):
    (outcome,) = compare_actions((truth, predicted)).outcomes
    assert outcome.similarity == pytest.approx(similarity)
