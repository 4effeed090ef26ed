"""Drive several asks from one thread while their requests are under way in others."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from langchain_core.runnables import RunnableConfig

from arq_graph.errors import ReasoningError
from arq_graph.reasoning.transport import OpenRequest, Request, Requests

T = TypeVar("T")


@dataclass(frozen=True)
class Ask(Generic[T]):
    """An ask under way: its steps, the config of its calls, and the index of its result among those of all asks."""

    index: int
    steps: Requests[T]
    config: RunnableConfig


class CallLoop(Generic[T]):
    """Makes the requests of several asks at the same time, and continues each ask when its request has ended.

    Args:
        starts: A function for each ask, which begins it and returns its steps and the config of its calls.
        limit: How many asks may be under way at the same time; 1 or more.
    """

    def __init__(
        self, starts: Sequence[Callable[[], tuple[Requests[T], RunnableConfig]]], limit: int
    ) -> None:
        self._starts = starts
        self._limit = limit
        self._results: dict[int, T | ReasoningError] = {}
        self._open: dict[int, tuple[Ask[T], OpenRequest]] = {}  # by the number of the request
        self._request_numbers = count()
        self._ended: SimpleQueue[int] = SimpleQueue()

    def run(self) -> list[T | ReasoningError]:
        """Return the result of each ask, or the error that it ended with; errors of other kinds are raised."""
        waiting = deque(enumerate(self._starts))
        try:
            while waiting or self._open:
                while waiting and len(self._open) < self._limit:
                    index, start = waiting.popleft()
                    steps, config = start()
                    self._continue(Ask(index, steps, config), partial(next, steps))
                for number in self._wait():
                    self._receive(number)
        finally:
            # Some are left after an error or Ctrl-C; nobody waits for them any more.
            for ask, request in self._open.values():
                request.close()
                ask.steps.close()
        return [self._results[index] for index in range(len(self._starts))]

    def _wait(self) -> list[int]:
        """Wait until a request has ended, or the time of one is up; return the numbers of these requests."""
        if not self._open:
            return []
        first_deadline = min(request.call.deadline for _, request in self._open.values())
        try:
            return [self._ended.get(timeout=max(0.0, first_deadline - time.monotonic()))]
        except Empty:
            now = time.monotonic()
            return [number for number, (_, request) in self._open.items() if request.call.deadline <= now]

    def _receive(self, number: int) -> None:
        """Continue an ask with the answer to its request, or with the error."""
        if number not in self._open:
            return  # its time was up before it ended
        ask, request = self._open.pop(number)
        try:
            answer = request.call.get_result()
        except Exception as error:
            take_step = partial(ask.steps.throw, error)
        else:
            take_step = partial(ask.steps.send, answer)
        finally:
            request.close()
        self._continue(ask, take_step)

    def _continue(self, ask: Ask[T], take_step: Callable[[], Request]) -> None:
        """Bring an ask to its next request, or to its end."""
        try:
            request = take_step()
        except StopIteration as finished:
            self._results[ask.index] = finished.value
            return
        except ReasoningError as error:
            self._results[ask.index] = error
            return
        number = next(self._request_numbers)
        try:
            open_request = request.start(ask.config, partial(self._ended.put, number))
        except Exception as error:
            self._continue(ask, partial(ask.steps.throw, error))
        else:
            self._open[number] = ask, open_request
