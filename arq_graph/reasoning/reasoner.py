"""The reasoner: asks a blueprint of any chat model and returns a validated answer, or one of five errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, merge_configs

from arq_graph.errors import (
    ArqGraphError,
    BlueprintError,
    InputError,
    ReasoningError,
    RefusalError,
    UnsatisfiedError,
)
from arq_graph.models.resolve import chat_model
from arq_graph.reasoning.answer import Answer, Attempt, Complaint, Question
from arq_graph.reasoning.blueprint import B, Mode, read_answer, schema_in_mode
from arq_graph.reasoning.failures import Failure, read_failure
from arq_graph.reasoning.methods import endpoint_of, schema_name
from arq_graph.reasoning.replies import (
    asked_again,
    is_cut_off,
    message_from,
    parse_answer,
    refusal_of,
    sum_of,
)
from arq_graph.reasoning.transport import Steps, Transport, with_more_tokens, with_temperature

# langgraph.constants.TAG_NOSTREAM; this layer does not import langgraph.
_NOSTREAM = "nostream"
_MAX_THREADS = 64
_MAX_QUOTED = 500


class Reasoner:
    """Asks blueprints of a chat model.

    How it asks depends on what the endpoint takes: a JSON schema in `response_format`, a forced tool call, JSON
    mode with the schema in the prompt, or the schema in the prompt alone. The first calls find this out, and it
    is remembered for the model's class, name and base URL. One ask gets at most `max_attempts` +
    `max_candidates` - 1 answers. Calls that the endpoint refused meanwhile, and retries of calls that were lost,
    come on top.

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
        for setting, holds, wanted in (
            (
                "model",
                isinstance(model, str | BaseChatModel),
                "a model string or a chat model without bind()",
            ),
            ("mode", mode in get_args(Mode), '"arq", "cot" or "direct"'),
            ("max_attempts", max_attempts >= 1, "1 or more"),
            ("max_candidates", max_candidates >= 1, "1 or more"),
            ("on_unsatisfied", on_unsatisfied in ("return", "raise"), '"return" or "raise"'),
            ("base_url", base_url is None or isinstance(model, str), "set on the chat model itself"),
        ):
            if not holds:
                raise InputError(f"{setting} must be {wanted}.")
        self.model = chat_model(model, base_url=base_url) if isinstance(model, str) else model
        self.module = module
        self.mode: Mode = mode
        self.temperature = temperature
        self.max_attempts = max_attempts
        self.max_candidates = max_candidates
        self.on_unsatisfied = on_unsatisfied
        self.transport = Transport(self.model, timeout=timeout, backoff=backoff)
        self.endpoint = endpoint_of(self.model)

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
            InputError: There is no such mode.
        """
        return _only(self.ask_all([Question(blueprint, messages, check)], mode=mode, config=config))

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
        return _only(await self.aask_all([Question(blueprint, messages, check)], mode=mode, config=config))

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
                return self.transport.run(*self._asking(question, mode, config))
            except ReasoningError as error:
                return error

        if len(questions) <= 1:
            return [ask(question) for question in questions]
        limit = (config or {}).get("max_concurrency") or _MAX_THREADS
        pool = ContextThreadPoolExecutor(min(limit, len(questions)), thread_name_prefix="arq_graph-ask")
        try:
            asks = [pool.submit(ask, question) for question in questions]
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
                    return await self.transport.arun(*self._asking(question, mode, config))
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

    def _asking(
        self, question: Question[B], mode: Mode | None, config: RunnableConfig | None
    ) -> tuple[Steps[Answer[B]], RunnableConfig]:
        """The steps of an ask, and the configuration that its calls run with."""
        mode = mode or self.mode
        labels = {
            "arq_module": self.module,
            "arq_blueprint": question.blueprint.__name__,
            "arq_batch": question.name,
            "arq_mode": mode,
        }
        run_name = f"{self.module}:{question.name or question.blueprint.__name__}"
        merged = merge_configs(config, {"tags": [_NOSTREAM], "metadata": labels, "run_name": run_name})
        merged.pop("run_id", None)  # it names the caller's run, and one ask may make several calls
        return _Asking(self, question, mode).steps(), merged


def _only(answers: Sequence[Answer[B] | ReasoningError]) -> Answer[B]:
    (answer,) = answers
    if isinstance(answer, ReasoningError):
        raise answer
    return answer


class _Asking(Generic[B]):
    """One ask from the first call to the answer: what is sent, what counts as an answer, and when it ends.

    A method of asking is settled once it is known to work: its failures are then the provider's.
    """

    def __init__(self, reasoner: Reasoner, question: Question[B], mode: Mode) -> None:
        self.reasoner = reasoner
        self.question = question
        self.max_candidates = question.max_candidates or reasoner.max_candidates
        self._schema = schema_in_mode(question.blueprint, mode)
        self._read = partial(read_answer, question.blueprint, mode)
        self._name = question.blueprint.__name__
        self._asked = f"{reasoner.module} asking {question.name or self._name}"
        temperature = reasoner.temperature if reasoner.endpoint.takes_temperature else None
        self._model = with_temperature(reasoner.transport.model, temperature)
        self._method, *self._further = reasoner.endpoint.methods
        self._settled = not self._further
        self._failures: list[Failure | None] = []
        self._limit_raised = False
        self._attempts: list[Attempt] = []
        self._candidates: list[Answer[B]] = []

    def steps(self) -> Steps[Answer[B]]:
        """The ask, as a generator of the steps that it needs performed; raises what `Reasoner.ask` says."""
        retry: list[BaseMessage] = []
        while True:
            message = yield from self._reply(retry)
            if (words := refusal_of(message)) is not None:
                raise RefusalError(f"{self._asked}: the model refused: {words[:_MAX_QUOTED]}", words)
            text = self._method.read(message)
            answer, problems = parse_answer(self._read, text, self._name)
            if answer is not None:
                self.reasoner.endpoint.methods = (self._method,)
                value, reasoning = answer
                complaints = (*value.unmet(), *(self.question.check(value) if self.question.check else ()))
                self._attempts.append(
                    Attempt(text, self._method.name, None, complaints, message.usage_metadata)
                )
                self._candidates.append(Answer(value, reasoning, text, complaints))
                if not complaints or len(self._candidates) >= self.max_candidates:
                    return self._finished()
                retry = asked_again(text, "has to be given once more, because", complaints)
                continue
            self._settled = self._settled or bool(problems)
            problems = problems or [f"{self._name}: the answer holds no complete JSON object"]
            told = "\n".join(problems)
            self._attempts.append(Attempt(text, self._method.name, told, (), message.usage_metadata))
            is_last = len(self._attempts) - len(self._candidates) >= self.reasoner.max_attempts
            if is_cut_off(message):
                larger = None if is_last or self._limit_raised else with_more_tokens(self._model)
                if larger is None:
                    return self._gave_up(
                        "the answer was cut off at the token limit; raise max_tokens on the model"
                    )
                self._model, self._limit_raised = larger, True
            elif is_last:
                return self._gave_up("; ".join(problems)[:_MAX_QUOTED])
            elif self._settled or not self._moved_on(None):
                retry = asked_again(text, "could not be used, because", problems)

    def _reply(self, retry: Sequence[BaseMessage]) -> Steps[AIMessage]:
        """The next answer; what a provider refuses of the method or the settings is left out, if it can be."""
        while True:
            prompt = [*self._method.messages(self.question.messages, self._schema), *retry]
            bind = partial(self._method.bind, name=schema_name(self._name), schema=self._schema)
            try:
                reply = yield from self.reasoner.transport.call(
                    self._asked, prompt, bind, model=self._model, settled=self._settled
                )
            except ArqGraphError:
                raise
            except Exception as error:
                if (hidden := message_from(error)) is not None:
                    return hidden
                failure = read_failure(error, self._model)
                if failure.rejects_temperature and self._model is not self.reasoner.transport.model:
                    self.reasoner.endpoint.takes_temperature = False
                    self._model = self.reasoner.transport.model
                elif failure.maybe_unsupported and not self._settled:
                    self._moved_on(failure)
                elif failure.from_provider:
                    raise failure.rejected(self._asked) from error
                else:
                    raise
            else:
                return reply

    def _moved_on(self, failure: Failure | None) -> bool:
        """Take another method after this one failed, or gave no JSON object (None).

        If none is left, what the first one met decides: a server's own error is worth waiting for, a rejected
        request is not.
        """
        self._failures.append(failure)
        if self._further:
            self._method = self._further.pop(0)
            return True
        first = self._failures[0]
        if first is not None and (first.status is None or not first.transient):
            raise first.rejected(self._asked) from first.error
        self._method, self._settled = self.reasoner.endpoint.methods[0], True
        return False

    def _finished(self) -> Answer[B]:
        last = self._candidates[-1]
        if last.complaints and self.reasoner.on_unsatisfied == "raise":
            raise UnsatisfiedError(
                f"{self._asked}: none of {len(self._candidates)} valid answers met its verification; the"
                f" last: {'; '.join(map(str, last.complaints))[:_MAX_QUOTED]}. Raise max_candidates, or look"
                " at the texts in .attempts.",
                self._attempts,
            )
        usage = sum_of(attempt.usage for attempt in self._attempts)
        return replace(last, usage=usage, attempts=tuple(self._attempts))

    def _gave_up(self, reason: str) -> Answer[B]:
        """End without a further try: with the last valid candidate if there was one, else with an error."""
        if self._candidates:
            return self._finished()
        raise BlueprintError(
            f"{self._asked}: no valid answer (attempts: {len(self._attempts)}): {reason}. The raw texts are in"
            " .attempts.",
            self._attempts,
        )
