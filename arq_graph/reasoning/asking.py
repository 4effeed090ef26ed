"""One ask, from the first model call to the answer.

Each answer, or each call that failed, decides what is sent next:

    state                   what is sent next                                                bound
    first try               the prompt, by the endpoint's first method
    method refused          the same prompt by the next method                               the methods
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
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Literal

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages

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
    PartialAnswer,
    build_retry_messages,
    extract_message,
    find_refusal,
    get_answer_text,
    is_cut_off,
    parse_answer,
    sum_usage,
)
from arq_graph.reasoning.session import ModelQueue, ModelSession
from arq_graph.reasoning.transport import MAX_TRIES, Requests, Transport

_log = logging.getLogger(__name__)

_MAX_QUOTED = 500
_CUT_OFF = "the answer was cut off at the token limit; raise max_tokens on the model"
_TRIES_WITH_FALLBACKS = 2


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
    """One ask of one question: `steps` leads from the first call to the answer."""

    def __init__(self, transports: Sequence[Transport], question: Question[B], settings: AskSettings) -> None:
        self._question = question
        self._settings = settings
        self._blueprint = question.blueprint
        if settings.derive:
            self._blueprint = settings.derive.derive(question.blueprint)
        self._schema = get_schema(self._blueprint, settings.mode)
        self._prompt = convert_to_messages(question.messages)
        self._partial: PartialAnswer | None = None
        if question.on_partial:
            self._partial = PartialAnswer(question.on_partial)
        self._label = f"{settings.module} asking {question.name or self._blueprint.__name__}"
        self._attempts: list[Attempt] = []
        self._candidates: list[Answer[B]] = []
        self._models = ModelQueue(transports)
        self._session = ModelSession(self._models.waiting.pop(0), settings.temperature)

    def steps(self) -> Requests[Answer[B]]:
        """Yield the requests of the ask and return its answer; raises what `Reasoner.ask` raises."""
        name = self._blueprint.__name__
        read = partial(read_answer, self._blueprint, self._settings.mode)
        max_candidates = self._question.max_candidates or self._settings.max_candidates
        retry_messages: list[BaseMessage] = []
        while True:
            message = yield from self._get_reply(retry_messages)
            if message is None:
                return self._give_up(_CUT_OFF)
            if (refusal := find_refusal(message)) is not None:
                raise RefusalError(f"{self._label}: the model refused: {refusal[:_MAX_QUOTED]}", refusal)
            session = self._session
            text = get_answer_text(message)
            answer, problems = parse_answer(read, text, name)

            if answer is not None:
                session.remember_method()
                if self._models.errors:
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
                    return self._give_up(_CUT_OFF)
            elif is_last:
                return self._give_up("; ".join(problems)[:_MAX_QUOTED])
            elif session.is_settled or not session.replace_method():
                retry_messages = build_retry_messages(text, "could not be used, because", problems)

    def _get_reply(self, retry_messages: Sequence[BaseMessage]) -> Requests[AIMessage | None]:
        """Return the next message, of whichever model and by whichever method.

        None if the endpoint refuses a token limit that was raised.
        """
        name = re.sub(r"[^A-Za-z0-9_-]", "_", self._blueprint.__name__)[:64]  # what providers allow
        while True:
            session = self._session
            max_tries = MAX_TRIES
            if self._models.waiting:
                max_tries = _TRIES_WITH_FALLBACKS
            call = session.transport.call(
                self._label,
                session.prepare_messages(self._prompt, self._schema) + list(retry_messages),
                partial(session.method.bind, name=name, schema=self._schema),
                model=session.model,
                is_settled=session.is_settled,
                partial_answer=self._partial,
                max_tries=max_tries,
            )
            try:
                return (yield from call)
            except ModelUnavailableError as error:
                self._turn_to_next_model(error, error)
            except ArqGraphError:
                raise
            except Exception as error:
                if (message := extract_message(error)) is not None:
                    return message
                failure = classify_failure(error, session.model)
                if session.leave_out_refused_part(failure, is_streaming=self._partial is not None):
                    continue
                if session.is_limit_raised and failure.status == 400:
                    return None
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
        """Continue the ask with the next model, or raise an error with the messages of all."""
        self._models.note_loss(self._session.transport, error)
        if not self._models.waiting:
            raise self._models.make_error() from cause
        self._session = ModelSession(self._models.waiting.pop(0), self._settings.temperature)
        model = self._session.transport.name
        lost_models = self._models.describe_lost(besides=self._session.transport)
        name = self._question.name or self._blueprint.__name__
        self._label = f"{self._settings.module} asking {name} of {model}, as {lost_models} gave no answer"
        _log.warning("%s Asking %s instead.", error, model)

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

    def _finish(self) -> Answer[B]:
        last = self._candidates[-1]
        if last.complaints and self._settings.on_unsatisfied == "raise":
            complaints = "; ".join(map(str, last.complaints))[:_MAX_QUOTED]
            raise UnsatisfiedError(
                f"{self._label}: none of {len(self._candidates)} valid answers met its verification; the last: "
                f"{complaints}. Raise max_candidates, or look at the texts in .attempts.",
                self._attempts,
            )
        usage = sum_usage(attempt.usage for attempt in self._attempts)
        return replace(last, usage=usage, attempts=tuple(self._attempts))

    def _give_up(self, reason: str) -> Answer[B]:
        """Return the last valid candidate, or raise an error if there is none."""
        if self._candidates:
            return self._finish()
        raise BlueprintError(
            f"{self._label}: no valid answer (attempts: {len(self._attempts)}): {reason}. The raw texts are in "
            ".attempts.",
            self._attempts,
        )
