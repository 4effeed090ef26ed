"""An operator approves, edits, rejects or answers calls, in one interrupt, by position."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Agent, Guideline, InputError, create_guided_agent
from arq_graph.nodes import ApproveCalls
from tests.brain import Call, asked_by, brain

THREAD = {"configurable": {"thread_id": "1"}}
APPROVE = {"type": "approve"}


class Ran:
    """Tools that remember what they ran."""

    def __init__(self):
        self.calls = []

    def agent(self):
        calls = self.calls

        def refund(order_id: str, euros: int = 5) -> str:
            """Refund an order.

            Args:
                order_id: The number.
                euros: How much.
            """
            calls.append((order_id, euros))
            return f"{euros} refunded for {order_id}"

        def look(order_id: str) -> str:
            """Look at an order.

            Args:
                order_id: The number.
            """
            calls.append(order_id)
            return f"{order_id} is here"

        return Agent(
            "Desk",
            "You help with orders.",
            [Guideline("they want money back", "refund", tools=[refund, look])],
            confirm={"refund": "operator"},
        )


ORDERS = [{"order_id": "A-1", "euros": 10}, {"order_id": "A-2", "euros": 20}]


class Desk:
    def __init__(self, runs, refund=ORDERS, look=()):
        self.runs, self.ran = runs, Ran()
        self.model = brain(judge={"G1": 9}, call={"refund": list(refund), "look": list(look)})
        self.app = create_guided_agent(self.model, self.ran.agent(), checkpointer=MemorySaver())
        self.state = runs.invoke(self.app, {"messages": [("user", "Money back!")]}, THREAD)

    @property
    def request(self):
        (interrupt,) = self.state["__interrupt__"]
        return interrupt.value

    def answer(self, *decisions):
        self.state = self.runs.invoke(self.app, Command(resume={"decisions": list(decisions)}), THREAD)
        return self.state

    @property
    def results(self):
        return [(m.content, m.status) for m in self.state["messages"] if m.type == "tool"]

    @property
    def shown(self):
        """The calls as the transcript has them."""
        return [call["args"] for m in self.state["messages"] if m.type == "ai" for call in m.tool_calls]


def edit(args, name="refund"):
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def test_one_interrupt_asks_about_all_calls_in_langchain_s_shape(runs):
    desk = Desk(runs)
    assert desk.ran.calls == []
    assert [(r["name"], r["args"]) for r in desk.request["action_requests"]] == [
        ("refund", ORDERS[0]),
        ("refund", ORDERS[1]),
    ]
    (review,) = desk.request["review_configs"]
    assert review["action_name"] == "refund"
    assert set(review["allowed_decisions"]) == {"approve", "edit", "reject", "respond"}


def test_the_request_has_the_shape_of_langchain_s_own_middleware():
    from langchain.agents.middleware.human_in_the_loop import HITLRequest
    from pydantic import TypeAdapter

    from tests.running import Runs

    TypeAdapter(HITLRequest).validate_python(Desk(Runs(None)).request)


def test_approved_calls_run(runs):
    desk = Desk(runs)
    desk.answer(APPROVE, APPROVE)
    assert sorted(desk.ran.calls) == [("A-1", 10), ("A-2", 20)]
    assert desk.results == [("10 refunded for A-1", "success"), ("20 refunded for A-2", "success")]
    assert desk.state["messages"][-1].content == "This is answer 1."


def test_decisions_are_taken_by_position(runs):
    desk = Desk(runs)
    desk.answer({"type": "reject", "message": "too much"}, edit({"order_id": "A-2", "euros": 1}))
    assert desk.ran.calls == [("A-2", 1)]
    assert set(desk.results) == {
        ("an operator did not allow this call: too much", "error"),
        ("1 refunded for A-2", "success"),
    }


def test_the_transcript_shows_the_edited_call(runs):
    desk = Desk(runs)
    desk.answer(APPROVE, edit({"order_id": "A-2", "euros": 1}))
    assert desk.shown == [ORDERS[0], {"order_id": "A-2", "euros": 1}]
    assert [message.type for message in desk.state["messages"]] == ["human", "ai", "tool", "tool", "ai"]
    assert asked_by(desk.model, "message")[0].results("refund")[1]["arguments"] == {
        "order_id": "A-2",
        "euros": 1,
    }


def test_an_edited_call_is_not_put_to_the_operator_again_as_it_was(runs):
    """The model goes on proposing what it proposed before the operator changed it."""
    ran = Ran()
    stubborn = brain(judge={"G1": 9}, call={"refund": lambda asked: Call(ORDERS[0])})
    app = create_guided_agent(stubborn, ran.agent(), checkpointer=MemorySaver())
    runs.invoke(app, {"messages": [("user", "Money back!")]}, THREAD)
    changed = edit({"order_id": "A-1", "euros": 1})
    state = runs.invoke(app, Command(resume={"decisions": [changed]}), THREAD)
    assert "__interrupt__" not in state
    assert ran.calls == [("A-1", 1)]


def test_a_response_is_taken_for_the_result(runs):
    desk = Desk(runs, refund=ORDERS[:1])
    desk.answer({"type": "respond", "message": "already refunded"})
    assert desk.ran.calls == []
    assert desk.results == [("already refunded", "success")]
    assert desk.state["messages"][-1].content == "This is answer 1."


def test_rejecting_everything_still_gives_the_customer_a_reply(runs):
    desk = Desk(runs)
    desk.answer({"type": "reject"}, {"type": "reject"})
    assert desk.ran.calls == []
    assert desk.results == [("an operator did not allow this call", "error")] * 2
    assert desk.state["messages"][-1].content == "This is answer 1."


def test_calls_that_need_no_approval_wait_for_the_others_and_run_with_them(runs):
    desk = Desk(runs, refund=ORDERS[:1], look=[{"order_id": "A-1"}])
    assert len(desk.request["action_requests"]) == 1
    assert desk.ran.calls == []
    desk.answer({"type": "reject"})
    assert desk.ran.calls == ["A-1"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"decisions": [APPROVE]}, "2 calls wait for a decision each, got 1"),
        ({"decisions": [APPROVE, APPROVE, APPROVE]}, "got 3"),
        ({"decisions": [APPROVE, edit(ORDERS[1], name="look")]}, "not the tool; got 'look'"),
        ({"decisions": [APPROVE, edit({"euros": 1})]}, r"decisions\[1\].*order_id"),
        ({"decisions": [edit({"order_id": "A-1", "euros": "many"}), APPROVE]}, r"decisions\[0\].*euros"),
        ({"decisions": [{"type": "edit"}, APPROVE]}, "edited_action"),
        ({"decisions": [{"type": "respond"}, APPROVE]}, "message"),
        ({"decisions": [{"type": "perhaps"}, APPROVE]}, "decisions.0.type"),
        ({"decisions": "yes"}, "decisions"),
        ("yes", "does not fit"),
        (["approve"], "does not fit"),
        (True, "does not fit"),
    ],
)
def test_a_bad_answer_runs_nothing_and_can_be_given_again(runs, answer, problem):
    desk = Desk(runs)
    with pytest.raises(InputError, match=problem):
        runs.invoke(desk.app, Command(resume=answer), THREAD)
    assert desk.ran.calls == []
    desk.answer(APPROVE, APPROVE)
    assert len(desk.ran.calls) == 2


def test_a_misspelt_argument_of_an_edit_is_not_ignored(runs):
    desk = Desk(runs)
    with pytest.raises(InputError, match="eurs"):
        desk.answer(APPROVE, edit({"order_id": "A-2", "eurs": 1}))


def test_an_approved_call_still_has_to_pass_the_gate(runs):
    desk = Desk(runs, refund=ORDERS[:1])
    matches = desk.app.get_state(THREAD).values["guideline_matches"]
    inactive = [match.model_copy(update={"active": False}) for match in matches]
    desk.app.update_state(THREAD, {"guideline_matches": inactive}, as_node="call_tools")
    desk.state = runs.invoke(desk.app, None, THREAD)
    desk.answer(APPROVE)
    assert desk.ran.calls == []
    assert desk.results == [("this tool cannot be called now: no active guideline grants it", "error")]


def test_outside_a_turn_with_calls_there_is_nothing_to_approve(runs):
    node = ApproveCalls(Ran().agent())
    assert runs.invoke(node, {"messages": [HumanMessage("Hi")]}) == {}
    assert runs.invoke(node, {"messages": []}) == {}


def test_a_new_message_abandons_what_waits_for_approval(runs):
    desk = Desk(runs)
    state = runs.invoke(desk.app, {"messages": [("user", "Never mind")]}, THREAD)
    types = [message.type for message in state["messages"]]
    assert types[:5] == ["human", "ai", "tool", "tool", "human"]
    assert all(m.status == "error" and "abandoned" in m.content for m in state["messages"][2:4])
    assert desk.ran.calls == []
