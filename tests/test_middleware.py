"""Guidelines for an agent of LangChain's `create_agent`: what it is told and offered, what runs, and what is sent.

What holds of agreement under every strategy is tried with the middleware too, in `tests/agreement`.
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
from tests.brain import Asked, Brain, asked_by, brain

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
LOOK, CANCEL, REFUND = (("get_order", A1), ("cancel_order", A1), ("refund", A1))


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def calls(*made: tuple[str, dict[str, Any]], text: Any = "", **fields: Any) -> AIMessage:
    """A message of the agent's model that makes calls, named `c0`, `c1`, …"""
    called = [tool_call(name=name, args=args, id=f"c{at}") for at, (name, args) in enumerate(made)]
    return AIMessage(text, tool_calls=called, **fields)


class Shop:
    """An agent of `create_agent` under the desk's guidelines: `own` is what its model answers, one at a time."""

    def __init__(
        self,
        *own: Any,
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
        self.ours = ScriptedChatModel(Brain(self.judge, reply=reply))
        self.own = kind(own)
        self.rules = GuidelineMiddleware(self.ours, agent, mode="direct", **(rules or {}))
        options = {"checkpointer": MemorySaver(), **options}
        self.app: Any = create_agent(self.own, middleware=[*before, self.rules, *behind], **options)

    def say(self, text: str = "Where is A-1?", **given: Any) -> Any:
        return self.app.invoke({"messages": [HumanMessage(text)], **given}, THREAD)

    def offered(self, number: int = 0) -> set[str]:
        """The tools of a call of the agent's model."""
        return {tool["function"]["name"] for tool in self.own.calls[number].kwargs.get("tools", ())}

    def told(self, number: int = 0) -> Asked:
        """What a call of the agent's model was told."""
        return Asked(self.own.calls[number])


def last(state: Any) -> str:
    return str(state["messages"][-1].text)


def results(state: Any) -> list[tuple[str, str]]:
    return [(message.name, message.status) for message in state["messages"] if message.type == "tool"]


def test_a_turn_matches_looks_up_matches_again_and_revises(runs):
    judge = {"G1": 9, "G4": lambda asked: 9 if asked.results("get_order") else 2}
    shop = Shop(calls(LOOK), "It is late.", judge=judge, reply="Sorry, it is late.")
    state = runs.invoke(shop.app, {"messages": [("user", "Where is A-1?")]}, THREAD)
    assert (last(state), RAN) == ("Sorry, it is late.", [("get_order", "A-1")])
    assert [call.module for call in shop.ours.calls] == ["matcher", "matcher", "message"]
    active = [[each["id"] for each in shop.told(n).section("active_guidelines")] for n in (0, 1)]
    assert active == [["G1"], ["G1", "G4"]]
    assert asked_by(shop.ours, "message")[0].section("draft") == "It is late."
    assert {each["guideline"] for each in state["applied_guidelines"]} == {"G1", "G4"}


def test_code_asks_about_a_call_below_the_reply_and_runs_it_after_a_yes(runs):
    shop = Shop(calls(CANCEL), "It is done.", judge={"G2": 9}, reply=["Sure.", "Done."])
    said = [runs.invoke(shop.app, {"messages": [("user", text)]}, THREAD) for text in ("Cancel A-1", "Yes")]
    assert [last(state) for state in said] == [f"Sure.\n\n{QUESTION}", "Done."]
    assert RAN == [("cancel_order", "A-1")]
    # A name with a space is refused by some providers, and the agent's model is sent these messages.
    assert not any(" " in (message.name or "") for message in said[1]["messages"])


def test_a_pending_call_can_be_proposed_again_whatever_is_active_now():
    shop = Shop(calls(CANCEL), calls(CANCEL, LOOK), "It is late.", judge={"G1": 9, "G2": 9}, reply="Hm.")
    shop.say("Cancel A-1")
    shop.judge["G2"] = 2
    assert last(shop.say("Where is it?")).endswith(QUESTION)
    assert shop.offered(1) == shop.offered(2) == {"get_order", "cancel_order"}
    waits = [{"tool": "cancel_order", "arguments": A1}]
    kinds = ("awaiting_agreement", "put_below_your_reply")
    assert [shop.told(1).now.get(kind) for kind in kinds] == [waits, None]
    assert [shop.told(2).now.get(kind) for kind in kinds] == [None, waits]


def test_after_a_failure_code_asks_about_the_other_calls_again_once_each():
    both = calls(*(("cancel_order", {"order_id": order}) for order in ("broken", "A-1")))
    shop = Shop(both, calls(LOOK), "It failed.", judge={"G1": 9, "G2": 9}, rules={"revising": None})
    shop.say("Cancel both")
    events = list(shop.app.stream({"messages": [("user", "Yes")]}, THREAD, stream_mode="custom"))
    put = shop.app.get_state(THREAD).values["messages"][-1].text
    assert (put, RAN) == (f"It failed.\n\n{QUESTION}", [("cancel_order", "broken"), ("get_order", "A-1")])
    assert [event.question for event in events if event.type == "confirmation_asked"] == [QUESTION]


def test_the_prompt_lists_an_agreed_call_that_can_no_longer_run():
    holds = [True]
    agent = DESK.replace(guidelines=[Guideline(lambda _: holds[0], "cancel it", tools=[cancel_order])])
    shop = Shop(calls(CANCEL), "I cannot cancel it.", agent=agent, reply="Hm.")
    shop.say("Cancel A-1")
    holds[0] = False
    shop.say("Yes")
    (refused,) = shop.told(1).now["refused"]
    assert (refused["tool"], RAN) == ("cancel_order", [])
    assert "no guideline grants it any more" in refused["why"]


def test_the_model_is_offered_what_is_granted_and_the_tools_of_ones_own():
    shop = Shop("Hello.", tools=[weather], judge={"G2": 9})
    shop.say()
    assert shop.offered() == {"cancel_order", "weather"}
    assert shop.told().now == {"needs_agreement": ["cancel_order"]}


class Watching(AgentMiddleware):
    """Looks at the request that it hands on, and at the answer."""

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
    (system,) = [message for message in shop.own.calls[0].messages if message.type == "system"]
    asked = shop.told()
    assert asked.section("active_guidelines") == [
        {"id": "G1", "condition": "they ask", "action": "look it up", "priority": 2}
    ]
    assert asked.section("variables")[0]["value"] == "gold"
    assert asked.section("profile")["text"] == "You help with orders."
    if prompt is not None:
        assert system.text.startswith("Be brief.")
    if isinstance(prompt, SystemMessage):
        assert system.content[0] == BLOCKS[0]


def ask_about(*tools: str) -> HumanInTheLoopMiddleware:
    return HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(tools, True))


def test_an_operator_is_asked_only_about_calls_that_pass_the_gate_and_about_an_agreed_one():
    human = ask_about("get_order", "cancel_order", "refund")
    shop = Shop(calls(REFUND, LOOK, CANCEL), "Late.", judge={"G1": 9, "G2": 9}, reply="Hm.", before=[human])
    asked = [shop.say()["__interrupt__"][0].value["action_requests"]]
    put = shop.app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert (last(put).endswith(QUESTION), RAN) == (True, [("get_order", "A-1")])
    asked.append(shop.say("Yes")["__interrupt__"][0].value["action_requests"])
    assert [[each["name"] for each in request] for request in asked] == [["get_order"], ["cancel_order"]]
    assert RAN == [("get_order", "A-1")]


def test_a_call_that_an_operator_edits_passes_the_gate_too():
    shop = Shop(calls(LOOK), "Hm.", before=[ask_about("get_order")])
    shop.say()
    edit = {"type": "edit", "edited_action": {"name": "refund", "args": A1}}
    state = shop.app.invoke(Command(resume={"decisions": [edit]}), THREAD)
    assert (results(state), RAN) == ([("refund", "error")], [])


def test_an_operator_cannot_edit_a_call_that_the_customer_agreed_to():
    shop = Shop(calls(CANCEL), "Hm.", judge={"G2": 9}, reply="Hm.", before=[ask_about("cancel_order")])
    shop.say("Cancel A-1")
    shop.say("Yes")
    edit = {"type": "edit", "edited_action": {"name": "cancel_order", "args": {"order_id": "A-2"}}}
    state = shop.app.invoke(Command(resume={"decisions": [edit]}), THREAD)
    assert (results(state), RAN) == ([("cancel_order", "error")], [])
    assert "not the call that was agreed to" in state["messages"][-2].text


def test_an_operator_of_the_specifications_is_asked_without_further_middleware(runs):
    agent = DESK.replace(confirm={"get_order": "operator"})
    shop = Shop(calls(LOOK), "It is late.", agent=agent)
    waiting = runs.invoke(shop.app, {"messages": [("user", "Where is A-1?")]}, THREAD)
    (request,) = waiting["__interrupt__"][0].value["action_requests"]
    assert ((request["name"], request["args"]), RAN) == (LOOK, [])
    runs.invoke(shop.app, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert RAN == [("get_order", "A-1")]


def test_a_hook_that_a_subclass_extends_has_an_async_twin():
    class Mine(GuidelineMiddleware):
        async def aafter_model(self, state: Any, runtime: Any) -> Any:
            return await super().aafter_model(state, runtime)

    rules = Mine(brain({"G1": 9}), DESK.replace(confirm={"get_order": "operator"}), mode="direct")
    app = create_agent(ScriptedChatModel([calls(LOOK)]), middleware=[rules], checkpointer=MemorySaver())
    state = asyncio.run(app.ainvoke({"messages": [("user", "Where is A-1?")]}, THREAD))
    assert ("__interrupt__" in state, RAN) == (True, [])


def test_a_call_that_somebody_wrote_into_the_thread_is_refused_where_tools_run(runs):
    class Forging(AgentMiddleware):
        def after_model(self, state: Any, runtime: Any) -> Any:
            return (
                {"messages": [calls(REFUND, CANCEL, ("weather", {}))]} if len(state["messages"]) < 3 else None
            )

    shop = Shop("Hello.", "Hello again.", before=[Forging()], tools=[weather])
    state = runs.invoke(shop.app, {"messages": [("user", "Hi")]}, THREAD)
    assert results(state) == [("refund", "error"), ("cancel_order", "error"), ("weather", "success")]
    assert RAN == [("weather",)]


def test_callers_cannot_write_records_or_variables():
    match = {"agent": "Order desk", "guideline": "G3", "turn": "h1", "active": True, "matched": True}
    shop = Shop(calls(REFUND), "No.", "No.", judge={})
    message = HumanMessage("Pay!", id="h1")
    given = {"messages": [message], "guideline_matches": [match], "variables": {"tier": "owner"}}
    state = shop.app.invoke(given, THREAD)
    assert (RAN, state["variables"], shop.offered()) == ([], {}, set())
    assert set(shop.app.get_input_jsonschema()["properties"]) == {"messages"}


def test_a_model_whose_calls_are_all_refused_is_asked_once_more_with_the_reasons():
    shop = Shop(calls(REFUND, ("get_order", {})), "Which order?", reply={"content": ""})
    state = shop.app.invoke({"messages": [("user", "Hi")]}, THREAD)
    assert (last(state), RAN, results(state)) == ("Which order?", [], [])
    refusals = [message.text for message in shop.own.calls[1].messages if message.type == "tool"]
    assert ["no active guideline grants it" in refusals[0], refusals[1]] == [True, "order_id is missing"]
    kinds = {each["tool"]: each["kind"] for each in state["tool_insights"]}
    assert kinds == {"refund": "declined", "get_order": "missing"}


@pytest.mark.parametrize("runs", ["sync"], indirect=True)
def test_a_tools_result_is_never_sent_in_the_place_of_the_reply(runs):
    @tool(return_direct=True)
    def read_record(order_id: str) -> str:
        """Read what is kept of an order."""
        return "owes us 5"

    agent = Agent("Order desk", "You help.", [Guideline("they ask", "look it up", tools=[read_record])])
    call = ("read_record", A1)
    theirs = create_guided_agent(brain({"G1": 9}, {"read_record": A1}, "It is late."), agent, mode="direct")
    for app in (Shop(calls(call), "Late.", agent=agent, reply="It is late.").app, theirs):
        state = runs.invoke(app, {"messages": [("user", "Where is A-1?")]}, THREAD)
        assert (results(state), last(state)) == ([("read_record", "success")], "It is late.")
    assert agent.toolbox["read_record"].return_direct  # for whoever else runs it


def test_the_newest_proposal_for_a_tool_counts():
    shop = Shop(calls(("cancel_order", {})), calls(CANCEL), judge={"G2": 9}, reply="Hm.")
    assert [each["kind"] for each in shop.say()["tool_insights"]] == ["confirm"]


def test_a_faulty_call_beside_one_that_runs_is_not_a_question_to_the_customer():
    shop = Shop(calls(LOOK, ("cancel_order", {})), "It is late.", judge={"G1": 9, "G2": 9})
    events = list(shop.app.stream({"messages": [("user", "Hi")]}, THREAD, stream_mode="custom"))
    first = next(event for event in events if event.type == "tools_decided")
    assert [(each.tool, each.kind) for each in first.decisions] == [
        ("get_order", "run"),
        ("cancel_order", "declined"),
    ]


@pytest.mark.parametrize(("revising", "sent"), [(Revising(), "This is answer 1."), (None, "I cannot say.")])
def test_a_model_that_only_proposes_refused_calls_is_asked_twice(revising, sent):
    shop = Shop(*[calls(REFUND)] * 2, rules={"revising": revising})
    assert (last(shop.say()), len(shop.own.calls)) == (sent, 2)


def test_the_same_call_is_made_once_and_malformed_arguments_are_reported():
    broken = {"name": "get_order", "args": "{", "id": "x", "error": None, "type": "invalid_tool_call"}
    shop = Shop(AIMessage("", invalid_tool_calls=[broken]), calls(LOOK, LOOK), "Late.")
    state = shop.say()
    assert RAN == [("get_order", "A-1")]
    assert "no JSON" in shop.own.calls[1].messages[-1].text
    assert [len(message.tool_calls) for message in state["messages"] if message.type == "ai"] == [1, 0]


def test_arguments_that_the_tool_reads_alike_are_the_same_call():
    paid: list[int] = []

    def pay(euros: int) -> str:
        """Pay."""
        paid.append(euros)
        return "paid"

    agent = Agent("Desk", "You pay.", [Guideline("they ask", "pay", tools=[pay])])
    Shop(calls(*(("pay", {"euros": each}) for each in (1, "1", 1.0))), "Done.", agent=agent).say()
    assert paid == [1]


def test_an_argument_that_the_question_would_not_show_is_refused():
    hidden = ("cancel_order", {"order_id": "A-1", "of_customer": "Mallory"})
    shop = Shop(calls(hidden), "Which order?", judge={"G2": 9})
    assert "Reply yes" not in last(shop.say())
    assert "the tool has no argument 'of_customer'" in shop.own.calls[1].messages[-1].text


def test_code_asks_about_a_call_beside_another_one_when_the_turn_ends():
    judge = {"G1": 9, "G2": 9}
    shop = Shop(calls(LOOK, CANCEL, REFUND), "It is late.", judge=judge, reply="It is late.")
    assert last(shop.say()) == f"It is late.\n\n{QUESTION}"
    assert [each["tool"] for each in shop.told(1).now["refused"]] == ["refund"]
    assert shop.told(1).now["put_below_your_reply"] == [{"tool": "cancel_order", "arguments": A1}]
    other = Shop(calls(LOOK, CANCEL), calls(("cancel_order", {"order_id": "A-2"})), judge=judge, reply="Hm.")
    assert last(other.say()).splitlines()[2:-1] == ['Cancel order (order id: "A-2")']


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
    uses = [{"type": kind, "name": name, **ids(id)} for id, (name, _) in (("c0", LOOK), ("c1", REFUND))]
    blocks = [thinking, {"type": "text", "text": "It comes today!"}, *uses]
    raw = {"tool_calls": ["both, as the provider has them"]}
    metadata = {"id": "resp_1", "model_name": "m"}
    made = calls(LOOK, REFUND, text=blocks, additional_kwargs=raw, response_metadata=metadata)
    asking = Shop(made, "Late.", rules={"revising": revising}).say()["messages"][1]
    kinds = [block["type"] for block in asking.content]
    assert kinds == (["thinking", kind] if revising else ["thinking", "text", kind])
    assert [call["name"] for call in asking.tool_calls] == ["get_order"]
    assert (asking.additional_kwargs, asking.response_metadata) == ({}, {"model_name": "m"})
    plain = Shop(calls(LOOK, text="It comes today!"), "Late.", rules={"revising": revising}).say()[
        "messages"
    ][1]
    assert plain.text == ("" if revising else "It comes today!")


class Tokens(ScriptedChatModel):
    """A model that streams: what it says word by word, then its calls."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        said: Any = self._generate(messages, stop, run_manager, **kwargs).generations[0].message
        for word in (*said.text.split(" "), ""):
            yield ChatGenerationChunk(
                message=AIMessageChunk(word, tool_calls=[] if word else said.tool_calls)
            )


def streamed(runs: Any, shop: Shop, text: str = "Hi") -> tuple[list[str], list[Any]]:
    """What streams, the tokens apart from whole messages."""
    given = {"messages": [("user", text)]}
    parts = [message for message, _ in runs.stream(shop.app, given, THREAD, stream_mode="messages")]
    tokens = [part.text for part in parts if isinstance(part, AIMessageChunk)]
    return tokens, [part.text for part in parts if part.type == "ai"]


@pytest.mark.parametrize("runs", ["async"], indirect=True)
def test_a_draft_that_is_revised_does_not_stream(runs):
    for judge in ({"G1": 9}, {}):  # with a tool that may be called, and without
        shop = Shop("It comes today!", kind=Tokens, judge=judge, reply="I do not know.")
        assert streamed(runs, shop) == ([], ["I do not know."])
    form = ToolStrategy(Answer)
    for end in (calls(STATUS, text="Late."), "It is late."):
        shop = Shop(calls(LOOK, text="It comes today!"), end, kind=Tokens, reply="Hm.", response_format=form)
        tokens, said = streamed(runs, shop)
        assert (tokens, set(said)) == ([], {"", "Hm."} if isinstance(end, str) else {""})


@pytest.mark.parametrize("runs", ["sync"], indirect=True)
def test_an_unrevised_text_streams_unless_code_may_refuse_or_ask_something(runs):
    shop = Shop("It comes today!", kind=Tokens, judge={}, rules={"revising": None})
    tokens, _ = streamed(runs, shop)
    modules = [call.module for call in shop.ours.calls]
    assert (tokens[:3], modules) == (["It", "comes", "today!"], ["matcher"])
    judge = {"G2": 9}
    shop = Shop(calls(CANCEL, text="Sure."), kind=Tokens, judge=judge, rules={"revising": None})
    assert streamed(runs, shop) == ([], [f"Sure.\n\n{QUESTION}"])
    shop = Shop(calls(REFUND, text="I pay it back."), "Which?", kind=Tokens, rules={"revising": None})
    assert streamed(runs, shop) == ([], ["Which?"])  # what is said beside a refused call is not sent
    both = calls(*(("cancel_order", {"order_id": order}) for order in ("broken", "A-1")), text="Sure.")
    shop = Shop(both, "Failed.", kind=Tokens, judge=judge, rules={"revising": None})
    shop.say("Cancel both")
    judge["G2"] = 2  # what is put again waits, whatever is granted now
    assert streamed(runs, shop, "Yes") == ([], ["", f"Failed.\n\n{QUESTION}"])


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
        (ToolStrategy(Answer), [calls(("Answer", {"state": "?"})), calls(STATUS)]),
        # LangChain loads OpenAI's client for it.
        pytest.param(ProviderStrategy(Answer), ['{"status": "late"}'], marks=pytest.mark.slow),
    ],
    ids=["tool", "provider"],
)
def test_a_structured_answer_stays_as_it_is_and_its_calls_pass_the_gate(form, answers):
    shop = Shop(calls(LOOK, REFUND), *answers, response_format=form)
    state = shop.say()
    assert (state["structured_response"], RAN) == (Answer(status="late"), [("get_order", "A-1")])
    made = [call["name"] for each in state["messages"] if each.type == "ai" for call in each.tool_calls]
    assert made == [name for name, _ in results(state)]  # none is left without a result
    assert "message" not in [call.module for call in shop.ours.calls]


@pytest.mark.parametrize(
    "own", [[calls(CANCEL)], [calls(LOOK, CANCEL), calls(STATUS)]], ids=["at once", "later"]
)
def test_codes_question_replaces_a_structured_answer(own):
    shop = Shop(*own, judge={"G1": 9, "G2": 9}, reply="Hm.", response_format=ToolStrategy(Answer))
    state = shop.say()
    assert (last(state), state["structured_response"]) == (f"Hm.\n\n{QUESTION}", None)
    assert not state["messages"][-1].tool_calls


def says(answer: Any) -> ScriptedChatModel:
    """A model that has one answer."""
    return ScriptedChatModel(lambda _: answer)


DONE = [calls(LOOK), "It is late.", calls(CANCEL), "It is done."]
BEFORE, BEHIND = ("before", "behind"), ("behind", "before")
AT_ONCE: Any = {"max_retries": 1, "initial_delay": 0, "jitter": False}
TO_CLEAR = langchains.ClearToolUsesEdit(trigger=1, keep=0)
CHOSEN = {"tools": ["get_order", "cancel_order"]}
BESIDE: dict[str, tuple[Any, tuple[str, ...]]] = {
    "operator": (lambda: ask_about("get_order", "cancel_order"), BEFORE),
    "personal data": (lambda: langchains.PIIMiddleware("email", apply_to_output=True), BEFORE),
    "model calls": (lambda: langchains.ModelCallLimitMiddleware(run_limit=2), BEFORE),
    "tool calls": (lambda: langchains.ToolCallLimitMiddleware(run_limit=1), BEFORE),
    "clear results": (lambda: langchains.ContextEditingMiddleware(edits=[TO_CLEAR]), BEFORE),
    "other model": (lambda: langchains.ModelFallbackMiddleware(ScriptedChatModel(DONE)), BEFORE),
    "prompt": (lambda: langchains.dynamic_prompt(lambda request: "Be brief."), BEFORE[:1]),
    "summary": (
        lambda: SummarizationMiddleware(says("-"), trigger=("messages", 6), keep=("messages", 2)),
        BEFORE[:1],
    ),
    "todo list": (TodoListMiddleware, BEFORE),
    "choice of tools": (lambda: langchains.LLMToolSelectorMiddleware(model=says(CHOSEN)), BEHIND),
    "model again": (lambda: langchains.ModelRetryMiddleware(**AT_ONCE), BEHIND),
    "tool error": (lambda: langchains.ToolErrorMiddleware(lambda error, call: "it failed"), BEHIND),
    "tool again": (lambda: langchains.ToolRetryMiddleware(**AT_ONCE), BEHIND),
    "emulated tools": (
        lambda: langchains.LLMToolEmulator(tools=["weather"], model=says("sunny")),
        BEHIND[:1],
    ),
}
PLACED = [(kind, place) for kind, (_, places) in BESIDE.items() for place in places]
FIRST = [(kind, places[0]) for kind, (_, places) in BESIDE.items()]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(FIRST, id="all"),
        *(pytest.param([each], marks=pytest.mark.slow, id=" ".join(each)) for each in PLACED),
    ],
)
@pytest.mark.parametrize("runs", ["async"], indirect=True)
def test_a_conversation_is_the_same_beside_other_middleware(others, runs):
    made = {where: [BESIDE[kind][0]() for kind, place in others if place == where] for where in BEFORE}
    down = [ValueError("down")] * {"other model": 9, "model again": 1}.get(others[-1][0], 0)
    shop = Shop(*down, *DONE, judge={"G1": 9, "G2": 9}, reply="Well.", **made)
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for text in ("Where is A-1?", "Cancel A-1", "Yes"):
            state = runs.invoke(shop.app, {"messages": [("user", text)]}, THREAD)
            if "__interrupt__" in state:
                approved = Command(resume={"decisions": [{"type": "approve"}]})
                state = runs.invoke(shop.app, approved, THREAD)
            said.append(last(state))
    assert said == ["Well.", f"Well.\n\n{QUESTION}", "Well."]
    assert RAN == [("get_order", "A-1"), ("cancel_order", "A-1")]
    assert all(Asked(call).section("active_guidelines") for call in shop.own.calls)


def test_a_summary_behind_the_matching_is_a_warning_with_its_cure():
    summary = SummarizationMiddleware(says("-"), trigger=("messages", 3), keep=("messages", 2))
    shop = Shop(calls(LOOK), "Late.", behind=[summary])
    with pytest.warns(UserWarning, match=r"GuidelineMiddleware\) belongs behind .* such as a summary"):
        shop.say()


def test_matching_and_revising_take_settings_and_models_of_their_own():
    matcher, message = (ScriptedChatModel(Brain({"G1": 9})) for _ in range(2))
    models = {"matcher": matcher, "message": message}
    guided = GuidelineMiddleware(models, DESK, matching=Matching(batch_size=1))
    create_agent(ScriptedChatModel(["Hi."]), middleware=[guided]).invoke({"messages": [("user", "Hi")]})
    assert [call.module for call in matcher.calls] == ["matcher"] * 4
    assert [call.module for call in message.calls] == ["message"]


def test_without_langchain_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    monkeypatch.delitem(sys.modules, "arq_graph.middleware")
    with pytest.raises(ImportError, match=r"pip install \"arq_graph\[middleware\]\""):
        importlib.import_module("arq_graph.middleware")
