"""Guidelines for an agent of `create_agent`: what becomes of its texts, tokens and structured answers."""

from typing import Any

import pytest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool

from arq_graph import Agent, Guideline, Revising, ScriptedChatModel, create_guided_agent
from tests.brain import brain
from tests.middleware.shop import (
    A1,
    CANCEL,
    LOOK_UP,
    QUESTION,
    RAN,
    REFUND,
    STATUS,
    THREAD,
    Answer,
    Shop,
    get_reply,
    get_results,
    make_calls,
)


@pytest.mark.parametrize("runs", ["sync"], indirect=True)
def test_a_tools_result_is_never_sent_in_the_place_of_the_reply(runs):
    @tool(return_direct=True)
    def read_record(order_id: str) -> str:
        """Read the record of an order."""
        return "owes us 5"

    agent = Agent("Order desk", "You help.", [Guideline("they ask", "look it up", tools=[read_record])])
    call = ("read_record", A1)
    model = brain({"G1": 9}, {"read_record": A1}, "It is late.")
    guided = create_guided_agent(model, agent, mode="direct")
    for app in (Shop(make_calls(call), "Late.", agent=agent, reply="It is late.").app, guided):
        state = runs.invoke(app, {"messages": [("user", "Where is A-1?")]}, THREAD)
        assert (get_results(state), get_reply(state)) == ([("read_record", "success")], "It is late.")
    assert agent.toolbox["read_record"].return_direct  # for whoever else runs it


@pytest.mark.parametrize("revising", [Revising(), None], ids=["revised", "sent as it is"])
@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("tool_use", lambda id: {"id": id}),
        ("function_call", lambda id: {"id": f"fc_{id}", "call_id": id}),  # OpenAI's Responses API
    ],
)
def test_text_beside_calls_is_sent_only_if_nothing_is_revised(revising, kind, ids):
    thinking = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    uses = [{"type": kind, "name": name, **ids(id)} for id, (name, _) in (("c0", LOOK_UP), ("c1", REFUND))]
    blocks = [thinking, {"type": "text", "text": "It comes today!"}, *uses]
    raw = {"tool_calls": ["both, as the provider has them"]}
    metadata = {"id": "resp_1", "model_name": "m"}
    message = make_calls(LOOK_UP, REFUND, text=blocks, additional_kwargs=raw, response_metadata=metadata)
    sent = Shop(message, "Late.", rules={"revising": revising}).say()["messages"][1]
    types = [block["type"] for block in sent.content]
    assert types == (["thinking", kind] if revising else ["thinking", "text", kind])
    assert [call["name"] for call in sent.tool_calls] == ["get_order"]
    assert (sent.additional_kwargs, sent.response_metadata) == ({}, {"model_name": "m"})
    shop = Shop(make_calls(LOOK_UP, text="It comes today!"), "Late.", rules={"revising": revising})
    assert shop.say()["messages"][1].text == ("" if revising else "It comes today!")


class Tokens(ScriptedChatModel):
    """A model that streams its text word by word, then its calls."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        message: Any = self._generate(messages, stop, run_manager, **kwargs).generations[0].message
        for word in message.text.split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        yield ChatGenerationChunk(message=AIMessageChunk("", tool_calls=message.tool_calls))


def stream_texts(runs: Any, shop: Shop, text: str = "Hi") -> tuple[list[str], list[Any]]:
    """Return the streamed tokens, and the texts of everything that the model streamed or sent."""
    input = {"messages": [("user", text)]}
    parts = [message for message, _ in runs.stream(shop.app, input, THREAD, stream_mode="messages")]
    tokens = [part.text for part in parts if isinstance(part, AIMessageChunk)]
    return tokens, [part.text for part in parts if part.type == "ai"]


@pytest.mark.parametrize("runs", ["async"], indirect=True)
def test_a_draft_that_is_revised_does_not_stream(runs):
    for judge in ({"G1": 9}, {}):  # with a tool that may be called, and without
        shop = Shop("It comes today!", kind=Tokens, judge=judge, reply="I do not know.")
        assert stream_texts(runs, shop) == ([], ["I do not know."])
    form = ToolStrategy(Answer)
    for end in (make_calls(STATUS, text="Late."), "It is late."):
        shop = Shop(
            make_calls(LOOK_UP, text="It comes today!"), end, kind=Tokens, reply="Hm.", response_format=form
        )
        tokens, texts = stream_texts(runs, shop)
        assert (tokens, set(texts)) == ([], {"", "Hm."} if isinstance(end, str) else {""})


@pytest.mark.parametrize("runs", ["sync"], indirect=True)
def test_an_unrevised_text_streams_unless_code_may_refuse_or_ask_something(runs):
    shop = Shop("It comes today!", kind=Tokens, judge={}, rules={"revising": None})
    tokens, _ = stream_texts(runs, shop)
    modules = [call.module for call in shop.guideline_model.calls]
    assert (tokens[:3], modules) == (["It", "comes", "today!"], ["matcher"])
    judge = {"G2": 9}
    shop = Shop(make_calls(CANCEL, text="Sure."), kind=Tokens, judge=judge, rules={"revising": None})
    assert stream_texts(runs, shop) == ([], [f"Sure.\n\n{QUESTION}"])
    shop = Shop(make_calls(REFUND, text="I pay it back."), "Which?", kind=Tokens, rules={"revising": None})
    assert stream_texts(runs, shop) == ([], ["Which?"])  # the text beside a refused call is not sent
    both = make_calls(*(("cancel_order", {"order_id": order}) for order in ("broken", "A-1")), text="Sure.")
    shop = Shop(both, "Failed.", kind=Tokens, judge=judge, rules={"revising": None})
    shop.say("Cancel both")
    judge["G2"] = 2  # the other call is pending, whatever is granted now
    assert stream_texts(runs, shop, "Yes") == ([], ["", f"Failed.\n\n{QUESTION}"])


def test_the_reply_has_the_name_of_the_agent_and_the_usage_of_its_model():
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    draft = AIMessage("Hi.", usage_metadata=usage, response_metadata={"id": "resp_1", "model_name": "m"})
    for name in (None, "desk"):
        sent = Shop(draft, name=name).say()["messages"][-1]
        assert (sent.name, sent.usage_metadata, sent.response_metadata) == (name, usage, {"model_name": "m"})


@pytest.mark.parametrize(
    ("form", "answers"),
    [
        (ToolStrategy(Answer), [make_calls(("Answer", {"state": "?"})), make_calls(STATUS)]),
        # LangChain loads OpenAI's client for it.
        pytest.param(ProviderStrategy(Answer), ['{"status": "late"}'], marks=pytest.mark.slow),
    ],
    ids=["tool", "provider"],
)
def test_a_structured_answer_stays_as_it_is_and_its_calls_pass_the_gate(form, answers):
    shop = Shop(make_calls(LOOK_UP, REFUND), *answers, response_format=form)
    state = shop.say()
    assert (state["structured_response"], RAN) == (Answer(status="late"), [("get_order", "A-1")])
    call_names = []
    for message in state["messages"]:
        if message.type == "ai":
            call_names += [call["name"] for call in message.tool_calls]
    assert call_names == [name for name, _ in get_results(state)], "each call has a result"
    assert "message" not in [call.module for call in shop.guideline_model.calls]


@pytest.mark.parametrize(
    "answers",
    [[make_calls(CANCEL)], [make_calls(LOOK_UP, CANCEL), make_calls(STATUS)]],
    ids=["at once", "later"],
)
def test_a_confirmation_question_replaces_a_structured_answer(answers):
    shop = Shop(*answers, judge={"G1": 9, "G2": 9}, reply="Hm.", response_format=ToolStrategy(Answer))
    state = shop.say()
    assert (get_reply(state), state["structured_response"]) == (f"Hm.\n\n{QUESTION}", None)
    assert not state["messages"][-1].tool_calls
