"""Make model calls, and make them again while a provider is overloaded or out of reach.

A call is a generator that yields each request, with the pause before it, and receives the answer or the error, so that
sync and async code share everything but the request itself.

Settings are made on a copy of the model: some classes take a temperature or a time limit only as a field, and refuse it
as an argument of a call (ChatOllama, ChatGoogleGenerativeAI).
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import getattr_static
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableBinding, RunnableConfig

from arq_graph.models.resolve import BoundModel, ModelRunnable, get_model_name
from arq_graph.reasoning.deadlines import CancellationWatch, DeadlineThreads, TimedCall
from arq_graph.reasoning.endpoints import Method, Schema, get_endpoint
from arq_graph.reasoning.failures import classify_failure
from arq_graph.reasoning.http_limits import limit_http_client
from arq_graph.reasoning.replies import (
    AnswerTooLongError,
    OnPartial,
    PartialAnswer,
    require_limited_length,
)

_log = logging.getLogger(__name__)

MAX_TRIES = 8
# An address that is wrong stays wrong; a server that is just restarting is back after a second or two.
_MAX_UNREACHABLE = 3
_MAX_PAUSE = 20.0
# With less than this share of the time left, another try would only be cut short.
_MIN_TIME_LEFT = 0.02
_TIMEOUT_FIELDS = ("request_timeout", "default_request_timeout", "timeout")
_CLIENT_FIELDS = ("client", "async_client", "root_client", "root_async_client")


@dataclass(frozen=True)
class Request:
    """A request to make after a pause.

    Args:
        pause: Seconds to wait before it.
        model: The model to call.
        arguments: What is bound to it.
        messages: The prompt.
        seconds: What is left of the call's time after the pause.
        threads: Holds sync calls to that time.
        on_partial: Is called with the answer while it is streamed; None means not to stream it.
    """

    pause: float
    model: ModelRunnable
    arguments: Mapping[str, Any]
    messages: list[BaseMessage]
    seconds: float
    threads: DeadlineThreads
    on_partial: OnPartial | None = None

    def start(self, config: RunnableConfig, on_end: Callable[[], None]) -> OpenRequest:
        """Make the request in another thread, which calls `on_end` when it has ended."""
        answer = None if self.on_partial is None else PartialAnswer(self.on_partial)
        call = self.threads.start(
            partial(self._send, answer, config), pause=self.pause, seconds=self.seconds, on_end=on_end
        )
        return OpenRequest(call, self.threads, answer)

    def _send(self, answer: PartialAnswer | None, config: RunnableConfig) -> AIMessage:
        if answer is None:
            message = self.model.invoke(self.messages, config, **self.arguments)
            require_limited_length(message)
            return message
        stream = self.model.stream(self.messages, config, **self.arguments)
        with closing(stream) as chunks:  # type: ignore[type-var]
            for chunk in chunks:
                answer.add(chunk)
        return answer.join_chunks()

    async def asend(self, config: RunnableConfig) -> AIMessage:
        """Make the request and return its answer, without blocking."""
        await asyncio.sleep(self.pause)
        async with asyncio.timeout(self.seconds):
            watch = CancellationWatch()
            if self.on_partial is None:
                message = await self.model.ainvoke(self.messages, config, **self.arguments)
                watch.check()
                require_limited_length(message)
                return message
            answer = PartialAnswer(self.on_partial)
            stream = self.model.astream(self.messages, config, **self.arguments)
            async with aclosing(stream) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    watch.check()
                    answer.add(chunk)
            watch.check()
            return answer.join_chunks()


@dataclass(frozen=True)
class OpenRequest:
    """A request that was made in another thread."""

    call: TimedCall[AIMessage]
    _threads: DeadlineThreads
    _answer: PartialAnswer | None

    def close(self) -> None:
        """Wait for the answer no longer: a thread that is left reports nothing more, and ends with the next chunk."""
        self._threads.abandon(self.call)
        if self._answer:
            self._answer.close()


Binding: TypeAlias = tuple[ModelRunnable, Mapping[str, Any]]
"""A model, and the arguments with which it is called."""

T = TypeVar("T")
Requests = Generator[Request, Any, T]


class Transport:
    """Makes the calls of one chat model, within a time limit; `endpoint` is what is known of its endpoint.

    Calls go to a copy of the model that doesn't stream: under LangGraph's `stream_mode="messages"` a client would
    stream otherwise, whatever tag the call has. The copy's client gets the time limit, too, if the model's class has a
    field for it: so it closes a connection on which nothing comes.

    Args:
        bound_model: The model, and what was bound to it.
        timeout: Seconds that a call may take, its retries included.
        backoff: Seconds before the first retry, doubled for each further one.
    """

    def __init__(self, bound_model: BoundModel, *, timeout: float, backoff: float) -> None:
        self.name = get_model_name(bound_model.model)
        self.endpoint = get_endpoint(bound_model)
        self._bound_model = bound_model
        self._timeout = timeout
        self._backoff = backoff
        model = copy_with(bound_model.model, disable_streaming=True, streaming=False)
        self.model = _limit_requests(model, timeout, limits_responses=True)
        self._models_by_temperature: dict[float | None, BaseChatModel] = {None: self.model}
        self._bindings = _Bindings()

    def get_model(self, temperature: float | None) -> BaseChatModel:
        """Return the model with a temperature, unless it has one of its own or is known to take none."""
        if temperature not in self._models_by_temperature:
            self._models_by_temperature[temperature] = _set_temperature(self.model, temperature)
        return self._models_by_temperature[temperature]

    def bind(self, method: Method, blueprint: type, schema: Schema, model: BaseChatModel) -> Binding:
        """Return a model, and the arguments with which it is called to answer a blueprint by a method."""

        def make() -> Binding:
            name = re.sub(r"[^A-Za-z0-9_-]", "_", blueprint.__name__)[:64]  # what providers allow
            return _unbind(self._bound_model.rebind(method.bind(model, name=name, schema=schema)))

        if all(model is not stored for stored in self._models_by_temperature.values()):
            return make()
        return self._bindings.get(blueprint, (id(model), method.name, id(schema)), make)

    def call(
        self,
        label: str,
        messages: Sequence[BaseMessage],
        bind: Callable[[BaseChatModel], Binding],
        *,
        model: BaseChatModel | None = None,
        is_settled: bool = True,
        on_partial: OnPartial | None = None,
        is_streaming: bool = False,
        max_tries: int = MAX_TRIES,
    ) -> Requests[AIMessage]:
        """Make one call, and repeat tries that were lost.

        Args:
            label: What is asked, for errors.
            messages: The prompt.
            bind: Binds to a model how it has to answer.
            model: A copy of the transport's model, if it has other settings.
            is_settled: Whether `bind` is known to work; if not, it may be why tries fail, and only one is repeated.
            on_partial: Is called with the answer while it is written, or at once if it isn't streamed.
            is_streaming: Whether the endpoint is asked to stream the answer.
            max_tries: Tries to make at most.

        Raises:
            ModelUnavailableError: No try was answered in time.
            Exception: What the model raised, if another try would not help.
        """
        model = model or self.model
        if is_streaming:
            model = self._make_streaming(model)
        deadline = time.monotonic() + self._timeout
        pause, seconds_left = 0.0, self._timeout
        tries = doubtful_failures = unreachable_failures = 0
        while True:
            tries += 1
            try:
                # The first try has the model as it is, so that LangChain's cache recognizes the same call.
                limited_model = model if tries == 1 else _limit_requests(model, seconds_left)
                runnable, arguments = bind(limited_model)
                answer: AIMessage = yield Request(
                    pause,
                    runnable,
                    arguments,
                    list(messages),
                    seconds_left,
                    self.endpoint.threads,
                    on_partial,
                )
            except AnswerTooLongError:
                raise
            except Exception as error:
                failure = classify_failure(error, model)
                if failure.maybe_unsupported and not is_settled:
                    doubtful_failures += 1
                if failure.is_unreachable:
                    unreachable_failures += 1
                is_last = tries == max_tries or unreachable_failures == _MAX_UNREACHABLE
                if not failure.is_transient or (doubtful_failures == 2 and not is_last):
                    raise
                pause = min(self._backoff * 2 ** (tries - 1), max(_MAX_PAUSE, self._backoff))
                pause += random.uniform(0, self._backoff)
                seconds_left = deadline - time.monotonic() - pause
                if is_last or seconds_left < self._timeout * _MIN_TIME_LEFT:
                    raise failure.make_unavailable_error(label, self.name, tries, self._timeout) from error
                _log.info("no answer yet (%s); asking again in %.0f s", failure.description, pause)
            else:
                return answer

    def _make_streaming(self, model: BaseChatModel) -> BaseChatModel:
        settings = {"disable_streaming": self._bound_model.model.disable_streaming, "streaming": True}
        if getattr(self._bound_model.model, "stream_usage", None) is None:
            settings["stream_usage"] = True  # many endpoints count the tokens of a streamed answer only then
        return copy_with(model, **settings)


class _Bindings:
    """Models with their arguments, made once for each blueprint, and forgotten with it."""

    def __init__(self) -> None:
        self._by_blueprint: WeakKeyDictionary[type, dict[Hashable, Binding]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[_Bindings], tuple[()]]:
        return type(self), ()  # another process makes its own

    def get(self, blueprint: type, key: Hashable, make: Callable[[], Binding]) -> Binding:
        bindings = self._by_blueprint.setdefault(blueprint, {})
        if key not in bindings:
            bindings[key] = make()
        return bindings[key]


def _unbind(runnable: ModelRunnable) -> Binding:
    """Return a runnable without the bindings around it that hold nothing but arguments, and these."""
    arguments: dict[str, Any] = {}
    while isinstance(runnable, RunnableBinding):
        has_own_way = type(runnable).invoke is not RunnableBinding.invoke
        if has_own_way or runnable.config or runnable.config_factories:
            break
        arguments = {**runnable.kwargs, **arguments}
        runnable = runnable.bound
    return runnable, arguments


def _set_temperature(model: BaseChatModel, temperature: float | None) -> BaseChatModel:
    has_own = "temperature" in model.model_fields_set and getattr(model, "temperature", None) is not None
    is_refused = (model.profile or {}).get("temperature") is False
    if temperature is None or has_own or is_refused:
        return model
    return copy_with(model, temperature=temperature)


def _limit_requests(model: BaseChatModel, seconds: float, *, limits_responses: bool = False) -> BaseChatModel:
    """Return a copy whose requests end after so many seconds, or earlier if the model says so.

    It doesn't retry by itself, which would multiply the limit. If it limits responses, too, so do copies of it.
    """
    changes: dict[str, Any] = {"max_retries": 0}
    client_options: dict[str, Any] = {"max_retries": 0}
    for field in _TIMEOUT_FIELDS:
        own_limit = getattr(model, field, None)
        if field not in type(model).model_fields or not isinstance(own_limit, int | float | None):
            continue
        limit = min(seconds, own_limit or seconds)
        changes[field] = client_options["timeout"] = limit
    for field in _CLIENT_FIELDS:
        client = getattr(model, field, None)
        options = dict(client_options)
        if limits_responses and (http_client := _limit_responses(client, seconds)):
            options["http_client"] = http_client
        if limited_client := _limit_client(client, options):
            changes[field] = limited_client
    return copy_with(model, **changes)


def _limit_client(client: Any, options: dict[str, Any]) -> Any:
    """Return a copy of a client that shares its connections; None for clients that are configured otherwise.

    Clients of OpenAI's SDK, and of SDKs that are generated like it, have settings of their own. A model may hold one of
    their resources (`client.chat.completions`), which has no public way back to its client.
    """
    if hasattr(client, "with_options"):
        return client.with_options(**options)
    owner: Any = getattr(client, "_client", None)
    if hasattr(owner, "with_options"):
        return type(client)(owner.with_options(**options))
    return None


def _limit_responses(client: Any, seconds: float) -> Any:
    """Return an HTTP client that limits its responses, in the place of that of an SDK's client; None if it has none."""
    owner = client if hasattr(client, "with_options") else getattr(client, "_client", None)
    return limit_http_client(getattr(owner, "_client", None), seconds)


def copy_with(model: BaseChatModel, **values: Any) -> BaseChatModel:
    """Return a copy with these values, of which fields that the class lacks are ignored."""
    cls = type(model)
    known_values = {name: value for name, value in values.items() if name in cls.model_fields}
    changed = model.model_copy(update=known_values)
    for name in set(vars(changed)) - cls.model_fields.keys():
        if isinstance(getattr_static(cls, name, None), cached_property):
            del vars(changed)[name]  # such as a client that was made with the old settings
    return changed
