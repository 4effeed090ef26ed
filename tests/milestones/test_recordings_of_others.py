"""Conversations recorded by other providers and benchmarks are read with their calls and results."""

import json

import pytest

from arq_graph.milestones import (
    BrokenRecord,
    Call,
    Result,
    Transcript,
    gold_graph,
    parse_milestones,
    read_transcript,
    read_transcripts,
    score,
    score_transcripts,
)
from tests.milestones.recordings import (
    ANTHROPIC,
    ARGUMENTS,
    BEDROCK,
    CONVERSATION,
    INSPECT,
    MODEL_MESSAGES,
    RECORDINGS,
    RESPONSES,
    SHAREGPT,
    SPAN,
    TAU2,
    UI_MESSAGES,
)
from tests.milestones.reported import make_chain


def describe(transcript: Transcript) -> list[object]:
    """Return what was said, called and returned, in order: a result with its call's position among the calls."""
    calls: dict[int, int] = {}
    description: list[object] = []
    for number, event in transcript.enumerate_events():
        if isinstance(event, Call):
            calls[number] = len(calls)
            description.append((event.tool, dict(event.arguments)))
        elif isinstance(event, Result):
            description.append((calls.get(event.call or 0), event.text, "failed" if event.failed else "done"))
        else:
            description.append(f"{event.speaker}: {event.text}")
    return description


@pytest.mark.parametrize("record", RECORDINGS.values(), ids=RECORDINGS.keys())
def test_a_recording_is_read_with_its_calls_and_results(record):
    transcript = read_transcript(record)
    assert describe(transcript) == CONVERSATION
    assert score(make_chain("get_order"), transcript).goal_completed is True


def test_ids_tasks_rewards_and_instructions_are_read_where_a_format_has_them():
    assert (read_transcript(SPAN).id, read_transcript(SPAN).instructions) == ("talk 7", "You are a clerk.")
    simulation = read_transcript(TAU2)
    assert (simulation.id, simulation.task, simulation.extra["reward"]) == ("task 5, trial 1", "5", 1.0)
    assert read_transcript(INSPECT).id == "sample lost parcel, epoch 2"
    assert read_transcript(INSPECT).task == "lost parcel"
    talk = read_transcript(SHAREGPT)
    assert (talk.instructions, talk.tools) == ("You are a clerk.", {"get_order": {"type": "object"}})
    for system in ("You are a clerk.", [{"text": "You are a clerk."}]):
        assert read_transcript({"system": system, "messages": BEDROCK}).instructions == "You are a clerk."
    tools = [{"type": "web_search"}, {"name": "get_order", "input_schema": {"type": "object"}}]
    assert list(read_transcript({"messages": ANTHROPIC, "tools": tools}).tools) == ["get_order"]


def answer(**fields):
    """Return messages in which a tool's message with these fields answers the call."""
    call = {"id": "c1", "name": "get_order", "arguments": ARGUMENTS}
    return [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", **fields}]


def fill_anthropic(**fields):
    return [
        *ANTHROPIC[:2],
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", **fields}]},
    ]


def fill_ui(**fields):
    part = {"type": "dynamic-tool", "toolName": "get_order", "toolCallId": "c1", "input": ARGUMENTS, **fields}
    return [{"role": "assistant", "parts": [part]}]


def fill_output(output):
    part = {"type": "tool-result", "toolCallId": "c1", "toolName": "get_order", "output": output}
    return [MODEL_MESSAGES[1], {"role": "tool", "content": [part]}]


FAILED = {
    "Anthropic": fill_anthropic(content="no order", is_error=True),
    "Bedrock": [
        BEDROCK[1],
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": "no order"}]}}
            ],
        },
    ],
    "MCP": answer(content="no order", isError=True),
    "MCP, in the output": fill_ui(
        state="output-available", output={"isError": True, "content": [{"type": "text", "text": "no order"}]}
    ),
    "LangChain": answer(content="no order", status="error"),
    "tau2-bench": answer(content="no order", error=True),
    "inspect_ai": answer(content="", error={"type": "timeout", "message": "no order"}),
    "Retell": answer(content="no order", successful=False),
    "UI message": fill_ui(state="output-error", errorText="no order"),
    "UI message, denied": fill_ui(
        state="output-denied", approval={"id": "a", "approved": False, "reason": "no order"}
    ),
    "AI SDK, text": fill_output({"type": "error-text", "value": "no order"}),
    "AI SDK, JSON": fill_output({"type": "error-json", "value": {"text": "no order"}}),
    "AI SDK, denied": fill_output({"type": "execution-denied", "reason": "no order"}),
    "OpenAI's MCP": [
        {
            "type": "mcp_call",
            "id": "m",
            "name": "get_order",
            "arguments": "{}",
            "error": {"message": "no order"},
        }
    ],
}


@pytest.mark.parametrize("record", FAILED.values(), ids=FAILED.keys())
def test_a_failed_call_is_read_as_failed(record):
    transcript = read_transcript(record)
    result = transcript.events[-1]
    assert isinstance(result, Result)
    assert (result.failed, result.tool) == (True, "get_order")
    assert score(make_chain("get_order"), transcript).goal_completed is False


@pytest.mark.parametrize(
    "fields", [{"error": False}, {"error": None}, {"status": "success"}, {"is_error": False}]
)
def test_a_flag_that_is_off_is_no_failure(fields):
    assert read_transcript(answer(content="late", **fields)).events[-1].failed is False


def test_tools_that_the_provider_runs_are_calls_with_results():
    search = {"query": "parcels"}
    anthropic = [
        {"type": "text", "text": "Let me see."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": search},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "url": "u"}],
        },
        {"type": "text", "text": "Found."},
        {"type": "server_tool_use", "id": "s2", "name": "web_search", "input": search},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s2",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
        },
    ]
    said, first, pages, found, second, failure = describe(
        read_transcript([{"role": "assistant", "content": anthropic}])
    )
    assert (said, found) == ("agent: Let me see.", "agent: Found.")
    assert first == second == ("web_search", search)
    assert pages == (0, '[{"type": "web_search_result", "url": "u"}]', "done")
    assert failure[::2] == (1, "failed")
    responses = [
        {"type": "web_search_call", "id": "w", "status": "completed", "action": search},
        {
            "type": "code_interpreter_call",
            "id": "p",
            "status": "completed",
            "code": "1",
            "outputs": [{"logs": "1"}],
        },
        {
            "type": "mcp_list_tools",
            "id": "l",
            "server_label": "s",
            "tools": [{"name": "pay", "input_schema": {}}],
        },
        {
            "type": "mcp_call",
            "id": "m",
            "name": "pay",
            "arguments": '{"sum": 5}',
            "output": "paid",
            "server_label": "s",
        },
        {"type": "custom_tool_call", "id": "ct", "call_id": "c2", "name": "note", "input": "call back"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "noted"},
        {"type": "newer_call", "id": "n", "status": "failed", "site": "u"},
    ]
    assert describe(read_transcript(responses)) == [
        ("web_search", {"action": search}),
        (0, "", "done"),
        ("code_interpreter", {"code": "1"}),
        (1, '[{"logs": "1"}]', "done"),
        ("pay", {"sum": 5}),
        (2, "paid", "done"),
        ("note", {"input": "call back"}),
        (3, "noted", "done"),
        ("newer", {"site": "u"}),
        (4, "", "failed"),
    ]


def test_a_call_without_a_result_stays_unanswered():
    for state in ("input-available", "approval-requested"):
        transcript = read_transcript(fill_ui(state=state))
        assert describe(transcript) == [("get_order", ARGUMENTS)]
        assert score(make_chain("get_order"), transcript).goal_completed is not True


def call(id, order):
    return {"id": id, "function": {"name": "get_order", "arguments": {"order_id": order}}}


def get_results(messages):
    return [
        line for line in describe(read_transcript(messages)) if isinstance(line, tuple) and len(line) == 3
    ]


def test_ids_that_repeat_are_paired_by_message_and_position():
    def ask(*calls):
        return {"role": "assistant", "tool_calls": list(calls)}

    def reply(id, text, **fields):
        return {"role": "tool", "tool_call_id": id, "content": text, **fields}

    # Each turn numbers its calls anew, and the first call of the second turn was lost in a crash.
    turns = [ask(call("0", "A")), reply("0", "a"), ask(call("0", "B")), ask(call("0", "C")), reply("0", "c")]
    assert get_results(turns) == [(0, "a", "done"), (2, "c", "done")]
    # All calls of a message have the same id, or none.
    for id in ("0", "", None):
        calls = ask(call(id, "A"), call(id, "B"), call(id, "C"))
        results = [reply(id, text) for text in "abc"]
        assert get_results([calls, *results]) == [(0, "a", "done"), (1, "b", "done"), (2, "c", "done")]
    # Results come in another order.
    calls = ask(call("1", "A"), call("2", "B"))
    assert get_results([calls, reply("2", "b"), reply("1", "a")]) == [(1, "b", "done"), (0, "a", "done")]
    # Calls without ids, results with ids of their own.
    assert get_results([ask(call(None, "A")), reply("r7", "a", name="get_order")]) == [(0, "a", "done")]


def test_a_simulated_users_own_calls_count_for_milestones_of_the_user():
    user_call = {"id": "u1", "name": "restart_phone", "arguments": {}, "requestor": "user"}
    results = [
        {"role": "tool", "id": "u1", "content": "restarted", "requestor": "user"},
        {"role": "tool", "id": "c1", "content": "late", "requestor": "assistant"},
    ]
    ask, act = TAU2["messages"][1], {"role": "user", "content": None, "tool_calls": [user_call]}
    transcript = read_transcript(TAU2 | {"messages": [ask, act, {"role": "tool", "tool_messages": results}]})
    calls = [event for event in transcript.events if isinstance(event, Call)]
    assert [(call.tool, call.by) for call in calls] == [("get_order", "agent"), ("restart_phone", "user")]
    assert [(event.call, event.text) for event in transcript.events[-2:]] == [(3, "restarted"), (2, "late")]
    record = score_transcripts(make_chain("restart_phone"), [transcript]).report().conversations[0]
    assert (record.goal_completed, record.calls, record.wasted_calls) == (False, 1, (2,))
    by_user = {"name": "restart_phone", "type": "FC", "by": "user"}
    graph = [{"name": "Start", "type": "NFC"}, by_user]
    graph.append({"name": "End", "type": "NFC", "dependencies": ["restart_phone"]})
    assert score(parse_milestones(json.dumps(graph)), transcript).goal_completed


def test_files_of_tau2_bench_and_inspect_ai_hold_many_conversations(tmp_path):
    action = {"action_id": "5_0", "name": "get_order", "arguments": ARGUMENTS, "requestor": "assistant"}
    of_user = {"action_id": "5_1", "name": "restart_phone", "arguments": {}, "requestor": "user"}
    tasks = [{"id": "5", "evaluation_criteria": {"actions": [action, of_user]}}, {"id": "6"}]
    file = tmp_path / "results.json"
    file.write_text(
        json.dumps({"info": {}, "tasks": tasks, "simulations": [TAU2, TAU2 | {"trial": 2}]}, indent=1)
    )
    report = score_transcripts(gold_graph, read_transcripts(file)).report()
    assert [(talk.id, talk.goal_completed, talk.reward) for talk in report.conversations] == [
        ("task 5, trial 1", True, 1.0),
        ("task 5, trial 2", True, 1.0),
    ]
    file.write_text(json.dumps({"version": 2, "eval": {}, "samples": [INSPECT, INSPECT | {"epoch": 3}]}))
    ids = [talk.id for talk in read_transcripts(file)]
    assert ids == ["sample lost parcel, epoch 2", "sample lost parcel, epoch 3"]


def test_lines_that_are_messages_or_items_are_one_conversation(tmp_path):
    file = tmp_path / "talk.jsonl"
    for messages in (ANTHROPIC, RESPONSES, RESPONSES[1:], UI_MESSAGES):
        file.write_text("\n".join(map(json.dumps, messages)), encoding="utf-8")
        [transcript] = read_transcripts(file)
        assert not isinstance(transcript, BrokenRecord)
        assert describe(transcript)[-4:] == CONVERSATION[-4:]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"text": "late"}, {"json": {"days": 2}}], 'late\n{"days": 2}'),
        ([{"type": "text", "text": "late"}, {"type": "image", "source": {}}], "late"),
        ([{"type": "order", "id": 1}], '[{"type": "order", "id": 1}]'),
        ([{"type": "file", "name": "a"}], '[{"type": "file", "name": "a"}]'),
        ({"type": "order", "id": 1}, '{"type": "order", "id": 1}'),
        ({"type": "text", "subject": "hi"}, '{"type": "text", "subject": "hi"}'),
        ({"type": "input_error", "days": 2}, '{"type": "input_error", "days": 2}'),
        (5, "5"),
        ([], "[]"),
    ],
)
def test_what_a_tool_returned_is_kept_as_text_or_json(content, text):
    result = read_transcript(fill_anthropic(content=content)).events[-1]
    assert (result.text, result.failed) == (text, False)
