"""What code finds wrong with a reply, and what it lets pass."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, Guideline, Term, Variable
from arq_graph.agent.state import GuidelineMatch
from arq_graph.nodes import MessageReviser
from arq_graph.nodes.violations import PromptFacts, forbids, leaks
from arq_graph.reasoning.conversation import Conversation
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
        Guideline("they ask", "tell the status", tools=[get_order, refund]),
        Guideline("they are rude", "never give a discount"),
        Guideline("they say goodbye", "say goodbye", id="wrap-up"),
        Guideline("they are a VIP", "be quick", id="VIP"),
    ],
    glossary=[Term("SLA", "Two days.")],
    variables=[Variable("loyalty tier", "The tier", "gold"), Variable("internal_score", "A score", 7)],
)
TALK = [
    HumanMessage("Hello, my M2 laptop is broken", id="h1"),
    AIMessage("We can repair it.", id="a1"),
    HumanMessage("When? And what is G1?", id="h2"),
    AIMessage("", tool_calls=[{"name": "get_order", "args": {}, "id": "c1", "type": "tool_call"}]),
    ToolMessage("T2 goods: the G7 and the V1", tool_call_id="c1", name="get_order"),
]
"""M1, M2, M3, T1; the prompt also holds K1, V1, V2, P and the active guidelines G1 and G2."""


def violations(mode="arq", messages=TALK, **said):
    """What is found wrong with one revision."""
    matches = [
        GuidelineMatch(guideline=id, turn="h2", active=True, matched=True, score=8) for id in ("G1", "G2")
    ]
    node = MessageReviser(brain(reply={"content": "Fine.", **said}), DESK, mode=mode, extra_revisions=0)
    return node.invoke({"messages": messages, "guideline_matches": matches})["revisions"][0].violations


@pytest.mark.parametrize(
    "content",
    [
        "I called get_order.",
        "I called `refund`.",
        "I ran refund(A-1).",
        "See G1.",
        "See G2, it applies.",
        "That is in M3.",
        "As T1 says.",
        "Our K1 is two days.",
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
        "Your M2 laptop will be repaired.",  # the customer's own
        "Your T2 goods are here.",  # a tool's result
        "We have the G7 and the V1.",
        "The K9 camera is nice.",  # the profile
        "You get a refund, and a wrap-up.",  # words
        "As a VIP in the loyalty tier gold you come first.",
        "The M25 motorway is closed.",  # no id of this prompt
        "Take the G20.",
        "Our SLA is two days.",
    ],
)
def test_a_word_that_only_looks_like_an_id_may_show(content):
    assert violations(content=content) == ()


def test_a_tool_s_name_of_two_words_is_no_words():
    facts = PromptFacts(Conversation([]), (), tools=["get-order", "refund"], internal_names=())
    assert leaks("I used get-order for your refund.", facts) == [
        "'get-order' is internal and must not show in a reply"
    ]


def test_a_guideline_s_id_may_not_show_even_if_the_customer_guesses_it():
    assert violations(content="G1 is a rule of mine.")


def test_an_id_of_an_inactive_guideline_may_not_show_either():
    agent = Agent("Desk", "You help.", [Guideline("a", "do a"), Guideline("b", "do b")])
    match = GuidelineMatch(guideline="G1", turn="M1", active=True, matched=True)
    node = MessageReviser(brain(reply="G2 does not apply."), agent, extra_revisions=0)
    update = node.invoke({"messages": [HumanMessage("Hi")], "guideline_matches": [match]})
    assert "'G2' is internal" in update["revisions"][0].violations[0]


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_secrecy_and_repetition_are_checked_in_every_mode(mode):
    assert violations(mode, content="I called get_order.")
    assert violations(mode, content="We can repair it!")


@pytest.mark.parametrize(
    ("content", "is_repeat"),
    [
        ("We can repair it.", True),
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


@pytest.mark.parametrize("source", ["P", "K1", "V1", "G1", "M1", "M2", "T1", "M2, T1", "T1; K1"])
def test_a_fact_may_come_from_anything_in_the_prompt(source):
    assert violations(**fact(source)) == ()


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (None, "it has no source in this prompt"),
        ("", "it has no source in this prompt"),
        (" , ", "it has no source in this prompt"),
        ("T9", 'there is no "T9" in this prompt'),
        ("VIP", 'there is no "VIP" in this prompt'),  # a guideline that is not active
        ("T1, M7", 'there is no "M7" in this prompt'),
        ("common knowledge", "there is no"),
    ],
)
def test_a_fact_without_a_source_in_the_prompt_is_a_violation(source, problem):
    (found,) = violations(**fact(source))
    assert found.startswith("MessageBlueprint.revisions[0].factual_information_provided[0]: ")
    assert problem in found


def test_a_service_may_come_from_the_agent_s_earlier_message_but_never_from_the_customer_s():
    assert violations(**service("M2")) == ()
    assert violations(**service("M1, T1")) == ()
    for source in ("M1", "M1, M3"):
        (found,) = violations(**service(source))
        assert found.startswith("MessageBlueprint.revisions[0].offered_services[0]: ")
        assert "it cannot be what offers a service" in found


def test_a_source_that_the_cut_history_no_longer_shows_does_not_exist():
    long = [HumanMessage("x" * 300, id=f"h{n}") for n in range(400)]
    (found,) = violations(messages=[*long, HumanMessage("And?", id="h2")], **fact("M1"))
    assert 'there is no "M1" in this prompt' in found


def broken(instruction, reason):
    return {"instructions_broken": [{"instruction": instruction, "reason": reason, "rationale": "-"}]}


@pytest.mark.parametrize("reason", ["prioritization", "missing_data", "customer_request"])
def test_an_instruction_may_be_broken_for_a_reason(reason):
    assert violations(**broken("G1", reason)) == ()


def test_an_instruction_broken_without_a_reason_is_a_violation():
    (found,) = violations(**broken("G1", "none"))
    assert "instructions_broken[0]" in found


def test_a_prohibition_does_not_yield_to_the_customer():
    (found,) = violations(**broken("G2", "customer_request"))
    assert "forbids it, whoever asks" in found


def test_a_repeat_that_the_model_admits_is_a_violation():
    (found,) = violations(is_repeat_message=True)
    assert found.startswith("MessageBlueprint.revisions[0].is_repeat_message: ")


def test_an_insight_with_a_source_that_does_not_exist_is_a_violation():
    (found,) = violations(insights=[{"insight": "be quick", "source": "T9"}])
    assert found.startswith("MessageBlueprint.insights[0]: ")


@pytest.mark.parametrize("instruction", ["G2", "G2: never give a discount", "Never give a discount."])
def test_a_prohibition_is_recognised_however_it_is_cited(instruction):
    (found,) = violations(**broken(instruction, "customer_request"))
    assert "forbids it, whoever asks" in found


@pytest.mark.parametrize(
    "action",
    [
        "Don’t promise a date",
        "cannot offer refunds",
        "avoid jokes",
        "no discounts on sale items",
        "never lie",
    ],
)
def test_what_forbids_is_recognised_by_its_words(action):
    assert forbids(action)


@pytest.mark.parametrize("action", ["offer a discount", "note the number", "know the customer"])
def test_what_does_not_forbid_is_no_prohibition(action):
    assert not forbids(action)


def test_a_variable_that_only_the_thread_knows_is_internal_too():
    node = MessageReviser(brain(reply="Your credit_risk_flag is high."), DESK, extra_revisions=0)
    state = node.invoke(
        {"messages": TALK[:1], "guideline_matches": [], "variables": {"credit_risk_flag": "high"}}
    )
    assert "'credit_risk_flag' is internal" in state["revisions"][0].violations[0]
