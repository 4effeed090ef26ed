"""Running an agent over recorded conversations, step by step, with the true history up to each. Pre-Act 4.2."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import InputError
from arq_graph.milestones.at_once import at_once
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.turn_level.actions import Action, action_of
from arq_graph.milestones.turn_level.agents import predictor, read_predictions
from arq_graph.milestones.turn_level.metrics import NOT_GIVEN, StepOutcome, TurnMetrics, turn_metrics
from arq_graph.milestones.turn_level.similarity import lexical_similarity, similarity_of_pairs
from arq_graph.milestones.turn_level.steps import Dataset, DatasetSteps, TurnStep
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
            another runnable, of the history as LangChain messages that gives a message, a text, or an object with
            `calls` or `answer`. Or the `Path` of a JSON Lines file of predictions that were recorded elsewhere,
            `{"id": …, "step": …, "calls": [{"tool": …, "arguments": {…}}]}` or with `"answer"` a line; a step
            without one counts as an error.
        dataset: A file that `read_transcripts` reads, a transcript, or transcripts.
        tools: The tools that are bound to a chat model: OpenAI definitions, LangChain tools, or schemas by name;
            None: those of each record. Other agents have their own.
        similarity: How similar two final answers are: LangChain embeddings, of which the cosine counts (Pre-Act
            takes BGE: `HuggingFaceEmbeddings(model_name="BAAI/bge-large-en-v1.5")` of langchain-huggingface), or a
            function of two texts, 0 to 1. None takes ROUGE-L, which compares words.
        limit: How many steps at most, from the first; None: all.
        results: A JSON Lines file in which each outcome is kept as it comes. Where it holds some of the same run,
            those steps are not asked again, unless they ended in an error. None: nowhere.
        depends_on: What else the outcomes depend on, by a name that a message can show, such as the agent's file.
        on_step: Called with each `StepOutcome` as it is there, those of an earlier run included.

    Raises:
        InputError: The agent is none, the dataset or the predictions cannot be read, a prediction belongs to no
            step, or `results` holds another run.
        ToolError: One of the `tools` cannot be described.
    """
    run = _Run(agent, dataset, **settings)
    with run.store or nullcontext():
        for step in run.to_ask():
            run.take(perform_steps(run.outcome(step), lambda asked: asked[0].invoke(asked[1])))
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
        asked = (
            (step, aperform_steps(run.outcome(step), lambda asked: asked[0].ainvoke(asked[1])))
            for step in run.to_ask()
        )
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
        similarity: Any = None,
        limit: int | None = None,
        results: str | Path | None = None,
        depends_on: Mapping[str, str] | None = None,
        on_step: Callable[[StepOutcome], None] = lambda _: None,
    ) -> None:
        if results is not None and not isinstance(dataset, str | Path | Transcript):
            dataset = list(dataset)  # to tell it from another
        similarity = similarity or lexical_similarity
        self._predictions: Mapping[tuple[str, int], Action] = {}
        if isinstance(agent, Path):
            self._predictions = read_predictions(agent)
            self._predictor: Runnable[TurnStep, Any] = RunnableLambda(
                lambda step: self._predictions.get(step.key)
            )
        else:
            self._predictor = predictor(agent, tools=tools)
        self._similarity = similarity_of_pairs(similarity)
        self._steps = DatasetSteps(dataset, limit=limit)
        self._is_whole = limit is None
        self._on_step = on_step
        self._outcomes: dict[tuple[str, int], StepOutcome | None] = {}
        self._kept: dict[tuple[str, int], StepOutcome] = {}
        self.store: RunStore | None = None
        if results is not None:
            kind = similarity if callable(similarity) else type(similarity)
            who = fingerprint(agent) if isinstance(agent, Path) else type(agent).__name__
            of = {
                "the dataset": fingerprint(Path(dataset) if isinstance(dataset, str) else dataset),
                "the agent": agent if isinstance(agent, str) else who,
                "the tools": "those of the records" if tools is None else fingerprint(tools),
                "the similarity": f"{kind.__name__} {getattr(similarity, 'model', '')}",
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
            kept = self._outcomes[step.key] = self._kept.get(step.key)
            if kept is None:
                yield step
            else:
                self._on_step(kept)

    def outcome(self, step: TurnStep) -> Generator[tuple[Runnable[Any, Any], Any], Any, StepOutcome]:
        """Ask for the prediction and for the similarity of a step, and compare."""
        predicted, error, score = None, None, None
        try:
            given = yield self._predictor, step
            predicted = None if given is None else action_of(given)
            if predicted is None:
                error = NOT_GIVEN
            elif step.truth.kind == predicted.kind == "answer":
                score = yield self._similarity, (step.truth.answer, predicted.answer)
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
        strays = self._predictions.keys() - self._outcomes.keys()
        if strays and self._is_whole:
            id, step = min(strays)
            raise InputError(
                f"the predictions name step {step} of conversation {id!r}, but the dataset has no such step: are they "
                "of the same dataset?"
            )
        outcomes = tuple(outcome for outcome in self._outcomes.values() if outcome is not None)
        kept = len(self._kept.keys() & self._outcomes.keys())
        return TurnEvaluation(outcomes, tuple(self._steps.broken), kept)
