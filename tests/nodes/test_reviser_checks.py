"""The violations that code finds in a reply, and what it accepts."""

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
MESSAGES = [
    HumanMessage("Hello, my M2 laptop is broken, order A-301", id="h1"),
    AIMessage("We can repair it.", id="a1"),
    HumanMessage("When? And what is G1?", id="h2"),
    AIMessage("", tool_calls=[{"name": "get_order", "args": {}, "id": "c1", "type": "tool_call"}]),
    ToolMessage("T2 goods: the G7 and the V1，还有K1手机", tool_call_id="c1", name="get_order"),
]
"""M1, M2, M3, T1; the prompt also has K1, V1 to V5, P, I1, the active G1 and G2, and the description of get_order."""


def find_violations(mode="arq", messages=MESSAGES, **revision):
    matches = []
    for id in ("G1", "G2"):
        match = {"agent": "Desk", "guideline": id, "turn": "h2", "active": True, "matched": True, "score": 8}
        matches.append(match)
    missing = {"agent": "Desk", "turn": "h2", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    model = brain(reply={"content": "Fine.", **revision})
    state = {"messages": messages, "guideline_matches": matches, "tool_insights": [missing]}
    state["variables"] = {"credit_risk_flag": "high"}
    update = MessageReviser(model, DESK, mode=mode, extra_revisions=0).invoke(state)
    return update["revisions"][0]["violations"]


def fact(source):
    return {"factual_information_provided": [{"fact": "it is late", "source": source}]}


def service(source):
    return {"offered_services": [{"service": "a repair", "source": source}]}


def broken(reason, forbids=False):
    instruction = {"instruction": "G2", "reason": reason, "forbids": forbids, "rationale": "-"}
    return {"instructions_broken": [instruction]}


@pytest.mark.parametrize(
    "content",
    [
        r"I called get\_order.",
        "I called get_\u200b\ufe0f\x08order.",
        "See Ｇ２, it applies.",
        "I called `refund`.",
        "I ran refund(A-1).",
        "G1 applies.",  # even if the customer guesses it
        "G5 does not apply.",  # it isn't active
        "That is in M3.",
        "As I1 says.",
        "Your credit_risk_flag is high.",  # a variable of this thread only
        # A name can stand beside letters of another script without a space.
        "我用get_order查了一下。",
        "по get_orderу",
        "我调用refund(A-1)了。",
        "会员等级: 1",
        "The `loyalty tier` variable says so.",
    ],
)
def test_reply_must_not_give_internals_away(content):
    (violation,) = find_violations(content=content)
    assert violation.startswith("MessageBlueprint.revisions[0].content: ")
    assert "is internal and must not show in a reply" in violation


@pytest.mark.parametrize(
    ("revision", "query", "problem"),
    [
        ({"content": "we can **repair** it"}, "content", "an earlier message says exactly this"),
        (fact(None), "factual_information_provided[0]", "it has no source in this prompt"),
        (fact(" , "), "factual_information_provided[0]", "it has no source in this prompt"),
        # An inactive guideline, a tool that no active guideline grants, and a message that doesn't exist.
        (fact("VIP"), "factual_information_provided[0]", 'there is no "VIP" in this prompt'),
        (fact("refund"), "factual_information_provided[0]", 'there is no "refund" in this prompt'),
        (fact("T1, M7"), "factual_information_provided[0]", 'there is no "M7" in this prompt'),
        (service("M1, M3"), "offered_services[0]", "a customer's message can't offer a service"),
        (broken("customer_request", forbids=True), "instructions_broken[0]", "forbids it, whoever asks"),
        (broken("none"), "instructions_broken[0]", "is not followed, without a reason"),
        ({"is_repeat_message": True}, "is_repeat_message", "it repeats an earlier message"),
    ],
)
def test_violations_name_the_query_and_the_problem(revision, query, problem):
    (violation,) = find_violations(**revision)
    assert violation.startswith(f"MessageBlueprint.revisions[0].{query}: ")
    assert problem in violation


def test_sources_of_insights_must_exist():
    (violation,) = find_violations(insights=[{"insight": "be quick", "source": "T9"}])
    assert violation.startswith("MessageBlueprint.insights[0]: ") and 'no "T9" in this prompt' in violation


@pytest.mark.parametrize(
    "content",
    [
        "Your M2 laptop, order A-301, will be repaired.",  # the customer's words
        "We have T2 goods, the G7 and the V1. K1手机到了。",  # a tool's result
        "The K9 camera is nice.",  # the profile
        "You get a refund, and a wrap-up. As a VIP in the loyalty tier gold you come first.",  # plain words
        "You are refunded (see prerefund(s), pré-get_orderé and prérefund(s)).",
        "您的会员等级已更新，我们refund了。",
        "Ihre Größe ist da, in g2 und t1.",
        "The M25 motorway is closed, take the G20.",  # these ids aren't in the prompt
        "As I said, we can repair it.",
        "When? And what is it?",  # the customer said this, not the agent
    ],
)
def test_reply_may_use_plain_words_and_quote(content):
    assert find_violations(content=content) == []


@pytest.mark.parametrize(
    "revision",
    [
        *map(fact, ["P", "V1, G1", "M1", "T1; K1", "I1, get_order"]),
        service("M2"),  # an earlier message of the agent
        broken("awaits_agreement"),
        broken("customer_request"),
    ],
    ids=str,
)
def test_sources_and_reasons_that_are_accepted(revision):
    assert find_violations(**revision) == []


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_secrecy_and_repetition_are_checked_in_every_mode(mode):
    assert find_violations(mode, content="I called get_order.")
    assert find_violations(mode, content="We can repair it!")
    assert bool(find_violations(mode, **fact(None))) is (mode == "arq")


def test_messages_that_the_cut_history_leaves_out_are_no_sources():
    long = [HumanMessage("x" * 300, id=f"x{n}") for n in range(400)]
    (violation,) = find_violations(messages=[*long, HumanMessage("And?", id="h2")], **fact("M1"))
    assert 'there is no "M1" in this prompt' in violation
