"""The reasoner: asks a blueprint of any chat model and returns a validated answer, or one of five errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from langchain_core.messages import MessageLikeRepresentation
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, merge_configs

from arq_graph.errors import InputError, ReasoningError
from arq_graph.models.resolve import ChatModelLike, chat_model, unwrapped
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.asking import Asking, AskSettings
from arq_graph.reasoning.blueprint import B, Mode
from arq_graph.reasoning.derived import ResponseOnly
from arq_graph.reasoning.transport import Steps, Transport

# langgraph.constants.TAG_NOSTREAM; this layer does not import langgraph.
_NOSTREAM = "nostream"
_MAX_THREADS = 64


class Reasoner:
    """Asks blueprints of a chat model.

    How it asks depends on what the endpoint takes: a JSON schema in `response_format`, a forced tool call, JSON
    mode with the schema in the prompt, or the schema in the prompt alone. The first calls find this out, and it
    is remembered for models of the same class and settings. One ask gets at most `max_attempts` +
    `max_candidates` - 1 answers. Calls that the endpoint refused meanwhile, and retries of calls that were lost,
    come on top.

    Args:
        model: A LangChain chat model, or a string such as "openai:gpt-4o", "offline" or "anthropic:…". It is not
            changed: settings that differ from its own are made on a copy. It may also be what `with_fallbacks`, `bind`,
            `with_config`, `with_retry` (ignored, as the reasoner retries by itself), `configurable_fields`,
            `configurable_alternatives` or `init_chat_model` made of one; a configurable model is made from the config
            of each ask.
        fallbacks: Models to ask, in this order, if the one before failed twice with an overload or a lost connection,
            or hung for the whole `timeout`; for a minute after that, the others are asked before it. The bounds on
            attempts and candidates hold for all of them together.
        module: The part of the program that asks: named in errors, traces and usage.
        mode: "arq", "cot" or "direct", unless an ask says otherwise.
        temperature: 0 to 2, unless the model has one of its own or takes none; None: a step's usual one, if it has one.
        max_attempts: Invalid answers, of which the last ends the ask; 1 or more.
        max_candidates: Valid answers to ask for until one meets the blueprint's verification; 1 or more.
        timeout: Seconds that one call of a model may take, its retries included, whatever retries the client makes by
            itself. In a sync call, a class without a time limit of its own cannot be held to it.
        backoff: Seconds before the first retry of a lost call, doubled for each further one; 0 or more.
        on_unsatisfied: "return" the last candidate, with `satisfied=False`, or "raise" UnsatisfiedError.
        base_url: An OpenAI-compatible endpoint, where `model` is a string.
        derive: Asks, in mode "arq", blueprints derived from those given; for experiments and ablations.

    Raises:
        InputError: A setting is out of its range, or the model is none.
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
            *(module, mode, temperature, max_attempts, max_candidates, timeout, backoff, on_unsatisfied),
            derive=derive,
        )
        first = chat_model(model, base_url=base_url) if isinstance(model, str) else model
        self.models = [first, *(chat_model(each) if isinstance(each, str) else each for each in fallbacks)]
        self._fixed = self._reached(None)

    @property
    def takes_images(self) -> bool:
        """Whether none of its models is known to take no images; what a run's config makes is not known."""
        return all((each.model.profile or {}).get("image_inputs") is not False for each in self._fixed)

    def _reached(self, config: RunnableConfig | None) -> list[Transport]:
        """How each model is reached, in order; nothing where some are made of a run's config, and there is none."""
        bare = [each for model in self.models for each in unwrapped(model, config)]
        timeout, backoff = self.settings.timeout, self.settings.backoff
        reached = [Transport(each, timeout=timeout, backoff=backoff) for each in bare if each]
        return reached if len(reached) == len(bare) else []

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
            check: Complaints that code has about a valid answer; any leads to a new candidate.
            config: LangChain's configuration of the run; its callbacks see every call.

        Raises:
            BlueprintError: The model never gave a valid answer.
            UnsatisfiedError: No valid answer met the verification, and `on_unsatisfied` is "raise".
            RefusalError: The model refused.
            ModelUnavailableError: Neither the model nor any fallback could be reached, or they were overloaded.
            ModelRequestError: The provider rejects the request.
            InputError: There is no such mode, the blueprint has no such query to be left out, or the config makes no
                model of a configurable one.
        """
        if self.settings.derive:
            self.settings.derive.require_queries(blueprint)
        asker = make_reasoner(self, self.settings.module, mode=mode)
        return _only(asker.ask_all([Question(blueprint, messages, check)], config=config))

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
        if self.settings.derive:
            self.settings.derive.require_queries(blueprint)
        asker = make_reasoner(self, self.settings.module, mode=mode)
        return _only(await asker.aask_all([Question(blueprint, messages, check)], config=config))

    def ask_all(
        self, questions: Sequence[Question[Any]], *, config: RunnableConfig | None = None
    ) -> list[Answer[Any] | ReasoningError]:
        """Ask several blueprints at the same time, each in a thread.

        Args:
            questions: What to ask.
            config: As in `ask`; its `max_concurrency` limits how many are asked at the same time.

        Returns:
            For each question, in order, its answer, or the error that its ask ended with. Errors of other
            kinds are raised.
        """
        return ask_together([(self, question) for question in questions], config)

    async def aask_all(
        self, questions: Sequence[Question[Any]], *, config: RunnableConfig | None = None
    ) -> list[Answer[Any] | ReasoningError]:
        """Ask several blueprints at the same time; arguments and result are those of `ask_all`."""
        return await aask_together([(self, question) for question in questions], config)

    def _asking(
        self, question: Question[B], transports: Sequence[Transport], config: RunnableConfig | None
    ) -> tuple[Steps[Answer[B]], RunnableConfig]:
        labels = {
            "arq_module": self.settings.module,
            "arq_blueprint": question.blueprint.__name__,
            "arq_batch": question.name,
            "arq_mode": self.settings.mode,
            "arq_guidelines": list(question.guidelines),
        }
        run_name = f"{self.settings.module}:{question.name or question.blueprint.__name__}"
        merged = merge_configs(config, {"tags": [_NOSTREAM], "metadata": labels, "run_name": run_name})
        merged.pop("run_id", None)  # it names the caller's run, and one ask may make several calls
        return Asking(transports, question, self.settings).steps(), merged


def ask_together(
    assigned: Sequence[tuple[Reasoner, Question[Any]]], config: RunnableConfig | None = None
) -> list[Answer[Any] | ReasoningError]:
    """Ask the questions of several reasoners at the same time, as `Reasoner.ask_all` does."""
    transports = _transports_by_reasoner(assigned, config)

    def ask(reasoner: Reasoner, question: Question[Any]) -> Answer[Any] | ReasoningError:
        try:
            return Transport.run(*reasoner._asking(question, transports[reasoner], config))
        except ReasoningError as error:
            return error

    if len(assigned) <= 1:
        return [ask(reasoner, question) for reasoner, question in assigned]
    limit = (config or {}).get("max_concurrency") or _MAX_THREADS
    pool = ContextThreadPoolExecutor(min(limit, len(assigned)), thread_name_prefix="arq_graph-ask")
    try:
        asks = [pool.submit(ask, reasoner, question) for reasoner, question in assigned]
        return [asked.result() for asked in asks]
    finally:
        # After Ctrl-C nobody waits for requests that are still under way.
        pool.shutdown(wait=False, cancel_futures=True)


async def aask_together(
    assigned: Sequence[tuple[Reasoner, Question[Any]]], config: RunnableConfig | None = None
) -> list[Answer[Any] | ReasoningError]:
    """Ask the questions of several reasoners at the same time, without blocking."""
    transports = _transports_by_reasoner(assigned, config)
    places = asyncio.Semaphore((config or {}).get("max_concurrency") or len(assigned) or 1)

    async def ask(reasoner: Reasoner, question: Question[Any]) -> Answer[Any] | ReasoningError:
        async with places:
            try:
                return await Transport.arun(*reasoner._asking(question, transports[reasoner], config))
            except ReasoningError as error:
                return error

    asks = [asyncio.ensure_future(ask(reasoner, question)) for reasoner, question in assigned]
    try:
        return list(await asyncio.gather(*asks))
    finally:
        # If one raises, the others end with it, and none goes on unseen.
        for task in asks:
            task.cancel()
        await asyncio.gather(*asks, return_exceptions=True)


def _transports_by_reasoner(
    assigned: Sequence[tuple[Reasoner, Question[Any]]], config: RunnableConfig | None
) -> dict[Reasoner, list[Transport]]:
    """Return the models of each reasoner, in order; configurable ones are made once for all its questions."""
    reasoners = {reasoner for reasoner, _ in assigned}
    return {reasoner: reasoner._fixed or reasoner._reached(config or {}) for reasoner in reasoners}


def _only(answers: Sequence[Answer[B] | ReasoningError]) -> Answer[B]:
    (answer,) = answers
    if isinstance(answer, ReasoningError):
        raise answer
    return answer


ModelLike: TypeAlias = ChatModelLike | Reasoner
"""Whom a step asks: what a `Reasoner` takes, or one that is set up already."""


def make_reasoner(
    model: ModelLike, module: str, usual_temperature: float | None = None, **settings: Any
) -> Reasoner:
    """A part's reasoner: what asks its model, or a view of a shared one, over the same connections.

    It asks under the part's name, with settings of the part's own where these are not None, and with the usual
    temperature where neither the part nor the shared one has been given any.
    """
    shared = model if isinstance(model, Reasoner) else Reasoner(model)
    given = {name: value for name, value in settings.items() if value is not None}
    if shared.settings.temperature is None:
        given.setdefault("temperature", usual_temperature)
    view = copy(shared)
    view.settings = replace(shared.settings, module=module, **given)
    if view.settings.timeout != shared.settings.timeout:
        view._fixed = view._reached(None)
    return view
