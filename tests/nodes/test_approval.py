"""An operator approves, edits, rejects or answers calls, in one interrupt, by position."""

import pytest
from langchain.agents.middleware.human_in_the_loop import HITLRequest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command
from pydantic import TypeAdapter

from arq_graph import Agent, Guideline, create_guided_agent, errors
from tests.brain import act, brain, get_prompts

THREAD = {"configurable": {"thread_id": "1"}}
APPROVE = {"type": "approve"}
ORDERS = [{"order_id": "A-1", "euros": 10}, {"order_id": "A-2", "euros": 20}]
NOT_ALLOWED = "an operator did not allow this call"


class Desk:
    """A desk whose refunds an operator confirms, after the first message of its customer."""

    def __init__(self, refund=ORDERS, look=()):
        self.ran = []
        self.model = brain(judge={"G1": 9}, call={"refund": refund, "look": list(look)}, reply="Done.")
        self.app = create_guided_agent(self.model, self.agent(), mode="direct", checkpointer=MemorySaver())
        self.state = self.app.invoke({"messages": [("user", "Money back!")]}, THREAD)

    def agent(self):
        def refund(order_id: str, euros: int = 5) -> str:
            """Refund an order."""
            self.ran.append((order_id, euros))
            return f"{euros} refunded for {order_id}"

        def look(order_id: str) -> str:
            """Look at an order."""
            self.ran.append(order_id)
            return f"{order_id} is here"

        rule = Guideline("they want money back", "refund", tools=[refund, look])
        return Agent("Desk", "You help with orders.", [rule], confirm={"refund": "operator"})

    @property
    def request(self):
        (interrupt,) = self.state["__interrupt__"]
        return interrupt.value

    def answer(self, *decisions):
        return self.resume({"decisions": list(decisions)})

    def resume(self, answer):
        self.state = self.app.invoke(Command(resume=answer), THREAD)
        results = [message for message in self.state["messages"] if message.type == "tool"]
        return [(result.text, result.status) for result in results]

    @property
    def transcript_calls(self):
        """The arguments of the calls as the transcript has them."""
        arguments = []
        for message in self.state["messages"]:
            if message.type == "ai":
                arguments += [call["args"] for call in message.tool_calls]
        return arguments


def edit(args, name="refund"):
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def test_one_interrupt_asks_about_all_calls_in_langchains_shape():
    desk = Desk()
    assert desk.ran == []
    request = TypeAdapter(HITLRequest).validate_python(desk.request)
    requests = [(action["name"], action["args"]) for action in request["action_requests"]]
    assert requests == [("refund", order) for order in ORDERS]
    (review,) = request["review_configs"]
    assert review["action_name"] == "refund"
    assert set(review["allowed_decisions"]) == {"approve", "edit", "reject", "respond"}
    results = {text for text, _ in desk.answer(APPROVE, APPROVE)}
    assert results == {"10 refunded for A-1", "20 refunded for A-2"}
    assert desk.state["messages"][-1].text == "Done."


def test_decisions_are_taken_by_position_and_the_transcript_shows_what_ran():
    desk = Desk()
    edited = {"order_id": "A-2", "euros": 1}
    results = desk.answer({"type": "reject", "message": "too much"}, edit(edited))
    assert desk.ran == [("A-2", 1)]
    assert set(results) == {(f"{NOT_ALLOWED}: too much", "error"), ("1 refunded for A-2", "success")}
    assert desk.transcript_calls == [ORDERS[0], edited]
    assert [message.type for message in desk.state["messages"]] == ["human", "ai", "tool", "tool", "ai"]
    assert edited in [line["arguments"] for line in get_prompts(desk.model, "message")[0].results("refund")]


def test_an_edited_call_is_not_asked_about_again_though_the_model_still_proposes_it():
    desk = Desk(refund=lambda _: act("refund", ORDERS[0]))
    desk.answer(edit({"order_id": "A-1", "euros": 1}))
    assert ("__interrupt__" in desk.state, desk.ran) == (False, [("A-1", 1)])


def test_calls_that_need_no_approval_wait_for_the_others_and_a_response_is_the_result():
    desk = Desk(refund=ORDERS[:1], look=[{"order_id": "A-1"}])
    assert (len(desk.request["action_requests"]), desk.ran) == (1, [])
    results = desk.answer({"type": "respond", "message": "already refunded"})
    assert results == [("already refunded", "success"), ("A-1 is here", "success")]
    assert desk.ran == ["A-1"]


BAD = [
    ({"decisions": [APPROVE]}, "expected 2 decisions, got 1"),
    ({"decisions": [APPROVE, edit(ORDERS[1], name="look")]}, "may change no more than args"),
    ({"decisions": [APPROVE, edit({"euros": 1})]}, r"decisions\[1\].*order_id"),
    ({"decisions": [edit({"order_id": "A-1", "euros": "many"}), APPROVE]}, r"decisions\[0\].*euros"),
    ({"decisions": [APPROVE, edit({"order_id": "A-2", "eurs": 1})]}, "eurs"),
    ({"decisions": [{"type": "edit"}, APPROVE]}, '"edit" needs "edited_action"'),
    ({"decisions": [{"type": "respond"}, APPROVE]}, "message"),
    ({"decisions": [{"type": "perhaps"}, APPROVE]}, "decisions.0.type"),
    (True, "invalid response"),
]


def test_a_bad_answer_runs_nothing_and_can_be_given_again():
    desk = Desk()
    for answer, problem in BAD:
        with pytest.raises(errors.InputError, match=problem):
            desk.resume(answer)
        assert desk.ran == []
    desk.answer(APPROVE, APPROVE)
    assert len(desk.ran) == 2


def test_an_approved_call_still_has_to_pass_the_gate():
    desk = Desk(refund=ORDERS[:1])
    matches = [{**match, "active": False} for match in desk.state["guideline_matches"]]
    desk.app.update_state(THREAD, {"guideline_matches": matches}, as_node="call_tools")
    desk.state = desk.app.invoke(None, THREAD)
    ((result, status),) = desk.answer(APPROVE)
    assert (desk.ran, status) == ([], "error")
    assert "no active guideline grants it" in result
