"""Several questions that a reasoner asks at the same time, in threads or in tasks."""

import asyncio
from contextvars import ContextVar
from threading import Barrier

import pytest
from langchain_core.messages import HumanMessage

from arq_graph import Question, errors
from tests.reasoning.cases import GOOD, Verdict, make_reasoner, script_model


def make_questions(*texts: str) -> list[Question]:
    return [Question(Verdict, [HumanMessage(text)], name=text) for text in texts]


@pytest.mark.parametrize(("config", "width"), [(None, 6), ({"max_concurrency": 2}, 2)])
async def test_max_concurrency_limits_how_many_are_asked_at_the_same_time(config, width):
    running, counts, barrier = [], [], Barrier(width)

    def answer(call):
        running.append(call)
        counts.append(len(running))
        barrier.wait(120)
        running.pop()
        return GOOD

    async def aanswer(call):
        return await asyncio.to_thread(answer, call)

    make_reasoner(script_model(answer)).ask_all(make_questions(*"abcdef"), config=config)
    assert max(counts) == width
    counts.clear()
    await make_reasoner(script_model(aanswer)).aask_all(make_questions(*"abcdef"), config=config)
    assert max(counts) == width


async def test_a_limit_below_one_is_refused():
    reasoner = make_reasoner(script_model(GOOD))
    for config in ({"max_concurrency": -1}, {"max_concurrency": "4"}):
        with pytest.raises(errors.InputError, match="max_concurrency must be a whole number from 1 on"):
            reasoner.ask_all(make_questions("a"), config=config)
        with pytest.raises(errors.InputError, match="max_concurrency must be a whole number from 1 on"):
            await reasoner.aask_all(make_questions("a"), config=config)


async def test_answers_and_errors_stand_in_the_order_of_the_questions():
    tenant = ContextVar("tenant", default="nobody")
    tenant.set("ours")

    def answer(call):
        return {**GOOD, "rationale": tenant.get(), "score": 11 if "bad" in call.text else 8}

    reasoner = make_reasoner(script_model(answer))
    for first, second, third in (
        reasoner.ask_all(make_questions("good", "bad", "fine")),
        await reasoner.aask_all(make_questions("good", "bad", "fine")),
    ):
        assert first.value.rationale == third.value.rationale == "ours"
        assert isinstance(second, errors.BlueprintError)
        assert "reasoner asking bad" in str(second)
    assert reasoner.ask_all([]) == await reasoner.aask_all([]) == []


async def test_a_bug_in_one_of_several_is_raised_and_cancels_the_others():
    cancelled = []

    async def answer(call):
        if "bug" in call.text:
            return ZeroDivisionError("a bug")
        try:
            return await asyncio.Event().wait()
        finally:
            cancelled.append(call.text)

    with pytest.raises(ZeroDivisionError):
        await make_reasoner(script_model(answer)).aask_all(make_questions("one", "bug", "two"))
    assert sorted(cancelled) == ["one", "two"]
    with pytest.raises(ZeroDivisionError):
        make_reasoner(script_model([ZeroDivisionError()] * 2)).ask_all(make_questions("one", "two"))
