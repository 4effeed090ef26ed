"""What the channels hold: plain JSON, each record with its agent, read and written by that agent alone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent, errors
from arq_graph.nodes import GuidelineMatcher, MessageReviser
from tests.brain import brain

SAID = {"messages": [HumanMessage("Where is A-1?", id="h1")]}


def get_order(order_id: str) -> str:
    """Look up an order."""
    return f"{order_id} is late"


def desk(name: str) -> Agent:
    rule = Guideline("the customer asks about an order", "look it up", tools=[get_order])
    return Agent(name, "You help.", [rule])


def match(agent: str, **fields: Any) -> dict[str, Any]:
    return {"agent": agent, "turn": "h1", "guideline": "G1", "active": True, "matched": True, **fields}


def test_the_channels_of_a_turn_are_plain_json_that_names_its_agent():
    model = brain({"G1": 9}, {"get_order": {"order_id": "A-1"}}, "It is late.")
    state = create_guided_agent(model, desk("Desk")).invoke(SAID)
    kept = {name: value for name, value in state.items() if name != "messages"}
    assert json.loads(json.dumps(kept)) == kept
    assert state["guideline_matches"][0]["active"] is True
    assert {record["agent"] for records in kept.values() for record in records} == {"Desk"}
    assert {record["turn"] for records in kept.values() for record in records} == {"h1"}


def test_the_shape_of_every_record_is_shown_to_servers():
    schema = create_guided_agent("offline", desk("Desk")).get_output_jsonschema()
    item = schema["properties"]["guideline_matches"]["items"]
    shown = schema["$defs"][item["$ref"].rsplit("/", 1)[-1]] if "$ref" in item else item
    assert {"agent", "turn", "guideline", "active", "score"} <= shown["properties"].keys()


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
@pytest.mark.parametrize(
    ("channels", "problem"),
    [
        ({"guideline_matches": ["G1"]}, "'guideline_matches' must hold a list of records as plain JSON"),
        ({"guideline_matches": [{"guideline": "G1"}]}, "plain JSON, each with its agent"),
        ({"guideline_matches": [match("Desk", active="perhaps")]}, "of the form GuidelineMatch: active: "),
        ({"variables": ["x"]}, "'variables' must hold a dict"),
    ],
)
def test_a_channel_that_holds_something_else_is_a_clear_error(channels, problem):
    with pytest.raises(errors.StateError, match=problem):
        MessageReviser(brain(), desk("Desk")).invoke({**SAID, **channels})


def test_what_was_judged_of_a_message_does_not_count_for_other_words_under_its_id():
    model = brain({"G1": lambda asked: 9 if "A-1" in asked.lines[0]["text"] else 2})
    app = create_guided_agent(model, desk("Desk"), mode="direct", checkpointer=MemorySaver())
    for said, is_active in (("Where is A-1?", True), ("Tell me a joke.", False)):
        state = app.invoke({"messages": [HumanMessage(said, id="h1")]}, {"configurable": {"thread_id": "1"}})
        assert [each["active"] for each in state["guideline_matches"]] == [is_active]


def test_a_node_by_hand_tells_turns_apart_whose_messages_have_no_ids():
    model = brain({"G1": lambda asked: 9 if "A-1" in asked.lines[-1]["text"] else 2})
    matcher = GuidelineMatcher(model, desk("Desk"), mode="direct")
    kept = matcher.invoke({"messages": [("user", "Where is A-1?")]})
    assert matcher.invoke({"messages": [("user", "Where is A-1?")], **kept}) == kept
    now = matcher.invoke({"messages": [("user", "Tell me a joke.")], **kept})
    assert [update["guideline_matches"][0]["active"] for update in (kept, now)] == [True, False]


def test_records_of_another_agent_are_kept_and_none_of_its_business():
    other = {"agent": "Other", "of": "another version"}
    update = GuidelineMatcher(brain({"G1": 9}), desk("Desk")).invoke({**SAID, "guideline_matches": [other]})
    assert update["guideline_matches"][0] == other
    assert [record["agent"] for record in update["guideline_matches"]] == ["Other", "Desk"]


SILENT = """
import logging, sys, warnings
logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
warnings.simplefilter("always")
from langgraph.checkpoint.memory import InMemorySaver
from arq_graph import Agent, create_guided_agent
app = create_guided_agent("offline", Agent("Desk", "You help."), checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "1"}}
app.invoke({"messages": [("user", "Hello")]}, thread)
print(app.get_state(thread).values["revisions"][0]["agent"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_thread_is_kept_and_loaded_in_silence_strict_or_not(strict, monkeypatch):
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", strict)
    run = subprocess.run([sys.executable, "-c", SILENT], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("Desk\n", "")
