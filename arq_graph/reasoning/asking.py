"""One ask from the first call to the answer: what is sent, what counts as an answer, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, Literal, NoReturn, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from arq_graph.errors import ArqGraphError, BlueprintError, RefusalError, UnsatisfiedError
from arq_graph.reasoning.answer import Answer, Attempt, B, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ, Mode
from arq_graph.reasoning.failures import Failure, read_failure, rejected
from arq_graph.reasoning.methods import Method, Prepared
from arq_graph.reasoning.negotiation import Negotiation
from arq_graph.reasoning.parsing import parse_answer
from arq_graph.reasoning.replies import is_cut_off, message_from, refusal_of, usage_of
from arq_graph.reasoning.sections import clean, escaped
from arq_graph.reasoning.transport import Call, Step, Steps

_MAX_REPEATED = 6_000
_MAX_QUOTED = 500


@dataclass(frozen=True)
class Terms:
    """What holds for every ask of a reasoner.

    Args:
        module: The part of the program that asks, for messages and traces.
        max_attempts: Invalid answers, of which the last ends the ask; 1 or more.
        on_unsatisfied: What happens with the last candidate when none was satisfying.
        temperature: What to send with each call; None sends none.
        max_tokens: The limit that the caller set on the model, if any.
        openai_class: Whether the model is of LangChain's OpenAI family.
        prepare: Makes a blueprint ready for a mode and a method.
    """

    module: str
    max_attempts: int
    on_unsatisfied: Literal["return", "raise"]
    temperature: float | None
    max_tokens: int | None
    openai_class: bool
    prepare: Callable[[type[ARQ], Mode, Method], Prepared]


@dataclass(frozen=True)
class Candidate:
    """A valid answer, and what it does not meet."""

    value: ARQ
    text: str
    complaints: tuple[Complaint, ...]


class Asking(Generic[B]):
    """One ask, as a generator of the steps that it needs performed.

    Args:
        terms: What holds for every ask of this reasoner.
        question: What to ask.
        mode: The mode to ask it in.
        max_candidates: Valid answers to ask for at most, 1 or more.
        negotiation: What is known of the endpoint.
    """

    def __init__(
        self, terms: Terms, question: Question[B], mode: Mode, max_candidates: int, negotiation: Negotiation
    ) -> None:
        self._terms = terms
        self._question = question
        self._mode: Mode = mode
        self._max_candidates = max_candidates
        self._shape = question.blueprint.in_mode(mode)
        self._name = question.blueprint.__name__
        self._asked = f"{terms.module} asking {question.name or self._name}"
        self._negotiation = negotiation
        self._route = negotiation.join()
        self._raised_limit: int | None = None
        self._troubles: list[Failure | None] = []  # None: an answer without a JSON object
        self._attempts: list[Attempt] = []
        self._invalid = 0
        self._candidates: list[Candidate] = []

    def steps(self) -> Steps[Answer[B]]:
        """The steps to perform; returns the answer.

        Raises:
            ReasoningError: As `Reasoner.ask` says.
        """
        try:
            answer = yield from self._until_answered()
        except BaseException as error:
            self._route.leave(error)
            raise
        self._route.leave()
        return answer

    def _until_answered(self) -> Steps[Answer[B]]:
        retry: list[BaseMessage] = []
        while True:
            message = yield from self._reply(retry)
            if (words := refusal_of(message)) is not None:
                raise RefusalError(f"{self._asked}: the model refused: {words[:_MAX_QUOTED]}", words)
            text = self._route.method.read(message)
            parsed = parse_answer(self._shape, text, name=self._name)
            if parsed.value is not None:
                self._route.gave_answer()
                candidate = Candidate(parsed.value, text, self._complaints(parsed.value))
                self._candidates.append(candidate)
                self._record(message, text, complaints=candidate.complaints)
                if not candidate.complaints or len(self._candidates) >= self._max_candidates:
                    return self._finished()
                retry = _asked_again(text, "does not meet what was asked", candidate.complaints)
                continue
            if parsed.has_object:
                self._route.gave_object()
            self._record(message, text, errors=parsed.errors)
            self._invalid += 1
            if is_cut_off(message):
                if not self._may_raise_limit():
                    return self._gave_up(
                        "the answer was cut off at the token limit; raise max_tokens on the model"
                    )
                self._raised_limit = 2 * cast(int, self._terms.max_tokens)
                continue
            if self._invalid >= self._terms.max_attempts:
                return self._gave_up("; ".join(parsed.errors)[:_MAX_QUOTED])
            if not parsed.has_object and not self._route.works:
                self._troubles.append(None)
                if (yield from self._route.move_on()):
                    continue
                self._decide_by_first_trouble()
            retry = _asked_again(text, "could not be used", parsed.errors)

    def _reply(self, retry: Sequence[BaseMessage]) -> Generator[Step, Any, BaseMessage]:
        """The next answer; what a provider refuses of the method or the settings is left out, if it can be."""
        while True:
            kwargs = self._call_kwargs()
            try:
                prepared = self._terms.prepare(self._question.blueprint, self._mode, self._route.method)
                messages = [*prepared.messages(self._question.messages), *retry]
                reply: BaseMessage = yield Call(
                    self._asked, prepared.bound, messages, kwargs, works=self._route.works
                )
            except ArqGraphError:
                raise
            except Exception as error:
                hidden = message_from(error)
                if hidden is not None:
                    return hidden
                yield from self._recover(error, kwargs)
            else:
                return reply

    def _recover(self, error: Exception, kwargs: dict[str, Any]) -> Generator[Step, Any, None]:
        """Make another call possible after a failed one, or raise."""
        failure = read_failure(error, openai_class=self._terms.openai_class)
        if failure.rejects_temperature and "temperature" in kwargs:
            self._negotiation.takes_temperature = False
            return
        if self._route.works or not failure.maybe_unsupported:
            self._raise(failure)
        self._troubles.append(failure)
        if not (yield from self._route.move_on()):
            self._decide_by_first_trouble()

    def _decide_by_first_trouble(self) -> None:
        """No method is left: a server's own error is worth waiting for, a rejected request is not."""
        first = self._troubles[0]
        if first is not None and (first.status is None or not first.transient):
            raise rejected(first, asked=self._asked) from first.error

    def _raise(self, failure: Failure) -> NoReturn:
        if self._raised_limit is not None and failure.status == 400:
            raise BlueprintError(
                f"{self._asked}: the answer was cut off at max_tokens={self._terms.max_tokens}, and the"
                f" provider rejects {self._raised_limit}: ask for less, or take a model that writes more.",
                self._attempts,
            ) from failure.error
        if failure.from_provider:
            raise rejected(failure, asked=self._asked) from failure.error
        raise failure.error

    def _call_kwargs(self) -> dict[str, Any]:
        # Under LangGraph's stream_mode="messages" the client would stream, tag or not.
        kwargs: dict[str, Any] = {"stream": False}
        if self._terms.temperature is not None and self._negotiation.takes_temperature:
            kwargs["temperature"] = self._terms.temperature
        if self._raised_limit is not None:
            kwargs["max_tokens"] = self._raised_limit
        return kwargs

    def _may_raise_limit(self) -> bool:
        limited = self._terms.max_tokens is not None and self._raised_limit is None
        return limited and self._invalid < self._terms.max_attempts

    def _complaints(self, value: ARQ) -> tuple[Complaint, ...]:
        unmet = [
            Complaint(item.blueprint, item.query, str(item).removeprefix(f"{item.blueprint}.{item.query}: "))
            for item in value.unmet()
        ]
        check = self._question.check
        return (*unmet, *(check(cast(B, value)) if check else ()))

    def _record(
        self,
        message: BaseMessage,
        text: str,
        *,
        errors: Sequence[str] = (),
        complaints: tuple[Complaint, ...] = (),
    ) -> None:
        error = "\n".join(errors) or None
        self._attempts.append(
            Attempt(text, self._route.method.name, error, complaints, usage=usage_of(message))
        )

    def _finished(self) -> Answer[B]:
        last = self._candidates[-1]
        if last.complaints and self._terms.on_unsatisfied == "raise":
            raise UnsatisfiedError(
                f"{self._asked}: none of {len(self._candidates)} valid answers met its verification; the"
                f" last: {'; '.join(map(str, last.complaints))[:_MAX_QUOTED]}. Raise max_candidates, or look"
                " at the texts in .attempts.",
                self._attempts,
            )
        usages = [attempt.usage for attempt in self._attempts if attempt.usage]
        return Answer(
            value=cast(B, last.value),
            text=last.text,
            usage=reduce(cast(Callable[..., UsageMetadata], add_usage), usages) if usages else None,
            attempts=tuple(self._attempts),
            mode=self._mode,
            satisfied=not last.complaints,
            complaints=last.complaints,
        )

    def _gave_up(self, reason: str) -> Answer[B]:
        """End without a further try: with the last valid candidate if there was one, else with an error."""
        if self._candidates:
            return self._finished()
        self._route.gave_up()
        raise BlueprintError(
            f"{self._asked}: no valid answer (attempts: {len(self._attempts)}): {reason}. The raw texts are in"
            " .attempts.",
            self._attempts,
        )


def _asked_again(text: str, verdict: str, problems: Sequence[object]) -> list[BaseMessage]:
    lines = "\n".join(f"- {str(problem)[:_MAX_QUOTED]}" for problem in problems)
    return [
        AIMessage(_repeatable(text)),
        HumanMessage(
            f"Your answer {verdict}:\n{escaped(lines)}\n"
            "Answer again: the whole object, corrected, and nothing else."
        ),
    ]


def _repeatable(text: str) -> str:
    """An answer in a form that can be sent back: never empty (some providers refuse that), never huge."""
    text = clean(text).strip() or "(an empty answer)"
    if len(text) <= _MAX_REPEATED:
        return text
    half = _MAX_REPEATED // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters …]\n{text[-half:]}"
