"""What code finds wrong with a reply, and what it lets pass."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, Guideline, Term, Variable
from arq_graph.nodes import MessageReviser
from tests.brain import brain
from tests.order_tools import get_order


def refund(order_id: str) -> str:
    """Refund an order."""
    return order_id


DESK = Agent(
    "Desk",
    "You sell the K9 camera.",
    [
        Guideline("they ask", "tell the status", tools=[get_order]),
        Guideline("they are rude", "never give a discount"),
        Guideline("they say goodbye", "say goodbye", id="wrap-up", tools=[refund]),
        Guideline("they are a VIP", "be quick", id="VIP"),
        Guideline("they complain", "be calm", id="G5"),
    ],
    glossary=[Term(name="SLA", description="Two days.")],
    variables=[
        Variable(name="loyalty tier", description="The tier", value="gold"),
        Variable(name="internal_score", description="A score", value=7),
        Variable(name="会员等级", description="等级", value=1),
        Variable(name="Größe", description="Wie groß", value=1),
    ],
)
TALK = [
    HumanMessage("Hello, my M2 laptop is broken, order A-301", id="h1"),
    AIMessage("We can repair it.", id="a1"),
    HumanMessage("When? And what is G1?", id="h2"),
    AIMessage("", tool_calls=[{"name": "get_order", "args": {}, "id": "c1", "type": "tool_call"}]),
    ToolMessage("T2 goods: the G7 and the V1，还有K1手机", tool_call_id="c1", name="get_order"),
]
"""M1, M2, M3, T1; the prompt also holds K1, V1 to V5, P, I1, the active G1 and G2, and what get_order does."""


def violations(mode="arq", messages=TALK, **said):
    """What is found wrong with one revision."""
    matches = [
        {"agent": "Desk", "guideline": id, "turn": "h2", "active": True, "matched": True, "score": 8}
        for id in ("G1", "G2")
    ]
    missing = {"agent": "Desk", "turn": "h2", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    node = MessageReviser(brain(reply={"content": "Fine.", **said}), DESK, mode=mode, extra_revisions=0)
    state = {"messages": messages, "guideline_matches": matches, "tool_insights": [missing]}
    update = node.invoke({**state, "variables": {"credit_risk_flag": "high"}})
    return update["revisions"][0]["violations"]


def fact(source):
    return {"factual_information_provided": [{"fact": "it is late", "source": source}]}


def service(source):
    return {"offered_services": [{"service": "a repair", "source": source}]}


def broken(reason, forbids=False):
    said = {"instruction": "G2", "reason": reason, "forbids": forbids, "rationale": "-"}
    return {"instructions_broken": [said]}


INTERNAL = "is internal and must not show in a reply"
REPEATED = "an earlier message says exactly this"
NO_SERVICE = "it cannot be what offers a service"


@pytest.mark.parametrize(
    ("said", "place", "problem"),
    [
        ({"content": "I called get_order."}, "revisions[0].content", INTERNAL),
        ({"content": r"I called get\_order."}, "revisions[0].content", INTERNAL),
        ({"content": "I called get_\u200b\ufe0f\x08order."}, "revisions[0].content", INTERNAL),
        ({"content": "See Ｇ２, it applies."}, "revisions[0].content", INTERNAL),
        ({"content": "I called `refund`."}, "revisions[0].content", INTERNAL),
        ({"content": "I ran refund(A-1)."}, "revisions[0].content", INTERNAL),
        ({"content": "See G2, it applies."}, "revisions[0].content", INTERNAL),
        ({"content": "G1 applies."}, "revisions[0].content", INTERNAL),  # even if the customer guesses it
        ({"content": "G5 does not apply."}, "revisions[0].content", INTERNAL),  # which is not active
        ({"content": "That is in M3."}, "revisions[0].content", INTERNAL),
        ({"content": "As I1 says."}, "revisions[0].content", INTERNAL),
        ({"content": "Your internal_score is 7."}, "revisions[0].content", INTERNAL),
        (
            {"content": "Your credit_risk_flag is high."},
            "revisions[0].content",
            INTERNAL,
        ),  # of the thread alone
        # Letters of another script stand beside a name without a space.
        ({"content": "我用get_order查了一下。"}, "revisions[0].content", INTERNAL),
        ({"content": "по get_orderу"}, "revisions[0].content", INTERNAL),
        ({"content": "我调用refund(A-1)了。"}, "revisions[0].content", INTERNAL),
        ({"content": "会员等级: 1"}, "revisions[0].content", INTERNAL),
        ({"content": "The `loyalty tier` variable says so."}, "revisions[0].content", INTERNAL),
        ({"content": "we can **repair** it"}, "revisions[0].content", REPEATED),
        (fact(None), "revisions[0].factual_information_provided[0]", "it has no source in this prompt"),
        (fact(" , "), "revisions[0].factual_information_provided[0]", "it has no source in this prompt"),
        # a guideline that is not active, a tool that no active guideline grants, and no message
        (fact("VIP"), "revisions[0].factual_information_provided[0]", 'there is no "VIP" in this prompt'),
        (
            fact("refund"),
            "revisions[0].factual_information_provided[0]",
            'there is no "refund" in this prompt',
        ),
        (fact("T1, M7"), "revisions[0].factual_information_provided[0]", 'there is no "M7" in this prompt'),
        (service("M1"), "revisions[0].offered_services[0]", NO_SERVICE),
        (service("M1, M3"), "revisions[0].offered_services[0]", NO_SERVICE),
        (
            broken("customer_request", forbids=True),
            "revisions[0].instructions_broken[0]",
            "forbids it, whoever asks",
        ),
        (broken("none"), "revisions[0].instructions_broken[0]", "is not followed, without a reason"),
        ({"is_repeat_message": True}, "revisions[0].is_repeat_message", "it repeats an earlier message"),
        ({"insights": [{"insight": "be quick", "source": "T9"}]}, "insights[0]", 'no "T9" in this prompt'),
    ],
)
def test_what_code_finds_wrong_with_a_reply_is_told_with_its_place(said, place, problem):
    (found,) = violations(**said)
    assert found.startswith(f"MessageBlueprint.{place}: ")
    assert problem in found


@pytest.mark.parametrize(
    "said",
    [
        {"content": "Your M2 laptop, order A-301, will be repaired."},  # the customer's own
        {"content": "We have T2 goods, the G7 and the V1."},  # a tool's result
        {"content": "The K9 camera is nice."},  # the profile
        {"content": "You get a refund, and a wrap-up."},  # words
        {"content": "You are refunded (see prerefund(s), pré-get_orderé and prérefund(s))."},
        {"content": "您的会员等级已更新，我们refund了。"},
        {"content": "K1手机到了。"},  # a tool's result, too
        {"content": "Ihre Größe ist da, in g2 und t1."},
        {"content": "As a VIP in the loyalty tier gold you come first."},
        {"content": "The M25 motorway is closed, take the G20."},  # no ids of this prompt
        {"content": "As I said, we can repair it."},
        {"content": "When? And what is it?"},  # what the customer said
        *map(fact, ["P", "K1", "V1", "G1", "M1", "M2", "T1", "I1", "get_order", "M2, T1", "T1; K1"]),
        service("M2"),  # the agent's earlier message
        service("M1, T1"),
        broken("awaits_agreement"),
        broken("customer_request"),
    ],
    ids=str,
)
def test_what_code_lets_pass(said):
    assert violations(**said) == []


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_secrecy_and_repetition_are_checked_in_every_mode(mode):
    assert violations(mode, content="I called get_order.")
    assert violations(mode, content="We can repair it!")
    assert bool(violations(mode, **fact(None))) is (mode == "arq")


def test_a_source_that_the_cut_history_no_longer_shows_does_not_exist():
    long = [HumanMessage("x" * 300, id=f"x{n}") for n in range(400)]
    (found,) = violations(messages=[*long, HumanMessage("And?", id="h2")], **fact("M1"))
    assert 'there is no "M1" in this prompt' in found
