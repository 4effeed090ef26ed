"""The scripted model: it answers in order, shows what it was asked, and says when the script runs out."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent, errors

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "Reply", "schema": SCHEMA, "strict": True}}
TOOL = {"type": "function", "function": {"name": "Reply", "description": "A reply.", "parameters": SCHEMA}}


class Reply(BaseModel):
    answer: str


def test_answers_come_in_the_order_of_the_calls():
    model = ScriptedChatModel(["one", {"answer": "two"}, Reply(answer="three"), AIMessage("four")])
    texts = [str(model.invoke("go on").text) for _ in range(4)]
    assert texts == ["one", '{"answer": "two"}', '{"answer":"three"}', "four"]


def test_a_call_shows_messages_arguments_schema_and_blueprint():
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


@pytest.mark.parametrize("choice", ["Reply", "any", {"type": "function", "function": {"name": "Reply"}}])
def test_a_dict_answers_a_forced_tool_with_a_call(choice):
    model = ScriptedChatModel([{"answer": "yes"}])
    message = model.bind_tools([TOOL], tool_choice=choice).invoke("x")
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("Reply", {"answer": "yes"})]
    assert message.content == ""
    assert (model.calls[0].schema, model.calls[0].blueprint) == (SCHEMA, "Reply")


def test_an_exception_in_the_script_is_raised():
    model = ScriptedChatModel([TimeoutError("too slow"), "fine"])
    with pytest.raises(TimeoutError, match="too slow"):
        model.invoke("x")
    assert model.invoke("x").content == "fine"
    assert len(model.calls) == 2


def test_a_script_that_runs_out_says_which_call_came_too_many():
    model = ScriptedChatModel(["only one"])
    model.invoke("x")
    with pytest.raises(errors.InputError, match=r"1 answers.*'matcher'.*'Reply'"):
        model.bind(response_format=JSON_SCHEMA).invoke("x", config={"metadata": {"arq_module": "matcher"}})


def test_usage_is_reported_and_an_answers_own_usage_is_kept():
    own = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    model = ScriptedChatModel(["12345678", AIMessage("x", usage_metadata=own), AIMessage("x")])
    assert model.invoke("1234").usage_metadata == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    assert model.invoke("1234").usage_metadata == own
    assert model.invoke("1234").usage_metadata is None


def test_a_script_that_ran_out_over_a_refused_answer_says_why_it_was_refused() -> None:
    agent = Agent("Desk", "You help.", [Guideline("they ask", "answer")])
    model = ScriptedChatModel([{"G1": {"score": 20, "should_apply": True}}])
    with pytest.raises(errors.InputError, match=r"(?s)Its prompt ends.*could not be used.*G1\.score"):
        create_guided_agent(model, agent, mode="direct").invoke({"messages": [("user", "Hi")]})


def test_only_an_object_becomes_a_call_and_only_where_a_tool_is_forced():
    forced = ScriptedChatModel(["I will not."]).bind_tools([TOOL], tool_choice="Reply").invoke("x")
    free = ScriptedChatModel([{"answer": "yes"}]).bind_tools([TOOL]).invoke("x")
    assert (forced.content, forced.tool_calls) == ("I will not.", [])
    assert (free.content, free.tool_calls) == ('{"answer": "yes"}', [])


async def test_a_function_answers_each_call_and_may_be_async():
    async def later(call):
        await asyncio.sleep(0)
        return call.text.upper()

    assert (
        ScriptedChatModel(lambda call: {"answer": call.text.upper()}).invoke("abc").content
        == '{"answer": "ABC"}'
    )
    assert (await ScriptedChatModel(later).ainvoke("abc")).content == "ABC"


async def test_tasks_and_threads_share_one_script():
    message = AIMessage("same")  # one message may stand in it twice
    model = ScriptedChatModel([str(number) for number in range(100)] + [message, message])
    tasks = await asyncio.gather(*(model.ainvoke("x") for _ in range(50)))
    with ThreadPoolExecutor(16) as pool:
        threads = list(pool.map(lambda _: model.invoke("x"), range(50)))
    assert sorted(int(answer.content) for answer in [*tasks, *threads]) == list(range(100))
    assert model.invoke("x").content == model.invoke("x").content == "same"
    assert message == AIMessage("same")
