"""What code finds wrong with a reply, and what it lets pass."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, Guideline, Term, Variable
from arq_graph.nodes import MessageReviser
from tests.brain import brain


def get_order(order_id: str) -> str:
    """Look up an order."""
    return order_id


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
    ],
    glossary=[Term(name="SLA", description="Two days.")],
    variables=[
        Variable(name="loyalty tier", description="The tier", value="gold"),
        Variable(name="internal_score", description="A score", value=7),
    ],
)
TALK = [
    HumanMessage("Hello, my M2 laptop is broken, order A-301", id="h1"),
    AIMessage("We can repair it.", id="a1"),
    HumanMessage("When? And what is G1?", id="h2"),
    AIMessage("", tool_calls=[{"name": "get_order", "args": {}, "id": "c1", "type": "tool_call"}]),
    ToolMessage("T2 goods: the G7 and the V1", tool_call_id="c1", name="get_order"),
]
"""M1, M2, M3, T1; the prompt also holds K1, V1, V2, P, I1, the active guidelines G1 and G2, and what get_order does."""


def violations(mode="arq", messages=TALK, agent=DESK, variables=None, **said):
    """What is found wrong with one revision."""
    matches = [
        {"agent": "Desk", "guideline": id, "turn": "h2", "active": True, "matched": True, "score": 8}
        for id in ("G1", "G2")
    ]
    missing = {"agent": "Desk", "turn": "h2", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    node = MessageReviser(brain(reply={"content": "Fine.", **said}), agent, mode=mode, extra_revisions=0)
    state = {"messages": messages, "guideline_matches": matches, "tool_insights": [missing]}
    update = node.invoke({**state, "variables": variables or {}})
    return update["revisions"][0]["violations"]


@pytest.mark.parametrize(
    "content",
    [
        "I called get_order.",
        r"I called get\_order.",
        "I called `refund`.",
        "I ran refund(A-1).",
        "See G2, it applies.",
        "That is in M3.",
        "As I1 says.",
        "Your internal_score is 7.",
        "The `loyalty tier` variable says so.",
    ],
)
def test_a_reply_that_shows_an_id_or_an_internal_name_is_a_violation(content):
    (found,) = violations(content=content)
    assert found.startswith("MessageBlueprint.revisions[0].content: ")
    assert found.endswith("is internal and must not show in a reply")


@pytest.mark.parametrize(
    "content",
    [
        "Your M2 laptop, order A-301, will be repaired.",  # the customer's own
        "We have T2 goods, the G7 and the V1.",  # a tool's result
        "The K9 camera is nice.",  # the profile
        "You get a refund, and a wrap-up.",  # words
        "As a VIP in the loyalty tier gold you come first.",
        "The M25 motorway is closed, take the G20.",  # no ids of this prompt
    ],
)
def test_a_word_that_only_looks_like_an_id_may_show(content):
    assert violations(content=content) == []


def test_a_guideline_s_id_may_not_show_even_if_the_customer_guesses_it_or_it_is_not_active():
    agent = Agent(
        "Desk", "You help.", [Guideline("a", "do a"), Guideline("b", "do b"), Guideline("c", "do c")]
    )
    assert "'G3' is internal" in violations(agent=agent, content="G3 does not apply.")[0]


def test_a_variable_that_only_the_thread_knows_is_internal_too():
    found = violations(content="Your credit_risk_flag is high.", variables={"credit_risk_flag": "high"})
    assert "'credit_risk_flag' is internal" in found[0]


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_secrecy_and_repetition_are_checked_in_every_mode(mode):
    assert violations(mode, content="I called get_order.")
    assert violations(mode, content="We can repair it!")
    assert violations(mode, **fact(None)) == ([] if mode != "arq" else violations(**fact(None)))


@pytest.mark.parametrize(
    ("content", "is_repeat"),
    [
        ("we can **repair** it", True),
        ("As I said, we can repair it.", False),
        ("When? And what is it?", False),
    ],
)
def test_saying_exactly_the_same_again_is_a_violation(content, is_repeat):
    found = violations(content=content)
    assert bool(found) is is_repeat
    assert all("an earlier message says exactly this" in violation for violation in found)


def fact(source):
    return {"factual_information_provided": [{"fact": "it is late", "source": source}]}


def service(source):
    return {"offered_services": [{"service": "a repair", "source": source}]}


def test_a_fact_may_come_from_anything_in_the_prompt():
    sources = ["P", "K1", "V1", "G1", "M1", "M2", "T1", "I1", "get_order", "M2, T1", "T1; K1"]
    stated = [{"fact": "it is late", "source": source} for source in sources]
    assert violations(factual_information_provided=stated) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (None, "it has no source in this prompt"),
        (" , ", "it has no source in this prompt"),
        ("VIP", 'there is no "VIP" in this prompt'),  # a guideline that is not active
        ("refund", 'there is no "refund" in this prompt'),  # a tool that no active guideline grants
        ("T1, M7", 'there is no "M7" in this prompt'),
    ],
)
def test_a_fact_without_a_source_in_the_prompt_is_a_violation(source, problem):
    (found,) = violations(**fact(source))
    assert found.startswith("MessageBlueprint.revisions[0].factual_information_provided[0]: ")
    assert problem in found


def test_a_service_may_come_from_the_agent_s_earlier_message_but_never_from_the_customer_s():
    assert violations(**service("M2")) == violations(**service("M1, T1")) == []
    for source in ("M1", "M1, M3"):
        (found,) = violations(**service(source))
        assert found.startswith("MessageBlueprint.revisions[0].offered_services[0]: ")
        assert "it cannot be what offers a service" in found


def test_a_source_that_the_cut_history_no_longer_shows_does_not_exist():
    long = [HumanMessage("x" * 300, id=f"x{n}") for n in range(400)]
    (found,) = violations(messages=[*long, HumanMessage("And?", id="h2")], **fact("M1"))
    assert 'there is no "M1" in this prompt' in found


@pytest.mark.parametrize(
    ("reason", "forbids", "problem"),
    [
        ("awaits_agreement", False, None),
        ("customer_request", False, None),
        ("customer_request", True, "forbids it, whoever asks"),
        ("none", False, "is not followed, without a reason"),
    ],
)
def test_an_instruction_may_be_broken_for_a_reason_and_a_prohibition_not_because_the_customer_asks(
    reason, forbids, problem
):
    broken = {"instruction": "G2", "reason": reason, "forbids": forbids, "rationale": "-"}
    found = violations(instructions_broken=[broken])
    assert [problem in each for each in found] == ([True] if problem else [])


def test_a_repeat_that_the_model_admits_and_an_insight_without_its_source_are_violations():
    (found,) = violations(is_repeat_message=True)
    assert found.startswith("MessageBlueprint.revisions[0].is_repeat_message: ")
    (found,) = violations(insights=[{"insight": "be quick", "source": "T9"}])
    assert found.startswith("MessageBlueprint.insights[0]: ")
