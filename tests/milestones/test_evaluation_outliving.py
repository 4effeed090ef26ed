"""What no `except Exception` catches: it ends one conversation, but for Ctrl-C and the run's own cancellation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from arq_graph.milestones.evaluation.conversing import converse
from arq_graph.milestones.evaluation.failing import outlive
from arq_graph.milestones.evaluation.results import read_results
from arq_graph.milestones.evaluation.running import aevaluate, evaluate
from tests.milestones.evaluated import Answers, Says, buyer, suite


class Panic(BaseException):
    """What an extension in another language raises where it gives up."""


class Fails:
    """An app that raises in its second turn."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def answer(self, messages: list[BaseMessage]) -> Any:
        if len(messages) > 1:
            raise self.error
        return [AIMessage("Which one?")]

    def invoke(self, input: Any, config: Any = None) -> Any:
        return self.answer(input["messages"])


class FailsLater(Fails):
    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        await asyncio.sleep(0)
        return self.answer(input["messages"])


class FailsInATask(Fails):
    async def _own(self, input: Any) -> Any:
        return self.answer(input["messages"])

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        return await asyncio.create_task(self._own(input))


KINDS = [Fails, FailsLater, FailsInATask]
ERRORS = [
    (Panic("rust"), "Panic: rust"),
    (GeneratorExit("shut"), "GeneratorExit"),
    (BaseExceptionGroup("tasks", [SystemExit(1), ValueError("x")]), "BaseExceptionGroup: tasks"),
    (BaseExceptionGroup("scope", [asyncio.CancelledError()]), "BaseExceptionGroup: scope"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("error", "said"), ERRORS)
def test_whatever_an_app_raises_ends_its_own_conversation(kind, error, said):
    arms = {"fails": kind(error), "buys": Answers(buyer)}
    report = evaluate(suite("a", "b", "c"), arms, concurrency=2)
    assert not report.broken
    failed = [one for one in report.conversations if one.arm == "fails"]
    assert [one.ended for one in failed] == ["error"] * 3
    assert all(said in str(one.error) for one in failed)
    assert report.summary.arms["buys"].goal_completion.count == 3


@pytest.mark.parametrize(("error", "said"), ERRORS)
def test_and_so_it_is_where_nothing_is_async(error, said):
    held = converse(Fails(error), Says("one", "two"))
    assert (held.ended, held.turns) == ("error", 2)
    assert said in str(held.error)


@pytest.mark.parametrize(("error", "said"), ERRORS)
def test_an_arm_or_a_judge_that_panics_is_told_and_the_others_go_on(error, said):
    def fail(*_: Any) -> Any:
        raise error

    report = evaluate(suite("a", "b"), {"arm": fail, "buys": Answers(buyer)})
    assert [said in one.error for one in report.broken] == [True, True]
    assert len(report.conversations) == 2
    report = evaluate(suite("a", "b"), {"buys": Answers(buyer), "other": Answers(buyer)}, judge=fail)
    assert [one.ended for one in report.conversations] == []
    assert [said in one.error for one in report.broken] == [True] * 4


def test_an_operator_who_panics_fails_in_that_turn():
    call = {"action_requests": [{"name": "buy", "args": {}}]}

    class Waits:
        def invoke(self, input: Any, config: Any = None) -> Any:
            return {"messages": [AIMessage("A moment.")], "__interrupt__": [call]}

    for error, said in ((Panic("rust"), "Panic: rust"), (SystemExit(3), "sys.exit(3)")):

        def decide(calls: Any, error: BaseException = error) -> Any:
            raise error

        held = converse(Waits(), Says("one"), operator=decide)
        assert held.ended == "error"
        assert said in str(held.error)


INTERRUPTS = [
    KeyboardInterrupt(),
    BaseExceptionGroup("tasks", [ValueError("x"), KeyboardInterrupt()]),
    BaseExceptionGroup("tasks", [BaseExceptionGroup("inner", [KeyboardInterrupt()])]),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", INTERRUPTS)
def test_ctrl_c_gets_through_alone_and_in_a_group_and_what_ended_is_kept(kind, error, tmp_path: Path):
    file = tmp_path / "results.jsonl"
    arms = {"buys": Answers(buyer), "stops": kind(error)}
    with pytest.raises(KeyboardInterrupt):
        evaluate(suite("a", "b"), arms, concurrency=1, results=file)
    assert [(record.arm, record.scenario) for record, _ in read_results(file)] == [("buys", "a")]
    again = {"buys": Answers(buyer), "stops": Answers(buyer)}
    report = evaluate(suite("a", "b"), again, results=file, resume=True)
    assert report.summary.overall.goal_completion.count == 4


@pytest.mark.parametrize("error", INTERRUPTS)
def test_ctrl_c_gets_through_where_nothing_is_async_and_where_an_arm_is_made(error):
    with pytest.raises(KeyboardInterrupt):
        converse(Fails(error), Says("one", "two"))

    def make(*_: Any) -> Any:
        raise error

    with pytest.raises(KeyboardInterrupt):
        evaluate(suite("a"), {"arm": make})


class Stubborn:
    """An app that makes another error of its cancellation."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.turns = 0

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        self.turns += 1
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise Panic("cancelled") from error


async def test_a_run_that_is_cancelled_is_over_whatever_an_app_makes_of_it():
    app = Stubborn()
    running = asyncio.create_task(aevaluate(suite("a", "b", "c"), {"arm": app}, concurrency=1))
    await app.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert app.turns == 1, "nothing further was begun"


async def test_a_coroutine_that_is_closed_is_no_failure_of_the_app():
    of_another = asyncio.create_task(asyncio.sleep(0))
    with pytest.raises(GeneratorExit):
        outlive(GeneratorExit(), of_another)
    outlive(GeneratorExit("an app's own"), asyncio.current_task())
    await of_another


async def test_a_run_that_is_cancelled_while_it_is_judged_is_over_and_keeps_no_verdict(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    begun, asked = asyncio.Event(), []

    async def judge(*_: Any) -> Any:
        asked.append(1)
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(
        aevaluate(suite("a", "b"), {"buys": Answers(buyer)}, judge=judge, concurrency=1, results=file)
    )
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    assert len(asked) == 1
    assert file.read_bytes() == b""
