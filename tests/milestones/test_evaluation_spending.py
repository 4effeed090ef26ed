"""What a run may cost: nothing is begun once it is reached, and what was spent before counts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult

from arq_graph import ScriptedChatModel
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.running import evaluate
from arq_graph.milestones.evaluation.spending import Budget, CallCounter, CallLimitReached
from tests.milestones.evaluated import suite

USAGE = UsageMetadata(input_tokens=1_000, output_tokens=100, total_tokens=1_100)


def asking(calls: int = 2, name: str = "gpt-4o-2024-08-06", usage: UsageMetadata | None = USAGE) -> Any:
    """An app that makes so many calls a turn."""
    model = ScriptedChatModel(
        lambda call: AIMessage("hi", usage_metadata=usage, response_metadata={"model_name": name})
    )

    class Asks:
        made = model

        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            for _ in range(calls):
                await model.ainvoke(input["messages"])
            return "hi"

    return Asks()


def test_calls_tokens_and_times_are_told_for_each_conversation_and_arm():
    report = evaluate(suite(), {"one": asking(1), "three": asking(3)}, runs=2)
    per_turn = {one.arm: (one.model_calls, one.input_tokens, one.turns) for one in report.conversations}
    for arm, calls in (("one", 1), ("three", 3)):
        made, tokens, turns = per_turn[arm]
        assert made == calls * turns
        assert tokens == 1_000 * made
        summary = report.summary.arms[arm]
        assert summary.model_calls is not None
        assert summary.model_calls.mean == made
        assert summary.turn_seconds is not None
        assert summary.turn_seconds.n == 2 * turns


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_ceiling_for_calls_stops_cleanly_and_says_how_many_are_missing(concurrency):
    app = asking(2)
    report = evaluate(suite(), {"app": app}, runs=20, concurrency=concurrency, max_calls=69)
    assert "max_calls" in str(report.stopped)
    assert report.missing == 20 - len(report.conversations)
    assert 0 < len(report.conversations) < 20
    # Turns under way are finished, and none is begun.
    assert 69 <= len(app.made.calls) <= 69 + 2 * concurrency
    assert all(one.ended == "user" for one in report.conversations)
    assert all(one.ended == "budget" and "stopped after" in one.error for one in report.broken)


def test_a_run_that_ends_just_at_its_ceiling_lacks_nothing():
    whole = evaluate(suite(), {"app": asking()}, runs=3)
    calls = sum(one.model_calls or 0 for one in whole.conversations)
    report = evaluate(suite(), {"app": asking()}, runs=3, concurrency=1, max_calls=calls)
    assert (report.missing, report.stopped) == (0, None)


def test_a_stopped_run_is_gone_on_with_and_what_it_spent_counts(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    first = evaluate(suite(), {"app": asking()}, runs=20, concurrency=3, max_calls=25, results=file)
    again = asking()
    report = evaluate(suite(), {"app": again}, runs=20, max_calls=25, results=file, resume=True)
    assert not again.made.calls
    assert report.missing == 20 - len(first.conversations)
    report = evaluate(suite(), {"app": asking()}, runs=20, max_calls=1_000, results=file, resume=True)
    assert sorted(one.run or 0 for one in report.conversations) == list(range(1, 21))
    assert report.missing == 0
    assert not report.broken


def test_a_ceiling_for_cost_holds_by_the_price_of_the_model():
    prices = {"gpt-4o": (2.5, 10.0), "gpt-4": (30.0, 60.0)}
    cost = (1_000 * 2.5 + 100 * 10) / 1_000_000  # one call
    app = asking()
    report = evaluate(suite(), {"app": app}, runs=20, concurrency=1, max_cost=10 * cost, prices=prices)
    assert "max_cost" in str(report.stopped)
    assert 10 <= len(app.made.calls) <= 12


@pytest.mark.parametrize(
    ("app", "said"),
    [(asking(name="other"), "other has no price"), (asking(usage=None), "reports no tokens")],
)
def test_a_cost_that_cannot_be_known_ends_the_run(app, said):
    with pytest.raises(InputError, match=said):
        evaluate(suite(), {"app": app}, runs=20, concurrency=1, max_cost=5, prices={"gpt-4o": (2.5, 10)})
    assert len(app.made.calls) < 20


def test_a_ceiling_for_cost_without_prices_is_refused():
    with pytest.raises(InputError, match="no price"):
        evaluate(suite(), {"app": asking()}, max_cost=5)
    with pytest.raises(InputError, match="the price of 'm'"):
        evaluate(suite(), {"app": asking()}, max_cost=5, prices={"m": (-1, 2)})


def test_what_users_ask_counts_against_the_ceiling_and_not_for_the_arm():
    calls: list[Any] = []

    def play(call: Any) -> str:
        calls.append(call)
        raise RuntimeError("a user's model that fails")

    report = evaluate(
        suite(), {"app": asking()}, runs=5, concurrency=1, user_model=ScriptedChatModel(play), max_calls=2
    )
    assert len(calls) >= 2
    assert report.stopped
    assert not report.conversations


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), max_size=8))
def test_cost_is_the_sum_over_all_answers(answers):
    budget = Budget(max_cost=1, prices={"m": (3, 7)})
    for read, written in answers:
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        budget.count_tokens(("m-2024",), usage)
    expected = sum(3 * read + 7 * written for read, written in answers) / 1_000_000
    assert budget.cost == pytest.approx(expected)
    assert (budget.reached is not None) == (budget.cost >= 1)


def answered(counter: CallCounter, asked: str, told: str = "") -> None:
    """One call of a model: what it was asked as, and the name that its answer tells."""
    run = uuid4()
    counter.on_chat_model_start({}, [[]], run_id=run, metadata={"ls_model_name": asked})
    message = AIMessage("hi", usage_metadata=USAGE, response_metadata={"model_name": told} if told else {})
    counter.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]), run_id=run)


def test_cost_is_told_by_prices_alone_without_a_ceiling():
    budget = Budget(prices={"m": (3, 7)})
    assert budget.count_tokens(("m-2024",), USAGE) == pytest.approx(0.0037)
    assert budget.cost == pytest.approx(0.0037)
    assert budget.reached is None


@pytest.mark.parametrize(
    ("asked", "told", "price"),
    [
        ("gpt-4o", "", 2),
        ("my-deployment", "gpt-4o-2024", 2),
        ("gpt-4o", "another name of it", 2),
        ("gpt-4", "", 1),
        ("gpt-4o-mini", "", 3),
    ],
)
def test_the_price_is_that_of_the_name_that_is_known_by_its_longest_beginning(asked, told, price):
    budget = Budget(
        max_cost=100, prices={"gpt-4": (1_000, 0), "gpt-4o": (2_000, 0), "gpt-4o-mini": (3_000, 0)}
    )
    counter = CallCounter(budget)
    answered(counter, asked, told)
    budget.require_known_cost()
    assert counter.cost == budget.cost == pytest.approx(price)


def test_a_model_that_is_no_chat_model_counts_against_the_limit_too():
    model = FakeListLLM(responses=["one", "two", "three"])
    counter = CallCounter(limit=2)
    with counter.listening():
        assert model.invoke("hello") == "one"
        assert model.invoke("hello") == "two"
        with pytest.raises(CallLimitReached):
            model.invoke("hello")
    assert (counter.calls, counter.input_tokens) == (2, 0)


class LengthFinishReasonError(Exception):
    """What OpenAI's client raises where an answer was cut off."""

    completion = SimpleNamespace(
        choices=[], usage=SimpleNamespace(prompt_tokens=1_000, completion_tokens=100, total_tokens=1_100)
    )


@pytest.mark.parametrize(
    ("error", "tokens"), [(LengthFinishReasonError("cut off"), 1_000), (ValueError("no answer"), 0)]
)
def test_an_answer_that_was_cut_off_cost_its_tokens_and_a_call_that_failed_none(error, tokens):
    budget = Budget(max_cost=1, prices={"gpt-4o": (2_000, 0)})
    counter = CallCounter(budget)
    run = uuid4()
    counter.on_chat_model_start({}, [[]], run_id=run, metadata={"ls_model_name": "gpt-4o"})
    counter.on_llm_error(error, run_id=run)
    budget.require_known_cost()
    assert (counter.input_tokens, budget.cost) == (tokens, tokens * 2_000 / 1_000_000)
    assert counter.failures == [error]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_calls": 0},
        {"max_calls": True},
        {"max_calls": 1.5},
        {"max_cost": 0, "prices": {"m": (1, 2)}},
        {"max_cost": True, "prices": {"m": (1, 2)}},
        {"max_cost": float("nan"), "prices": {"m": (1, 2)}},
        {"max_cost": float("inf"), "prices": {"m": (1, 2)}},
        {"prices": [("m", 1, 2)]},
        {"prices": {1: (1, 2)}},
        {"prices": {"m": "12"}},
        {"prices": {"m": (1, 2, 3)}},
        {"prices": {"m": (1, True)}},
        {"prices": {"m": (1, -0.1)}},
    ],
)
def test_a_ceiling_or_a_price_out_of_its_range_is_told(wrong):
    with pytest.raises(InputError, match=r"max_calls|max_cost|price"):
        Budget(**wrong)


def test_a_model_that_costs_nothing_and_a_ceiling_of_one_call_are_fine():
    budget = Budget(max_calls=1, max_cost=0.01, prices={"m": (0, 0)})
    assert budget.reached is None
    budget.count_call()
    assert str(budget.reached).startswith("max_calls: 1 of 1")


def test_a_ceiling_for_cost_is_reached_where_just_as_much_is_spent():
    budget = Budget(max_cost=1, prices={"m": (1_000_000, 0)})
    budget.count_tokens(("m",), UsageMetadata(input_tokens=1, output_tokens=0, total_tokens=1))
    assert budget.cost == 1
    assert str(budget.reached).startswith("max_cost: 1.00 of 1 ")


@pytest.mark.parametrize(
    ("ceiling", "cost", "said"),
    [
        (0.002, 0.0021, "0.0021 of 0.002"),
        (0.002, 0.002, "0.002 of 0.002"),
        (0.00015, 0.00016, "0.00016 of 0.00015"),
        (5, 5.004, "5.00 of 5"),
        (5, 12.5, "12.50 of 5"),
        (1e-20, 1e-20, "1e-20 of 1e-20"),
    ],
)
def test_what_is_spent_is_told_in_as_many_digits_as_it_takes(ceiling, cost, said):
    budget = Budget(max_cost=ceiling, prices={"m": (1, 2)})
    budget.add(1, cost)
    assert budget.reached == f"max_cost: {said} is spent"
