"""Making the model calls that an ask wants, with retries over lost connections and overload.

An ask is a generator that yields what it needs (`Call`, `Wait`) and is sent what came of it, so that the sync
and the async side differ in nothing but who performs a step.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import tenacity
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.reasoning.failures import read_failure, retry_after, unavailable
from arq_graph.reasoning.methods import Bound
from arq_graph.reasoning.negotiation import Found, Wait
from arq_graph.reasoning.performing import aperform_steps, perform_steps

_MAX_TRIES = 8
_MAX_PAUSE = 20.0
# With less than this share of the time left, another try would only be cut short.
_WORTH_TRYING = 0.02


@dataclass(frozen=True)
class Call:
    """A model call that an ask wants made.

    Args:
        asked: What is asked, for error messages.
        bound: The chat model with its schema.
        messages: The whole prompt.
        kwargs: Further arguments of the call, such as a temperature.
        works: Whether the method is known to work: if not, a 500 is told to the ask at once, which may try
            another method.
    """

    asked: str
    bound: Bound
    messages: list[BaseMessage]
    kwargs: dict[str, Any]
    works: bool


Step = Call | Wait
T = TypeVar("T")
Steps = Generator[Step, Any, T]


class Transport:
    """Performs the steps of an ask.

    Args:
        model: The chat model, to know what its class takes.
        timeout: Seconds that one call may take, its retries included.
        backoff: Seconds before the first retry; doubled for each further one. 0 means no pause.
    """

    def __init__(self, model: BaseChatModel, *, timeout: float, backoff: float) -> None:
        openai_class = is_openai_class(model)
        request_timeout = _request_timeout(model, timeout) if openai_class else None
        self._limits = _Limits(timeout, backoff, request_timeout, openai_class)

    def run(self, steps: Steps[T], config: RunnableConfig) -> T:
        """Perform all steps and return what the ask returns."""
        return perform_steps(
            steps, lambda step: self._wait(step) if isinstance(step, Wait) else self._send(step, config)
        )

    async def arun(self, steps: Steps[T], config: RunnableConfig) -> T:
        """Perform all steps and return what the ask returns."""
        return await aperform_steps(
            steps, lambda step: self._await(step) if isinstance(step, Wait) else self._asend(step, config)
        )

    def _send(self, call: Call, config: RunnableConfig) -> BaseMessage:
        tries = _Tries(call, self._limits)

        def send() -> BaseMessage:
            return call.bound.invoke(call.messages, config, **tries.kwargs())

        try:
            return tenacity.Retrying(**tries.policy())(send)
        except Exception as error:
            tries.give_up(error)
            raise

    async def _asend(self, call: Call, config: RunnableConfig) -> BaseMessage:
        tries = _Tries(call, self._limits)

        async def send() -> BaseMessage:
            kwargs = tries.kwargs()
            async with asyncio.timeout(tries.seconds_left()):
                return await call.bound.ainvoke(call.messages, config, **kwargs)

        try:
            return await tenacity.AsyncRetrying(**tries.policy())(send)
        except Exception as error:
            tries.give_up(error)
            raise

    def _wait(self, wait: Wait) -> Found | None:
        try:
            return wait.search.result(self._limits.timeout)
        except TimeoutError:
            return None

    async def _await(self, wait: Wait) -> Found | None:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(wait.search), self._limits.timeout)
        except TimeoutError:
            return None


@dataclass(frozen=True)
class _Limits:
    """What holds for each call of a model; `request_timeout` is None where its class takes no `timeout=`."""

    timeout: float
    backoff: float
    request_timeout: float | None
    openai_class: bool


class _Tries:
    """The tries of one call: how long each may take, whether another is worth it, and when."""

    def __init__(self, call: Call, limits: _Limits) -> None:
        self._call = call
        self._limits = limits
        self._deadline = time.monotonic() + limits.timeout
        self._worth_trying = limits.timeout * _WORTH_TRYING
        self._made = 0

    def policy(self) -> dict[str, Any]:
        """The arguments for tenacity."""
        return {
            "retry": tenacity.retry_if_exception(self._is_worth_another),
            "stop": self._is_over,
            "wait": self._pause,
            "reraise": True,
        }

    def seconds_left(self) -> float:
        """Seconds until the call has taken its whole time; may be negative."""
        return self._deadline - time.monotonic()

    def kwargs(self) -> dict[str, Any]:
        """The arguments of the next try."""
        self._made += 1
        timeout = self._limits.request_timeout
        if timeout is None:
            return self._call.kwargs
        # The first try names a constant, so that LangChain's cache finds the same call again.
        if self._made > 1:
            timeout = min(timeout, max(self.seconds_left(), self._worth_trying))
        return {**self._call.kwargs, "timeout": timeout}

    def give_up(self, error: Exception) -> None:
        """Raise ModelUnavailableError if `error` ended tries that were worth repeating."""
        if self._is_worth_another(error):
            failure = read_failure(error, openai_class=self._limits.openai_class)
            raise unavailable(
                failure, asked=self._call.asked, tries=self._made, seconds=self._limits.timeout
            ) from error

    def _is_worth_another(self, error: BaseException) -> bool:
        if not isinstance(error, Exception):
            return False
        failure = read_failure(error, openai_class=self._limits.openai_class)
        return failure.transient and (self._call.works or not failure.maybe_unsupported)

    def _is_over(self, state: tenacity.RetryCallState) -> bool:
        left_after_pause = self.seconds_left() - state.upcoming_sleep
        return self._made >= _MAX_TRIES or left_after_pause < self._worth_trying

    def _pause(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        wanted = retry_after(error) if error is not None else None
        if wanted is not None and wanted < self.seconds_left():
            return wanted
        backoff = self._limits.backoff
        doubled: float = backoff * 2 ** (state.attempt_number - 1)
        return min(doubled, max(_MAX_PAUSE, backoff)) + random.uniform(0, backoff)


def is_openai_class(model: BaseChatModel) -> bool:
    """Whether a model is of LangChain's OpenAI family, told without importing that package."""
    return any(cls.__name__ == "BaseChatOpenAI" for cls in type(model).__mro__)


def _request_timeout(model: BaseChatModel, timeout: float) -> float | None:
    """What to pass as `timeout=` with each request: ours, or the model's own if that is shorter."""
    own = getattr(model, "request_timeout", None)
    if own is None:
        return timeout
    return min(timeout, own) if isinstance(own, int | float) else None
