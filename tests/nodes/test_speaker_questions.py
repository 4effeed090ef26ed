"""At most so many questions in a row, and none of them twice."""

from __future__ import annotations

from arq_graph import Agent
from tests.nodes.order_tools import A1, called, ran
from tests.nodes.speaker_desk import DESK, agent, customer, move, said
from tests.speaking import act, ask, say

HI = customer("Help me.")


def asked_before(*questions):
    thread = [HI]
    for number, question in enumerate(questions):
        thread += [agent(question, f"a{number}"), customer("Hm.", f"h{number + 2}")]
    return thread


def test_a_question_is_not_asked_twice_in_a_row():
    update, asked = move(
        [ask("Sorry, which order is it, please?"), say("Then I cannot help.")],
        *asked_before("Which order is it?"),
    )
    assert "just asked" in asked[1].complaint
    assert said(update) == "Then I cannot help."


def test_nor_with_other_words_around_it():
    update, _ = move([ask("Thank you. Which order is it?")], *asked_before("Hello! Which order is it?"))
    assert said(update) == DESK.fallback


def test_nor_after_another_question_in_between():
    update, _ = move([ask("Which order is it?")], *asked_before("Which order is it?", "What is your name?"))
    assert said(update) == DESK.fallback


def test_it_may_be_asked_again_once_something_was_done():
    thread = [*asked_before("Which order is it?"), *ran("[]")]
    again = "I found nothing. Which order is it?"
    assert said(move([ask(again)], *thread)[0]) == again


def test_nothing_is_said_twice_in_a_row_whatever_was_done_in_between():
    thread = [*asked_before("Tell me the order."), *ran("[]")]
    update, asked = move([say("Tell me the order!"), say("There is none.")], *thread)
    assert "this was just asked" in asked[1].complaint
    assert said(update) == "There is none."


def test_questions_in_a_row_are_bounded():
    thread = asked_before("One?", "Two?", "Three?")
    update, asked = move([ask("Four?"), say("I cannot help then.")], *thread)
    assert asked[0].now["questions_left"] == 0
    assert "3 questions in a row are enough" in asked[1].complaint
    assert said(update) == "I cannot help then."
    assert said(move([ask("Four?")], *thread)[0]) == DESK.fallback


def test_a_question_without_a_mark_counts_as_it_was_labelled():
    thread = [HI, agent("Tell me your name.", asks=True), customer("Hm.", "h2")]
    assert move([say("Fine.")], *thread, max_questions=1)[1][0].now["questions_left"] == 0
    unlabelled = [HI, agent("Tell me your name."), customer("Hm.", "h2")]
    assert move([say("Fine.")], *unlabelled, max_questions=1)[1][0].now["questions_left"] == 1


def test_a_statement_or_an_act_ends_the_row():
    stated = [*asked_before("One?", "Two?"), agent("It is late.", "a9"), customer("Ok", "h9")]
    assert move([say("Fine.")], *stated)[1][0].now["questions_left"] == 3
    done = [*asked_before("One?", "Two?"), *ran()]
    assert move([say("Fine.")], *done)[1][0].now["questions_left"] == 3


def test_code_asks_no_question_either_where_there_were_enough():
    update, _ = move(
        [act("cancel", A1)], *asked_before("A-1?", "Two?", "Three?"), customer("Cancel A-1", "h9")
    )
    assert (called(update), said(update)) == ([], DESK.fallback)


def test_no_question_at_all_can_be_set():
    assert said(move([ask("Which one?")], HI, max_questions=0)[0]) == DESK.fallback


def test_a_fallback_that_asks_is_not_used_as_a_statement():
    desk = Agent("Desk", "You help.", fallback="Can you say that again?")
    assert "?" not in said(move([say("")], HI, desk=desk)[0])
