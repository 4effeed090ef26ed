"""The channels of the state: plain JSON, each record with its agent, read and written by that agent alone."""

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

QUESTION = {"messages": [HumanMessage("Where is A-1?", id="h1")]}


def get_order(order_id: str) -> str:
    """Look up an order."""
    return f"{order_id} is late"


def make_desk(name: str = "Desk") -> Agent:
    guideline = Guideline("the customer asks about an order", "look it up", tools=[get_order])
    return Agent(name, "You help.", [guideline])


def make_match(agent: str, **fields: Any) -> dict[str, Any]:
    return {"agent": agent, "turn": "h1", "guideline": "G1", "active": True, "matched": True, **fields}


def test_the_channels_of_a_turn_are_plain_json_with_agent_and_turn():
    model = brain({"G1": 9}, {"get_order": {"order_id": "A-1"}}, "It is late.")
    state = create_guided_agent(model, make_desk()).invoke(QUESTION)
    channels = {name: value for name, value in state.items() if name != "messages"}
    assert json.loads(json.dumps(channels)) == channels
    assert state["guideline_matches"][0]["active"] is True
    for records in channels.values():
        assert all((record["agent"], record["turn"]) == ("Desk", "h1") for record in records)


def test_servers_see_the_fields_of_every_record():
    schema = create_guided_agent("offline", make_desk()).get_output_jsonschema()
    items = schema["properties"]["guideline_matches"]["items"]
    record = schema["$defs"][items["$ref"].rsplit("/", 1)[-1]] if "$ref" in items else items
    assert {"agent", "turn", "guideline", "active", "score"} <= record["properties"].keys()


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
@pytest.mark.parametrize(
    ("channels", "problem"),
    [
        ({"guideline_matches": ["G1"]}, "'guideline_matches' must hold a list of records as plain JSON"),
        ({"guideline_matches": [{"guideline": "G1"}]}, "plain JSON, each with its agent"),
        (
            {"guideline_matches": [make_match("Desk", active="perhaps")]},
            "of the form GuidelineMatch: active: ",
        ),
        ({"variables": ["x"]}, "'variables' must hold a dict"),
    ],
)
def test_a_channel_of_another_form_is_a_clear_error(channels, problem):
    with pytest.raises(errors.StateError, match=problem):
        MessageReviser(brain(), make_desk()).invoke({**QUESTION, **channels})


def test_matches_of_a_message_do_not_count_for_other_words_under_its_id():
    model = brain({"G1": lambda asked: 9 if "A-1" in asked.lines[0]["text"] else 2})
    app = create_guided_agent(model, make_desk(), mode="direct", checkpointer=MemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    for text, is_active in (("Where is A-1?", True), ("Tell me a joke.", False)):
        state = app.invoke({"messages": [HumanMessage(text, id="h1")]}, thread)
        assert [match["active"] for match in state["guideline_matches"]] == [is_active]


def test_turns_are_told_apart_even_if_messages_have_no_ids():
    model = brain({"G1": lambda asked: 9 if "A-1" in asked.lines[-1]["text"] else 2})
    matcher = GuidelineMatcher(model, make_desk(), mode="direct")
    first = matcher.invoke({"messages": [("user", "Where is A-1?")]})
    assert matcher.invoke({"messages": [("user", "Where is A-1?")], **first}) == first
    second = matcher.invoke({"messages": [("user", "Tell me a joke.")], **first})
    assert [update["guideline_matches"][0]["active"] for update in (first, second)] == [True, False]


def test_records_of_another_agent_stay_unchanged():
    other = {"agent": "Other", "of": "another version"}
    update = GuidelineMatcher(brain({"G1": 9}), make_desk()).invoke(
        {**QUESTION, "guideline_matches": [other]}
    )
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
def test_a_thread_is_stored_and_loaded_without_warnings(strict, monkeypatch):
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", strict)
    run = subprocess.run([sys.executable, "-c", SILENT], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("Desk\n", "")
