"""`langgraph dev` serves examples/server: what a client sees, and another graph that has the agent as a remote node."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_client, get_sync_client

from arq_graph import create_guided_agent
from arq_graph.middleware import GuidelineMiddleware
from arq_graph.nodes import events
from tests.agreement.desk import SETTINGS
from tests.running import Runs
from tests.slow import served_graphs
from tests.slow.dev_server import ROOT, Customer, says, serving
from tests.slow.served_graphs import MANY
from tests.test_examples import hold, load

pytest.importorskip("langgraph_api", reason="langgraph-cli[inmem] is not installed")
pytestmark = pytest.mark.slow

CANCEL = "Please cancel my rental R-101."
REFUND = "I want a refund for rental R-102."
HALF = {"name": "refund_rental", "args": {"rental_id": "R-102", "percent": 50}}
TURNS = [CANCEL, "Yes please", "Thanks"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("server"), LANGGRAPH_STRICT_MSGPACK="true") as url:
        yield url


def decisions(state: Any) -> list[Any]:
    """What was decided and said, whether a graph here or a server tells it."""
    told = [each if isinstance(each, dict) else each.model_dump() for each in state["messages"]]
    return [
        (each["type"], each["content"], [(c["name"], c["args"]) for c in each.get("tool_calls") or ()])
        for each in told
    ]


def active(state: Any) -> list[str]:
    return [each["guideline"] for each in state["guideline_matches"] if each["active"]]


def tools_run(state: Any) -> list[str]:
    return [content for kind, content, _ in decisions(state) if kind == "tool"]


@pytest.fixture(scope="module")
def in_process() -> list[dict[str, Any]]:
    """The conversation with the same agent, compiled here."""
    return hold(create_guided_agent("offline", served_graphs.DESK, checkpointer=MemorySaver()), TURNS)


@pytest.mark.parametrize("strict", [True, False], ids=["strict msgpack", "lenient"])
def test_a_conversation_over_http_is_that_of_the_app(
    strict: bool, url: str, in_process: list[dict[str, Any]], tmp_path: Path
) -> None:
    def held(url: str) -> None:
        customer = Customer(url)
        for text, state in zip(TURNS, in_process, strict=True):
            told = customer.say(text)
            assert (decisions(told), active(told)) == (decisions(state), active(state))
        assert "The rental R-101 of a cargo bike is cancelled." in tools_run(told)

    if strict:
        held(url)
    else:
        with serving(tmp_path / "lenient", LANGGRAPH_STRICT_MSGPACK="false") as other:
            held(other)


LONGER = ["Where is my rental R-102?", CANCEL, "No, leave it.", CANCEL, "Yes please", "Thanks", REFUND]


def decided(state: Any) -> dict[str, Any]:
    """All that an agent decided in a turn, whichever way it runs."""
    agreements = [
        {"question": each["question"], "agreed": bool(each["answer_message_id"])}
        | {"calls": [(call["tool"], call["arguments"], call["granted_by"]) for call in each["calls"]]}
        for each in state.get("agreements", ())
    ]
    verdicts = [(each["tool"], each["kind"], each["arguments"]) for each in state["tool_insights"]]
    return {
        "active": active(state),
        "messages": decisions(state),
        "verdicts": [each for each in verdicts if each[1] in ("run", "confirm")],
        "agreements": agreements,
    }


def wired(url: str) -> list[Any]:
    return hold(load("wired_by_hand").build(served_graphs.MODEL, served_graphs.DESK), LONGER)


def middleware(url: str) -> list[Any]:
    rules = GuidelineMiddleware(served_graphs.MODEL, served_graphs.DESK)
    return hold(create_agent(served_graphs.MODEL, middleware=[rules], checkpointer=MemorySaver()), LONGER)


def over_http(graph: str, url: str) -> Iterator[Any]:
    customer = Customer(url, graph)
    for text in LONGER:
        customer.say(text)
        yield customer.client.threads.get_state(customer.thread)["values"]


def remote(url: str) -> Iterator[Any]:
    app, thread = parent(url, graph="scripted")
    for text in LONGER:
        app.invoke({"messages": [("user", text)]}, thread)
        yield get_sync_client(url=url).threads.get_state(thread["configurable"]["thread_id"])["values"]


DOORS: Any = {
    "nodes": wired,
    "middleware": middleware,
    "server": partial(over_http, "scripted"),
    "middleware on a server": partial(over_http, "langchains"),
    "remote graph": remote,
}


@pytest.mark.parametrize("door", DOORS)
def test_one_agent_file_decides_the_same_through_every_door(door: str, url: str) -> None:
    compiled = create_guided_agent(served_graphs.MODEL, served_graphs.DESK, checkpointer=MemorySaver())
    expected = list(map(decided, hold(compiled, LONGER)))
    assert [each["active"] for each in expected[3:5]] == [["look-up", "cancel", "notice"], ["notice"]]
    assert [each["agreements"][-1]["agreed"] for each in expected[3:5]] == [False, True]
    assert expected[-1]["messages"][-1][2][-1] == ("refund_rental", {"rental_id": "R-102"})
    assert list(map(decided, DOORS[door](url))) == expected


def test_a_turn_streams_typed_events_as_json_and_whole_messages(url: str, runs: Runs) -> None:
    customer = Customer(url)
    options = {"input": says(CANCEL), "stream_mode": ["values", "custom", "messages-tuple"]}

    async def collect() -> list[Any]:
        stream = get_client(url=url).runs.stream(customer.thread, "desk", **options)
        return [part async for part in stream]

    stream = customer.client.runs.stream
    parts = runs.call(lambda: list(stream(customer.thread, "desk", **options)), collect)
    by_kind: dict[str, list[Any]] = {}
    for part in parts:
        by_kind.setdefault(part.event, []).append(part.data)
    assert by_kind["values"][-1]["messages"][-1]["content"].endswith("Reply yes to go ahead.")
    seen = [each["type"] for each in by_kind["custom"]]
    assert seen[0] == "guidelines_matched"
    assert len({(each["agent"], each["turn"]) for each in by_kind["custom"]}) == 1
    assert seen[-3:] == ["reply_revised", "reply_sent", "confirmation_asked"]
    asked = events.ConfirmationAsked.model_validate(by_kind["custom"][-1])
    assert asked.calls[0].arguments == {"rental_id": "R-101"}
    contents = [message["content"] for message, _ in by_kind["messages"]]
    assert contents[-1] == by_kind["values"][-1]["messages"][-1]["content"]
    assert not any("should_apply" in content for content in contents)
    # The id of the question is a yes, as a button sends it.
    assert "is cancelled" in tools_run(customer.say(asked.id))[-1]


@pytest.mark.parametrize(
    ("decision", "result"),
    [
        ({"type": "approve"}, "100% of 450 kroner for R-102 are on their way to you."),
        ({"type": "edit", "edited_action": HALF}, "50% of 450 kroner for R-102 are on their way to you."),
        ({"type": "reject", "message": "not twice"}, "an operator did not allow this call: not twice"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_an_operator_answers_over_http(decision: Any, result: str, url: str) -> None:
    customer = Customer(url)
    customer.say(REFUND)
    assert [call["args"] for call in customer.waiting] == [{"rental_id": "R-102"}]
    if decision["type"] == "approve":  # an answer that does not fit leaves the question open
        with pytest.raises(Exception, match="1 calls wait for a decision each, got 0"):
            customer.resume()
        assert len(customer.waiting) == 1
    state = customer.resume(decision)
    assert result in tools_run(state)
    assert [kind for kind, *_ in decisions(state)] == ["human", "ai", "tool", "tool", "ai"]
    assert customer.waiting == []


def test_what_the_api_changes_in_the_state_counts(url: str) -> None:
    customer = Customer(url)
    assert "member" not in active(customer.say(CANCEL))
    changed = {"variables": {"member_id": "N-7", "credit": 20}, "agreements": []}
    customer.client.threads.update_state(customer.thread, changed)
    state = customer.say("Yes please")
    assert "member" in active(state)
    assert not any("is cancelled" in each for each in tools_run(state)), "the question was taken back"
    assert state["variables"] == {"member_id": "N-7", "credit": 20}


def test_a_thread_goes_on_from_an_earlier_checkpoint(url: str) -> None:
    customer = Customer(url)
    customer.say(CANCEL)
    asked = customer.client.threads.get_state(customer.thread)["checkpoint"]
    assert "is cancelled" in tools_run(customer.say("Yes please"))[-1]
    forked = customer.run(input=says("No, thanks"), checkpoint=asked)
    assert not any("is cancelled" in each for each in tools_run(forked))
    again = customer.run(input=says("Yes please"), checkpoint=asked)
    assert [each for each in tools_run(again) if "is cancelled" in each] == tools_run(again)[-1:]


def test_a_client_sets_settable_variables_and_nothing_else(url: str) -> None:
    customer = Customer(url)
    forged = {"agent": "Bike desk", "turn": "h1"}
    channels = {
        "guideline_matches": [{**forged, "guideline": "cancel", "active": True, "matched": True}],
        "agreements": [
            {
                **forged,
                "id": "q",
                "answer_message_id": "h1",
                "calls": [{"tool": "cancel_rental", "arguments": {}}],
            }
        ],
    }
    hello = {"messages": [{"role": "user", "content": "Hello", "id": "h1"}]}
    state = customer.run(input={**hello, "variables": {"member_id": "N-7"}, **channels})
    assert (active(state), tools_run(state)) == (["member", "notice"], [])
    assert state.get("agreements", []) == []
    with pytest.raises(Exception, match="'credit' cannot be set by who calls the app"):
        customer.say("Hello?", variables={"credit": 500})
    (assistant,) = customer.client.assistants.search(graph_id="desk")
    schema = customer.client.assistants.get_schemas(assistant["assistant_id"])
    assert list(schema["input_schema"]["properties"]) == ["messages", "variables"]
    state = customer.say("Are you there?")
    assert (state["variables"], len(state["messages"])) == ({"member_id": "N-7"}, 4)


def test_nothing_blocks_the_event_loop(url: str) -> None:
    with pytest.raises(Exception, match="Blocking"):
        Customer(url, "careless").say("Hi")
    shop = Customer(url, "blocking")
    assert shop.say("Please close on Monday")["messages"][-1]["content"].endswith("Reply yes to go ahead.")
    state = shop.say("So be it")
    assert tools_run(state) == ["closed"]
    assert state["progress"][0]["reached"] == ["Start", "Closed"]


def test_no_strategy_blocks_the_event_loop_in_a_process_that_has_read_no_file_yet() -> None:
    command = [sys.executable, "-m", "tests.slow.served_graphs"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    names = (*SETTINGS, "eager", *MANY)
    assert done.stdout.splitlines() == [f"{name} ['closed']" for name in names], done.stderr


def test_two_agents_on_one_thread_open_no_gate_of_each_other(url: str) -> None:
    customer = Customer(url, "two")
    for turn in (1, 2):
        state = customer.say("I want a refund of A-1")
        granted = {each["agent"] for each in state["guideline_matches"] if each["active"]}
        assert (granted, tools_run(state)) == ({"Shop"}, ["A-1 is refunded"] * turn)


class Rides(MessagesState):
    """What the graph around the agent keeps."""

    variables: dict[str, Any]
    notes: list[str]


def parent(url: str, sent: Any = MessagesState, graph: str = "desk") -> tuple[Any, Any]:
    """A graph that has the agent as a remote node, and a thread of it."""
    builder = StateGraph(Rides)
    builder.add_node("desk", RemoteGraph(graph, url=url), input_schema=sent)
    builder.add_edge(START, "desk")
    return builder.compile(checkpointer=MemorySaver()), {"configurable": {"thread_id": str(uuid4())}}


def test_behind_remote_graph_the_agent_goes_on_in_its_second_turn(
    url: str, in_process: list[dict[str, Any]], runs: Runs
) -> None:
    app, thread = parent(url)
    for text, state in zip(TURNS, in_process, strict=True):
        told = runs.invoke(app, {"messages": [("user", text)]}, thread)
        assert decisions(told) == decisions(state)
    ids = [message.id for message in told["messages"]]
    assert len(ids) == len(set(ids))


def test_what_happens_behind_remote_graph_is_streamed(url: str, runs: Runs) -> None:
    app, thread = parent(url)
    given = {"messages": [("user", TURNS[0])]}
    parts = runs.stream(app, given, thread, stream_mode=["custom", "messages"], subgraphs=True)
    seen = [data["type"] for _, mode, data in parts if mode == "custom"]
    assert (seen[0], seen[-1]) == ("guidelines_matched", "confirmation_asked")
    said = [data[0]["content"] for _, mode, data in parts if mode == "messages"]
    assert "a cargo bike" in said[-1]


def test_an_operators_answer_reaches_the_agent_behind_remote_graph(url: str, runs: Runs) -> None:
    app, thread = parent(url)
    stopped = runs.invoke(app, {"messages": [("user", REFUND)]}, thread)
    assert stopped["__interrupt__"][0].value["action_requests"][0]["name"] == "refund_rental"
    desk = RemoteGraph("desk", url=url)
    answered = runs.invoke(desk, Command(resume={"decisions": [{"type": "approve"}]}), thread)
    app.update_state(thread, {"messages": answered["messages"]}, as_node="desk")
    state = runs.invoke(app, None, thread) or app.get_state(thread).values
    assert "100% of 450 kroner" in tools_run(state)[-1]
    assert all(before.id != after.id for before, after in pairwise(state["messages"]))
    state = runs.invoke(app, {"messages": [("user", "Thanks")]}, thread)
    assert [kind for kind, *_ in decisions(state)] == ["human", "ai", "tool", "tool", "ai", "human", "ai"]
