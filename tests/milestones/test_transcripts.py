from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from arq_graph.errors import ArqGraphError, InputError
from arq_graph.milestones import (
    BrokenRecord,
    Call,
    Message,
    Result,
    Transcript,
    read_thread,
    read_transcript,
    read_transcripts,
)

OPENAI = [
    {"role": "system", "content": "You are a clerk."},
    {"role": "user", "content": "Where are my orders?"},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"id": 1}'}},
            {"id": "c2", "type": "function", "function": {"name": "get", "arguments": '{"id": 2}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "two"},
    {"role": "tool", "tool_call_id": "c1", "content": "one"},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "Here"}, {"type": "text", "text": "they are."}],
    },
]

EVENTS = (
    Message("user", "Where are my orders?", 1),
    Message("agent", "Let me look.", 2),
    Call("get", {"id": 1}, "c1", None, 2),
    Call("get", {"id": 2}, "c2", None, 2),
    Result(4, "get", "two", False, 3),
    Result(3, "get", "one", False, 4),
    Message("agent", "Here\nthey are.", 5),
)

LANGCHAIN = [
    SystemMessage("You are a clerk."),
    HumanMessage("Where are my orders?"),
    AIMessage(
        "Let me look.",
        tool_calls=[
            {"name": "get", "args": {"id": 1}, "id": "c1"},
            {"name": "get", "args": {"id": 2}, "id": "c2"},
        ],
    ),
    ToolMessage("two", tool_call_id="c2"),
    ToolMessage("one", tool_call_id="c1"),
    AIMessage([{"type": "text", "text": "Here"}, {"type": "text", "text": "they are."}]),
]


def test_openai_messages_are_read():
    transcript = read_transcript(OPENAI, id="talk")
    assert transcript.events == EVENTS
    assert transcript.instructions == "You are a clerk."
    assert transcript.id == "talk"


@pytest.mark.parametrize(
    "written",
    [
        lambda messages: messages,
        lambda messages: [message.model_dump() for message in messages],
        lambda messages: json.loads(json.dumps([message.model_dump() for message in messages])),
        messages_to_dict,
        lambda messages: [dumpd(message) for message in messages],
    ],
    ids=["objects", "model_dump", "json", "messages_to_dict", "dumpd"],
)
def test_langchain_messages_are_read_however_they_are_written(written):
    messages = written(LANGCHAIN)
    assert read_transcript(messages).events == EVENTS
    assert read_transcript({"messages": messages}).instructions == "You are a clerk."
    [only] = read_transcripts(messages)
    assert isinstance(only, Transcript)
    assert only.events == EVENTS


def test_langchain_marks_failed_results_and_malformed_calls():
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "get", "args": '{"id": ', "id": "c1", "error": "cut off"}]
    )
    failed = ToolMessage("no", tool_call_id="c1", status="error", name="get")
    transcript = read_transcript([broken, failed, AIMessageChunk("Sorry"), ChatMessage("ok", role="user")])
    assert transcript.events == (
        Call("get", {}, "c1", '{"id": ', 0),
        Result(1, "get", "no", True, 1),
        Message("agent", "Sorry", 2),
        Message("user", "ok", 3),
    )


def test_a_record_may_bring_id_task_use_case_tools_and_more():
    tools = [
        {
            "type": "function",
            "function": {"name": "get", "parameters": {"type": "object", "required": ["id"]}},
        }
    ]
    transcript = read_transcript(
        {"id": 7, "task_id": 3, "use_case": "orders", "messages": OPENAI, "tools": tools, "reward": 1}
    )
    assert (transcript.id, transcript.task, transcript.use_case) == ("7", "3", "orders")
    assert transcript.tools == {"get": {"type": "object", "required": ["id"]}}
    assert transcript.extra["reward"] == 1


def test_results_without_ids_answer_the_first_open_call_of_their_tool():
    transcript = read_transcript(
        [
            {"role": "assistant", "function_call": {"name": "a", "arguments": "{}"}},
            {"role": "assistant", "function_call": {"name": "b", "arguments": ""}},
            {"role": "function", "name": "b", "content": {"found": [1]}},
            {"role": "function", "name": "a", "content": None},
            {"role": "tool", "tool_call_id": "unknown", "content": "lost"},
        ]
    )
    assert transcript.events[2:] == (
        Result(2, "b", '{"found": [1]}', False, 2),
        Result(1, "a", "", False, 3),
        Result(None, "", "lost", False, 4),
    )


def _calls(*ids_and_numbers):
    return {
        "role": "assistant",
        "tool_calls": [
            {"id": id, "function": {"name": "f", "arguments": {"n": number}}}
            for id, number in ids_and_numbers
        ],
    }


def _answered(*messages):
    events = read_transcript(list(messages)).events
    return [
        events[event.call - 1].arguments["n"] if event.call else None
        for event in events
        if isinstance(event, Result)
    ]


def test_a_result_with_an_id_that_is_used_again_answers_the_newest_call():
    asked = {"role": "user", "content": "please"}
    result = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    assert _answered(asked, _calls(("a", 1)), asked, _calls(("a", 2)), result) == [2]
    assert _answered(_calls(("a", 1)), _calls(("a", 2)), result, result, result) == [2, 1, None]


@pytest.mark.parametrize("arguments", ['{"id": ', "[1]", "3", "null", "nonsense"])
def test_what_a_model_wrote_that_is_no_object_is_a_malformed_call(arguments):
    call = {"id": "c", "function": {"name": "get", "arguments": arguments}}
    transcript = read_transcript([{"role": "assistant", "tool_calls": [call]}])
    assert transcript.events == (Call("get", {}, "c", arguments, 0),)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "empty"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "get"}}]}],
            "message 0.*no arguments",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}],
            "message 0.*without a name",
        ),
        ([{"role": "assistant", "tool_calls": "get"}], "message 0.*no list"),
        ([{"role": "assistant", "tool_calls": ["get"]}], "message 0.*no object"),
        (
            [{"role": "user", "content": "hi"}, {"role": "clerk", "content": "x"}],
            "message 1 has the role 'clerk'",
        ),
        ([{"role": "user", "content": "hi"}, "bye"], "message 1 is no chat message"),
        ([{"role": "user", "content": 5}], "message 0: the content is int"),
        ([{"role": "system", "content": "be nice"}], "empty"),
        (
            [{"type": "human", "content": "hi"}, {"type": "martian", "content": "x"}],
            "message 1 is no LangChain",
        ),
        (
            [{"type": "ai", "content": "", "tool_calls": [{"name": "get", "id": "c"}]}],
            "message 0.*no arguments",
        ),
        ("hello", "no known format: str"),
        (None, "no known format: NoneType"),
        ({"dialog": []}, "no known format: an object with the keys 'dialog'"),
        ([["hi"]], "no known format: a list of list"),
        ({"traj": "x"}, "no list `traj`"),
        ({"messages": OPENAI, "tools": [{}]}, "its `tools`"),
    ],
)
def test_a_broken_record_is_told(messages, said):
    with pytest.raises(InputError, match=said):
        read_transcript(messages)


PRE_ACT = {
    "Conversation": {
        "Step 1_H": "Human: Where is my order?",
        "Step 1_A": "AI: Its number, please?",
        "Step 2_H": "Human: 17: the red one",
        "Int_Step 2.1": "Tool: get_order, Tool_Inputs: {'id': 17, 'fast': True, 'note': None},"
        " Observation: {'status': 'sent'}",
        "Int_Step 2.2": "Tool: note, Tool_Inputs: {'text': \"see, Observation: none\", 'tags': ('a', 'b')},"
        " Observation: ok, Observation: twice",
        "Int_Step 2.3": "Tool: close, Tool_Inputs: {}, Observation: ",
        "Step 2_A": "AI: It is on its way.",
    },
    "id": "t1",
}


def test_the_step_format_of_the_pre_act_authors_is_read_in_order():
    transcript = read_transcript(PRE_ACT)
    assert transcript.id == "t1"
    assert transcript.events == (
        Message("user", "Where is my order?", "Step 1_H"),
        Message("agent", "Its number, please?", "Step 1_A"),
        Message("user", "17: the red one", "Step 2_H"),
        Call("get_order", {"id": 17, "fast": True, "note": None}, "Int_Step 2.1", None, "Int_Step 2.1"),
        Result(4, "get_order", "{'status': 'sent'}", False, "Int_Step 2.1"),
        Call(
            "note",
            {"text": "see, Observation: none", "tags": ("a", "b")},
            "Int_Step 2.2",
            None,
            "Int_Step 2.2",
        ),
        Result(6, "note", "ok, Observation: twice", False, "Int_Step 2.2"),
        Call("close", {}, "Int_Step 2.3", None, "Int_Step 2.3"),
        Result(8, "close", "", False, "Int_Step 2.3"),
        Message("agent", "It is on its way.", "Step 2_A"),
    )
    assert read_transcript(PRE_ACT["Conversation"]).events == transcript.events


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ({}, "empty"),
        ({"Step 1": "Human: hi"}, "'Step 1' is none of"),
        ({"Step 1_H": ["hi"]}, "Step 1_H is no text"),
        ({"Int_Step 1.1": "I wonder"}, "Int_Step 1.1 is not of the form"),
        (
            {"Int_Step 1.1": "Tool: a, Tool_Inputs: {'x': datetime(2024)}, Observation: ok"},
            "Int_Step 1.1: the tool's",
        ),
        (
            {"Int_Step 1.1": "Tool: a, Tool_Inputs: {" + "(" * 10_000 + ", Observation: ok"},
            "no Python literal",
        ),
    ],
)
def test_a_broken_step_is_named(steps, said):
    with pytest.raises(InputError, match=said):
        read_transcript({"Conversation": steps})


def test_tau_bench_results_bring_task_gold_actions_and_reward():
    transcript = read_transcript(
        {
            "task_id": 4,
            "trial": 2,
            "reward": 0.0,
            "info": {"task": {"actions": [{"name": "get", "kwargs": {"id": 1}}]}},
            "traj": OPENAI,
        }
    )
    assert transcript.events == EVENTS
    assert (transcript.id, transcript.task) == ("task 4, trial 2", "4")
    assert transcript.extra["actions"] == [{"name": "get", "kwargs": {"id": 1}}]
    assert transcript.extra["reward"] == 0.0


def test_a_broken_record_does_not_stop_the_rest():
    good, broken, also_good = read_transcripts([OPENAI, {"messages": [{"role": "user"}, 3]}, OPENAI])
    assert isinstance(good, Transcript)
    assert isinstance(also_good, Transcript)
    assert isinstance(broken, BrokenRecord)
    assert broken.index == 1
    assert str(broken.error) == "record 1: message 1 is no chat message: it has no `role`"


def test_the_thread_of_a_checkpointer_is_read():
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import MessagesState, StateGraph

    checkpointer = InMemorySaver()
    graph = StateGraph(MessagesState)
    graph.add_node("reply", lambda state: {"messages": LANGCHAIN[2:]})
    graph.set_entry_point("reply")
    app = graph.compile(checkpointer=checkpointer)
    app.invoke({"messages": LANGCHAIN[:2]}, {"configurable": {"thread_id": "t"}})

    transcript = read_thread(checkpointer, "t")
    assert transcript.events == EVENTS
    assert (transcript.id, transcript.instructions) == ("t", "You are a clerk.")
    with pytest.raises(InputError, match="no thread 'other'"):
        read_thread(checkpointer, "other")
    with pytest.raises(InputError, match="no channel 'talk'; its channels are 'messages'"):
        read_thread(checkpointer, "t", messages_key="talk")


def turn(number, reply, thread="t1", **call):
    made = [{"tool": "get", "arguments": {"id": 1}, "status": "success", "result": "sent", **call}]
    said = {"thread": thread, "turn": number, "customer": f"turn {number}", "reply": reply}
    return {**said, "tool_calls": made if call else [], "active": ["G1"], "usage": {}}


def test_what_arq_graph_run_prints_is_one_conversation_a_thread(tmp_path):
    waiting = turn(2, None, status="pending", result=None)
    printed = [turn(1, "Hi"), waiting, turn(2, "Sent", result="sent"), turn(1, "Hello", thread="t2")]
    file = tmp_path / "run.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in printed))
    first, second = read_transcripts(file)
    assert (first.id, second.id) == ("t1", "t2")
    # The turn that waited for an operator stands as it ended.
    assert first.events == (
        Message("user", "turn 1", 0),
        Message("agent", "Hi", 1),
        Message("user", "turn 2", 2),
        Call("get", {"id": 1}, "2.0", None, 3),
        Result(4, "get", "sent", False, 4),
        Message("agent", "Sent", 5),
    )


KEYS = (
    "role content type tool_calls name arguments function id args traj messages Conversation data kwargs lc"
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"])},
    optional={
        "content": json_values,
        "tool_calls": json_values,
        "tool_call_id": json_values,
        "name": json_values,
    },
)


@settings(max_examples=30)
@given(json_values | st.lists(messages, max_size=4) | st.fixed_dictionaries({"Conversation": json_values}))
def test_any_record_is_a_transcript_or_a_clear_error(record):
    try:
        transcript = read_transcript(record)
    except ArqGraphError as error:
        assert isinstance(error, InputError)
        assert str(error)
    else:
        assert transcript.events
