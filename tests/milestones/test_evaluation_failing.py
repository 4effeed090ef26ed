"""Whose failure it is: a model's ends a run, and anything else ends the one conversation that it came up in."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from arq_graph import ScriptedChatModel
from arq_graph.errors import ModelUnavailableError
from arq_graph.milestones.evaluation.conversing import aconverse, converse
from arq_graph.milestones.evaluation.failing import causes, is_out_of_reach
from arq_graph.milestones.evaluation.running import aevaluate, evaluate
from tests.milestones.evaluated import Answers, Says, buyer, deed, no_way_there, suite


def failing(messages: list[BaseMessage]) -> list[BaseMessage]:
    no_way_there()
    return []


def test_a_model_out_of_reach_ends_the_run_and_is_no_failure_of_the_arm(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    app = Answers(failing)
    with pytest.raises(ModelUnavailableError, match="3 conversations in a row"):
        evaluate(suite(), {"app": app}, runs=50, concurrency=1, results=file)
    assert len(app.threads) == 3
    report = evaluate(suite(), {"app": Answers(buyer)}, runs=50, results=file, resume=True)
    assert report.summary.overall.goal_completion.count == 50
    assert not report.broken


def test_a_model_out_of_reach_now_and_then_does_not_end_the_run():
    turns = Counter[str]()

    def flaky(messages: list[BaseMessage]) -> list[BaseMessage]:
        if len(messages) == 1:
            turns["conversations"] += 1
            if turns["conversations"] % 3:
                no_way_there()
        return buyer(messages)

    report = evaluate(suite(), {"app": Answers(flaky)}, runs=9, concurrency=1)
    assert len(report.conversations) == 3
    assert len(report.broken) == 6


class Raises:
    """An app, sync or async, in which something goes wrong in the second turn."""

    def __init__(self, fail: Callable[[], Any]) -> None:
        self.fail = fail

    def _answer(self, messages: list[BaseMessage]) -> Any:
        if len(messages) > 1:
            self.fail()
        return {"messages": [*messages, *deed("find"), AIMessage("I see.")]}

    def invoke(self, input: Any, config: Any = None) -> Any:
        return self._answer(input["messages"])


class RaisesLater(Raises):
    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        await asyncio.sleep(0)
        return self._answer(input["messages"])


def own(error: BaseException) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


def own_after_a_models() -> None:
    """The model is out of reach, the app goes on without it, and then something of its own fails."""
    with suppress(ConnectionError):
        no_way_there()
    raise ConnectionError("order database refused")


@pytest.mark.parametrize("app", [Raises, RaisesLater])
@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (own(ConnectionError("order database refused")), "ConnectionError: order database refused"),
        (own(TimeoutError("database slow")), "TimeoutError: database slow"),
        (own_after_a_models, "ConnectionError: order database refused"),
        (own(asyncio.CancelledError("a scope of its own")), "CancelledError: a scope of its own"),
        (lambda: sys.exit(5), "sys.exit(5)"),
    ],
)
def test_what_an_app_itself_raises_ends_its_conversations_and_no_others(app, fail, said):
    report = evaluate(suite("a", "b", "c", "d"), {"raises": app(fail), "buys": Answers(buyer)}, concurrency=2)
    assert not report.broken
    raised = [one for one in report.conversations if one.arm == "raises"]
    assert [one.ended for one in raised] == ["error"] * 4
    assert all(said in str(one.error) for one in raised)
    assert [one.reached[-1].name for one in raised] == ["find"] * 4, "each counts as far as it got"
    assert report.summary.arms["buys"].goal_completion.count == 4


def test_a_models_lost_connection_is_told_apart_however_the_app_wraps_it():
    def wrapped() -> None:
        try:
            no_way_there()
        except ConnectionError as error:
            raise RuntimeError("the desk is closed") from error

    def grouped() -> None:
        try:
            no_way_there()
        except ConnectionError as error:
            raise ExceptionGroup("tasks", [ValueError("another"), error]) from None

    for fail in (no_way_there, wrapped, grouped):
        with pytest.raises(ModelUnavailableError):
            evaluate(suite("a", "b", "c"), {"arm": Raises(fail)}, concurrency=1)


def test_a_model_that_answers_nonsense_is_the_arms_own_failure():
    model = ScriptedChatModel(lambda call: ValueError("no such answer"))
    report = evaluate(suite("a", "b", "c"), {"arm": Raises(lambda: model.invoke("hello"))}, concurrency=1)
    assert [one.ended for one in report.conversations] == ["error"] * 3


def test_an_error_that_led_to_itself_is_looked_at_once():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert list(causes(one)) == [one, other]
    assert not is_out_of_reach(one)


@tool
def leave() -> str:
    """Leave."""
    sys.exit("enough")


def calling(tool: Any) -> Any:
    """A compiled graph whose async run calls a tool in a task and a thread of its own."""

    def call(state: MessagesState) -> Any:
        return {"messages": [AIMessage("", tool_calls=[{"name": tool.name, "args": {}, "id": "1"}])]}

    builder = StateGraph(MessagesState)
    builder.add_node("call", call)
    builder.add_node("tools", ToolNode([tool]))
    builder.set_entry_point("call")
    builder.add_edge("call", "tools")
    return builder.compile()


def test_a_tool_that_ends_the_program_ends_its_conversation_alone():
    report = evaluate(suite("a", "b"), {"leaves": calling(leave), "buys": Answers(buyer)}, concurrency=1)
    assert ["enough" in str(one.error) for one in report.conversations] == [True, False] * 2
    assert report.summary.arms["buys"].goal_completion.count == 2


async def test_in_a_loop_of_ones_own_too_and_the_loop_is_left_as_it_was():
    loop = asyncio.get_running_loop()
    made = []

    def factory(loop: Any, coro: Any, **settings: Any) -> Any:
        made.append(coro)
        return asyncio.Task(coro, loop=loop, **settings)

    loop.set_task_factory(factory)
    report = await aevaluate(suite("a", "b"), {"leaves": calling(leave)})
    assert [one.ended for one in report.conversations] == ["error"] * 2
    assert made
    assert loop.get_task_factory() is factory


def test_a_sync_conversation_outlives_it_too():
    held = converse(calling(leave), Says("one"))
    assert (held.ended, held.error) == ("error", "ProgramEnded: it called sys.exit('enough')")


def test_a_world_that_ends_the_program_is_named():
    report = evaluate(suite("a"), {"arm": lambda scenario, agent, model: sys.exit(3), "buys": Answers(buyer)})
    assert "the arm could not be made: SystemExit: 3" in report.broken[0].error
    assert len(report.conversations) == 1


async def test_a_conversation_that_is_cancelled_from_outside_is_over():
    begun = asyncio.Event()

    class Waits:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            begun.set()
            await asyncio.Event().wait()

    holding = asyncio.create_task(aconverse(Waits(), Says("one")))
    await begun.wait()
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    assert len(asyncio.all_tasks()) == 1, "nothing of it goes on"


def test_an_app_that_cancels_the_task_it_runs_in_cancels_no_other():
    class Cancels:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    report = evaluate(suite("a", "b"), {"cancels": Cancels(), "buys": Answers(buyer)}, concurrency=1)
    assert [one.ended for one in report.conversations] == ["error", "user"] * 2


async def test_an_app_that_cancels_its_task_and_then_answers_has_failed_in_that_turn():
    class Cancels:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            return {"messages": [AIMessage("It is done.")]}

    held = await aconverse(Cancels(), Says("one", "two"))
    assert (held.ended, held.turns, held.by_user) == ("error", 1, False)
    assert held.error is not None
    assert "CancelledError" in held.error


def test_ctrl_c_within_an_app_still_ends_the_run():
    app = Raises(own(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        evaluate(suite("a", "b"), {"arm": app})
    held = evaluate(suite("a"), {"buys": Answers(buyer)})
    assert held.summary.arms["buys"].goal_completion.count == 1, "and the next begins anew"
