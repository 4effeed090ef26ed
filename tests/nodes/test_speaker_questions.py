"""At most so many questions in a row, and none of them twice."""

from __future__ import annotations

from langchain_core.tools import StructuredTool
from pydantic import BaseModel, model_validator

from arq_graph import Agent
from tests.nodes.order_tools import ran
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


def test_no_question_at_all_can_be_set():
    assert said(move([ask("Which one?")], HI, max_questions=0)[0]) == DESK.fallback


def test_a_fallback_that_asks_is_not_used_as_a_statement():
    desk = Agent("Desk", "You help.", fallback="Can you say that again?")
    assert "?" not in said(move([say("")], HI, desk=desk)[0])


class Span(BaseModel):
    """Days that follow each other."""

    first: int
    last: int

    @model_validator(mode="after")
    def _in_order(self):
        if self.last < self.first:
            raise ValueError("the last day is before the first")
        return self


def test_what_is_wrong_with_no_single_argument_is_nothing_that_code_can_ask_for():
    tool = StructuredTool.from_function(
        lambda first, last: "booked", name="book_days", description="Book days.", args_schema=Span
    )
    desk = Agent("Desk", "You help.", tools=[tool])
    backwards = act("book_days", {"first": 4, "last": 2})
    update, asked = move([backwards], customer("Book the days 4 to 2."), desk=desk)
    assert "the last day is before the first" in asked[1].complaint
    assert said(update) == desk.fallback


def test_in_a_task_what_waits_for_an_answer_counts_as_a_question_and_its_end_does_not():
    options = {"setting": "task", "max_questions": 0}
    script = [say("I wait for you.", ends_task=False), say("It is done.", ends_task=True)]
    update, asked = move(script, HI, **options)
    assert "0 questions in a row are enough" in asked[1].complaint
    assert said(update) == "It is done."
    update, asked = move(script[1:], HI, **options)
    assert (len(asked), said(update)) == (1, "It is done.")


def test_the_last_question_that_is_left_may_be_asked():
    update, asked = move([ask("Three?")], *asked_before("One?", "Two?"))
    assert asked[0].now["questions_left"] == 1
    assert (len(asked), said(update)) == (1, "Three?")


def test_what_was_said_earlier_is_said_again_only_as_a_question():
    thread = [HI, agent("It is late."), customer("Hm.", "h2"), agent("I look.", "a2"), customer("So?", "h3")]
    update, asked = move([say("It is late."), say("It is still late.")], *thread)
    assert "an earlier message says exactly this" in asked[1].complaint
    assert said(update) == "It is still late."
    asking = [HI, agent("Which one?"), customer("Hm.", "h2"), agent("I look.", "a2"), customer("So?", "h3")]
    update, asked = move([ask("Which one?")], *asking)
    assert (len(asked), said(update)) == (1, "Which one?")


def test_code_asks_for_all_that_is_missing_in_one_sentence():
    update, _ = move([act("get_order")], customer("Where is my order?"))
    assert said(update) == "To go on I need this from you: order id. Could you tell me?"
    update, _ = move([act("find_table")], customer("A table, please."))
    assert said(update) == "To go on I need this from you: guests, area and food. Could you tell me?"
