"""Threads of what is not async: what is given up holds up nobody, and what is waited for is bounded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from arq_graph.milestones.evaluation.threads import DaemonThreads, in_thread

WHO: ContextVar[str] = ContextVar("who")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hangs in it hangs until the test is over."""
    gate = threading.Event()
    yield gate
    gate.set()


def test_what_is_called_is_answered_and_what_it_raises_is_raised():
    threads = DaemonThreads(2)
    assert [call.result(60) for call in [threads.submit(pow, 2, n) for n in range(9)]] == [
        2**n for n in range(9)
    ]
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(60)


def test_so_many_run_at_once_and_no_more(gate):
    now, most, lock = 0, 0, threading.Lock()
    three = threading.Barrier(3)

    def work() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        three.wait(60)
        with lock:
            now -= 1

    threads = DaemonThreads(3)
    for call in [threads.submit(work) for _ in range(12)]:
        call.result(60)
    assert most == 3


def test_a_call_that_hangs_and_is_given_up_leaves_its_room_to_the_next(gate):
    threads = DaemonThreads(2)
    hanging = [threads.submit(gate.wait) for _ in range(2)]
    waiting = threads.submit(lambda: "at last")
    assert not waiting.done()
    assert hanging[0].cancel()
    assert waiting.result(60) == "at last"
    gate.set()


async def test_giving_up_by_a_time_limit_of_asyncio_leaves_its_room_too(gate):
    threads = DaemonThreads(1)
    loop = asyncio.get_running_loop()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await loop.run_in_executor(threads, gate.wait)
    assert await loop.run_in_executor(threads, lambda: "free") == "free"


def test_what_has_not_begun_is_given_up_at_the_end_and_nothing_more_is_taken(gate):
    threads = DaemonThreads(1)
    running, waiting = threads.submit(gate.wait), threads.submit(pow, 2, 3)
    threads.shutdown()
    assert waiting.cancelled()
    assert not running.done()
    with pytest.raises(RuntimeError, match="shut down"):
        threads.submit(pow, 2, 3)


async def test_a_thread_has_the_callers_context_and_is_not_waited_for_at_the_end():
    WHO.set("me")
    assert await in_thread(lambda: (WHO.get(), threading.current_thread().daemon)) == ("me", True)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(next, iter(()))
