"""One ask from the first call to the answer: what is sent, what counts as an answer, and when it ends."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Literal

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages

from arq_graph.errors import (
    ArqGraphError,
    BlueprintError,
    InputError,
    ModelRequestError,
    ModelUnavailableError,
    RefusalError,
    UnsatisfiedError,
    require_choice,
    require_count,
)
from arq_graph.reasoning.answer import Answer, Attempt, Complaint, Question
from arq_graph.reasoning.blocks import cache_mark, join_text_blocks, mark_for_cache
from arq_graph.reasoning.blueprint import B, Mode, read_answer, schema_in_mode
from arq_graph.reasoning.derived import ResponseOnly
from arq_graph.reasoning.failures import Failure, classify_failure
from arq_graph.reasoning.methods import Method
from arq_graph.reasoning.replies import (
    GrowingAnswer,
    asked_again,
    extract_message,
    is_cut_off,
    parse_answer,
    refusal_of,
    sum_of,
    text_of,
)
from arq_graph.reasoning.transport import MAX_TRIES, Steps, Transport, with_more_tokens, with_temperature

_log = logging.getLogger(__name__)

_MAX_QUOTED = 500
_CUT_OFF = "the answer was cut off at the token limit; raise max_tokens on the model"
_REST = 60.0  # seconds: an endpoint that was out of reach is asked after the others for so long
_TRIES_BEFORE_OTHERS = 2  # where another model can be asked instead


@dataclass(frozen=True)
class AskSettings:
    """How a reasoner asks; `Reasoner` says what each setting means."""

    module: str
    mode: Mode
    temperature: float | None
    max_attempts: int
    max_candidates: int
    timeout: float
    backoff: float
    on_unsatisfied: Literal["return", "raise"]
    derive: ResponseOnly | None = None

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
    """One ask of one question, by one model after another while none of them can be reached.

    A method of asking is settled once it is known to work: its failures are then the provider's.
    """

    def __init__(self, transports: Sequence[Transport], question: Question[B], settings: AskSettings) -> None:
        self.question = question
        self.settings = settings
        self.max_candidates = question.max_candidates or settings.max_candidates
        self._growing = GrowingAnswer(question.on_partial) if question.on_partial else None
        blueprint = settings.derive.derive(question.blueprint) if settings.derive else question.blueprint
        self._schema = schema_in_mode(blueprint, settings.mode)
        self._read = partial(read_answer, blueprint, settings.mode)
        self._name = question.blueprint.__name__
        self._asked = self._asking = f"{settings.module} asking {question.name or self._name}"
        self._attempts: list[Attempt] = []
        self._candidates: list[Answer[B]] = []
        self._messages = convert_to_messages(question.messages)
        self._lost: dict[Transport, ModelUnavailableError | ModelRequestError] = {}
        self._main, now = transports[0], time.monotonic()
        first, *self._others = sorted(transports, key=lambda each: each.endpoint.rests_until > now)
        self._turn_to(first)

    def _turn_to(self, transport: Transport) -> None:
        self._transport = transport
        self._endpoint = transport.endpoint
        temperature = self.settings.temperature if self._endpoint.takes_temperature else None
        self._model = with_temperature(transport.model, temperature)
        self._mark = cache_mark(transport.model) if self._endpoint.takes_marks else None
        self._method, *self._further = self._endpoint.methods
        self._settled = not self._further
        self._refusal: Failure | None = None
        self._answered: Method | None = None
        self._limit_raised = False

    def steps(self) -> Steps[Answer[B]]:
        """The ask, as a generator of the steps that it needs performed; raises what `Reasoner.ask` says."""
        retry: list[BaseMessage] = []
        while True:
            message = yield from self._reply(retry)
            if message is None:
                return self._gave_up(_CUT_OFF)
            if (words := refusal_of(message)) is not None:
                raise RefusalError(f"{self._asked}: the model refused: {words[:_MAX_QUOTED]}", words)
            text = text_of(message)
            answer, problems = parse_answer(self._read, text, self._name)
            if answer is not None:
                self._works()
                value, reasoning = answer
                complaints = (*value.unmet(), *(self.question.check(value) if self.question.check else ()))
                if self.question.on_candidate:
                    self.question.on_candidate(value, complaints)
                self._note(message, text, None, complaints)
                self._candidates.append(Answer(value, reasoning, text, complaints))
                if not complaints or len(self._candidates) >= self.max_candidates:
                    return self._finished()
                retry = asked_again(text, "has to be given once more, because", complaints)
                continue
            self._settled = self._settled or bool(problems)
            problems = problems or [f"{self._name}: the answer holds no complete JSON object"]
            self._note(message, text, "\n".join(problems))
            is_last = len(self._attempts) - len(self._candidates) >= self.settings.max_attempts
            if is_cut_off(message):
                larger = None if is_last or self._limit_raised else with_more_tokens(self._model)
                if larger is None:
                    return self._gave_up(_CUT_OFF)
                self._model, self._limit_raised = larger, True
            elif is_last:
                return self._gave_up("; ".join(problems)[:_MAX_QUOTED])
            elif self._settled or not self._moved_on(None):
                retry = asked_again(text, "could not be used, because", problems)

    def _reply(self, retry: Sequence[BaseMessage]) -> Steps[AIMessage | None]:
        """The next answer; what a provider refuses of the method or the settings is left out, if it can be.

        None where the provider refuses a token limit that was raised for this answer.
        """
        name = re.sub(r"[^A-Za-z0-9_-]", "_", self._name)[:64]  # what providers allow
        while True:
            messages = self._method.messages(self._messages, self._schema)
            prompt = mark_for_cache(messages, self._mark) if self._mark else join_text_blocks(messages)
            prompt += retry
            bind = partial(self._method.bind, name=name, schema=self._schema)
            tries = _TRIES_BEFORE_OTHERS if self._others else MAX_TRIES
            call = self._transport.call(
                self._asked, prompt, bind, self._model, self._settled, self._growing, tries
            )
            try:
                return (yield from call)
            except ModelUnavailableError as error:
                self._turn_to_next(error, error)
            except ArqGraphError:
                raise
            except Exception as error:
                if (hidden := extract_message(error)) is not None:
                    return hidden
                failure = classify_failure(error, self._model)
                if failure.blames("temperature") and self._model is not self._transport.model:
                    self._endpoint.takes_temperature = False
                    self._model = self._transport.model
                elif failure.blames("cach") and self._mark:
                    self._endpoint.takes_marks, self._mark = False, None
                elif failure.blames("stream") and self._growing and self._endpoint.streams:
                    self._endpoint.streams = False
                elif self._limit_raised and failure.status == 400:
                    return None
                elif failure.maybe_unsupported and not self._settled:
                    self._moved_on(failure)
                elif failure.from_provider:
                    self._turn_to_next(failure.rejected(self._asked, self._transport.name), error)
                else:
                    raise

    def _turn_to_next(self, error: ModelUnavailableError | ModelRequestError, cause: Exception) -> None:
        """Go on with the next model, answers so far included; where none is left, the error tells of all."""
        self._lost[self._transport] = error
        lost = [each for each, told in self._lost.items() if isinstance(told, ModelUnavailableError)]
        if isinstance(error, ModelUnavailableError):
            self._endpoint.rests_until = time.monotonic() + _REST
        else:  # a fallback that is rejected stands in for nobody: behind the last, the lost are asked again
            self._others = ([] if self._transport is self._main else self._others) or lost
        if not self._others:
            kind = ModelUnavailableError if lost else ModelRequestError
            raise kind("\n".join(map(str, self._lost.values()))) from cause
        self._turn_to(self._others.pop(0))
        names = " and ".join(each.name for each in self._lost if each is not self._transport)
        self._asked = f"{self._asking} of {self._transport.name}, as {names} gave no answer"
        _log.warning("%s Asking %s instead.", error, self._transport.name)

    def _works(self) -> None:
        """Remember the first method that leads to a valid answer, and that a model which is asked again is back."""
        self._settled = True
        if len(self._endpoint.methods) > 1:
            self._endpoint.methods = (self._method,)
            if self._refusal:
                said = self._transport.name, self._method.name, self._refusal.words
                _log.info("%s is asked by %s from now on, as it said: %s", *said)
        if self._lost:
            self._endpoint.rests_until = 0.0

    def _note(
        self, message: AIMessage, text: str, error: str | None, complaints: tuple[Complaint, ...] = ()
    ) -> None:
        usage, model = message.usage_metadata, self._transport.name
        problems = map(str, complaints or (error or "").splitlines())
        if wrong := ", ".join(each.partition(": ")[0] for each in problems):
            _log.info("%s: answer %d is rejected because of %s", self._asked, len(self._attempts) + 1, wrong)
        self._attempts.append(Attempt(text, self._method.name, error, complaints, usage, model))

    def _moved_on(self, failure: Failure | None) -> bool:
        """Take another method after this one failed, or gave no JSON object (None).

        If none is left, the last one that was answered at all is asked again. If none was, what the first one met
        decides: a server's own error is worth waiting for, a rejected request is not.
        """
        self._refusal = self._refusal or failure
        if failure is None:
            self._answered = self._method
        if self._further:
            self._method = self._further.pop(0)
            return True
        first = self._refusal
        if first and not self._answered and (first.status is None or not first.transient):
            self._turn_to_next(first.rejected(self._asked, self._transport.name), first.error)
            return True
        self._method, self._settled = self._answered or self._endpoint.methods[0], True
        return False

    def _finished(self) -> Answer[B]:
        last = self._candidates[-1]
        if last.complaints and self.settings.on_unsatisfied == "raise":
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
