"""What calls cost is counted by module, in threads and tasks, whether or not a model reports tokens."""

from __future__ import annotations

from itertools import count

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage

from arq_graph.errors import BlueprintError, RefusalError
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.usage import track_usage
from tests.reasoning.endpoint import Endpoint, ok, status, truncated
from tests.reasoning.verdict import GOOD, OUT_OF_RANGE, PROMPT, Verdict

numbers = count()


def reasoner_with(answers, module="matcher") -> Reasoner:
    model = ScriptedChatModel(answers, model_name=f"counted-{next(numbers)}")
    return Reasoner(model, module=module, backoff=0)


def test_calls_and_tokens_are_counted_by_module(asks):
    with track_usage() as used:
        first = asks.one(reasoner_with([OUT_OF_RANGE, GOOD], "matcher"))
        second = asks.one(reasoner_with([GOOD], "tools"))
    assert used.calls == 3
    assert {name: module.calls for name, module in used.by_module.items()} == {"matcher": 2, "tools": 1}
    assert used.by_module["matcher"].usage == first.usage
    assert used.total["total_tokens"] == first.usage["total_tokens"] + second.usage["total_tokens"]


def test_questions_asked_at_the_same_time_are_all_counted(asks):
    with track_usage() as used:
        answers = asks.all(reasoner_with(lambda call: GOOD), [Question(Verdict, PROMPT)] * 9)
    assert used.calls == 9
    assert used.total["total_tokens"] == sum(answer.usage["total_tokens"] for answer in answers)


def test_calls_outside_the_block_are_not_counted(asks):
    reasoner = reasoner_with([GOOD, GOOD, GOOD])
    asks.one(reasoner)
    with track_usage() as used:
        asks.one(reasoner)
    asks.one(reasoner)
    assert used.calls == 1


def test_nothing_asked_is_nothing_spent():
    with track_usage() as used:
        pass
    assert (used.calls, used.by_module) == (0, {})
    assert used.total == {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


def test_a_model_that_reports_no_tokens_is_counted_too(asks):
    model = FakeListChatModel(responses=[Verdict(**GOOD).model_dump_json()])
    with track_usage() as used:
        answer = asks.one(Reasoner(model, module="matcher"))
    assert answer.usage is None
    assert used.calls == 1
    assert used.by_module["matcher"].usage is None
    assert used.total["total_tokens"] == 0


def test_calls_of_others_are_counted_apart():
    model = ScriptedChatModel(["Hello."])
    with track_usage() as used:
        model.invoke(PROMPT)
    assert used.by_module["other"].calls == 1


def test_an_outer_block_counts_what_an_inner_one_counts(asks):
    reasoner = reasoner_with([GOOD, GOOD])
    with track_usage() as outer:
        asks.one(reasoner)
        with track_usage() as inner:
            asks.one(reasoner)
    assert (outer.calls, inner.calls) == (2, 1)
    assert outer.total["total_tokens"] == 2 * inner.total["total_tokens"]


def test_a_block_ends_when_it_raises(asks):
    with pytest.raises(RefusalError), track_usage() as used:
        asks.one(reasoner_with([AIMessage("", additional_kwargs={"refusal": "No."})]))
    asks.one(reasoner_with([GOOD]))
    assert used.calls == 1


def test_requests_that_failed_are_counted(asks):
    with Endpoint([status(429), ok(GOOD)]) as endpoint, track_usage() as used:
        asks.one(Reasoner(endpoint.chat_model(), backoff=0))
    assert used.calls == endpoint.calls == 2


def test_tokens_of_an_answer_that_was_cut_off_are_counted(asks):
    with (
        Endpoint([truncated('{"rationale": "The order is')]) as endpoint,
        track_usage() as outer,
        track_usage() as used,
        pytest.raises(BlueprintError) as raised,
    ):
        asks.one(Reasoner(endpoint.chat_model(), module="matcher"))
    assert used.total == outer.total == raised.value.attempts[0].usage
    assert used.total["total_tokens"] > 0
