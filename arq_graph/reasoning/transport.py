"""Making model calls, and making them again while a provider is overloaded or out of reach.

A call is a generator that yields each request, with the pause before it, and is sent what came of it, so that the sync
and the async side differ in nothing but who performs a step.

Settings are made on a copy of the model: some classes take a temperature or a time limit only when they are made,
and refuse it as an argument of a call (ChatOllama, ChatGoogleGenerativeAI).
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import cached_property
from inspect import getattr_static
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.models.resolve import Bare, Called, model_name
from arq_graph.reasoning.failures import classify_failure
from arq_graph.reasoning.methods import get_endpoint
from arq_graph.reasoning.replies import GrowingAnswer
from arq_graph.reasoning.steps import aperform_steps, perform_steps

_log = logging.getLogger(__name__)

MAX_TRIES = 8
_MAX_PAUSE = 20.0
# With less than this share of the time left, another try would only be cut short.
_WORTH_TRYING = 0.02
_TIMEOUT_FIELDS = ("request_timeout", "default_request_timeout", "timeout")
_LIMIT_FIELDS = ("max_tokens", "max_output_tokens", "num_predict")
_CLIENT_FIELDS = ("client", "async_client", "root_client", "root_async_client")


@dataclass(frozen=True)
class Step:
    """A request to make after a pause; `seconds` is what is left of the call's time by then.

    With `growing` the answer is streamed, which that is told of; a model that streams nothing gives it at once.
    """

    pause: float
    bound: Called
    messages: list[BaseMessage]
    seconds: float
    growing: GrowingAnswer | None = None


T = TypeVar("T")
Steps = Generator[Step, Any, T]


class Transport:
    """Makes the calls of one chat model, or rather of a copy of it that streams nothing; knows its endpoint.

    Under LangGraph's `stream_mode="messages"` a client would stream otherwise, whatever tag the call has. A call may
    take `timeout` seconds, its retries included. In a sync call it is the client that keeps time, if its class has a
    field for that. The first retry waits `backoff` seconds, each further one twice as long.
    """

    def __init__(self, bare: Bare, *, timeout: float, backoff: float) -> None:
        self.name = model_name(bare.model)
        self.endpoint = get_endpoint(bare)
        self._bare = bare
        # Without being told to, many endpoints count no tokens of a streamed answer.
        counts = {"stream_usage": True} if getattr(bare.model, "stream_usage", None) is None else {}
        self._streaming = {"disable_streaming": bare.model.disable_streaming, "streaming": True, **counts}
        self._backoff = backoff
        self._timeout = timeout
        self.model = _limited(_changed(bare.model, disable_streaming=True, streaming=False), timeout)

    def call(
        self,
        asked: str,
        messages: Sequence[BaseMessage],
        bind: Callable[[BaseChatModel], Called],
        model: BaseChatModel | None = None,
        settled: bool = True,
        growing: GrowingAnswer | None = None,
        max_tries: int = MAX_TRIES,
    ) -> Steps[AIMessage]:
        """Make one call; tries that were lost are repeated, once if the method, not `settled` yet, may be why.

        With `growing` the answer is streamed, unless the endpoint has refused that.
        """
        model = model or self.model
        if growing and self.endpoint.streams:
            model = _changed(model, **self._streaming)
        deadline = time.monotonic() + self._timeout
        pause, left, tries, doubts = 0.0, self._timeout, 0, 0
        while True:
            tries += 1
            try:
                # The first try has the model as it is, so that LangChain's cache finds the same call again.
                bound = self._bare.bound_again(bind(model if tries == 1 else _limited(model, left)))
                answer: AIMessage = yield Step(pause, bound, list(messages), left, growing)
            except Exception as error:
                failure = classify_failure(error, model)
                doubts += failure.maybe_unsupported and not settled
                if not failure.transient or (doubts == 2 and tries < max_tries):
                    raise
                pause = min(self._backoff * 2 ** (tries - 1), max(_MAX_PAUSE, self._backoff))
                pause += random.uniform(0, self._backoff)
                left = deadline - time.monotonic() - pause
                if tries == max_tries or left < self._timeout * _WORTH_TRYING:
                    raise failure.unavailable(asked, self.name, tries, self._timeout) from error
                _log.info("no answer yet (%s); asking again in %.0f s", failure.words, pause)
            else:
                return answer

    @staticmethod
    def run(steps: Steps[T], config: RunnableConfig) -> T:
        """Perform all steps and return what they lead to."""

        def perform(step: Step) -> AIMessage:
            time.sleep(step.pause)
            if step.growing is None:
                return step.bound.invoke(step.messages, config)
            end = time.monotonic() + step.seconds
            step.growing.begin()
            with closing(step.bound.stream(step.messages, config)) as chunks:  # type: ignore[type-var]
                for chunk in chunks:
                    step.growing.add(chunk)
                    if time.monotonic() > end:  # a client's own limit is for each piece
                        raise TimeoutError("the answer was still being written")
            return step.growing.whole()

        return perform_steps(steps, perform)

    @staticmethod
    async def arun(steps: Steps[T], config: RunnableConfig) -> T:
        """Perform all steps without blocking and return what they lead to."""

        async def perform(step: Step) -> AIMessage:
            await asyncio.sleep(step.pause)
            async with asyncio.timeout(step.seconds):
                if step.growing is None:
                    return await step.bound.ainvoke(step.messages, config)
                step.growing.begin()
                async with aclosing(step.bound.astream(step.messages, config)) as chunks:  # type: ignore[type-var]
                    async for chunk in chunks:
                        step.growing.add(chunk)
                return step.growing.whole()

        return await aperform_steps(steps, perform)


def with_temperature(model: BaseChatModel, temperature: float | None) -> BaseChatModel:
    """A copy with a temperature, unless the model has one of its own or is known to take none."""
    own = getattr(model, "temperature", None) if "temperature" in model.model_fields_set else None
    if temperature is None or own is not None or (model.profile or {}).get("temperature") is False:
        return model
    return _changed(model, temperature=temperature)


def with_more_tokens(model: BaseChatModel) -> BaseChatModel | None:
    """A copy whose answers may have twice as many tokens; None where the model sets no limit or takes no higher one."""
    most = (model.profile or {}).get("max_output_tokens") or float("inf")
    for field in _LIMIT_FIELDS:
        limit = getattr(model, field, None)
        if isinstance(limit, int) and 0 < limit < most:
            return _changed(model, **{field: min(2 * limit, most)})
    return None


def _limited(model: BaseChatModel, seconds: float) -> BaseChatModel:
    """A copy whose requests end after so many seconds; a shorter limit of the model's own stays.

    A client's own retries would multiply the limit, so there are none. Clients of OpenAI's SDK, and of those
    generated like it, keep settings of their own.
    """
    changes: dict[str, Any] = {"max_retries": 0}
    options: dict[str, Any] = {"max_retries": 0}
    for field in _TIMEOUT_FIELDS:
        own = getattr(model, field, None)
        if field in type(model).model_fields and (own is None or isinstance(own, int | float)):
            changes[field] = options["timeout"] = min(seconds, own or seconds)
    for field in _CLIENT_FIELDS:
        client: Any = getattr(model, field, None)
        inner: Any = getattr(client, "_client", None)
        if hasattr(client, "with_options"):
            changes[field] = client.with_options(**options)
        elif hasattr(inner, "with_options"):
            changes[field] = type(client)(inner.with_options(**options))
    return _changed(model, **changes)


def _changed(model: BaseChatModel, **values: Any) -> BaseChatModel:
    cls = type(model)
    changed = model.model_copy(
        update={name: value for name, value in values.items() if name in cls.model_fields}
    )
    for name in set(vars(changed)) - cls.model_fields.keys():
        if isinstance(getattr_static(cls, name, None), cached_property):
            del vars(changed)[name]  # such as a client that was made with the old settings
    return changed
