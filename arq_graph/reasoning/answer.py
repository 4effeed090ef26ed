"""The question that a reasoner asks, and the answer with every attempt that led to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from langchain_core.messages import MessageLikeRepresentation
from langchain_core.messages.ai import UsageMetadata

from arq_graph.errors import Attempt, Complaint
from arq_graph.reasoning.blueprint import B

__all__ = ["NEW_ANSWER", "Answer", "Attempt", "Complaint", "Question"]

NEW_ANSWER: Mapping[str, Any] = {}
"""What `Question.on_partial` is called with when an answer begins, also one in place of an earlier one."""


@dataclass(frozen=True)
class Answer(Generic[B]):
    """A validated answer.

    Args:
        value: The blueprint's instance; in the modes "cot" and "direct" it holds response fields only.
        reasoning: The free reasoning of mode "cot"; "" in the others.
        text: The raw text of the answer.
        complaints: Everything that `value` does not meet.
        usage: Tokens of all attempts together, if the model reports them.
        attempts: Every attempt, including the one that became the answer.
    """

    value: B
    reasoning: str
    text: str
    complaints: tuple[Complaint, ...] = ()
    usage: UsageMetadata | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def satisfied(self) -> bool:
        """True if there are no complaints."""
        return not self.complaints


@dataclass(frozen=True)
class Question(Generic[B]):
    """One of several blueprints to ask at the same time.

    Args:
        blueprint: What to ask.
        messages: The prompt.
        check: Returns complaints about a valid answer; if there are any, a new candidate is asked for.
        name: Name of the batch, for traces.
        max_candidates: Valid answers to ask for at most, 1 or more; None means the reasoner's own.
        guidelines: Ids of the guidelines that the question is about, for traces.
        on_candidate: Called with each valid answer and the complaints about it, before another one is asked for.
        on_partial: Streams the answer, if the model can do that. Called with the answer's JSON as far as it is written,
            not validated yet, whenever there is more of it; and with `NEW_ANSWER` whenever an answer begins.
    """

    blueprint: type[B]
    messages: Sequence[MessageLikeRepresentation]
    check: Callable[[B], Sequence[Complaint]] | None = None
    name: str = ""
    max_candidates: int | None = None
    guidelines: tuple[str, ...] = ()
    on_candidate: Callable[[B, Sequence[Complaint]], None] | None = None
    on_partial: Callable[[Mapping[str, Any]], None] | None = None
