"""The scripted model: its answers, its record of calls, and the error when the script runs out."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from arq_graph import ScriptedChatModel, errors

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "Reply", "schema": SCHEMA, "strict": True}}
TOOL = {"type": "function", "function": {"name": "Reply", "description": "A reply.", "parameters": SCHEMA}}


class Reply(BaseModel):
    answer: str


def test_answers_are_given_in_order():
    model = ScriptedChatModel(["one", {"answer": "two"}, Reply(answer="three"), AIMessage("four")])
    texts = [str(model.invoke("go on").text) for _ in range(4)]
    assert texts == ["one", '{"answer": "two"}', '{"answer": "three"}', "four"]


def test_a_call_is_recorded_with_messages_arguments_schema_and_blueprint():
    model = ScriptedChatModel([{"answer": "yes"}])
    model.bind(response_format=JSON_SCHEMA, temperature=0.1).invoke(
        [SystemMessage("The rules."), HumanMessage("Am I here?")],
        config={"metadata": {"arq_module": "matcher", "arq_batch": "B1"}},
    )
    (call,) = model.calls
    assert (call.schema, call.blueprint, call.module) == (SCHEMA, "Reply", "matcher")
    assert call.metadata["arq_batch"] == "B1"
    assert call.kwargs["temperature"] == 0.1
    assert call.text == "The rules.\n\nAm I here?"
    assert [message.type for message in call.messages] == ["system", "human"]


@pytest.mark.parametrize(
    ("answer", "choice", "content", "calls"),
    [
        ({"answer": "yes"}, "Reply", "", [("Reply", {"answer": "yes"})]),
        ({"answer": "yes"}, "any", "", [("Reply", {"answer": "yes"})]),
        ({"answer": "yes"}, None, '{"answer": "yes"}', []),
        ("I will not.", "Reply", "I will not.", []),
    ],
)
def test_an_object_becomes_a_call_of_a_forced_tool(answer, choice, content, calls):
    model = ScriptedChatModel([answer])
    message = model.bind_tools([TOOL], tool_choice=choice).invoke("x")
    assert (message.content, [(call["name"], call["args"]) for call in message.tool_calls]) == (
        content,
        calls,
    )
    assert model.calls[0].schema == (SCHEMA if choice else None)


def test_an_exception_is_raised_and_a_call_too_many_is_reported():
    model = ScriptedChatModel([TimeoutError("too slow"), "fine"])
    with pytest.raises(TimeoutError, match="too slow"):
        model.invoke("x")
    assert model.invoke("x").content == "fine"
    assert len(model.calls) == 2
    with pytest.raises(
        errors.InputError, match=r"no answer left for call 3.*'matcher'.*'Reply'.*Its prompt ends: Hi"
    ):
        model.bind(response_format=JSON_SCHEMA).invoke("Hi", config={"metadata": {"arq_module": "matcher"}})


async def test_tasks_and_threads_share_one_script():
    message = AIMessage("same")  # may be in the script twice
    model = ScriptedChatModel([str(number) for number in range(100)] + [message, message])
    tasks = await asyncio.gather(*(model.ainvoke("x") for _ in range(50)))
    with ThreadPoolExecutor(16) as pool:
        threads = list(pool.map(lambda _: model.invoke("x"), range(50)))
    assert sorted(int(answer.content) for answer in [*tasks, *threads]) == list(range(100))
    assert model.invoke("x").content == model.invoke("x").content == "same"
    assert message == AIMessage("same")
