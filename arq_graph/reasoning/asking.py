"""One ask from the first call to the answer: what is sent, what counts as an answer, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.errors import ArqGraphError, BlueprintError, RefusalError, UnsatisfiedError
from arq_graph.reasoning.answer import Answer, Attempt, Question
from arq_graph.reasoning.blueprint import B, Mode, read_answer, schema_in_mode
from arq_graph.reasoning.failures import Failure, read_failure
from arq_graph.reasoning.methods import Bound, Endpoint, schema_name
from arq_graph.reasoning.replies import is_cut_off, message_from, parse_answer, refusal_of, sum_of, usage_of
from arq_graph.reasoning.sections import clean, escaped
from arq_graph.reasoning.transport import Steps, Transport, with_more_tokens, with_temperature

_MAX_REPEATED = 6_000
_MAX_QUOTED = 500


@dataclass
class Asking(Generic[B]):
    """One ask of a question; the arguments of `Reasoner` say what its settings mean.

    A method of asking is `settled` once it is known to work: its failures are then the provider's.
    """

    question: Question[B]
    mode: Mode
    module: str
    max_attempts: int
    max_candidates: int
    on_unsatisfied: Literal["return", "raise"]
    temperature: float | None
    transport: Transport
    endpoint: Endpoint

    def __post_init__(self) -> None:
        self._schema = schema_in_mode(self.question.blueprint, self.mode)
        self._name = self.question.blueprint.__name__
        self._asked = f"{self.module} asking {self.question.name or self._name}"
        self._model = self._own_model()
        self._methods = self.endpoint.methods
        self._method, *self._further = self._methods
        self._settled = not self._further
        self._first_failure: Failure | None = None
        self._limit_raised = False
        self._attempts: list[Attempt] = []
        self._candidates: list[Answer[B]] = []

    def _own_model(self) -> BaseChatModel:
        """The model, with the temperature as long as the endpoint takes one."""
        temperature = self.temperature if self.endpoint.takes_temperature else None
        return with_temperature(self.transport.model, temperature)

    def steps(self) -> Steps[Answer[B]]:
        """The ask, as a generator of the steps that it needs performed; raises what `Reasoner.ask` says."""
        read = partial(read_answer, self.question.blueprint, self.mode)
        retry: list[BaseMessage] = []
        while True:
            message = yield from self._reply(retry)
            if (words := refusal_of(message)) is not None:
                raise RefusalError(f"{self._asked}: the model refused: {words[:_MAX_QUOTED]}", words)
            text = self._method.read(message)
            parsed = parse_answer(read, text, self._name)
            if parsed.value is not None:
                self.endpoint.worked(self._method)
                value, reasoning = parsed.value
                complaints = (*value.unmet(), *(self.question.check(value) if self.question.check else ()))
                self._attempts.append(Attempt(text, self._method.name, None, complaints, usage_of(message)))
                self._candidates.append(Answer(value, reasoning, text, self.mode, complaints))
                if not complaints or len(self._candidates) >= self.max_candidates:
                    return self._finished()
                retry = _asked_again(text, "has to be given once more, because", complaints)
                continue
            self._settled = self._settled or parsed.has_object
            problem = "\n".join(parsed.errors)
            self._attempts.append(Attempt(text, self._method.name, problem, (), usage_of(message)))
            is_last = len(self._attempts) - len(self._candidates) >= self.max_attempts
            if is_cut_off(message):
                larger = None if is_last or self._limit_raised else with_more_tokens(self._model)
                if larger is None:
                    return self._gave_up(
                        "the answer was cut off at the token limit; raise max_tokens on the model"
                    )
                self._model, self._limit_raised = larger, True
            elif is_last:
                return self._gave_up("; ".join(parsed.errors)[:_MAX_QUOTED])
            elif self._settled or not self._moved_on(None):
                retry = _asked_again(text, "could not be used, because", parsed.errors)

    def _reply(self, retry: Sequence[BaseMessage]) -> Steps[BaseMessage]:
        """The next answer; what a provider refuses of the method or the settings is left out, if it can be."""
        while True:
            prompt = [*self._method.messages(self.question.messages, self._schema), *retry]
            try:
                reply = yield from self.transport.call(
                    self._asked, prompt, self._bound, model=self._model, settled=self._settled
                )
            except ArqGraphError:
                raise
            except Exception as error:
                if (hidden := message_from(error)) is not None:
                    return hidden
                failure = read_failure(error, self._model)
                if failure.rejects_temperature and self._model is not self.transport.model:
                    self.endpoint.takes_temperature = False
                    self._model = self._own_model()
                elif failure.maybe_unsupported and not self._settled:
                    self._moved_on(failure)
                elif failure.from_provider:
                    raise failure.rejected(self._asked) from error
                else:
                    raise
            else:
                return reply

    def _bound(self, model: BaseChatModel) -> Bound:
        return self._method.bind(model, schema_name(self._name), self._schema)

    def _moved_on(self, failure: Failure | None) -> bool:
        """Take another method after this one failed, or gave no JSON object (None).

        If none is left, what the first one met decides: a server's own error is worth waiting for, a rejected
        request is not.
        """
        if self._method is self._methods[0]:
            self._first_failure = failure
        if self._further:
            self._method = self._further.pop(0)
            return True
        first = self._first_failure
        if first is not None and (first.status is None or not first.transient):
            raise first.rejected(self._asked) from first.error
        self._method, self._settled = self._methods[0], True
        return False

    def _finished(self) -> Answer[B]:
        last = self._candidates[-1]
        if last.complaints and self.on_unsatisfied == "raise":
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
        self.endpoint.was_in_vain(self._method)
        raise BlueprintError(
            f"{self._asked}: no valid answer (attempts: {len(self._attempts)}): {reason}. The raw texts are in"
            " .attempts.",
            self._attempts,
        )


def _asked_again(text: str, verdict: str, problems: Sequence[object]) -> list[BaseMessage]:
    lines = "\n".join(f"- {str(problem)[:_MAX_QUOTED]}" for problem in problems)
    again = "Answer with the whole object, changed accordingly, and nothing else."
    correction = f"Your answer {verdict}:\n{escaped(lines)}\n{again}"
    return [AIMessage(_repeatable(text)), HumanMessage(correction)]


def _repeatable(text: str) -> str:
    """An answer in a form that can be sent back: never empty (some providers refuse that), never huge."""
    text = clean(text).strip() or "(an empty answer)"
    if len(text) <= _MAX_REPEATED:
        return text
    half = _MAX_REPEATED // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters …]\n{text[-half:]}"
