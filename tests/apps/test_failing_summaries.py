"""A summary that fails, or a part of it: the turn succeeds all the same, and a warning and an event say why."""

import asyncio
import warnings
from contextlib import suppress
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import MemorySaver
from langgraph.errors import GraphBubbleUp, NodeCancelledError

from arq_graph import (
    Agent,
    ScriptedChatModel,
    Summarizing,
    create_guided_agent,
    create_preact_agent,
    errors,
)
from arq_graph.middleware import GuidelineMiddleware
from arq_graph.nodes import HistorySummarizer
from arq_graph.nodes.events import HistorySummarized
from tests.apps.talk import DESK, FACTS, OPENING, THREAD, Talk, reply, summarise
from tests.brain import brain, get_prompts
from tests.order_tools import get_order

TOO_LONG = ValueError("context length exceeded")
FAILED = "'Desk' could not be summarised"
OPTIONS: dict[str, dict[str, Any]] = {
    "tools": {"strategy": "tools"},
    "eager": {"eager": True},
    "pre-act": {"strategy": "pre-act"},
    "react": {"strategy": "react"},
    "respact": {"strategy": "respact"},
    "without guidelines": {
        "create": create_preact_agent,
        "agent": Agent("Desk", "You help.", tools=[get_order]),
    },
}


def get_summary_events(talk: Talk) -> list[HistorySummarized]:
    return [event for event in talk.events if isinstance(event, HistorySummarized)]


@pytest.mark.parametrize(
    "failure",
    [
        errors.ModelUnavailableError("down"),
        "not a list of points",
        TOO_LONG,
        RuntimeError(),
        KeyError("choices"),
    ],
)
def test_a_turn_succeeds_without_its_summary_and_the_next_one_tries_again(failure):
    talk = Talk(points=failure)
    talk.say(*OPENING)
    with pytest.warns(UserWarning, match="'Desk' could not be summarised"):
        state = talk.chat(12)
    assert state["messages"][-1].type == "ai"
    assert not state.get("summaries")
    assert get_summary_events(talk)[-1].failure
    assert talk.reply_prompts[-1].lines[0]["values_mentioned"] == {"M1": ["ORD-77"]}
    talk.points = summarise
    talk.chat(2)
    assert get_summary_events(talk)[-1].points
    assert all(fact in talk.reply_prompts[-1].tail for fact in FACTS)


def test_points_that_nothing_in_the_history_bears_out_are_asked_again_once_and_left_out():
    points = [
        {"text": "The order is ORD-78.", "sources": ["M1"]},
        {"text": "They want it blue.", "sources": ["M99"]},
        {"text": "They want it red.", "sources": []},
        {"text": "They can't have nuts.", "sources": ["M3"]},
    ]
    talk = Talk(points=points)
    talk.say(*OPENING)
    state = talk.chat(9)
    first, second = get_prompts(talk.model, "summary")[:2]
    assert not first.complaint
    assert '"ORD-78" stands in none of its sources' in second.complaint
    assert [point["text"] for point in state["summaries"][0]["points"]] == ["They can't have nuts."]
    dropped = get_summary_events(talk)[0].dropped
    assert len(dropped) == 3
    assert dropped[0].startswith(
        'the point "The order is ORD-78." is dropped: "ORD-78" stands in none of its'
    )


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_whatever_the_models_client_raises_for_a_summary_every_turn_is_finished(runs, options):
    talk = Talk(runs, points=TOO_LONG, **options)
    talk.say(*OPENING)
    with pytest.warns(UserWarning, match=f"{FAILED}.*: ValueError: context length exceeded"):
        for _ in range(9):
            assert talk.chat(1)["messages"][-1].type == "ai"
            assert talk.app.get_state(THREAD).next == ()
    assert len(get_prompts(talk.model, "summary")) > 1


def test_so_is_every_turn_with_the_middleware(runs):
    model = brain({"G1": 9}, reply=reply, summary=TOO_LONG)
    middleware = GuidelineMiddleware(model, DESK, mode="direct", history_tokens=600)
    draft = ScriptedChatModel(lambda _: "A draft.")
    app = create_agent(draft, middleware=[middleware], checkpointer=MemorySaver())
    with pytest.warns(UserWarning, match=FAILED):
        for text in (*OPENING, *["word " * 20] * 12):
            state = runs.invoke(app, {"messages": [("user", text)]}, THREAD)
    assert len(state["messages"]) == 30
    assert app.get_state(THREAD).next == ()


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, GraphBubbleUp])
def test_what_ends_the_run_itself_is_no_failed_summary(error):
    talk = Talk(points=error())
    talk.say(*OPENING)
    with warnings.catch_warnings(), suppress(error, NodeCancelledError):
        warnings.simplefilter("error")
        talk.chat(12)
    assert not get_summary_events(talk)
    assert talk.app.get_state(THREAD).next == ("summarize",)


def test_the_warning_speaks_of_no_object_that_its_reader_has_not():
    talk = Talk(points="not a list of points")
    talk.say(*OPENING)
    with pytest.warns(UserWarning, match="no valid answer \\(attempts: 3\\)") as caught:
        talk.chat(12)
    assert not any(".attempts" in str(warning.message) for warning in caught)
    assert ".attempts" not in get_summary_events(talk)[-1].failure


def summarise_one(said: str, point: str) -> list[str]:
    """Return the texts of the points if the model sums up with one point what was said first."""
    talk = Talk(
        points=[{"text": "They have a question.", "sources": ["M1"]}, {"text": point, "sources": ["M1"]}]
    )
    talk.say(said)
    texts = [stored["text"] for stored in talk.chat(9)["summaries"][0]["points"]]
    return texts[1:]


@pytest.mark.parametrize(
    ("said", "point"),
    [
        ('Is there a poster of 24"x36"?', 'They want a poster of 24"x36".'),
        ("Does A<1>B fit?", "They ask if A<1>B fits."),
        (r"Where is C:\temp\1.txt?", r"They miss C:\temp\1.txt."),
        ("Where is ORD-77?", "ORD-77's parcel is late."),
        ("Where is ORD-77?", "They wait for ORD\u201177."),
        ("Are you there from 09:00 to 13:00?", "They can come 09:00–13:00."),
        ("Are you there 09:00‒13:00?", "They can come from 09:00 to 13:00."),
        ("Are you there 09:00−13:00?", "They can come 09:00～13:00."),
        ("我的订单是ORD-77。", "客户的订单ORD-77迟到了。"),
        ("제 주문은 ORD-77이에요.", "고객의 주문은 ORD-77입니다."),
        ("คำสั่งซื้อที่1001ครับ", "สั่งซื้อเลขที่1001แล้ว"),
    ],
)
def test_a_point_may_have_each_value_of_its_source_whatever_is_around_it(said, point):
    assert summarise_one(said, point) == [point]


@pytest.mark.parametrize(
    ("said", "point"), [("Order ORD-77", "It is order ORD-7."), ("I paid 1000", "It was 100.")]
)
def test_a_part_of_a_value_is_another_value(said, point):
    assert summarise_one(said, point) == []


def test_a_point_that_is_dropped_takes_no_room():
    long = {"text": f"ORD-99 {'x' * 280}", "sources": ["M1"]}
    talk = Talk(points=[long, {"text": "They can't have nuts.", "sources": ["M1"]}])
    state = talk.chat(12)
    assert [point["text"] for point in state["summaries"][0]["points"]] == ["They can't have nuts."]


def test_a_template_that_fails_ends_no_turn():
    template = "{% block head %}{% endblock %}{% block tail %}{{ nothing }}{% endblock %}"
    talk = Talk(summary=Summarizing(template=template))
    with pytest.warns(UserWarning, match=f"{FAILED}.*'nothing' is undefined"):
        talk.chat(12)
    assert talk.app.get_state(THREAD).next == ()


def test_a_summary_of_an_earlier_specification_is_stored_once_if_no_new_one_can_be_made():
    talk = Talk()
    talk.say(*OPENING)
    stored = talk.chat(9)["summaries"]
    edited = Agent("Desk", "You help gladly.")
    node = HistorySummarizer(brain(summary=TOO_LONG), edited, mode="direct", history_tokens=100)
    with pytest.warns(UserWarning, match=FAILED):
        update = node.invoke(talk.app.get_state(THREAD).values)
    assert update.get("summaries", stored) == stored


def test_points_that_there_is_no_room_for_are_named_in_the_event():
    talk = Talk(points=[{"text": "x" * 90, "sources": ["M1"]}] * 9)
    talk.chat(12)
    event = get_summary_events(talk)[0]
    assert (len(event.points), len(event.dropped)) == (3, 6)
    assert event.dropped[0].endswith("is dropped: at most 300 characters of points are shown")


# Settings


STEPS = {"matcher": "offline", "strategy": "offline", "message": "offline"}
NEEDED = "one for each of matcher, strategy, message; one for summary is optional"


@pytest.mark.parametrize(
    ("models", "problem"),
    [
        (STEPS | {"sumary": "offline"}, "there is no step 'sumary'; did you mean `summary`"),
        (
            {"matcher": "offline", "message": "offline", "summary": "offline"},
            "no model is given for strategy",
        ),
        (
            {"matcher": "offline", "mesage": "offline"},
            "there is no step 'mesage'; did you mean `message`\\?, and no model is given for strategy and message",
        ),
    ],
)
def test_models_by_step_are_checked_by_name(models, problem):
    with pytest.raises(errors.InputError, match=problem) as raised:
        create_guided_agent(models, DESK)
    assert NEEDED in str(raised.value)


@pytest.mark.parametrize("value", [True, "gpt"])
@pytest.mark.parametrize("name", ["summary", "matching", "revising"])
def test_settings_of_another_type_are_refused(name, value):
    kind = type(value).__name__
    for create in (create_guided_agent, GuidelineMiddleware):
        with pytest.raises(errors.InputError, match=f"{name} is a {kind}: give settings such as"):
            create("offline", DESK, **{name: value})
    if name == "summary":
        with pytest.raises(errors.InputError, match="Summarizing\\(timeout=20\\), or None for no summary"):
            create_preact_agent("offline", [get_order], summary=value)
