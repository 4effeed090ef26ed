"""A call that needs a yes is asked for in so many words, and answered by a yes to them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from arq_graph.milestones.users.personas import shipped_personas
from tests.apps.desk import says
from tests.apps.test_respact_properties import ASKS_SOMETHING_ELSE, HEDGED, NO, ORDERS, OTHER, chat, orders
from tests.speaking import Made


def after(question, order, answer, insists=4):
    """The calls that are made where a cancellation is put in these words, answered so, and then insisted on."""
    moves = [
        Made("cancel", args={"order_id": order}),
        Made("speak", question, asks_for=[("cancel", None)], fields={"asks": True}),
        *[Made("cancel", args={"order_id": order}, affirmed_in="M3")] * insists,
    ]
    run = chat().begins(moves)
    run(says(f"Please cancel {order}."))
    spoken = [m for m in run(says(answer))["messages"] if isinstance(m, AIMessage)]
    return spoken[0].text, [call["args"]["order_id"] for each in spoken for call in each.tool_calls]


@pytest.mark.parametrize("question", ASKS_SOMETHING_ELSE)
@settings(max_examples=3)
@given(orders, st.sampled_from(["keep it", "Yes, I do", *OTHER[1:], *HEDGED]))
def test_no_other_question_can_be_answered_by_the_yes_that_a_call_needs(question, order, answer):
    said, ran = after(question.format(order), order, answer)
    assert said.startswith(f"Before I go on, please confirm this: Cancel an order (order id: {order})")
    assert ran in ([], [order] if answer == "Yes, I do" else [])


@settings(max_examples=40)
@given(orders, st.sampled_from([*HEDGED, *NO, *OTHER[1:]]))
def test_no_other_answer_is_the_yes_that_a_call_needs(order, answer):
    assert after(f"Shall I cancel {order}?", order, answer)[1] == []


@settings(max_examples=20)
@given(
    st.permutations(ORDERS),
    st.sampled_from(["Yes, {}", "ok, {}", "Sure: {}", "Cancel {}", "Yes. I mean {}."]),
)
def test_a_yes_that_names_another_is_no_yes_to_this_one(picked, answer):
    order, other, _ = picked
    assert after(f"Shall I cancel {order}?", order, answer.format(other))[1] == []


@settings(max_examples=20)
@given(
    orders,
    st.sampled_from(
        [
            "Shall I cancel {}?",
            "Would you like me to cancel {}?",
            "I can cancel {} for you. Shall I go ahead?",
            "You'd like to cancel {}. Is that right?",
            "Are you sure you want to cancel {}?",
            "Please confirm that you want to cancel {}.",
            "Do you confirm the cancellation of {}?",
            "Okay, just to confirm: I'll cancel {} now. Is that correct?",
            "Should I go ahead with cancelling {}?",
            "Soll ich {} stornieren?",
        ]
    ),
    st.sampled_from(
        ["Yes", "yes please", "Sure, go ahead", "Yes, cancel it", "Yes, if you would be so kind.", "ja"]
    ),
)
def test_a_plain_yes_to_a_plain_question_is_one(question_of, question, answer):
    said, ran = after(question.format(question_of), question_of, answer, insists=1)
    assert (said, ran) == (question.format(question_of), [question_of])


PERSONAS = shipped_personas()


@pytest.mark.parametrize("persona", PERSONAS)
def test_a_simulated_user_of_any_persona_says_a_yes_that_is_one(persona):
    for line in PERSONAS[persona].lines_for("yes"):
        assert after("Shall I cancel A-1?", "A-1", line, insists=1)[1] == ["A-1"]
    for line in PERSONAS[persona].lines_for("no"):
        assert after("Shall I cancel A-1?", "A-1", line)[1] == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("注文A-1をキャンセルしてもよろしいですか？", "はい、お願いします。"),
        ("您要取消订单A-1吗？", "好的，请取消"),
        ("주문 A-1을 취소할까요?", "네"),
        ("Dois-je annuler la commande A-1 ?", "Oui, s'il vous plaît."),
        ("¿Cancelo el pedido A-1?", "Claro que sí"),
    ],
)
def test_a_yes_in_another_language_is_one(question, answer):
    assert after(question, "A-1", answer, insists=1) == (question, ["A-1"])


@pytest.mark.parametrize("answer", ["Cancel it.", "Cancel that, please", "I'm sure.", "Alright.", "You may."])
def test_a_yes_need_not_say_yes(answer):
    assert after("Shall I cancel A-1?", "A-1", answer, insists=1)[1] == ["A-1"]


def test_cancel_alone_may_mean_either():
    assert after("Shall I cancel A-1?", "A-1", "Cancel")[1] == []


def test_a_yes_may_say_the_words_of_the_question_and_none_of_what_stood_beside_it():
    question = "It arrives on Friday otherwise. Shall I cancel A-1?"
    assert after(question, "A-1", "Yes, cancel A-1", insists=1) == (question, ["A-1"])
    assert after(question, "A-1", "Yes, on Friday")[1] == []
