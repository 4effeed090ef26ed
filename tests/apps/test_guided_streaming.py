"""What a user sees while a turn runs: typed events, LangGraph's own modes, and no token of a structured answer."""

from __future__ import annotations

import json

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import create_guided_agent, track_usage
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes.events import (
    Event,
    GuidelinesMatched,
    ReplyRevised,
    ReplySent,
    ToolCalled,
    ToolsDecided,
)
from tests.apps.desk import desk, late, says, thread
from tests.brain import brain

ORDER = {"order_id": "A-1"}


def app(**options):
    model = brain(judge={"G1": 9, "G2": late}, call={"get_order": ORDER}, reply="It is late.", **options)
    return create_guided_agent(model, desk())


def test_typed_events_tell_the_turn_as_it_runs(runs):
    events = runs.stream(app(), says("Where is A-1?"), stream_mode="custom")
    assert all(isinstance(event, Event) for event in events)
    assert len({event.turn for event in events}) == 1
    kinds = [type(event) for event in events]
    assert kinds[:3] == [GuidelinesMatched, ToolsDecided, ToolCalled]
    assert set(kinds[3:5]) == {GuidelinesMatched, ToolsDecided}  # the second look, side by side
    assert kinds[-2:] == [ReplyRevised, ReplySent]


def test_events_say_what_was_matched_called_revised_and_sent(runs):
    events = runs.stream(app(), says("Where is A-1?"), stream_mode="custom")
    first, second = [event for event in events if isinstance(event, GuidelinesMatched)]
    assert first.active == ("G1", "G4")
    assert set(first.judged) == {"G1", "G2", "G3"}
    assert (second.active, second.judged, second.calls) == (("G1", "G2", "G4"), ("G2",), 1)
    (called,) = [event for event in events if isinstance(event, ToolCalled)]
    assert (called.tool, called.arguments, called.status, called.result) == (
        "get_order",
        ORDER,
        "success",
        "A-1 is late",
    )
    decided = next(event for event in events if isinstance(event, ToolsDecided))
    assert [(d.tool, d.kind) for d in decided.decisions] == [("get_order", "run")]
    sent = events[-1]
    assert (sent.content, sent.followed, sent.satisfied, sent.calls) == (
        "It is late.",
        ("G1", "G2", "G4"),
        True,
        1,
    )


def test_events_can_be_written_as_json(runs):
    for event in runs.stream(app(), says("Where is A-1?"), stream_mode="custom"):
        assert json.loads(event.model_dump_json())["type"] == event.type


def test_usage_in_the_events_adds_up_to_the_turn_s(runs):
    with track_usage() as used:
        events = runs.stream(app(), says("Where is A-1?"), stream_mode="custom")
    counted = [event for event in events if getattr(event, "usage", None)]
    assert sum(event.calls for event in counted) == used.calls
    assert sum(event.usage["total_tokens"] for event in counted) == used.total["total_tokens"]
    assert set(used.by_module) == {"matcher", "tools", "message"}


@pytest.mark.parametrize("mode", ["updates", "values", "debug", "tasks", "checkpoints"])
def test_langgraph_s_own_modes_work_beside_it(runs, mode):
    parts = runs.stream(app(), says("Where is A-1?"), stream_mode=[mode, "custom"])
    assert {"custom"} < {name for name, _ in parts} | {mode}


def test_nothing_of_a_structured_answer_leaks_into_the_message_stream(runs):
    parts = runs.stream(app(), says("Where is A-1?"), stream_mode="messages")
    assert [message.type for message, _ in parts] == ["ai", "tool", "ai"]
    assert [message.text for message, _ in parts] == ["", "A-1 is late", "It is late."]


def test_no_call_switches_the_client_to_streaming(runs):
    class Streaming(ScriptedChatModel):
        def _stream(self, *args, **kwargs):
            raise AssertionError("a structured answer was streamed")

    model = Streaming(brain(reply="Hello")._answer)
    parts = runs.stream(create_guided_agent(model, desk()), says("Hi"), stream_mode="messages")
    assert [message.text for message, _ in parts] == ["Hello"]


def test_abandoning_a_call_does_not_stream_the_thread_anew(runs):
    model = brain(judge={"G1": 9}, call={"get_order": ORDER})
    graph = create_guided_agent(model, desk(confirm={"get_order": "operator"}), checkpointer=MemorySaver())
    runs.invoke(graph, says("Where is A-1?"), thread())
    parts = runs.stream(graph, says("Never mind"), thread(), stream_mode="messages")
    assert [(m.type, m.text[:9]) for m, _ in parts if m.type != "remove"] == [
        ("tool", "abandoned"),
        ("ai", ""),
    ]


def test_every_call_names_its_module_and_batch_for_tracing(runs):
    model = brain(judge={"G1": 9}, call={"get_order": ORDER})
    runs.invoke(create_guided_agent(model, desk()), says("Where is A-1?"), {"tags": ["mine"]})
    labels = {(call.metadata["arq_module"], call.metadata["arq_batch"]) for call in model.calls}
    assert labels == {
        ("matcher", "batch-1"),
        ("matcher", "batch-2"),
        ("tools", "get_order"),
        ("message", ""),
    }


def test_several_conversations_can_be_run_at_once(runs):
    texts = [f"Where is A-{n}?" for n in range(3)]
    states = runs.batch(app(), [says(text) for text in texts])
    assert [state["messages"][0].content for state in states] == texts
    assert all(state["messages"][-1].content == "It is late." for state in states)
