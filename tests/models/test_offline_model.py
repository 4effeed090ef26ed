"""The offline model as a chat model: every way to ask, any text, always the same answer, nothing kept."""

import json
import string
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from arq_graph.models import OfflineChatModel
from tests.models.prompts import JUDGEMENT, MESSAGE, ask, closed, judge, prompt, propose, reply, tool

SCHEMA = closed(answer={"type": "string"})
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "Answer", "schema": SCHEMA, "strict": True}}
FUNCTION = {
    "type": "function",
    "function": {"name": "Answer", "description": "Answer.", "parameters": SCHEMA},
}
QUESTION = [SystemMessage("Answer."), HumanMessage("The lamp is blue.")]
CONDITION_WORDS = (
    "the", "customer", "is", "not", "asks", "or", "and", "unless", "without", "if", "has", "given", "their", "order",
    "id", "than", "more", "5", "says", "never", "always", "about,", "but", "that",
)  # fmt: skip
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
NASTY = [
    "\ud800 half a pair \udfff",
    "x" * 100_000,
    "{" * 20_000,
    "where " * 20_000,
    "order 1 " * 10_000,
    "my name is " + "A" * 50_000,
    "-" * 50_000 + "1",
    "a@" * 30_000,
    "1-" * 30_000,
    "“" * 10_000,
    "<conversation>",
    "</conversation>\n<now>{}</now>",
    "```json\n{}\n```",
    "\x00\x01\x02\u202e",
    "Οὐχὶ ταὐτὰ παρίσταταί μοι γιγνώσκειν",
    "我的订单在哪里？",
    "أين طلبي؟",
    "",
    " \n ",
]


def test_a_json_schema_is_answered_in_json():
    message = OfflineChatModel().bind(response_format=JSON_SCHEMA).invoke(QUESTION)
    assert json.loads(message.text) == {"answer": "The lamp is blue."}


def test_a_forced_tool_is_answered_with_a_call():
    message = OfflineChatModel().bind_tools([FUNCTION], tool_choice="Answer").invoke(QUESTION)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [
        ("Answer", {"answer": "The lamp is blue."})
    ]


def test_json_mode_takes_the_schema_from_the_prompt():
    system = SystemMessage(
        f"Answer.\n\nAnswer with one JSON object that fits this JSON schema:\n{json.dumps(SCHEMA)}"
    )
    model = OfflineChatModel().bind(response_format={"type": "json_object"})
    assert json.loads(model.invoke([system, QUESTION[1]]).text) == {"answer": "The lamp is blue."}


def test_without_a_schema_it_replies_in_words():
    history = [
        HumanMessage("Where is my order?"),
        AIMessage("", tool_calls=[{"name": "get_order", "args": {"order_id": "7"}, "id": "c1"}]),
        ToolMessage(json.dumps({"status": "delayed"}), tool_call_id="c1"),
    ]
    assert OfflineChatModel().invoke(history).text == "For order 7, the status is delayed."
    assert OfflineChatModel().invoke("Hello").text == "Hello! How can I help you?"


async def test_it_can_be_awaited():
    message = await OfflineChatModel().bind(response_format=JSON_SCHEMA).ainvoke(QUESTION)
    assert json.loads(message.text) == {"answer": "The lamp is blue."}


def test_usage_is_estimated():
    usage = OfflineChatModel().invoke("Hello").usage_metadata
    assert usage is not None
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


def test_the_same_prompt_gets_the_same_answer_whatever_came_before():
    def all_answers():
        return [
            judge("the customer asks for a refund", "I want my money back"),
            propose(tool("get_order", "", order_id=({"type": "string"}, "")), "Where is order 4711?"),
            reply("Hello", guidelines={"G1": "offer tea"}),
        ]

    first = all_answers()
    reply("Something else", guidelines={"G1": "offer coffee"})
    assert all_answers() == first


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text[:12]))
def test_any_text_is_taken_from_customers_and_tools(text):
    result = ("get_order", {"order_id": text}, text)
    told = judge("the customer asks where their order is", text, result, f"agent: {text}", text)
    assert 1 <= told["score"] <= 10
    everything = {
        "order_id": ({"type": "string"}, "Like ORD-1."),
        "name": ({"type": "string"}, ""),
        "email": ({"type": "string"}, ""),
        "phone": ({"type": "string"}, ""),
        "day": ({"type": "string"}, ""),
        "city": ({"type": "string"}, ""),
        "title": ({"type": "string"}, ""),
        "note": ({"type": "string"}, ""),
        "count": ({"type": "integer"}, ""),
        "price": ({"type": "number"}, ""),
        "gift": ({"type": "boolean"}, ""),
        "toppings": ({"type": "array", "items": {"type": "string"}}, ""),
    }
    propose(tool("get_order", "", **everything), text, result, f"agent: {text}?", text)
    said = reply(text, result, guidelines={"G1": f"tell them {text[:500]}", "G2": "offer help"})
    assert said.strip()
    said.encode()


@given(
    text=st.text(max_size=200),
    action=st.text(min_size=1, max_size=80),
    condition=st.text(min_size=1, max_size=80),
)
@settings(max_examples=120)
def test_no_condition_action_or_message_breaks_it(text, action, condition):
    judge(condition, f"customer: {text}", action=action)
    assert reply(f"customer: {text}", guidelines={"G1": action}, draft=text)


@given(
    words=st.lists(
        st.sampled_from(CONDITION_WORDS),
        min_size=1,
        max_size=14,
    ),
    said=st.text(string.ascii_letters + " .,?!'0123456789", max_size=80),
)
@settings(max_examples=150)
def test_no_sequence_of_condition_words_breaks_it(words, said):
    text = " ".join(words)
    judged = judge(text, f"customer: {said}", action=text)
    assert judged["condition"] == text
    reply(f"customer: {said}", guidelines={"G1": text})


@given(value=JSON_VALUES)
@settings(max_examples=150)
def test_any_result_is_told_in_words(value):
    said = reply("What did you find?", ("find_it", {"what": "x"}, json.dumps(value)))
    assert said.strip()
    judge("the thing is not available", "Is it?", ("find_it", {}, json.dumps(value)))


def test_prompts_without_any_of_the_sections_are_answered():
    for messages in (
        [HumanMessage("x")],
        [SystemMessage("x")],
        [AIMessage("x")],
        [ToolMessage("x", tool_call_id="1")],
    ):
        assert ask(messages, closed(G1=JUDGEMENT))["G1"]["score"]
        assert ask(messages, MESSAGE)["revisions"]


def test_sections_that_hold_something_else_than_expected_are_passed_over():
    head = {"guidelines": {"id": 1}, "tools": ["x", 3, None], "glossary": "?", "profile": []}
    tail = {
        "insights": [None, {"kind": "missing"}],
        "active_guidelines": [{"action": None}, 7],
        "draft": {"a": 1},
    }
    messages = prompt(
        "Hi", head=head, tail=tail, now={"judge": "G1", "applied": {}, "awaiting_confirmation": [3]}
    )
    assert ask(messages, closed(G1=JUDGEMENT))["G1"]["score"]
    assert ask(messages, MESSAGE)["revisions"][0]["content"]


def test_importing_the_models_is_light():
    import subprocess

    code = "import sys, arq_graph.models; print('langchain_core.language_models' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_there_is_nothing_else_in_the_package():
    import arq_graph.models

    assert set(dir(arq_graph.models)) == {"OfflineChatModel", "ScriptedCall", "ScriptedChatModel"}
    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        _ = arq_graph.models.Oracle
