"""Running an agent over recorded conversations, step by step, with the true history up to each. Pre-Act 4.2."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import InputError
from arq_graph.milestones.at_once import at_once
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.turn_level.actions import Action
from arq_graph.milestones.turn_level.agents import predictor
from arq_graph.milestones.turn_level.metrics import StepOutcome, TurnMetrics, lexical_similarity, turn_metrics
from arq_graph.milestones.turn_level.steps import Dataset, TurnStep, read_steps
from arq_graph.reasoning.performing import aperform_steps, perform_steps

MAX_ERROR = 500


@dataclass(frozen=True)
class TurnEvaluation:
    """What an agent did at every step.

    Args:
        outcomes: One a step, in the order of the dataset.
        broken: The records that could not be read.
        kept: How many of the outcomes an earlier run had left in `results`.
    """

    outcomes: tuple[StepOutcome, ...]
    broken: tuple[BrokenConversation, ...] = ()
    kept: int = 0

    @cached_property
    def metrics(self) -> TurnMetrics:
        """The figures over all steps."""
        return turn_metrics(self.outcomes)


def evaluate_turns(agent: Any, dataset: Dataset, **settings: Any) -> TurnEvaluation:
    """Ask an agent for its next action at every step of recorded conversations, and compare. Pre-Act 4.2.

    Each step is asked with the true history before it, whatever the agent said at earlier steps, and once. A step
    on which the agent raises counts as not matched, and does not stop the rest; nor does one on which the
    similarity raises, which is left without a similarity.

    Args:
        agent: A chat model or its name: it is given the record's instructions as system message, the history and
            the tools. Or a compiled LangGraph app: it is given the history, and no tool runs. Or a function, or
            another runnable, of the history as LangChain messages that gives a message (LangChain's or OpenAI's) or a
            text.
        dataset: A file that `read_transcripts` reads, a transcript, or transcripts.
        tools: The tools that are bound to a chat model: OpenAI definitions, LangChain tools, or schemas by name;
            None: those of each record. Other agents have their own.
        similarity: How similar two final answers are: a function of two texts, 0 to 1, such as the cosine of their
            embeddings (Pre-Act takes BGE). By itself ROUGE-L, which compares words.
        limit: How many steps at most, from the first; None: all.
        results: A JSON Lines file in which each outcome is kept as it comes. Where it holds some of the same run,
            those steps are not asked again, unless they ended in an error. None: nowhere.
        depends_on: What else the outcomes depend on, by a name that a message can show, such as the agent's file.
        on_step: Called with each `StepOutcome` as it is there, those of an earlier run included.

    Raises:
        InputError: The agent is none, the dataset cannot be read, or `results` holds another run.
        ToolError: One of the `tools` cannot be described.
    """
    run = _Run(agent, dataset, **settings)
    with run.store or nullcontext():
        for step in run.to_ask():
            run.take(perform_steps(run.outcome(step), run.predictor.invoke))
    return run.finished()


async def aevaluate_turns(
    agent: Any, dataset: Dataset, *, concurrency: int = 4, **settings: Any
) -> TurnEvaluation:
    """As `evaluate_turns`, with so many steps asked at once (`concurrency`, 1 or more); a function may be async.

    The outcomes stay in the order of the dataset; `on_step` is called as they come.
    """
    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}: it must be at least 1")
    run = _Run(agent, dataset, **settings)
    with run.store or nullcontext():
        asked = ((step, aperform_steps(run.outcome(step), run.predictor.ainvoke)) for step in run.to_ask())
        async with aclosing(at_once(asked, concurrency)) as outcomes:
            async for _, outcome in outcomes:
                run.take(outcome)
    return run.finished()


class _Run:
    """One evaluation: what is asked, and what came of it."""

    def __init__(
        self,
        agent: Any,
        dataset: Dataset,
        *,
        tools: Any = None,
        similarity: Callable[[str, str], float] = lexical_similarity,
        limit: int | None = None,
        results: str | Path | None = None,
        depends_on: Mapping[str, str] | None = None,
        on_step: Callable[[StepOutcome], None] = lambda _: None,
    ) -> None:
        if not isinstance(dataset, str | Path | Transcript):
            dataset = list(dataset)
        self.predictor = predictor(agent, tools=tools)
        self._similarity = similarity
        self._steps, self._broken = read_steps(dataset, limit)
        self._on_step = on_step
        self._outcomes: dict[tuple[str, int], StepOutcome] = {}
        self._kept: dict[tuple[str, int], StepOutcome] = {}
        self.store: RunStore | None = None
        if results is not None:
            of = {
                "the dataset": fingerprint(Path(dataset) if isinstance(dataset, str) else dataset),
                "the agent": agent if isinstance(agent, str) else type(agent).__name__,
                "the tools": "those of the records" if tools is None else fingerprint(tools),
                "the similarity": getattr(similarity, "__name__", type(similarity).__name__),
            }
            self.store = RunStore(results, "turns", {**of, **(depends_on or {})})
            for entry in self.store.entries():
                with suppress(ValidationError):  # what cannot be read is asked again
                    outcome = StepOutcome.model_validate(entry)
                    if outcome.error is None:
                        self._kept[outcome.id, outcome.step] = outcome

    def to_ask(self) -> Iterator[TurnStep]:
        """The steps of which no outcome is kept."""
        for step in self._steps:
            if kept := self._kept.get(step.key):
                self._outcomes[step.key] = kept
                self._on_step(kept)
            else:
                yield step

    def outcome(self, step: TurnStep) -> Generator[TurnStep, Any, StepOutcome]:
        """Ask for the prediction of a step, and compare."""
        predicted, error, score = None, None, None
        try:
            predicted = Action.of((yield step))
            if step.truth.kind == predicted.kind == "answer":
                score = self._similarity(step.truth.answer, predicted.answer)
            return StepOutcome.of(step, predicted, score, error)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"[:MAX_ERROR]
            return StepOutcome.of(step, predicted, None, error)

    def take(self, outcome: StepOutcome) -> None:
        """Keep an outcome."""
        self._outcomes[outcome.id, outcome.step] = outcome
        if self.store is not None:
            self.store.append(outcome.model_dump())
        self._on_step(outcome)

    def finished(self) -> TurnEvaluation:
        """All outcomes, once every step was asked."""
        outcomes = tuple(self._outcomes[step.key] for step in self._steps)
        return TurnEvaluation(outcomes, tuple(self._broken), len(self._kept.keys() & self._outcomes.keys()))
