"""The reasoner: asks a blueprint of any chat model and returns a validated answer, or one of five errors."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.errors import InputError, ReasoningError
from arq_graph.models.resolve import chat_model
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.asking import Asking, Terms
from arq_graph.reasoning.blueprint import ARQ, B, Mode
from arq_graph.reasoning.methods import endpoint_of
from arq_graph.reasoning.transport import Steps, Transport

# langgraph.constants.TAG_NOSTREAM; this layer does not import langgraph.
_NOSTREAM = "nostream"
_MAX_THREADS = 64


class Reasoner:
    """Asks blueprints of a chat model.

    How, depends on what the endpoint takes: a JSON schema in `response_format`, a forced tool call, JSON mode with
    the schema in the prompt, or the schema in the prompt alone. It is found out with the first calls and
    remembered for the model's class, name and base URL. One ask gets at most `max_attempts` + `max_candidates` - 1
    answers; calls that the endpoint refused while this was found out, and retries of calls that were lost, come
    on top. `watch_waits` of `arq_graph.reasoning.transport` tells of those retries.

    Args:
        model: A LangChain chat model, or a string such as "openai:gpt-4o", "offline" or "anthropic:…". It is not
            changed: settings that differ from its own are made on a copy.
        module: The part of the program that asks: named in errors, traces and usage.
        mode: "arq", "cot" or "direct", unless an ask says otherwise.
        temperature: 0 to 2, unless the model has one of its own or takes none.
        max_attempts: Invalid answers, of which the last ends the ask; 1 or more.
        max_candidates: Valid answers to ask for until one meets the blueprint's verification; 1 or more.
        timeout: Seconds that one model call may take, its retries included, whatever retries the client makes by
            itself. In a sync call, a class without a time limit of its own cannot be held to it.
        backoff: Seconds before the first retry of a lost call, doubled for each further one; 0 or more.
        on_unsatisfied: "return" the last candidate, with `satisfied=False`, or "raise" UnsatisfiedError.
        base_url: An OpenAI-compatible endpoint, where `model` is a string.

    Raises:
        InputError: A setting is out of its range, or the model is none.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        *,
        module: str = "reasoner",
        mode: Mode = "arq",
        temperature: float | None = None,
        max_attempts: int = 3,
        max_candidates: int = 3,
        timeout: float = 60.0,
        backoff: float = 0.5,
        on_unsatisfied: Literal["return", "raise"] = "return",
        base_url: str | None = None,
    ) -> None:
        _require(max_attempts >= 1, f"max_attempts is {max_attempts}: it must be 1 or more.")
        _require(timeout > 0, f"timeout is {timeout}: it must be more than 0 seconds.")
        _require(0 <= backoff < math.inf, f"backoff is {backoff}: it must be 0 seconds or more.")
        _require(
            on_unsatisfied in ("return", "raise"),
            f'on_unsatisfied is {on_unsatisfied!r}: it must be "return" or "raise".',
        )
        self.model = _resolved(model, base_url)
        self.module = module
        self.mode = _checked_mode(mode)
        self.max_candidates = _checked_candidates(max_candidates)
        self._terms = Terms(
            module=module,
            max_attempts=max_attempts,
            on_unsatisfied=on_unsatisfied,
            temperature=temperature,
            transport=Transport(self.model, timeout=timeout, backoff=backoff),
            endpoint=endpoint_of(self.model),
        )

    def ask(
        self,
        blueprint: type[B],
        messages: Sequence[BaseMessage],
        *,
        mode: Mode | None = None,
        check: Callable[[B], Sequence[Complaint]] | None = None,
        config: RunnableConfig | None = None,
    ) -> Answer[B]:
        """Ask one blueprint.

        Args:
            blueprint: What to ask.
            messages: The prompt.
            mode: "arq", "cot" or "direct"; None means the reasoner's own.
            check: Complaints that code has about a valid answer; any leads to a new candidate.
            config: LangChain's configuration of the run; its callbacks see every call.

        Raises:
            BlueprintError: The model never gave a valid answer.
            UnsatisfiedError: No valid answer met the verification, and `on_unsatisfied` is "raise".
            RefusalError: The model refused.
            ModelUnavailableError: The model could not be reached for `timeout` seconds.
            ModelRequestError: The provider rejects the request.
            InputError: An argument is out of its range.
        """
        return self._ask(Question(blueprint, messages, check), mode, config)

    async def aask(
        self,
        blueprint: type[B],
        messages: Sequence[BaseMessage],
        *,
        mode: Mode | None = None,
        check: Callable[[B], Sequence[Complaint]] | None = None,
        config: RunnableConfig | None = None,
    ) -> Answer[B]:
        """Ask one blueprint; arguments and errors are those of `ask`."""
        return await self._aask(Question(blueprint, messages, check), mode, config)

    def ask_all(
        self,
        questions: Sequence[Question[Any]],
        *,
        mode: Mode | None = None,
        config: RunnableConfig | None = None,
    ) -> list[Answer[Any] | ReasoningError]:
        """Ask several blueprints at the same time, each in a thread.

        Args:
            questions: What to ask.
            mode: As in `ask`.
            config: As in `ask`; its `max_concurrency` limits how many are asked at the same time.

        Returns:
            For each question, in order, its answer, or the error that its ask ended with. Errors of other
            kinds are raised.
        """

        def ask(question: Question[Any]) -> Answer[Any] | ReasoningError:
            try:
                return self._ask(question, mode, config)
            except ReasoningError as error:
                return error

        if len(questions) <= 1:
            return [ask(question) for question in questions]
        limit = (config or {}).get("max_concurrency") or _MAX_THREADS
        pool = ThreadPoolExecutor(min(limit, len(questions)), thread_name_prefix="arq_graph-ask")
        try:
            asks = [pool.submit(copy_context().run, ask, question) for question in questions]
            return [asked.result() for asked in asks]
        finally:
            # After Ctrl-C nobody waits for requests that are still under way.
            pool.shutdown(wait=False, cancel_futures=True)

    async def aask_all(
        self,
        questions: Sequence[Question[Any]],
        *,
        mode: Mode | None = None,
        config: RunnableConfig | None = None,
    ) -> list[Answer[Any] | ReasoningError]:
        """Ask several blueprints at the same time; arguments and result are those of `ask_all`."""
        places = asyncio.Semaphore((config or {}).get("max_concurrency") or len(questions) or 1)

        async def ask(question: Question[Any]) -> Answer[Any] | ReasoningError:
            async with places:
                try:
                    return await self._aask(question, mode, config)
                except ReasoningError as error:
                    return error

        asks = [asyncio.ensure_future(ask(question)) for question in questions]
        try:
            return list(await asyncio.gather(*asks))
        finally:
            # If one raises, the others end with it, and none goes on unseen.
            for task in asks:
                task.cancel()
            await asyncio.gather(*asks, return_exceptions=True)

    def _ask(self, question: Question[B], mode: Mode | None, config: RunnableConfig | None) -> Answer[B]:
        return self._terms.transport.run(*self._asking(question, mode, config))

    async def _aask(
        self, question: Question[B], mode: Mode | None, config: RunnableConfig | None
    ) -> Answer[B]:
        return await self._terms.transport.arun(*self._asking(question, mode, config))

    def _asking(
        self, question: Question[B], mode: Mode | None, config: RunnableConfig | None
    ) -> tuple[Steps[Answer[B]], RunnableConfig]:
        mode = self.mode if mode is None else _checked_mode(mode)
        blueprint: object = question.blueprint
        _require(
            isinstance(blueprint, type) and issubclass(blueprint, ARQ),
            f"blueprint is {blueprint!r}: it must be a subclass of ARQ, whose fields are queries.",
        )
        candidates = self.max_candidates if question.max_candidates is None else question.max_candidates
        asking = Asking(self._terms, question, mode, _checked_candidates(candidates))
        return asking.steps(), self._config_of(question, mode, config)

    def _config_of(
        self, question: Question[Any], mode: Mode, config: RunnableConfig | None
    ) -> RunnableConfig:
        name = question.blueprint.__name__
        merged = RunnableConfig(**(config or {}))
        merged["tags"] = [*(merged.get("tags") or ()), _NOSTREAM]
        merged["metadata"] = {
            **(merged.get("metadata") or {}),
            "arq_module": self.module,
            "arq_blueprint": name,
            "arq_batch": question.name,
            "arq_mode": mode,
        }
        merged["run_name"] = f"{self.module}:{question.name or name}"
        merged.pop("run_id", None)  # it names the caller's run, and one ask may make several calls
        return merged


def _resolved(model: BaseChatModel | str, base_url: str | None) -> BaseChatModel:
    if isinstance(model, str):
        return chat_model(model, base_url=base_url)
    _require(
        isinstance(model, BaseChatModel),
        f"model is a {type(model).__name__}: it must be a LangChain chat model, without bind() or"
        ' with_…() around it, or a string such as "openai:gpt-4o".',
    )
    _require(base_url is None, "base_url belongs to a model given as a string: set it on the chat model.")
    return model


def _checked_mode(mode: Mode) -> Mode:
    _require(mode in get_args(Mode), f'mode is {mode!r}: it must be "arq", "cot" or "direct".')
    return mode


def _checked_candidates(candidates: int) -> int:
    _require(candidates >= 1, f"max_candidates is {candidates}: it must be 1 or more.")
    return candidates


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InputError(message)
