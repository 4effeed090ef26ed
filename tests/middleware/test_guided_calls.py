"""Guidelines for an agent of `create_agent`: its prompts, its tools and its calls; `tests/agreement` has more."""

import asyncio
import importlib
import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Agent, Guideline, Matching, Revising, ScriptedChatModel
from arq_graph.middleware import GuidelineMiddleware
from tests.brain import Brain, brain, get_prompts
from tests.middleware.shop import (
    A1,
    CANCEL,
    DESK,
    LOOK_UP,
    QUESTION,
    RAN,
    REFUND,
    THREAD,
    Shop,
    ask_about,
    cancel_order,
    get_reply,
    get_results,
    make_calls,
    weather,
)


def test_a_turn_matches_looks_up_matches_again_and_revises(runs):
    judge = {"G1": 9, "G4": lambda prompt: 9 if prompt.results("get_order") else 2}
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
    assert "no guideline grants it now" in refused["why"]


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
