"""What a user sees while a turn runs: typed events, LangGraph's own modes, and what tells calls apart in traces."""

import json

from langgraph.checkpoint.memory import MemorySaver

from arq_graph import create_guided_agent
from arq_graph.nodes import events
from tests.apps.desk import judge_late, make_desk, make_input, make_thread
from tests.brain import brain
from tests.order_tools import A1

ASKED = make_input("Where is A-1?")


def test_typed_events_describe_the_turn_as_it_runs(runs):
    model = brain(judge={"G1": 9, "G2": judge_late}, call={"get_order": A1}, reply="It is late.")
    app = create_guided_agent(model, make_desk(), mode="direct")
    stream = runs.stream(app, ASKED, stream_mode="custom")
    assert len({event.turn for event in stream}) == 1
    kinds = [event.type for event in stream]
    assert kinds[:3] == ["guidelines_matched", "tools_decided", "tool_called"]
    assert set(kinds[3:5]) == {"guidelines_matched", "tools_decided"}  # the re-match, side by side
    assert kinds[-2:] == ["reply_revised", "reply_sent"]
    assert [json.loads(event.model_dump_json())["type"] for event in stream] == kinds
    first, second = [event for event in stream if isinstance(event, events.GuidelinesMatched)]
    active = [[match.guideline for match in event.matches if match.active] for event in (first, second)]
    assert (active[0], set(first.judged)) == (["G1", "G4"], {"G1", "G2", "G3"})
    assert (active[1], second.judged) == (["G1", "G2", "G4"], ("G2",))
    decided, called, sent = stream[1], stream[2], stream[-1]
    assert [(decision.tool, decision.kind) for decision in decided.decisions] == [("get_order", "run")]
    assert (called.tool, called.arguments) == ("get_order", A1)
    assert (called.status, called.result) == ("success", "A-1 is late")
    assert (sent.content, sent.followed) == ("It is late.", ("G1", "G2", "G4"))
    assert sent.satisfied


def test_abandoning_a_call_does_not_stream_the_thread_anew():
    model = brain(judge={"G1": 9}, call={"get_order": A1})
    graph = create_guided_agent(
        model, make_desk(confirm={"get_order": "operator"}), checkpointer=MemorySaver()
    )
    graph.invoke(ASKED, make_thread())
    parts = graph.stream(make_input("Never mind"), make_thread(), stream_mode="messages")
    shown = [(message.type, message.text[:9]) for message, _ in parts if message.type != "remove"]
    assert shown == [("tool", "abandoned"), ("ai", "")]
