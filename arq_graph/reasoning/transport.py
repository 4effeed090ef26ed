"""Making model calls, and making them again while a provider is overloaded or out of reach.

A call is a generator that yields what it needs (a request, a wait) and is sent what came of it, so that the sync
and the async side differ in nothing but who performs a step.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.reasoning.failures import Failure, is_openai_class, read_failure, retry_after, unavailable
from arq_graph.reasoning.methods import Bound
from arq_graph.reasoning.model_settings import limited, quiet_copy
from arq_graph.reasoning.performing import aperform_steps, perform_steps

_MAX_TRIES = 8
_MAX_PAUSE = 20.0
# With less than this share of the time left, another try would only be cut short.
_WORTH_TRYING = 0.02

OnWait = Callable[[float, Exception], None]
"""Is told of a wait before another try: how many seconds it takes, and the error that it follows."""

_watcher: ContextVar[OnWait | None] = ContextVar("arq_graph_waits", default=None)


@contextmanager
def watch_waits(on_wait: OnWait) -> Iterator[None]:
    """Be told, inside the `with` block and in its threads and tasks, before a call is tried again."""
    token = _watcher.set(on_wait)
    try:
        yield
    finally:
        _watcher.reset(token)


@dataclass(frozen=True)
class Send:
    """A request to make; `seconds` is what is left of the call's time."""

    bound: Bound
    messages: list[BaseMessage]
    seconds: float


Step = Send | float
"""A request, or the seconds to wait before another one."""
T = TypeVar("T")
Steps = Generator[Step, Any, T]


class Transport:
    """Makes the calls of one chat model, or rather of a copy of it.

    A call may take `timeout` seconds, its retries included. In a sync call it is the client that keeps time, if
    its class has a field for that. The first retry waits `backoff` seconds, each further one twice as long.
    """

    def __init__(self, model: BaseChatModel, *, timeout: float, backoff: float) -> None:
        self.model = quiet_copy(model, timeout)
        self._timeout = timeout
        self._backoff = backoff
        self._openai_class = is_openai_class(model)

    def failure(self, error: Exception) -> Failure:
        """What an exception of this model means."""
        return read_failure(error, openai_class=self._openai_class)

    def call(
        self,
        asked: str,
        messages: Sequence[BaseMessage],
        bind: Callable[[BaseChatModel], Bound],
        *,
        model: BaseChatModel | None = None,
        is_final: Callable[[Failure], bool] = lambda _: False,
    ) -> Steps[BaseMessage]:
        """Make one call; tries that were lost are repeated."""
        model = model or self.model
        deadline = time.monotonic() + self._timeout
        tries = 0
        while True:
            tries += 1
            left = max(deadline - time.monotonic(), self._timeout * _WORTH_TRYING)
            try:
                # The first try has the model as it is, so that LangChain's cache finds the same call again.
                bound = bind(model if tries == 1 else limited(model, left))
                answer: BaseMessage = yield Send(bound, list(messages), left)
            except Exception as error:
                failure = self.failure(error)
                if not failure.transient or is_final(failure):
                    raise
                pause = self._pause(failure, tries, deadline - time.monotonic())
                if pause is None:
                    raise unavailable(failure, asked=asked, tries=tries, seconds=self._timeout) from error
                if on_wait := _watcher.get():
                    on_wait(pause, error)
            else:
                return answer
            yield pause

    def run(self, steps: Steps[T], config: RunnableConfig) -> T:
        """Perform all steps and return what they lead to."""

        def perform(step: Step) -> BaseMessage | None:
            if isinstance(step, Send):
                return step.bound.invoke(step.messages, config)
            time.sleep(step)
            return None

        return perform_steps(steps, perform)

    async def arun(self, steps: Steps[T], config: RunnableConfig) -> T:
        """Perform all steps without blocking and return what they lead to."""

        async def perform(step: Step) -> BaseMessage | None:
            if isinstance(step, Send):
                async with asyncio.timeout(step.seconds):
                    return await step.bound.ainvoke(step.messages, config)
            await asyncio.sleep(step)
            return None

        return await aperform_steps(steps, perform)

    def _pause(self, failure: Failure, tries: int, left: float) -> float | None:
        """The seconds to wait before another try; None where none is worth it in the seconds left."""
        seconds = retry_after(failure.error)
        if seconds is None or seconds >= left:
            doubled = self._backoff * 2 ** (tries - 1)
            seconds = min(doubled, max(_MAX_PAUSE, self._backoff)) + random.uniform(0, self._backoff)
        if tries == _MAX_TRIES or left - seconds < self._timeout * _WORTH_TRYING:
            return None
        return seconds
