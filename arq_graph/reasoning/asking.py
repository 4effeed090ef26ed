"""One ask, from the first model call to the answer.

Each answer, or each call that failed, decides what is sent next:

    state                   what is sent next                                                bound
    first try               the prompt, by the endpoint's first method
    method, or schema,      the same prompt by the next method                               the methods
      refused
    part refused            the same prompt without a temperature, cache marks or streaming  each once
    model lost, or          the same prompt to the next model                                the fallbacks
      request rejected
    answer without JSON     the same prompt by the next method, while no method is settled   the methods
    invalid answer          the prompt, the answer, and its errors                           max_attempts
    answer cut off          the same prompt with twice the token limit                       once a model
    candidate rejected      the prompt, the answer, and the complaints about it              max_candidates

It ends with a candidate that has no complaints, with the last candidate, or with an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs

from arq_graph.errors import (
    ArqGraphError,
    Attempt,
    BlueprintError,
    Complaint,
    InputError,
    ModelRequestError,
    ModelUnavailableError,
    RefusalError,
    UnsatisfiedError,
    require_choice,
    require_count,
)
from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.blueprint import B, Mode, get_schema, read_answer
from arq_graph.reasoning.derived import ResponseOnly
from arq_graph.reasoning.failures import classify_failure
from arq_graph.reasoning.replies import (
    AnswerTooLongError,
    build_retry_messages,
    extract_message,
    find_refusal,
    get_answer_text,
    is_cut_off,
    parse_answer,
    sum_usage,
)
from arq_graph.reasoning.session import ModelSession
from arq_graph.reasoning.transport import MAX_TRIES, Requests, Transport

_log = logging.getLogger(__name__)

_MAX_QUOTED = 500
_CUT_OFF = "the answer was cut off at the token limit; raise max_tokens on the model"
_TRIES_WITH_FALLBACKS = 2
_REST = 60.0  # seconds for which other models are asked before an endpoint that was out of reach

HIDDEN_FROM_USERS: RunnableConfig = {
    "tags": ["nostream"],  # langgraph.constants.TAG_NOSTREAM; this layer does not import langgraph
    "metadata": {"emit-messages": False, "emit-tool-calls": False},  # of AG-UI
}
"""The config that keeps a model call out of LangGraph's `messages` stream, and out of what AG-UI shows a user."""


def make_call_config(config: RunnableConfig | None) -> RunnableConfig:
    """Return the config of the model calls that are made in a run."""
    call_config = merge_configs(config, HIDDEN_FROM_USERS)
    call_config.pop("run_id", None)  # it names the caller's run, and one ask may make several calls
    return call_config


def hide_config(
    config: RunnableConfig | None, get_manager: Callable[[RunnableConfig], Any]
) -> RunnableConfig:
    """Return the config of a run whose model calls users don't see, whoever makes them.

    `get_manager` makes the callback manager, which passes the tags on to calls with a config of their own.
    """
    hidden = make_call_config(ensure_config(config))
    hidden["callbacks"] = get_manager(hidden)
    return hidden


@dataclass(frozen=True)
class AskSettings:
    """The settings of a `Reasoner`, which explains each of them."""

    module: str
    mode: Mode
    temperature: float | None
    max_attempts: int
    max_candidates: int
    timeout: float
    backoff: float
    on_unsatisfied: Literal["return", "raise"]
    derive: ResponseOnly | None

    def __post_init__(self) -> None:
        require_choice("mode", self.mode, Mode)
        require_count("max_attempts", self.max_attempts)
        require_count("max_candidates", self.max_candidates)
        require_choice("on_unsatisfied", self.on_unsatisfied, Literal["return", "raise"])
        if not (isinstance(self.timeout, int | float) and self.timeout > 0):
            raise InputError(f"timeout is {self.timeout!r}: it must be a number of seconds, more than 0")
        if not (isinstance(self.backoff, int | float) and self.backoff >= 0):
            raise InputError(f"backoff is {self.backoff!r}: it must be a number of seconds, 0 or more")


class Asking(Generic[B]):
    """One ask of one question: `steps` leads from the first call to the answer, and `config` is that of its calls.

    It is made with the config that `make_call_config` returns for the run.
    """

    def __init__(
        self,
        question: Question[B],
        transports: Sequence[Transport],
        settings: AskSettings,
        config: RunnableConfig,
    ) -> None:
        self._question = question
        self._settings = settings
        self._blueprint = question.blueprint
        if settings.derive:
            self._blueprint = settings.derive.derive(question.blueprint)
        self._schema = get_schema(self._blueprint, settings.mode)
        self._prompt = convert_to_messages(question.messages)
        blueprint_name = self._blueprint.__name__
        self._name = question.name or blueprint_name
        self._label = f"{settings.module} asking {self._name}"
        metadata = {
            "arq_module": settings.module,
            "arq_blueprint": blueprint_name,
            "arq_batch": question.name,
            "arq_mode": settings.mode,
            "arq_guidelines": list(question.guidelines),
        }
        self.config = config.copy()
        self.config["metadata"] = config["metadata"] | metadata
        self.config["run_name"] = f"{settings.module}:{self._name}"

        self._attempts: list[Attempt] = []
        self._candidates: list[Answer[B]] = []
        now = time.monotonic()
        self._main = transports[0]
        self._waiting = sorted(transports, key=lambda transport: transport.endpoint.rests_until > now)
        self._errors: dict[Transport, ModelUnavailableError | ModelRequestError] = {}
        self._session = ModelSession(self._waiting.pop(0), settings.temperature)

    def steps(self) -> Requests[Answer[B]]:
        """Yield the requests of the ask and return its answer; raises what `Reasoner.ask` raises."""
        name = self._blueprint.__name__
        read = partial(read_answer, self._blueprint, self._settings.mode)
        max_candidates = self._question.max_candidates or self._settings.max_candidates
        retry_messages: list[BaseMessage] = []
        while True:
            try:
                message = yield from self._get_reply(retry_messages)
            except AnswerTooLongError as error:
                message = AIMessage(error.beginning)
                self._add_attempt(message, error.beginning, error=f"{name}: {error}")
                return self._finish(str(error))
            if message is None:
                return self._finish(_CUT_OFF)
            if (refusal := find_refusal(message)) is not None:
                raise RefusalError(f"{self._label}: the model refused: {refusal[:_MAX_QUOTED]}", refusal)
            session = self._session
            text = get_answer_text(message)
            answer, problems = parse_answer(read, text, name)

            if answer is not None:
                session.remember_method()
                if self._errors:
                    session.transport.endpoint.rests_until = 0.0  # it is back, if it was out of reach
                candidate = self._add_candidate(message, text, *answer)
                if not candidate.complaints or len(self._candidates) >= max_candidates:
                    return self._finish()
                verdict = "has to be given once more, because"
                retry_messages = build_retry_messages(text, verdict, candidate.complaints)
                continue

            if problems:  # the text holds an object, so the method works
                session.is_settled = True
            else:
                problems = [f"{name}: the answer holds no complete JSON object"]
            self._add_attempt(message, text, error="\n".join(problems))
            is_last = len(self._attempts) - len(self._candidates) >= self._settings.max_attempts
            if is_cut_off(message):
                if is_last or not session.raise_token_limit():
                    return self._finish(_CUT_OFF)
            elif is_last:
                return self._finish("; ".join(problems)[:_MAX_QUOTED])
            elif session.is_settled or not session.replace_method():
                retry_messages = build_retry_messages(text, "could not be used, because", problems)

    def _get_reply(self, retry_messages: Sequence[BaseMessage]) -> Requests[AIMessage | None]:
        """Return the next message, of whichever model and by whichever method.

        None if the endpoint refuses a token limit that was raised.
        """
        while True:
            session = self._session
            is_streaming = self._question.on_partial is not None and session.transport.endpoint.streams
            call = session.transport.call(
                self._label,
                session.prepare_messages(self._prompt, self._schema) + list(retry_messages),
                partial(session.transport.bind, session.method, self._blueprint, self._schema),
                model=session.model,
                is_settled=session.is_settled,
                on_partial=self._question.on_partial,
                is_streaming=is_streaming,
                max_tries=_TRIES_WITH_FALLBACKS if self._waiting else MAX_TRIES,
            )
            try:
                return (yield from call)
            except ModelUnavailableError as error:
                self._turn_to_next_model(error, error)
            except (ArqGraphError, AnswerTooLongError):
                raise
            except Exception as error:
                if (message := extract_message(error)) is not None:
                    return message
                failure = classify_failure(error, session.model)
                if session.leave_out_refused_part(failure, is_streaming=is_streaming):
                    continue
                if session.is_limit_raised and failure.status == 400:
                    return None
                if failure.blames("schema|grammar"):
                    session.allow_other_methods()
                if failure.maybe_unsupported and not session.is_settled:
                    rejection = session.replace_refused_method(failure)
                elif failure.is_from_provider:
                    rejection = failure
                else:
                    raise
                if rejection:
                    rejected = rejection.make_request_error(self._label, session.transport.name)
                    self._turn_to_next_model(rejected, rejection.error)

    def _turn_to_next_model(self, error: ModelUnavailableError | ModelRequestError, cause: Exception) -> None:
        """Continue the ask with the next model, or raise one error with the messages of all models."""
        lost = self._session.transport
        self._errors[lost] = error
        is_rejected = isinstance(error, ModelRequestError)
        if not is_rejected:
            lost.endpoint.rests_until = time.monotonic() + _REST
        elif lost is self._main:
            self._waiting = []  # its settings must be mended; a fallback would hide that
        errors = self._errors.items()
        unavailable = [model for model, lost_error in errors if isinstance(lost_error, ModelUnavailableError)]
        if is_rejected and not self._waiting:
            # A fallback that rejects the request can't replace the models that are out of reach: try these again.
            self._waiting = unavailable
        if not self._waiting:
            messages = "\n".join(map(str, self._errors.values()))
            raise ModelUnavailableError(messages) if unavailable else ModelRequestError(messages) from cause
        following = self._waiting.pop(0)
        self._session = ModelSession(following, self._settings.temperature)
        lost_names = " and ".join(model.name for model in self._errors if model is not following)
        self._label = (
            f"{self._settings.module} asking {self._name} of {following.name}, as {lost_names} gave no answer"
        )
        _log.warning("%s Asking %s instead.", error, following.name)

    def _add_candidate(self, message: AIMessage, text: str, value: B, reasoning: str) -> Answer[B]:
        complaints = list(value.unmet())
        if self._question.check:
            complaints.extend(self._question.check(value))
        candidate = Answer(value, reasoning, text, tuple(complaints))
        if self._question.on_candidate:
            self._question.on_candidate(value, candidate.complaints)
        self._add_attempt(message, text, complaints=candidate.complaints)
        self._candidates.append(candidate)
        return candidate

    def _add_attempt(
        self,
        message: AIMessage,
        text: str,
        *,
        error: str | None = None,
        complaints: tuple[Complaint, ...] = (),
    ) -> None:
        problems = [str(complaint) for complaint in complaints] or (error or "").splitlines()
        if problems:
            # Only the queries are logged: the model's words may be confidential.
            queries = ", ".join(problem.partition(": ")[0] for problem in problems)
            number = len(self._attempts) + 1
            _log.info("%s: answer %d is rejected because of %s", self._label, number, queries)
        method, model = self._session.method.name, self._session.transport.name
        self._attempts.append(Attempt(text, method, error, complaints, message.usage_metadata, model))

    def _finish(self, problem: str = "") -> Answer[B]:
        """Return the last candidate, or raise an error: there is none because of the problem, or it isn't enough."""
        if not self._candidates:
            raise BlueprintError(
                f"{self._label}: no valid answer (attempts: {len(self._attempts)}): {problem}",
                self._attempts,
                "The raw texts are in .attempts.",
            )
        last = self._candidates[-1]
        if last.complaints and self._settings.on_unsatisfied == "raise":
            complaints = "; ".join(map(str, last.complaints))[:_MAX_QUOTED]
            raise UnsatisfiedError(
                f"{self._label}: none of {len(self._candidates)} valid answers met its verification; the last: "
                f"{complaints}",
                self._attempts,
                "Raise max_candidates, or look at the texts in .attempts.",
            )
        usage = sum_usage(attempt.usage for attempt in self._attempts)
        return replace(last, usage=usage, attempts=tuple(self._attempts))
