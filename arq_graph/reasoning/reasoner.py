"""The reasoner: asks a blueprint of any chat model, and returns a validated answer or raises a ReasoningError."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from langchain_core.messages import MessageLikeRepresentation
from langchain_core.runnables import RunnableConfig

from arq_graph.errors import InputError, ReasoningError, require_count
from arq_graph.models.resolve import BoundModel, ChatModelLike, ModelRunnable, make_chat_model, unwrap_model
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.asking import Asking, AskSettings, make_call_config
from arq_graph.reasoning.blueprint import ARQ, B, Mode
from arq_graph.reasoning.call_loop import CallLoop
from arq_graph.reasoning.derived import ResponseOnly
from arq_graph.reasoning.steps import aperform_steps
from arq_graph.reasoning.transport import Requests, Transport

_MAX_THREADS = 64


class Reasoner:
    """Asks a chat model to answer blueprints.

    It uses the method that the endpoint takes: a JSON schema in `response_format`, a forced tool call, JSON mode with
    the schema in the prompt, or the schema in the prompt alone. The first calls find this out, and it is remembered
    for models of the same class and settings. One ask gets at most `max_attempts` + `max_candidates` - 1 answers, not
    counting calls that the endpoint refused and retries of calls that were lost.

    Args:
        model: A LangChain chat model, or a string such as "openai:gpt-4o", "offline" or "anthropic:…". It isn't
            changed: settings that differ from its own are made on a copy. It may also be the result of
            `with_fallbacks`, `bind`, `with_config`, `with_retry` (ignored, because the reasoner retries),
            `configurable_fields`, `configurable_alternatives` or `init_chat_model`; a configurable model is made from
            the config of each ask.
        fallbacks: Models to ask, in this order, if the one before failed twice with an overload or a lost connection,
            or hung for the whole `timeout`; for a minute after that, the others are asked first. All of them share
            the limits on attempts and candidates.
        module: The part of the program that asks, as errors, traces and usage name it.
        mode: "arq", "cot" or "direct", unless an ask has its own.
        temperature: 0 to 2, for models that take one and have none of their own; None: the usual one of the step.
        max_attempts: Invalid answers after which the ask ends with an error; 1 or more.
        max_candidates: Valid answers to ask for until one meets the blueprint's verification; 1 or more.
        timeout: Seconds that one call of a model may take, its retries included.
        backoff: Seconds before the first retry of a lost call, doubled for each further one; 0 or more.
        on_unsatisfied: "return" the last candidate, with `satisfied=False`, or "raise" UnsatisfiedError.
        base_url: An OpenAI-compatible endpoint, if `model` is a string.
        derive: Makes the blueprints that are asked in mode "arq" from those that are given; for experiments.

    Raises:
        InputError: A setting is out of its range, or `model` is not a model.
    """

    def __init__(
        self,
        model: ChatModelLike,
        *,
        fallbacks: Sequence[ChatModelLike] = (),
        module: str = "reasoner",
        mode: Mode = "arq",
        temperature: float | None = None,
        max_attempts: int = 3,
        max_candidates: int = 3,
        timeout: float = 60.0,
        backoff: float = 0.5,
        on_unsatisfied: Literal["return", "raise"] = "return",
        base_url: str | None = None,
        derive: ResponseOnly | None = None,
    ) -> None:
        if base_url is not None and not isinstance(model, str):
            raise InputError("base_url must be set on the chat model itself")
        if not isinstance(fallbacks, list | tuple):
            raise InputError(f"fallbacks is a {type(fallbacks).__name__}: give a list of models")
        self.settings = AskSettings(
            module=module,
            mode=mode,
            temperature=temperature,
            max_attempts=max_attempts,
            max_candidates=max_candidates,
            timeout=timeout,
            backoff=backoff,
            on_unsatisfied=on_unsatisfied,
            derive=derive,
        )
        if isinstance(model, str):
            model = make_chat_model(model, base_url=base_url)
        self.models: list[ModelRunnable] = [model]
        for fallback in fallbacks:
            self.models.append(make_chat_model(fallback) if isinstance(fallback, str) else fallback)
        self._fixed_transports = self._make_transports(None)

    @property
    def takes_images(self) -> bool:
        """True unless one of its models is known to take no images; models that a run's config makes are unknown."""
        for transport in self._fixed_transports:
            if (transport.model.profile or {}).get("image_inputs") is False:
                return False
        return True

    def _make_transports(self, config: RunnableConfig | None) -> list[Transport]:
        """Return what makes the calls of each model, in order; [] if some need a run's config and there is none."""
        bound_models: list[BoundModel | None] = []
        for model in self.models:
            bound_models.extend(unwrap_model(model, config))
        timeout, backoff = self.settings.timeout, self.settings.backoff
        transports: list[Transport] = []
        for bound_model in bound_models:
            if bound_model is None:
                return []
            transports.append(Transport(bound_model, timeout=timeout, backoff=backoff))
        return transports

    def ask(
        self,
        blueprint: type[B],
        messages: Sequence[MessageLikeRepresentation],
        *,
        mode: Mode | None = None,
        check: Callable[[B], Sequence[Complaint]] | None = None,
        config: RunnableConfig | None = None,
    ) -> Answer[B]:
        """Ask one blueprint.

        Args:
            blueprint: What to ask.
            messages: The prompt; as for a chat model, each a message, a pair, a dict or a string.
            mode: "arq", "cot" or "direct"; None means the reasoner's own.
            check: Returns complaints about a valid answer; if there are any, a new candidate is asked for.
            config: LangChain's configuration of the run; its callbacks see every call.

        Raises:
            BlueprintError: The model never gave a valid answer.
            UnsatisfiedError: No valid answer met the verification, and `on_unsatisfied` is "raise".
            RefusalError: The model refused.
            ModelUnavailableError: Neither the model nor any fallback could be reached, or they were overloaded.
            ModelRequestError: The provider rejects the request.
            InputError: The mode is not one of the three, the blueprint lacks a query that is to be left out, or the
                config makes no model of a configurable one.
        """
        question = Question(blueprint, messages, check)
        (answer,) = self._prepare_reasoner(mode, blueprint).ask_all([question], config=config)
        if isinstance(answer, ReasoningError):
            raise answer
        return answer

    async def aask(
        self,
        blueprint: type[B],
        messages: Sequence[MessageLikeRepresentation],
        *,
        mode: Mode | None = None,
        check: Callable[[B], Sequence[Complaint]] | None = None,
        config: RunnableConfig | None = None,
    ) -> Answer[B]:
        """Ask one blueprint; arguments and errors are those of `ask`."""
        question = Question(blueprint, messages, check)
        (answer,) = await self._prepare_reasoner(mode, blueprint).aask_all([question], config=config)
        if isinstance(answer, ReasoningError):
            raise answer
        return answer

    def _prepare_reasoner(self, mode: Mode | None, blueprint: type[ARQ]) -> Reasoner:
        if self.settings.derive:
            self.settings.derive.require_queries(blueprint)
        return make_reasoner(self, self.settings.module, mode=mode)

    def ask_all(
        self, questions: Sequence[Question[Any]], *, config: RunnableConfig | None = None
    ) -> list[Answer[Any] | ReasoningError]:
        """Ask several blueprints at the same time; each call is made in a thread of its own.

        Args:
            questions: What to ask.
            config: As in `ask`; its `max_concurrency` limits how many are asked at the same time.

        Returns:
            For each question, in order, its answer, or the error that its ask ended with. Errors of other
            kinds are raised.

        Raises:
            InputError: `max_concurrency` isn't a whole number, or is negative.
        """
        return ask_together([(self, question) for question in questions], config)

    async def aask_all(
        self, questions: Sequence[Question[Any]], *, config: RunnableConfig | None = None
    ) -> list[Answer[Any] | ReasoningError]:
        """Ask several blueprints at the same time; arguments and result are those of `ask_all`."""
        return await aask_together([(self, question) for question in questions], config)


def ask_together(
    assignments: Sequence[tuple[Reasoner, Question[Any]]], config: RunnableConfig | None = None
) -> list[Answer[Any] | ReasoningError]:
    """Ask the questions of several reasoners at the same time; the result is that of `Reasoner.ask_all`."""
    transports = _make_transports_of_run(assignments, config)
    call_config = make_call_config(config)

    def begin_ask(
        reasoner: Reasoner, question: Question[Any]
    ) -> tuple[Requests[Answer[Any]], RunnableConfig]:
        asking = Asking(question, transports[reasoner], reasoner.settings, call_config)
        return asking.steps(), asking.config

    starts = [partial(begin_ask, *assignment) for assignment in assignments]
    return CallLoop(starts, _get_max_concurrency(config) or _MAX_THREADS).run()


async def aask_together(
    assignments: Sequence[tuple[Reasoner, Question[Any]]], config: RunnableConfig | None = None
) -> list[Answer[Any] | ReasoningError]:
    """Ask the questions of several reasoners at the same time, without blocking."""
    transports = _make_transports_of_run(assignments, config)
    call_config = make_call_config(config)
    limit = asyncio.Semaphore(_get_max_concurrency(config) or len(assignments) or 1)

    async def ask(reasoner: Reasoner, question: Question[Any]) -> Answer[Any] | ReasoningError:
        async with limit:
            try:
                asking = Asking(question, transports[reasoner], reasoner.settings, call_config)
                return await aperform_steps(asking.steps(), lambda request: request.asend(asking.config))
            except ReasoningError as error:
                return error

    tasks = [asyncio.ensure_future(ask(reasoner, question)) for reasoner, question in assignments]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        # If one raises, the others are cancelled, so that none continues unseen.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _get_max_concurrency(config: RunnableConfig | None) -> int | None:
    """Return how many asks of a run may be under way at the same time; None if its config doesn't say."""
    limit = (config or {}).get("max_concurrency")
    return require_count("max_concurrency", limit) if limit else None


def _make_transports_of_run(
    assignments: Sequence[tuple[Reasoner, Question[Any]]], config: RunnableConfig | None
) -> dict[Reasoner, list[Transport]]:
    """Return the transports of each reasoner; those of configurable models are made once for all its questions."""
    transports: dict[Reasoner, list[Transport]] = {}
    for reasoner, _ in assignments:
        if reasoner not in transports:
            transports[reasoner] = reasoner._fixed_transports or reasoner._make_transports(config or {})
    return transports


ModelLike: TypeAlias = ChatModelLike | Reasoner
"""What a step asks: what a `Reasoner` takes, or a `Reasoner`."""


def make_reasoner(
    model: ModelLike, module: str, usual_temperature: float | None = None, **settings: Any
) -> Reasoner:
    """Return a reasoner under the name of a part of the program, with the part's own settings.

    Args:
        model: What the part asks. A `Reasoner` stays as it is; the one returned shares its connections.
        module: The part's name.
        usual_temperature: The temperature if neither the part nor the given reasoner has one.
        **settings: Settings of the part; those that are None are taken from the given reasoner.
    """
    shared = model if isinstance(model, Reasoner) else Reasoner(model)
    changes = {name: value for name, value in settings.items() if value is not None}
    if shared.settings.temperature is None:
        changes.setdefault("temperature", usual_temperature)
    reasoner = copy(shared)
    reasoner.settings = replace(shared.settings, module=module, **changes)
    if reasoner.settings.timeout != shared.settings.timeout:
        reasoner._fixed_transports = reasoner._make_transports(None)
    return reasoner
