"""How far one conversation may go, and what is left of it on the loop that it was held in."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from arq_graph.milestones.evaluation.conversing import aconverse, converse
from arq_graph.milestones.evaluation.scenario import Limits
from arq_graph.milestones.evaluation.sealing import ProgramEnded, sealed
from tests.milestones.evaluated import Answers, Says, talker

NO_TIME = 1e-9


def test_an_app_that_cannot_be_stopped_has_its_time_looked_at_after_each_turn():
    app = Answers(talker)
    held = converse(app, Says("one", "two", "three"), limits=Limits(seconds=NO_TIME))
    assert (held.ended, len(app.given) < 2) == ("seconds", True)
    assert held.error is None


def test_without_a_limit_of_time_it_goes_on_as_long_as_the_user_speaks():
    words = [str(number) for number in range(5)]
    for held in (
        converse(Answers(talker), Says(*words), limits=Limits(seconds=None)),
        asyncio.run(aconverse(Answers(talker), Says(*words), limits=Limits(seconds=None))),
    ):
        assert (held.ended, held.turns) == ("user", 5)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_so_many_messages_are_sent_and_no_more(turns):
    app = Answers(talker)
    held = converse(app, Says("one", "two", "three", "four"), limits=Limits(turns=turns))
    assert (held.ended, held.turns, len(app.given)) == ("turns", turns, turns)


def test_a_user_who_has_said_all_just_at_the_limit_has_ended_it():
    held = converse(Answers(talker), Says("one", "two"), limits=Limits(turns=2))
    assert (held.ended, held.turns) == ("user", 2)


async def leaves() -> None:
    sys.exit(3)


async def test_a_task_is_sealed_until_the_last_of_several_blocks_is_over():
    loop = asyncio.get_running_loop()
    with sealed():
        with sealed():
            pass
        with pytest.raises(ProgramEnded, match="3"):
            await asyncio.create_task(leaves())
    assert loop.get_task_factory() is None


async def test_a_factory_that_came_later_is_left_where_it_is():
    loop = asyncio.get_running_loop()

    def factory(loop: Any, coro: Any, **settings: Any) -> Any:
        return asyncio.Task(coro, loop=loop, **settings)

    with sealed():
        loop.set_task_factory(factory)
    assert loop.get_task_factory() is factory
    loop.set_task_factory(None)


async def test_a_sealed_task_that_is_cancelled_may_tidy_up():
    tidied = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tidied.append("done")

    with sealed():
        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await task
    assert tidied == ["done"]


async def test_a_program_that_is_ended_while_tidying_up_ends_its_task_alone():
    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            sys.exit("while tidying up")

    with sealed():
        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(ProgramEnded, match="while tidying up"):
            await task
