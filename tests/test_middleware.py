"""Guidelines for an agent of LangChain's `create_agent`: its prompts and tools, its calls, and its replies.

`tests/agreement` runs the tests of agreement with the middleware too.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import warnings
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents import middleware as langchains
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from arq_graph import Agent, Guideline, Matching, Revising, ScriptedChatModel, Variable, create_guided_agent
from arq_graph.middleware import GuidelineMiddleware
from tests.brain import Brain, Prompt, brain, get_prompts

RAN: list[tuple[Any, ...]] = []
THREAD: Any = {"configurable": {"thread_id": "1"}}
QUESTION = 'Cancel order (order id: "A-1")\nReply yes to go ahead.'


def get_order(order_id: str) -> str:
    """Look up an order."""
    RAN.append(("get_order", order_id))
    return "it is late"


def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    RAN.append(("cancel_order", order_id))
    return "cancelled" if order_id != "broken" else '{"error": "no such order"}'


def refund(order_id: str) -> str:
    """Pay an order back."""
    RAN.append(("refund", order_id))
    return "paid"


def weather() -> str:
    """Tell the weather."""
    RAN.append(("weather",))
    return "sunny"


DESK = Agent(
    "Order desk",
    "You help with orders.",
    [
        Guideline("they ask", "look it up", tools=[get_order], priority=2),
        Guideline("they want to cancel", "cancel it", tools=[cancel_order]),
        Guideline("they want money", "pay it back", tools=[refund]),
        Guideline("the order is late", "say sorry"),
    ],
    confirm={"cancel_order": "customer"},
    variables=[Variable("tier", "The customer's tier.", "gold")],
    fallback="I cannot say.",
)
A1 = {"order_id": "A-1"}
LOOK_UP, CANCEL, REFUND = (("get_order", A1), ("cancel_order", A1), ("refund", A1))


@pytest.fixture(autouse=True)
def forget_ran() -> None:
    RAN.clear()


def make_calls(*calls: tuple[str, dict[str, Any]], text: Any = "", **fields: Any) -> AIMessage:
    """Return a message of the agent's model with calls, whose ids are `c0`, `c1`, …"""
    tool_calls = []
    for number, (name, args) in enumerate(calls):
        tool_calls.append(tool_call(name=name, args=args, id=f"c{number}"))
    return AIMessage(text, tool_calls=tool_calls, **fields)


class Shop:
    """An agent of `create_agent` under the desk's guidelines; `answers` are those of its own model."""

    def __init__(
        self,
        *answers: Any,
        judge: Any = None,
        reply: Any = None,
        agent: Agent = DESK,
        before: Any = (),
        behind: Any = (),
        rules: Any = None,
        kind: type[ScriptedChatModel] = ScriptedChatModel,
        **options: Any,
    ) -> None:
        self.judge = {"G1": 9} if judge is None else judge
        self.guideline_model = ScriptedChatModel(Brain(self.judge, reply=reply))
        self.agent_model = kind(answers)
        self.rules = GuidelineMiddleware(self.guideline_model, agent, mode="direct", **(rules or {}))
        options = {"checkpointer": MemorySaver(), **options}
        self.app: Any = create_agent(self.agent_model, middleware=[*before, self.rules, *behind], **options)

    def say(self, text: str = "Where is A-1?", **given: Any) -> Any:
        return self.app.invoke({"messages": [HumanMessage(text)], **given}, THREAD)

    def get_offered_tools(self, number: int = 0) -> set[str]:
        """Return the tools of a call of the agent's model."""
        return {tool["function"]["name"] for tool in self.agent_model.calls[number].kwargs.get("tools", ())}

    def get_prompt(self, number: int = 0) -> Prompt:
        """Return the prompt of a call of the agent's model."""
        return Prompt(self.agent_model.calls[number])


def get_reply(state: Any) -> str:
    return str(state["messages"][-1].text)


def get_results(state: Any) -> list[tuple[str, str]]:
    return [(message.name, message.status) for message in state["messages"] if message.type == "tool"]


def test_a_turn_matches_looks_up_matches_again_and_revises(runs):
    judge = {"G1": 9, "G4": lambda asked: 9 if asked.results("get_order") else 2}
    shop = Shop(make_calls(LOOK_UP), "It is late.", judge=judge, reply="Sorry, it is late.")
    state = runs.invoke(shop.app, {"messages": [("user", "Where is A-1?")]}, THREAD)
    assert (get_reply(state), RAN) == ("Sorry, it is late.", [("get_order", "A-1")])
    assert [call.module for call in shop.guideline_model.calls] == ["matcher", "matcher", "message"]
    for number, expected in enumerate([["G1"], ["G1", "G4"]]):
        active = shop.get_prompt(number).section("active_guidelines")
        assert [guideline["id"] for guideline in active] == expected
    assert get_prompts(shop.guideline_model, "message")[0].section("draft") == "It is late."
    assert {record["guideline"] for record in state["applied_guidelines"]} == {"G1", "G4"}


def test_a_confirmation_question_stands_below_the_reply_and_the_call_runs_after_a_yes(runs):
    shop = Shop(make_calls(CANCEL), "It is done.", judge={"G2": 9}, reply=["Sure.", "Done."])
    for text, reply in (("Cancel A-1", f"Sure.\n\n{QUESTION}"), ("Yes", "Done.")):
        state = runs.invoke(shop.app, {"messages": [("user", text)]}, THREAD)
        assert get_reply(state) == reply
    assert RAN == [("cancel_order", "A-1")]
    # A name with a space is refused by some providers, and the agent's model is sent these messages.
    assert not any(" " in (message.name or "") for message in state["messages"])


def test_a_pending_call_can_be_proposed_again_whatever_is_active_now():
    shop = Shop(
        make_calls(CANCEL), make_calls(CANCEL, LOOK_UP), "It is late.", judge={"G1": 9, "G2": 9}, reply="Hm."
    )
    shop.say("Cancel A-1")
    shop.judge["G2"] = 2
    assert get_reply(shop.say("Where is it?")).endswith(QUESTION)
    assert shop.get_offered_tools(1) == shop.get_offered_tools(2) == {"get_order", "cancel_order"}
    pending = [{"tool": "cancel_order", "arguments": A1}]
    before, after = shop.get_prompt(1).now, shop.get_prompt(2).now
    assert (before.get("awaiting_agreement"), before.get("put_below_your_reply")) == (pending, None)
    assert (after.get("awaiting_agreement"), after.get("put_below_your_reply")) == (None, pending)


def test_after_a_failure_the_other_calls_are_confirmed_again_once_each():
    both = make_calls(*(("cancel_order", {"order_id": order}) for order in ("broken", "A-1")))
    shop = Shop(both, make_calls(LOOK_UP), "It failed.", judge={"G1": 9, "G2": 9}, rules={"revising": None})
    shop.say("Cancel both")
    events = list(shop.app.stream({"messages": [("user", "Yes")]}, THREAD, stream_mode="custom"))
    reply = shop.app.get_state(THREAD).values["messages"][-1].text
    assert (reply, RAN) == (f"It failed.\n\n{QUESTION}", [("cancel_order", "broken"), ("get_order", "A-1")])
    assert [event.question for event in events if event.type == "confirmation_asked"] == [QUESTION]


def test_the_prompt_lists_an_agreed_call_that_can_no_longer_run():
    is_active = [True]
    guideline = Guideline(lambda _: is_active[0], "cancel it", tools=[cancel_order])
    agent = DESK.replace(guidelines=[guideline])
    shop = Shop(make_calls(CANCEL), "I cannot cancel it.", agent=agent, reply="Hm.")
    shop.say("Cancel A-1")
    is_active[0] = False
    shop.say("Yes")
    (refused,) = shop.get_prompt(1).now["refused"]
    assert (refused["tool"], RAN) == ("cancel_order", [])
    assert "no guideline grants it any more" in refused["why"]


def test_the_model_is_offered_granted_tools_and_the_callers_own():
    shop = Shop("Hello.", tools=[weather], judge={"G2": 9})
    shop.say()
    assert shop.get_offered_tools() == {"cancel_order", "weather"}
    assert shop.get_prompt().now == {"needs_agreement": ["cancel_order"]}


class Watching(AgentMiddleware):
    """Checks that nobody changes the request."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        before = (request.model, list(request.tools), request.system_message, list(request.messages))
        answer = handler(request)
        assert before == (request.model, request.tools, request.system_message, request.messages)
        return answer


BLOCKS = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]


@pytest.mark.parametrize("prompt", [None, "Be brief.", SystemMessage(BLOCKS)], ids=["none", "text", "blocks"])
def test_the_rules_stand_behind_the_callers_prompt_and_the_request_is_not_changed(prompt):
    shop = Shop("Hello.", system_prompt=prompt, before=[Watching()], tools=[weather])
    shop.say()
    (system,) = [message for message in shop.agent_model.calls[0].messages if message.type == "system"]
    prompt_sent = shop.get_prompt()
    assert prompt_sent.section("active_guidelines") == [
        {"id": "G1", "condition": "they ask", "action": "look it up", "priority": 2}
    ]
    assert prompt_sent.section("variables")[0]["value"] == "gold"
    assert prompt_sent.section("profile")["text"] == "You help with orders."
    if prompt is not None:
        assert system.text.startswith("Be brief.")
    if isinstance(prompt, SystemMessage):
        assert system.content[0] == BLOCKS[0]


def ask_about(*tools: str) -> HumanInTheLoopMiddleware:
    return HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(tools, True))


def test_an_operator_decides_only_on_calls_that_pass_the_gate_and_on_agreed_ones():
    human = ask_about("get_order", "cancel_order", "refund")
    shop = Shop(
        make_calls(REFUND, LOOK_UP, CANCEL), "Late.", judge={"G1": 9, "G2": 9}, reply="Hm.", before=[human]
    )
    (request,) = shop.say()["__interrupt__"][0].value["action_requests"]
    assert request["name"] == "get_order"
    state = shop.app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert (get_reply(state).endswith(QUESTION), RAN) == (True, [("get_order", "A-1")])
    (request,) = shop.say("Yes")["__interrupt__"][0].value["action_requests"]
    assert request["name"] == "cancel_order"
    assert RAN == [("get_order", "A-1")]


def test_a_call_that_an_operator_edits_passes_the_gate_too():
    shop = Shop(make_calls(LOOK_UP), "Hm.", before=[ask_about("get_order")])
    shop.say()
    edit = {"type": "edit", "edited_action": {"name": "refund", "args": A1}}
    state = shop.app.invoke(Command(resume={"decisions": [edit]}), THREAD)
    assert (get_results(state), RAN) == ([("refund", "error")], [])


def test_an_operator_cannot_edit_a_call_that_the_customer_agreed_to():
    shop = Shop(make_calls(CANCEL), "Hm.", judge={"G2": 9}, reply="Hm.", before=[ask_about("cancel_order")])
    shop.say("Cancel A-1")
    shop.say("Yes")
    edit = {"type": "edit", "edited_action": {"name": "cancel_order", "args": {"order_id": "A-2"}}}
    state = shop.app.invoke(Command(resume={"decisions": [edit]}), THREAD)
    assert (get_results(state), RAN) == ([("cancel_order", "error")], [])
    assert "not the call that was agreed to" in state["messages"][-2].text


def test_an_operators_confirmation_needs_no_further_middleware(runs):
    agent = DESK.replace(confirm={"get_order": "operator"})
    shop = Shop(make_calls(LOOK_UP), "It is late.", agent=agent)
    waiting = runs.invoke(shop.app, {"messages": [("user", "Where is A-1?")]}, THREAD)
    (request,) = waiting["__interrupt__"][0].value["action_requests"]
    assert ((request["name"], request["args"]), RAN) == (LOOK_UP, [])
    runs.invoke(shop.app, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert RAN == [("get_order", "A-1")]


def test_a_hook_that_a_subclass_extends_has_an_async_twin():
    class Mine(GuidelineMiddleware):
        async def aafter_model(self, state: Any, runtime: Any) -> Any:
            return await super().aafter_model(state, runtime)

    rules = Mine(brain({"G1": 9}), DESK.replace(confirm={"get_order": "operator"}), mode="direct")
    app = create_agent(
        ScriptedChatModel([make_calls(LOOK_UP)]), middleware=[rules], checkpointer=MemorySaver()
    )
    state = asyncio.run(app.ainvoke({"messages": [("user", "Where is A-1?")]}, THREAD))
    assert ("__interrupt__" in state, RAN) == (True, [])


def test_a_forged_call_in_the_thread_is_refused_where_tools_run(runs):
    class Forging(AgentMiddleware):
        def after_model(self, state: Any, runtime: Any) -> Any:
            if len(state["messages"]) >= 3:
                return None
            return {"messages": [make_calls(REFUND, CANCEL, ("weather", {}))]}

    shop = Shop("Hello.", "Hello again.", before=[Forging()], tools=[weather])
    state = runs.invoke(shop.app, {"messages": [("user", "Hi")]}, THREAD)
    assert get_results(state) == [("refund", "error"), ("cancel_order", "error"), ("weather", "success")]
    assert RAN == [("weather",)]


def test_callers_cannot_write_records_or_variables():
    match = {"agent": "Order desk", "guideline": "G3", "turn": "h1", "active": True, "matched": True}
    shop = Shop(make_calls(REFUND), "No.", "No.", judge={})
    message = HumanMessage("Pay!", id="h1")
    given = {"messages": [message], "guideline_matches": [match], "variables": {"tier": "owner"}}
    state = shop.app.invoke(given, THREAD)
    assert (RAN, state["variables"], shop.get_offered_tools()) == ([], {}, set())
    assert set(shop.app.get_input_jsonschema()["properties"]) == {"messages"}


def test_a_model_whose_calls_are_all_refused_is_asked_once_more_with_the_reasons():
    shop = Shop(make_calls(REFUND, ("get_order", {})), "Which order?", reply={"content": ""})
    state = shop.app.invoke({"messages": [("user", "Hi")]}, THREAD)
    assert (get_reply(state), RAN, get_results(state)) == ("Which order?", [], [])
    refusals = [message.text for message in shop.agent_model.calls[1].messages if message.type == "tool"]
    assert ["no active guideline grants it" in refusals[0], refusals[1]] == [True, "order_id is missing"]
    verdicts = {insight["tool"]: insight["kind"] for insight in state["tool_insights"]}
    assert verdicts == {"refund": "declined", "get_order": "missing"}


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


def test_the_newest_proposal_for_a_tool_counts():
    shop = Shop(make_calls(("cancel_order", {})), make_calls(CANCEL), judge={"G2": 9}, reply="Hm.")
    assert [insight["kind"] for insight in shop.say()["tool_insights"]] == ["confirm"]


def test_a_faulty_call_beside_one_that_runs_is_not_a_question_to_the_customer():
    shop = Shop(make_calls(LOOK_UP, ("cancel_order", {})), "It is late.", judge={"G1": 9, "G2": 9})
    events = list(shop.app.stream({"messages": [("user", "Hi")]}, THREAD, stream_mode="custom"))
    first = next(event for event in events if event.type == "tools_decided")
    verdicts = [(decision.tool, decision.kind) for decision in first.decisions]
    assert verdicts == [("get_order", "run"), ("cancel_order", "declined")]


@pytest.mark.parametrize(("revising", "sent"), [(Revising(), "This is answer 1."), (None, "I cannot say.")])
def test_a_model_that_only_proposes_refused_calls_is_asked_twice(revising, sent):
    shop = Shop(*[make_calls(REFUND)] * 2, rules={"revising": revising})
    assert (get_reply(shop.say()), len(shop.agent_model.calls)) == (sent, 2)


def test_the_same_call_is_made_once_and_malformed_arguments_are_reported():
    broken = {"name": "get_order", "args": "{", "id": "x", "error": None, "type": "invalid_tool_call"}
    shop = Shop(AIMessage("", invalid_tool_calls=[broken]), make_calls(LOOK_UP, LOOK_UP), "Late.")
    state = shop.say()
    assert RAN == [("get_order", "A-1")]
    assert "no JSON" in shop.agent_model.calls[1].messages[-1].text
    assert [len(message.tool_calls) for message in state["messages"] if message.type == "ai"] == [1, 0]


def test_arguments_that_the_tool_parses_alike_are_the_same_call():
    paid: list[int] = []

    def pay(euros: int) -> str:
        """Pay."""
        paid.append(euros)
        return "paid"

    agent = Agent("Desk", "You pay.", [Guideline("they ask", "pay", tools=[pay])])
    calls = [("pay", {"euros": euros}) for euros in (1, "1", 1.0)]
    Shop(make_calls(*calls), "Done.", agent=agent).say()
    assert paid == [1]


def test_an_argument_that_the_question_would_not_show_is_refused():
    hidden = ("cancel_order", {"order_id": "A-1", "of_customer": "Mallory"})
    shop = Shop(make_calls(hidden), "Which order?", judge={"G2": 9})
    assert "Reply yes" not in get_reply(shop.say())
    assert "the tool has no argument 'of_customer'" in shop.agent_model.calls[1].messages[-1].text


def test_a_call_beside_another_one_is_confirmed_when_the_turn_ends():
    judge = {"G1": 9, "G2": 9}
    shop = Shop(make_calls(LOOK_UP, CANCEL, REFUND), "It is late.", judge=judge, reply="It is late.")
    assert get_reply(shop.say()) == f"It is late.\n\n{QUESTION}"
    assert [call["tool"] for call in shop.get_prompt(1).now["refused"]] == ["refund"]
    assert shop.get_prompt(1).now["put_below_your_reply"] == [{"tool": "cancel_order", "arguments": A1}]
    other = Shop(
        make_calls(LOOK_UP, CANCEL),
        make_calls(("cancel_order", {"order_id": "A-2"})),
        judge=judge,
        reply="Hm.",
    )
    assert get_reply(other.say()).splitlines()[2:-1] == ['Cancel order (order id: "A-2")']


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


class Answer(BaseModel):
    """The answer."""

    status: str


STATUS = ("Answer", {"status": "late"})


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


def make_constant_model(answer: Any) -> ScriptedChatModel:
    """Return a model that always gives this answer."""
    return ScriptedChatModel(lambda _: answer)


ANSWERS = [make_calls(LOOK_UP), "It is late.", make_calls(CANCEL), "It is done."]
RETRY: Any = {"max_retries": 1, "initial_delay": 0, "jitter": False}
TO_CLEAR = langchains.ClearToolUsesEdit(trigger=1, keep=0)
SELECTED = {"tools": ["get_order", "cancel_order"]}
OTHER_MIDDLEWARE: dict[str, tuple[Any, str]] = {
    "operator": (lambda: ask_about("get_order", "cancel_order"), "before"),
    "personal data": (lambda: langchains.PIIMiddleware("email", apply_to_output=True), "before"),
    "model calls": (lambda: langchains.ModelCallLimitMiddleware(run_limit=2), "before"),
    "tool calls": (lambda: langchains.ToolCallLimitMiddleware(run_limit=1), "before"),
    "clear results": (lambda: langchains.ContextEditingMiddleware(edits=[TO_CLEAR]), "before"),
    "other model": (lambda: langchains.ModelFallbackMiddleware(ScriptedChatModel(ANSWERS)), "before"),
    "prompt": (lambda: langchains.dynamic_prompt(lambda request: "Be brief."), "before"),
    "summary": (
        lambda: SummarizationMiddleware(
            make_constant_model("-"), trigger=("messages", 6), keep=("messages", 2)
        ),
        "before",
    ),
    "todo list": (TodoListMiddleware, "before"),
    "choice of tools": (
        lambda: langchains.LLMToolSelectorMiddleware(model=make_constant_model(SELECTED)),
        "behind",
    ),
    "model again": (lambda: langchains.ModelRetryMiddleware(**RETRY), "behind"),
    "tool error": (lambda: langchains.ToolErrorMiddleware(lambda error, call: "it failed"), "behind"),
    "tool again": (lambda: langchains.ToolRetryMiddleware(**RETRY), "behind"),
    "emulated tools": (
        lambda: langchains.LLMToolEmulator(tools=["weather"], model=make_constant_model("sunny")),
        "behind",
    ),
}


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(list(OTHER_MIDDLEWARE), id="all"),
        *(pytest.param([kind], marks=pytest.mark.slow, id=kind) for kind in OTHER_MIDDLEWARE),
    ],
)
@pytest.mark.parametrize("runs", ["async"], indirect=True)
def test_a_conversation_is_the_same_beside_other_middleware(kinds, runs):
    placed: dict[str, list[Any]] = {"before": [], "behind": []}
    for kind in kinds:
        make_middleware, place = OTHER_MIDDLEWARE[kind]
        placed[place].append(make_middleware())
    down = [ValueError("down")] * {"other model": 9, "model again": 1}.get(kinds[-1], 0)
    shop = Shop(*down, *ANSWERS, judge={"G1": 9, "G2": 9}, reply="Well.", **placed)
    replies = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for text in ("Where is A-1?", "Cancel A-1", "Yes"):
            state = runs.invoke(shop.app, {"messages": [("user", text)]}, THREAD)
            if "__interrupt__" in state:
                approval: Any = Command(resume={"decisions": [{"type": "approve"}]})
                state = runs.invoke(shop.app, approval, THREAD)
            replies.append(get_reply(state))
    assert replies == ["Well.", f"Well.\n\n{QUESTION}", "Well."]
    assert RAN == [("get_order", "A-1"), ("cancel_order", "A-1")]
    assert all(Prompt(call).section("active_guidelines") for call in shop.agent_model.calls)


def test_a_summary_behind_the_matching_warns_how_to_correct_it():
    summary = SummarizationMiddleware(make_constant_model("-"), trigger=("messages", 3), keep=("messages", 2))
    shop = Shop(make_calls(LOOK_UP), "Late.", behind=[summary])
    with pytest.warns(UserWarning, match=r"GuidelineMiddleware\) belongs behind .* such as a summary"):
        shop.say()


def test_matching_and_revising_take_settings_and_models_of_their_own():
    matcher, message = (ScriptedChatModel(Brain({"G1": 9})) for _ in range(2))
    models = {"matcher": matcher, "message": message}
    rules = GuidelineMiddleware(models, DESK, matching=Matching(batch_size=1))
    create_agent(ScriptedChatModel(["Hi."]), middleware=[rules]).invoke({"messages": [("user", "Hi")]})
    assert [call.module for call in matcher.calls] == ["matcher"] * 4
    assert [call.module for call in message.calls] == ["message"]


def test_without_langchain_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    monkeypatch.delitem(sys.modules, "arq_graph.middleware")
    with pytest.raises(ImportError, match=r"pip install \"arq_graph\[middleware\]\""):
        importlib.import_module("arq_graph.middleware")
