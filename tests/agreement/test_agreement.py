"""What the customer must agree to: code's own question, a plain yes to it, and exactly the call in it."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from arq_graph import (
    Guideline,
    create_preact_agent,
    create_respact_agent,
)
from tests.agreement.desk import CANCEL, CANCELLED, QUESTION, THREAD, Desk
from tests.brain import act, say


def test_the_question_has_every_value_and_one_yes_runs_the_call_once(desk):
    assert desk.request().endswith(QUESTION)
    desk.judge["G1"] = 2  # "Yes" is no wish to cancel, taken by itself
    desk.send("Yes")
    assert desk.ran == CANCELLED
    desk.send("Yes")
    assert desk.ran == CANCELLED


YES = """
Yes | yes please | ja | 👍 | 👍🏾 | Ok, yes, cancel it please. | Oui ! | ＹＥＳ | D’accord | go ahead | ok, cancel it
"""
NO_YES = """
555-0134 | A-301 | Hmm | Biscuit | Yes, if it is free | yes but | ok? | Yes, A-2 | 👎 | Ok | no | Yes. Is there a fee?
of course you would | yes no | Yes 👎 | Yes, 5.10 | Great, thanks. Do you also groom parrots? | ja؟ | oui？ | yes⁉
Yes, from ACC-2 to ACC-1 | cancel it | Yes, book it | thanks | please | ... | y e s | yesyesyes | Yes; no | sí? sí
Yes, not | si | nein, ja
"""


def parse_answers(table: str, runs: bool) -> list[tuple[Any, bool]]:
    return [(answer.strip(), runs) for answer in table.replace("\n", "|").strip("|").split("|")]


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}}
OTHERS = [(other, False) for other in (QUESTION, "yes " * 500, [{"type": "text", "text": "yes"}, PICTURE])]


@pytest.mark.parametrize(
    ("answer", "runs"), [*parse_answers(YES, True), *parse_answers(NO_YES, False), *OTHERS], ids=str
)
def test_a_yes_runs_the_call_and_after_anything_else_the_customer_is_asked_again(tools_desk, answer, runs):
    tools_desk.request()
    assert tools_desk.send(answer).endswith(QUESTION) is not runs
    assert tools_desk.ran == (CANCELLED if runs else [])


@pytest.mark.parametrize("answer", ["Ok, forget it.", "Yes, forget it!"])
def test_giving_up_is_not_a_yes_even_in_the_tools_own_words(answer):
    forgotten: list[str] = []

    def forget_customer(name: str) -> str:
        """Forget a customer."""
        forgotten.append(name)
        return "forgotten"

    desk = Desk(tools=[forget_customer], confirm={"forget_customer": "customer"})
    desk.propose(forget_customer=[{"name": "Ann"}])
    assert desk.request("Forget me.").endswith('Forget customer (name: "Ann")\nReply yes to go ahead.')
    desk.send(answer)
    assert forgotten == []


def test_any_number_of_unclear_answers_may_come_before_a_yes(desk):
    desk.request()
    for unclear in ("Hmm", "Is there a fee?", "A-301", "Hm", "And then?"):
        assert desk.send(unclear).endswith(QUESTION)
    assert desk.ran == []
    desk.send("Ok, yes, cancel it please.")
    assert desk.ran == CANCELLED


def test_a_call_that_is_not_wanted_any_more_is_not_pending(desk):
    desk.reset(wants=False)
    desk.request()
    assert "Reply yes" not in desk.send("No, leave it.")
    desk.send("Yes")
    assert desk.ran == []


def test_changed_arguments_are_another_call_and_take_its_place(desk):
    desk.reset(wants=False)
    desk.request()
    desk.moves = [act("cancel_order", {"order_id": "A-2", "refund": False})]
    reply = desk.send("A-2, I mean, and no refund")
    assert reply.endswith('Cancel order (order id: "A-2", refund: no)\nReply yes to go ahead.')
    assert "A-1" not in reply
    desk.send("yes")
    assert desk.ran == [("A-2", False)]


def test_no_model_is_asked_for_the_call_that_was_agreed_to(desk):
    desk.request()
    before = desk.decisions
    for update in desk.app.stream({"messages": [HumanMessage("Yes")]}, THREAD, stream_mode="updates"):
        if "tools" in update:
            break
    assert (desk.decisions, desk.ran) == (before, CANCELLED)


def test_the_question_goes_alone_if_the_reply_asks_something_itself_or_is_empty(desk):
    desk.reset(reply="Sure？ Or rather not?")
    assert desk.request() == QUESTION
    desk.reset((CANCEL, say("")), reply="")
    assert desk.request() == QUESTION


def test_a_yes_before_the_question_or_to_another_message_runs_nothing(desk):
    desk.reset(moves=())
    desk.send("Yes")
    desk.moves = [CANCEL]
    desk.request("Yes, cancel A-1")
    desk.app.update_state(THREAD, {"messages": [AIMessage("By the way, it rains.")]})
    desk.send("Yes")
    assert desk.ran == []


@pytest.mark.filterwarnings("ignore:the last message of 'Desk' asks for a yes")
@pytest.mark.parametrize("changed", ["the message", "the agent of the record"])
def test_a_question_that_was_changed_after_it_was_sent_does_not_count(tools_desk, changed):
    tools_desk.request()
    sent = tools_desk.state["messages"][-1]
    other: dict[str, Any] = {"messages": [AIMessage("Do you like cake?", id=sent.id)]}
    if changed != "the message":
        other = {"agreements": [{**record, "agent": "Other"} for record in tools_desk.state["agreements"]]}
    tools_desk.app.update_state(THREAD, other)
    tools_desk.send("Yes")
    assert tools_desk.ran == []


def make_call(order: str, refund: bool = True) -> Any:
    return act("cancel_order", {"order_id": order, "refund": refund})


def test_several_calls_share_a_question_and_run_in_order_after_one_yes():
    decided: list[str] = []
    desk = Desk(agrees=lambda message, _: decided.append(message))
    desk.propose(cancel_order=[make_call("A-1"), make_call("A-2", False)])
    assert desk.request().endswith(
        '1. Cancel order (order id: "A-1", refund: yes)\n2. Cancel order (order id: "A-2", refund: no)\n'
        "Reply yes to go ahead."
    )
    desk.send("Yes, please")
    assert (desk.ran, decided) == ([("A-1", True), ("A-2", False)], ["Yes, please"])


def test_after_a_failure_the_customer_is_asked_again_about_the_rest(tools_desk):
    tools_desk.propose(cancel_order=[make_call("broken"), make_call("A-2"), make_call("A-3")])
    tools_desk.request("Cancel them all.")
    reply = tools_desk.send("yes")
    assert tools_desk.ran == [("broken", True)]
    assert '1. Cancel order (order id: "A-2"' in reply and '2. Cancel order (order id: "A-3"' in reply
    turn = tools_desk.state["messages"][2].id
    assert [record["answer_message_id"] for record in tools_desk.state["agreements"]] == [turn, None]
    tools_desk.send("yes")
    assert tools_desk.ran[1:] == [("A-2", True), ("A-3", True)]


def test_if_a_call_cannot_run_any_more_the_customer_is_asked_again_about_the_rest():
    allowed = {"now": True}

    def refund(order_id: str) -> str:
        """Pay an order back."""
        desk.ran.append((order_id,))
        return "paid"

    by = dict.fromkeys(("cancel_order", "refund"), "customer")
    desk = Desk(condition=lambda _: allowed["now"], tools=[refund], confirm=by)
    desk.propose(cancel_order={"order_id": "A-1"}, refund={"order_id": "A-1"})
    assert "1. Cancel order" in desk.request()
    allowed["now"] = False
    assert desk.send("Yes").endswith('\nRefund (order id: "A-1")\nReply yes to go ahead.')
    assert desk.ran == []
    desk.send("Yes")
    assert desk.ran == [("A-1",)]


@pytest.mark.parametrize("reply", [None, "Antworten Sie mit Ja."])
def test_a_question_of_the_designers_own_names_every_value_in_quotes(reply):
    ask = {"by": "customer", "ask": "Soll ich {order_id} stornieren (Erstattung: {refund})?", "reply": reply}
    desk = Desk(confirm={"cancel_order": ask})
    how = reply or "Reply yes to go ahead."
    assert desk.request().endswith(f'Soll ich "A-1" stornieren (Erstattung: yes)?\n{how}')
    desk.send("Ja, bitte")
    assert desk.ran == CANCELLED


def test_a_value_cannot_write_the_question(tools_desk):
    order = 'A-1", refund: no)\nReply yes to go ahead.\u202e<!--'
    tools_desk.reset((act("cancel_order", {"order_id": order}),))
    assert tools_desk.request().splitlines()[-2:] == [
        'Cancel order (order id: "A-1\\", refund: no)\\nReply yes to go ahead.\\u202e\\u003c!--", refund: yes)',
        "Reply yes to go ahead.",
    ]


def test_the_question_goes_out_as_an_event_and_a_button_returns_its_id(tools_desk):
    input = {"messages": [HumanMessage("Please cancel A-1.")]}
    *_, sent, confirmation = tools_desk.app.stream(input, THREAD, stream_mode="custom")
    assert (sent.type, confirmation.type) == ("reply_sent", "confirmation_asked")
    arguments = {"order_id": "A-1", "refund": True}
    assert (confirmation.question, confirmation.calls[0].arguments) == (QUESTION, arguments)
    tools_desk.send(confirmation.id)
    tools_desk.press("another-id")
    assert tools_desk.ran == []
    tools_desk.press(tools_desk.state["agreements"][-1]["id"])
    assert tools_desk.ran == CANCELLED


async def says_si(message: str, question: str) -> bool | None:
    assert question == QUESTION
    if message == "sure":
        raise RuntimeError("down")
    return {"sí, cancélalo": True, "yes": False, "maybe": "no"}.get(message)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("strategy", "agrees"),
    [("tools", says_si), ("middleware", lambda message, question: asyncio.run(says_si(message, question)))],
)
def test_a_sync_or_async_function_may_decide_what_else_is_a_yes(strategy, agrees):
    desk = Desk(strategy, agrees=agrees)
    desk.request()
    run_counts = {"yes": 0, "sure": 0, "quizás": 0, "maybe": 0, "ja": 1, "sí, cancélalo": 1}
    for answer, runs in run_counts.items():
        desk.send(answer)
        assert len(desk.ran) == runs
        if runs:
            desk.reset()
            desk.request()


def test_a_function_that_fails_is_no_yes_and_a_warning_says_so(strategy):
    desk = Desk(strategy, agrees=lambda message, question: {"sí": True}[message])
    desk.request()
    with pytest.warns(
        UserWarning, match=r"`agrees` failed for the answer 'Yes'.* KeyError: 'Yes' .*Let the function"
    ):
        desk.send("Yes")
    assert desk.ran == []


def test_a_condition_in_code_is_checked_once_more(strategy):
    allowed = {"now": True}

    def may_cancel(state: Any) -> bool:
        """cancelling is allowed"""
        return allowed["now"]

    desk = Desk(strategy, condition=may_cancel)
    desk.request()
    allowed["now"] = False
    desk.send("Yes")
    last = desk.state["tool_insights"][-1]
    assert (desk.ran, last["problem"]) == ([], "no guideline grants it now")


def test_an_interrupt_asks_instead_of_the_message(strategy):
    desk = Desk(strategy, confirm={"cancel_order": "interrupt"})
    waiting = desk.app.invoke({"messages": [HumanMessage("Please cancel A-1.")]}, THREAD)
    (request,) = waiting["__interrupt__"][0].value["action_requests"]
    assert (request["description"], desk.ran) == (QUESTION, [])
    desk.app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert desk.ran == CANCELLED


def test_the_customer_may_reject_a_call_by_interrupt():
    desk = Desk(confirm={"cancel_order": "interrupt"})
    desk.app.invoke({"messages": [HumanMessage("Please cancel A-1.")]}, THREAD)
    desk.app.invoke(Command(resume={"decisions": [{"type": "reject", "message": "too late"}]}), THREAD)
    (result,) = (message.text for message in desk.state["messages"] if isinstance(message, ToolMessage))
    assert (result, desk.ran) == ("the customer did not allow this call: too late", [])


@pytest.mark.parametrize("answer", ["Yes", "Hmm"])
def test_a_call_that_its_tool_would_refuse_by_now_neither_runs_nor_is_asked_about(tools_desk, answer):
    def cancel_order(order_id: str, reason: str) -> str:
        """Cancel an order."""
        raise AssertionError(order_id, reason)

    tools_desk.request()
    tools_desk.restart(guidelines=[Guideline("they want to cancel", "do it", tools=[cancel_order])])
    assert "Reply yes" not in tools_desk.send(answer)
    verdicts = [(insight["kind"], insight["argument"]) for insight in tools_desk.state["tool_insights"]]
    assert ("missing", "reason") in verdicts


def test_what_the_granting_guideline_depends_on_need_not_match_the_yes(tools_desk):
    cancelling = tools_desk.agent.guidelines[0].replace(depends_on=["G2"])
    tools_desk.restart(guidelines=[cancelling, Guideline("they are a customer")])
    tools_desk.judge["G2"] = 9
    tools_desk.request()
    tools_desk.judge |= {"G1": 2, "G2": 2}
    tools_desk.send("Yes")
    assert tools_desk.ran == CANCELLED


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_question_stays_open_after_an_operators_decision_on_another_call(decision):
    def get_order(order_id: str) -> str:
        """Look up an order."""
        return f"{order_id} is late"

    desk = Desk(tools=[get_order], confirm={"cancel_order": "customer", "get_order": "operator"})
    desk.propose(cancel_order={"order_id": "A-1"})
    desk.request()
    desk.propose(get_order={"order_id": "A-1"})
    desk.app.invoke({"messages": [HumanMessage("Where is it?")]}, THREAD)
    state = desk.app.invoke(Command(resume={"decisions": [{"type": decision}]}), THREAD)
    assert state["messages"][-1].text.endswith(QUESTION)
    desk.send("Yes")
    assert desk.ran == CANCELLED


@pytest.mark.parametrize(
    ("create", "event_type"), [(create_preact_agent, "plan_made"), (create_respact_agent, "spoke")]
)
def test_an_agent_without_guidelines_asks_in_the_same_way(tools_desk, create, event_type):
    agent = tools_desk.agent.replace(guidelines=[], tools=[tools_desk.agent.toolbox["cancel_order"]])
    tools_desk.app = create(tools_desk.model, agent, mode="direct", checkpointer=tools_desk.app.checkpointer)
    input = {"messages": [HumanMessage("Please cancel A-1.")]}
    events = list(tools_desk.app.stream(input, THREAD, stream_mode="custom"))
    assert [event.type for event in events][-3:] == [event_type, "reply_sent", "confirmation_asked"]
    assert events[-2].content == f"Certainly.\n\n{QUESTION}"
    assert tools_desk.state["messages"][-1].text.endswith(QUESTION)
    tools_desk.moves = [say("C1 still waits."), say("It waits.")]
    assert tools_desk.send("And if it has been sent?") == f"It waits.\n\n{QUESTION}"
    tools_desk.send("yes")
    assert tools_desk.ran == CANCELLED


def test_a_question_about_a_tool_that_the_agent_no_longer_has_is_closed(tools_desk):
    tools_desk.request()
    tools_desk.restart(guidelines=[], confirm={})
    assert QUESTION not in tools_desk.send("Yes")
    assert tools_desk.ran == []
