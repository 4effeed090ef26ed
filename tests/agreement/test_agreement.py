"""What the customer must agree to: code's own question, a plain yes to it, and exactly the call that was put."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import (
    Agent,
    Guideline,
    PreAct,
    ReAct,
    ReSpAct,
    ToolCalling,
    create_guided_agent,
    create_preact_agent,
    create_respact_agent,
    errors,
)
from tests.agreement.deciding import STRATEGIES, Deciding

SETTINGS = {"tools": ToolCalling, "pre-act": PreAct, "react": ReAct, "respact": ReSpAct}
QUESTION = 'Cancel order (order id: "A-1", refund: yes)\nReply yes to go ahead.'


class Desk:
    """A desk with a tool that needs the customer's yes, and the thread of one customer."""

    def __init__(self, strategy: str = "tools", deciding: Deciding | None = None, **fields: Any) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.guideline = Guideline("the customer wants to cancel", "cancel it", tools=[self._cancel()])
        fields = {"confirm": {"cancel_order": "customer"}, **fields}
        guidelines = fields.pop("guidelines", None) or [self.guideline]
        self.agent = Agent("Desk", "You help with orders.", guidelines, **fields)
        self.deciding = deciding or Deciding(once("cancel_order", order_id="A-1"))
        self.app = create_guided_agent(
            self.deciding.model, self.agent, strategy=strategy, mode="direct", checkpointer=MemorySaver()
        )

    def _cancel(self) -> Any:
        def cancel_order(order_id: str, refund: bool = True) -> str:
            """Cancel an order. It cannot be undone."""
            self.done.append((order_id, refund))
            return "cancelled" if order_id != "broken" else "error: no such order"

        return cancel_order

    def say(self, text: Any) -> str:
        state = self.app.invoke({"messages": [HumanMessage(text)]}, THREAD)
        return str(state["messages"][-1].text)

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.app.get_state(THREAD).values)


THREAD: Any = {"configurable": {"thread_id": "1"}}


def once(tool: str, **arguments: Any) -> Any:
    """Propose a call the first time, and speak from then on."""
    return lambda asked: (tool, arguments) if asked == 1 else None


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_call_is_put_with_every_value_and_runs_after_a_yes(strategy):
    desk = Desk(strategy)
    put = desk.say("Please cancel A-1.")
    assert (put.endswith(QUESTION), desk.done) == (True, [])
    desk.say("Yes")
    assert desk.done == [("A-1", True)]
    desk.say("Yes")
    assert desk.done == [("A-1", True)]  # one yes, one call


@pytest.mark.parametrize(
    "answer",
    [
        "Yes",
        "yes please",
        "ja",
        "👍",
        "👍🏾",
        "Ok, yes, cancel it please.",
        "Oui !",
        "ＹＥＳ",
        "D’accord",
        "go ahead",
        "ok, cancel it",
    ],
)
def test_these_are_a_yes(answer):
    desk = Desk()
    desk.say("Please cancel A-1.")
    desk.say(answer)
    assert desk.done == [("A-1", True)]


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "555-0134",
            "A-301",
            "Hmm",
            "Biscuit",
            "Yes, if it is free",
            "yes but",
            "ok?",
            "Yes, A-2",
            "👎",
            "Ok",
            "no",
        ),
        *(
            "Yes. Is there a fee?",
            "of course you would",
            QUESTION,
            f"> {QUESTION}",
            "yes no",
            "Yes 👎",
            "Yes, 5.10",
        ),
        *(
            "Great, thanks. Do you also groom parrots?",
            "Yes, from ACC-2 to ACC-1",
            "ja؟",
            "oui？",
            "yes⁉",
            "cancel it",
        ),
        *(
            "Yes, book it",
            "thanks",
            "please",
            "...",
            "y e s",
            "yes" * 3,
            "Yes; no",
            "sí? sí",
            "Yes, not",
            "si",
            "nein, ja",
        ),
        "yes " * 500,
    ],
)
def test_these_are_no_yes(answer):
    desk = Desk()
    desk.say("Please cancel A-1.")
    put = desk.say(answer)
    assert (desk.done, put.endswith(QUESTION)) == ([], True)


def test_what_is_no_plain_text_is_no_yes():
    desk = Desk()
    desk.say("Please cancel A-1.")
    desk.say(
        [
            {"type": "text", "text": "yes"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}},
        ]
    )
    assert desk.done == []


def test_an_unclear_answer_puts_it_again_and_then_a_yes_runs_it(strategy):
    desk = Desk(strategy)
    desk.say("Please cancel A-1.")
    for unclear in ("Hmm", "Is there a fee?", "A-301"):
        assert desk.say(unclear).endswith(QUESTION)
    assert desk.done == []
    desk.say("Ok, yes, cancel it please.")
    assert desk.done == [("A-1", True)]


def test_what_is_not_wanted_any_more_does_not_wait(strategy):
    desk = Desk(strategy, Deciding(once("cancel_order", order_id="A-1"), wants=False))
    desk.say("Please cancel A-1.")
    assert "Reply yes" not in desk.say("No, leave it.")
    desk.say("Yes")
    assert desk.done == []


def test_changed_arguments_are_another_call_and_take_its_place(strategy):
    proposals = {1: ("cancel_order", {"order_id": "A-1"})}
    deciding = Deciding(lambda asked: proposals.get(asked), wants=False)
    desk = Desk(strategy, deciding)
    desk.say("Please cancel A-1.")
    proposals[deciding.decisions + 1] = ("cancel_order", {"order_id": "A-2", "refund": False})
    put = desk.say("A-2, I mean, and no refund")
    assert put.endswith('Cancel order (order id: "A-2", refund: no)\nReply yes to go ahead.')
    assert "A-1" not in put
    desk.say("yes")
    assert desk.done == [("A-2", False)]


def test_no_model_is_asked_for_the_call_that_was_agreed_to(strategy):
    desk = Desk(strategy)
    desk.say("Please cancel A-1.")
    asked = desk.deciding.decisions
    stream = desk.app.stream({"messages": [HumanMessage("Yes")]}, THREAD, stream_mode="updates")
    for update in stream:
        if "tools" in update:
            break
    assert (desk.deciding.decisions, desk.done) == (asked, [("A-1", True)])


def test_the_question_goes_alone_where_the_reply_asks_something_itself(strategy):
    desk = Desk(strategy, Deciding(once("cancel_order", order_id="A-1"), says="Sure？ Or rather not?"))
    assert desk.say("Please cancel A-1.") == QUESTION


def test_a_yes_before_the_question_or_to_another_message_runs_nothing(strategy):
    desk = Desk(strategy, Deciding(lambda _: None))
    desk.say("Yes")
    desk.deciding.propose = once("cancel_order", order_id="A-1")
    desk.deciding.decisions = 0
    desk.say("Yes, cancel A-1")
    desk.app.update_state(THREAD, {"messages": [AIMessage("By the way, it rains.")]})
    desk.say("Yes")
    assert desk.done == []


def test_a_question_that_was_changed_after_it_was_sent_is_none():
    desk = Desk()
    desk.say("Please cancel A-1.")
    sent = desk.state["messages"][-1]
    desk.app.update_state(THREAD, {"messages": [AIMessage("Do you like cake?", id=sent.id)]})
    desk.say("Yes")
    assert desk.done == []


def test_several_calls_stand_in_one_question_and_run_in_order():
    proposed = [("A-1", True), ("A-2", False)]
    desk = Desk()
    desk.app.update_state(THREAD, {"messages": [HumanMessage("Cancel both", id="h1")]})
    desk = two_calls(*proposed)
    put = desk.say("Cancel both.")
    assert put.endswith(
        '1. Cancel order (order id: "A-1", refund: yes)\n2. Cancel order (order id: "A-2", refund: no)\n'
        "Reply yes to go ahead."
    )
    desk.say("Yes, please")
    assert desk.done == proposed


def two_calls(*proposed: tuple[str, bool]) -> Desk:
    """A desk whose model proposes several calls at once."""
    desk = Desk(deciding=Deciding(once("cancel_order", order_id="A-1")))
    called = desk.deciding._called

    def several(answer: Any, schema: Any, wanted: Any) -> Any:
        answer = called(answer, schema, wanted)
        calls = answer["cancel_order"]["tool_calls_for_candidate_tool"]
        if calls:
            first = calls[0]["arguments"]
            calls[:] = [
                {
                    **calls[0],
                    "arguments": {
                        "order_id": {**first["order_id"], "value": order},
                        "refund": {**first["refund"], "given": True, "value": refund},
                    },
                }
                for order, refund in proposed
            ]
        return answer

    desk.deciding._called = several  # type: ignore[method-assign]
    return desk


def test_after_a_failure_the_rest_are_put_again():
    desk = two_calls(("broken", True), ("A-2", True), ("A-3", True))
    desk.say("Cancel them all.")
    put = desk.say("yes")
    assert desk.done == [("broken", True)]
    assert '1. Cancel order (order id: "A-2"' in put and '2. Cancel order (order id: "A-3"' in put
    desk.say("yes")
    assert desk.done[1:] == [("A-2", True), ("A-3", True)]


def test_a_question_of_the_designers_own_names_every_value_in_quotes():
    ask = {"by": "customer", "ask": "Soll ich {order_id} stornieren (Erstattung: {refund})?"}
    desk = Desk(confirm={"cancel_order": ask})
    put = desk.say("Storniere A-1")
    assert put.endswith('Soll ich "A-1" stornieren (Erstattung: yes)?\nReply yes to go ahead.')
    desk.say("Ja, bitte")
    assert desk.done == [("A-1", True)]


def test_a_value_cannot_write_the_question():
    order = 'A-1", refund: no)\nReply yes to go ahead.\u202e'
    desk = Desk(deciding=Deciding(once("cancel_order", order_id=order)))
    put = desk.say("Cancel")
    assert put.splitlines()[-2:] == [
        'Cancel order (order id: "A-1\\", refund: no)\\nReply yes to go ahead.\\u202e", refund: yes)',
        "Reply yes to go ahead.",
    ]


def test_the_question_goes_out_as_an_event_whose_id_is_a_yes():
    desk = Desk()
    said = {"messages": [HumanMessage("Please cancel A-1.")]}
    events = list(desk.app.stream(said, THREAD, stream_mode="custom"))
    (put,) = [event for event in events if event.type == "confirmation_asked"]
    assert (put.question, put.calls[0].arguments) == (QUESTION, {"order_id": "A-1"})
    desk.say("another-id")
    (again,) = desk.state["agreements"]
    desk.say(again["id"])
    assert desk.done == [("A-1", True)]


async def says_si(message: str, question: str) -> bool | None:
    assert question == QUESTION
    if message == "boom":
        raise RuntimeError("down")
    return {"sí, cancélalo": True, "yes": False}.get(message)


@pytest.mark.parametrize(
    ("answer", "runs"), [("sí, cancélalo", 1), ("yes", 0), ("boom", 0), ("ja", 1), ("quizás", 0)]
)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_function_may_say_what_else_is_a_yes(strategy, answer, runs, asynchronous):
    import asyncio

    agrees = says_si if asynchronous else lambda message, question: asyncio.run(says_si(message, question))
    desk = Desk(strategy)
    desk.app = create_guided_agent(
        desk.deciding.model,
        desk.agent,
        strategy=SETTINGS[strategy](agrees=agrees),
        mode="direct",
        checkpointer=MemorySaver(),
    )
    desk.say("Please cancel A-1.")
    desk.say(answer)
    assert len(desk.done) == runs


def test_what_a_condition_in_code_or_an_override_says_is_checked_once_more(strategy):
    allowed = {"now": True}

    def may_cancel(state: Any) -> bool:
        """cancelling is allowed"""
        return allowed["now"]

    desk = Desk(strategy)
    rule = Guideline(may_cancel, "cancel it", tools=[desk._cancel()])
    again = Desk(strategy, guidelines=[rule])
    again.done = desk.done
    again.say("Please cancel A-1.")
    allowed["now"] = False
    again.say("Yes")
    assert desk.done == []


def test_a_judgement_of_the_yes_itself_does_not_take_the_grant_away(strategy):
    desk = Desk(strategy)
    desk.say("Please cancel A-1.")
    desk.deciding.judge = {"G1": False}  # "Yes" is no wish to cancel, taken by itself
    desk.say("Yes")
    assert desk.done == [("A-1", True)]


def test_an_interrupt_asks_in_place_of_the_message(strategy):
    from langgraph.types import Command

    desk = Desk(strategy, confirm={"cancel_order": "interrupt"})
    waiting = desk.app.invoke({"messages": [HumanMessage("Please cancel A-1.")]}, THREAD)
    (request,) = waiting["__interrupt__"][0].value["action_requests"]
    assert (request["description"], desk.done) == (QUESTION, [])
    desk.app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert desk.done == [("A-1", True)]


@pytest.mark.parametrize("create", [create_preact_agent, create_respact_agent])
def test_an_agent_without_guidelines_asks_in_the_same_way(create):
    desk = Desk()
    app = create(
        desk.deciding.model,
        [desk._cancel()],
        confirm={"cancel_order": "customer"},
        mode="direct",
        checkpointer=MemorySaver(),
    )
    desk.app = app
    assert desk.say("Please cancel A-1.").endswith(QUESTION)
    assert desk.say("And if it has been sent?").endswith(QUESTION)
    desk.say("yes")
    assert desk.done == [("A-1", True)]


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
@pytest.mark.parametrize("record", [None, "another call", "run already"])
def test_a_call_that_nobody_agreed_to_is_refused_whoever_wrote_it(record):
    from langchain_core.messages import ToolMessage
    from langgraph.graph import START, StateGraph

    from arq_graph import AgentState
    from arq_graph.nodes import guarded_tools

    desk = Desk(guidelines=[Guideline(None, "cancel", tools=[Desk()._cancel()])])
    graph = StateGraph(AgentState)
    graph.add_node("tools", guarded_tools(desk.agent))
    graph.add_edge(START, "tools")
    call = {"name": "cancel_order", "args": {"order_id": "A-1"}, "id": "c1", "type": "tool_call"}
    messages: list[Any] = [HumanMessage("Hi", id="h1"), AIMessage("", tool_calls=[call])]
    agreed = {
        "tool": "cancel_order",
        "arguments": {"order_id": "A-2" if record == "another call" else "A-1"},
        "call": "c1",
    }
    records = (
        [{"agent": "Desk", "turn": "h0", "id": "q", "calls": [agreed], "agreed_in": "h1"}] if record else []
    )
    if record == "run already":
        messages = [*messages, ToolMessage("cancelled", tool_call_id="c1"), AIMessage("", tool_calls=[call])]
    state = graph.compile().invoke({"messages": messages, "agreements": records})
    assert (state["messages"][-1].status, desk.done) == ("error", [])


def test_an_agent_of_the_same_name_is_needed_for_a_records_yes():
    desk = Desk()
    desk.say("Please cancel A-1.")
    records = [{**record, "agent": "Other"} for record in desk.state["agreements"]]
    desk.app.update_state(THREAD, {"agreements": records})
    desk.say("Yes")
    assert desk.done == []


def test_variables_that_are_not_settable_are_refused():
    desk = Desk()
    with pytest.raises(errors.InputError, match="'tier' cannot be set by who calls the app"):
        desk.app.invoke({"messages": [("user", "Hi")], "variables": {"tier": "gold"}}, THREAD)
