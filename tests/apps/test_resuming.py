"""A turn that broke off is finished first; a new message on it abandons it, and no call stays unanswered."""

from itertools import count

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import (
    Agent,
    Guideline,
    Variable,
    aresume_or_invoke,
    create_guided_agent,
    errors,
    resume_or_invoke,
)
from tests.apps.desk import get_types, make_desk, make_input, make_thread
from tests.brain import act, brain, get_prompts, say
from tests.order_tools import A1

APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
ASKED = make_input("Where is A-1?")
SENT = {"messages": [HumanMessage("Where is A-1?", id="m1")]}


class Broken(Exception):
    """The process died here, as far as the thread can tell."""


class Desk:
    """A desk whose model is out of reach for the matcher or for the reply, until it is healed."""

    def __init__(self, broken="", **fields):
        self.broken = broken
        self.ran = []
        numbers = count()
        self.model = brain(
            judge={"G1": lambda _: Broken() if self.broken == "matcher" else 9},
            call={"get_order": A1},
            reply=lambda _: Broken() if self.broken == "message" else f"Here: {next(numbers)}.",
        )

        def get_order(order_id: str) -> str:
            """Look up an order."""
            self.ran.append(order_id)
            return "it is late"

        agent = make_desk(guidelines=[Guideline("they ask", "look it up", tools=[get_order])], **fields)
        self.app = create_guided_agent(self.model, agent, mode="direct", checkpointer=MemorySaver())

    def break_off(self):
        with pytest.raises(Broken):
            self.app.invoke(ASKED, make_thread(), durability="sync")
        self.broken = ""

    def resume(self, input, **options):
        return resume_or_invoke(self.app, input, make_thread(), **options)


def test_an_interrupted_turn_is_finished_before_the_next_one_begins(runs):
    desk = Desk("message")
    desk.break_off()
    turn_input = make_input("Thanks")
    state = runs.call(
        resume_or_invoke, aresume_or_invoke, desk.app, turn_input, make_thread(), durability="sync"
    )
    assert get_types(state) == ["human", "ai", "tool", "ai"] * 2
    assert [m.text for m in state["messages"] if m.type == "human"] == ["Where is A-1?", "Thanks"]
    assert desk.ran == ["A-1", "A-1"]  # once in each turn: what was committed is not repeated


def test_a_message_that_no_model_can_read_is_answered_once(runs):
    desk = Desk()
    sent = {"messages": [HumanMessage([{"type": "file", "file_id": "f1"}], id="h1")]}
    for input in (sent, sent, None):
        assert get_types(desk.resume(input)) == ["human", "ai"]
    state = runs.call(
        resume_or_invoke, aresume_or_invoke, desk.app, make_input("Where is A-1?"), make_thread()
    )
    assert get_types(state) == ["human", "ai", "human", "ai", "tool", "ai"]


def test_an_unfinished_turn_can_be_finished_alone_and_a_finished_one_is_continued(runs):
    desk = Desk("message")
    desk.break_off()
    for turn_input, messages in ((None, 4), (None, 4), (make_input("Thanks"), 8)):
        state = runs.call(resume_or_invoke, aresume_or_invoke, desk.app, turn_input, make_thread())
        assert len(state["messages"]) == messages
    assert desk.ran == ["A-1", "A-1"]


@pytest.mark.parametrize(("place", "runs"), [("matcher", "sync"), ("message", "async")], indirect=["runs"])
def test_a_message_that_is_sent_again_gets_one_reply(runs, place):
    desk = Desk(place)
    with pytest.raises(Broken):
        desk.resume(SENT)
    desk.broken = ""
    first = runs.call(resume_or_invoke, aresume_or_invoke, desk.app, SENT, make_thread())
    calls = len(desk.model.calls)
    again = runs.call(resume_or_invoke, aresume_or_invoke, desk.app, SENT, make_thread())
    assert get_types(first) == ["human", "ai", "tool", "ai"]
    assert (again, len(desk.model.calls), desk.ran) == (first, calls, ["A-1"])


def test_other_words_under_the_same_id_and_the_same_message_in_a_fork_are_answered():
    desk = Desk()
    before = desk.app.update_state(make_thread(), {"messages": [("ai", "Hello")]}, as_node="message")
    for input, where, reply in (
        (SENT, make_thread(), "Here: 0."),
        ({"messages": [HumanMessage("And A-2?", id="m1")]}, make_thread(), "Here: 1."),
        (SENT, before, "Here: 2."),
    ):
        state = resume_or_invoke(desk.app, input, where)
        assert state["messages"][-1].text == reply
        assert state["messages"][1] == input["messages"][0]


def test_an_input_of_variables_alone_is_new():
    desk = Desk(variables=[Variable("credit", "what we owe them", settable=True)])
    desk.resume(SENT)
    assert desk.resume({"variables": {"credit": 9}})["variables"] == {"credit": 9}


def test_a_refused_input_does_not_block_the_next_one():
    desk = Desk(variables=[Variable("credit", "what we owe them")])
    with pytest.raises(errors.InputError, match="credit"):
        desk.resume({**ASKED, "variables": {"credit": 9}}, durability="exit")
    assert desk.resume(None).get("messages", []) == []
    assert get_types(desk.resume(make_input("Where is A-1?"))) == ["human", "ai", "tool", "ai"]


def test_a_new_message_on_an_interrupted_turn_keeps_what_was_committed():
    desk = Desk("message")
    desk.break_off()
    state = desk.app.invoke(make_input("Hello?"), make_thread())
    assert get_types(state)[:4] == ["human", "ai", "tool", "human"]
    assert state["messages"][2].status == "success"


def test_a_call_that_waits_for_an_operator_still_waits_after_other_inputs_and_bad_answers():
    desk = Desk(confirm={"get_order": "operator"})
    desk.app.invoke(SENT, make_thread())
    assert desk.resume(SENT)["__interrupt__"]
    bad = Command(resume={"decisions": []})
    for turn_input, problem in ((make_input("Hello?"), "waits for an answer"), (bad, "got 0")):
        with pytest.raises(errors.InputError, match=problem):
            desk.resume(turn_input)
        assert desk.resume(None)["__interrupt__"]
    assert desk.ran == []
    assert get_types(desk.resume(APPROVE)) == ["human", "ai", "tool", "ai"]
    with pytest.raises(errors.InputError, match="nothing waits for this answer"):
        desk.resume(APPROVE)
    assert desk.ran == ["A-1"]


def test_an_interrupt_while_resuming_is_noticed_in_every_stream_mode():
    desk = Desk("matcher", confirm={"get_order": "operator"})
    desk.break_off()
    with pytest.raises(errors.InputError, match="waits for an answer"):
        desk.resume(make_input("Hello?"), stream_mode="updates")


def test_an_abandoned_call_is_answered_and_shown_to_the_model():
    desk = Desk(confirm={"get_order": "operator"})
    desk.app.invoke(ASKED, make_thread())
    state = desk.app.invoke(make_input("Never mind"), make_thread())
    assert (desk.ran, get_types(state)[:4]) == ([], ["human", "ai", "tool", "human"])
    calls = {call["id"] for m in state["messages"][:3] if m.type == "ai" for call in m.tool_calls}
    assert calls == {m.tool_call_id for m in state["messages"] if m.type == "tool"}
    line = next(line for line in get_prompts(desk.model, "tools")[-1].lines if line["id"] == "T1")
    assert (line["error"], line["result"].startswith("abandoned")) == (True, True)


@pytest.mark.parametrize(("checkpointer", "config"), [(None, make_thread()), (MemorySaver(), {})])
def test_without_a_stored_thread_the_error_says_what_to_do(checkpointer, config):
    app = create_guided_agent("offline", make_desk(), checkpointer=checkpointer)
    with pytest.raises(errors.InputError, match="a checkpointer, and `configurable` a thread_id"):
        resume_or_invoke(app, ASKED, config)


@pytest.mark.parametrize(
    ("strategy", "left"),
    [
        ("tools", "another tool to approve"),
        ("tools", "another tool"),
        ("react", "another tool"),
        ("react", "no tool"),
    ],
)
def test_an_approval_of_a_tool_that_is_gone_ends_the_turn_with_a_reply(strategy, left):
    def refund(order_id: str) -> str:
        """Refund an order."""
        raise AssertionError(order_id)

    def get_order(order_id: str) -> str:
        """Look up an order."""
        raise AssertionError(order_id)

    saver = MemorySaver()
    model = brain({"G1": 9}, reply="I can't.", moves=[act("refund", {"order_id": "A-1"}), say("I can't.")])

    def make_app(tools, confirm):
        agent = Agent("Desk", "You help.", [Guideline("they ask", "help", tools=tools)], confirm=confirm)
        return create_guided_agent(model, agent, strategy=strategy, checkpointer=saver)

    before = make_app([refund, get_order], {"refund": "operator", "get_order": "operator"})
    assert "__interrupt__" in before.invoke(make_input("Refund A-1."), make_thread())
    confirm = {"get_order": "operator"} if left == "another tool to approve" else {}
    after = make_app([] if left == "no tool" else [get_order], confirm)
    state = resume_or_invoke(after, APPROVE, make_thread())
    assert state["messages"][-1].text == "I can't."
    state = after.invoke(make_input("And now?"), make_thread())
    assert state["messages"][-1].text == "I can't."
    assert sum(message.type == "tool" for message in state["messages"]) == 1
