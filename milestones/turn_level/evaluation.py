"""Running an agent over recorded conversations, step by step, with the true history up to each. Pre-Act 4.2."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import InputError, ToolError
from arq_graph.milestones.at_once import at_once
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.turn_level.actions import action_of
from arq_graph.milestones.turn_level.agents import RecordedPredictions, predictor
from arq_graph.milestones.turn_level.metrics import TurnMetrics, turn_metrics
from arq_graph.milestones.turn_level.outcomes import NOT_GIVEN, StepOutcome, compared
from arq_graph.milestones.turn_level.similarity import scorer
from arq_graph.milestones.turn_level.steps import Dataset, DatasetSteps, TurnStep
from arq_graph.reasoning.performing import aperform_steps, perform_steps

MAX_ERROR = 500

OnStep = Callable[[StepOutcome], None]


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


def evaluate_turns(
    agent: Any,
    dataset: Dataset,
    *,
    tools: Any = None,
    similarity: Any = None,
    limit: int | None = None,
    results: str | Path | None = None,
    depends_on: Mapping[str, str] | None = None,
    on_step: OnStep | None = None,
    timeout: float = 60.0,
) -> TurnEvaluation:
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
            function of two texts. None takes ROUGE-L, which compares words.
        limit: How many steps at most, from the first; None: all.
        results: A JSON Lines file in which each outcome is kept as it comes. Where it holds some of the same run,
            those steps are not asked again, unless they ended in an error. None: nowhere.
        depends_on: What else the outcomes depend on, by a name that a message can show, such as the agent's file.
        on_step: Called with each outcome as it is there, those of an earlier run included.
        timeout: Seconds that a chat model may take for one step, retries included; more than 0.

    Raises:
        InputError: The agent is none, the dataset or the predictions cannot be read, a prediction belongs to no
            step, or `results` holds another run.
        ToolError: A tool cannot be described, the model takes none, or the agent is async only.
    """
    run = _Run(agent, dataset, tools, similarity, limit, results, depends_on, on_step, timeout)
    with run.store:
        for step in run.to_ask():
            run.take(perform_steps(run.outcome(step), lambda wanted: wanted.now()))
    return run.finished()


async def aevaluate_turns(
    agent: Any,
    dataset: Dataset,
    *,
    tools: Any = None,
    similarity: Any = None,
    limit: int | None = None,
    results: str | Path | None = None,
    depends_on: Mapping[str, str] | None = None,
    on_step: OnStep | None = None,
    timeout: float = 60.0,
    concurrency: int = 4,
) -> TurnEvaluation:
    """As `evaluate_turns`, with so many steps asked at once (`concurrency`, 1 or more); a function may be async.

    The outcomes stay in the order of the dataset; `on_step` is called as they come.
    """
    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}: it must be at least 1")
    run = _Run(agent, dataset, tools, similarity, limit, results, depends_on, on_step, timeout)
    with run.store:
        asked = (
            (step, aperform_steps(run.outcome(step), lambda wanted: wanted.later())) for step in run.to_ask()
        )
        async with aclosing(at_once(asked, concurrency)) as outcomes:
            async for _, outcome in outcomes:
                run.take(outcome)
    return run.finished()


@dataclass(frozen=True)
class _Wanted:
    """Something that a step needs, at once or awaited."""

    now: Callable[[], Any]
    later: Callable[[], Awaitable[Any]]


class _Run:
    """One evaluation: what is asked, and what came of it."""

    def __init__(
        self,
        agent: Any,
        dataset: Dataset,
        tools: Any,
        similarity: Any,
        limit: int | None,
        results: str | Path | None,
        depends_on: Mapping[str, str] | None,
        on_step: OnStep | None,
        timeout: float,
    ) -> None:
        if results is not None and not isinstance(dataset, str | Path | Transcript):
            dataset = list(dataset)  # to tell it from another
        self._predictor = predictor(agent, tools=tools, timeout=timeout)
        self._scorer = scorer(similarity)
        self._steps = DatasetSteps(dataset, limit=limit)
        self._limit = limit
        self._on_step = on_step
        self._order: dict[tuple[str, int], StepOutcome | None] = {}
        self._store: RunStore | None = None
        if results is not None:
            who = fingerprint(agent) if isinstance(agent, Path) else type(agent).__name__
            of = {
                "the dataset": fingerprint(Path(dataset) if isinstance(dataset, str) else dataset),
                "the agent": agent if isinstance(agent, str) else who,
                "the tools": "those of the records" if tools is None else fingerprint(tools),
                "the similarity": self._scorer.name,
            }
            self._store = RunStore(results, "turns", {**of, **(depends_on or {})})
        self._kept = {} if self._store is None else dict(_kept(self._store))

    @property
    def store(self) -> AbstractContextManager[Any]:
        """What keeps the outcomes."""
        return self._store or nullcontext()

    def to_ask(self) -> Iterator[TurnStep]:
        """The steps of which no outcome is kept."""
        for step in self._steps:
            kept = self._kept.get(step.key)
            self._order[step.key] = kept
            if kept is None:
                yield step
            elif self._on_step is not None:
                self._on_step(kept)

    def outcome(self, step: TurnStep) -> Generator[_Wanted, Any, StepOutcome]:
        """Ask for the prediction and for the similarity of a step, and compare."""
        predicted, error, score = None, "", None
        try:
            ask = _Wanted(partial(self._predictor.predict, step), partial(self._predictor.apredict, step))
            given = yield ask
            if given is None and isinstance(self._predictor, RecordedPredictions):
                error = NOT_GIVEN
            else:
                predicted = action_of(given)
        except ToolError:
            raise  # the same at every step: something must change first
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"[:MAX_ERROR]
        if predicted is not None and step.truth.kind == predicted.kind == "answer":
            pair = step.truth.answer, predicted.answer
            try:
                score = yield _Wanted(partial(self._scorer.score, *pair), partial(self._scorer.ascore, *pair))
            except Exception as raised:
                error = f"the similarity raised {type(raised).__name__}: {raised}"[:MAX_ERROR]
        return compared(step, predicted, score, error)

    def take(self, outcome: StepOutcome) -> None:
        """Keep an outcome."""
        self._order[outcome.id, outcome.step] = outcome
        if self._store is not None:
            self._store.append(outcome.model_dump())
        if self._on_step is not None:
            self._on_step(outcome)

    def finished(self) -> TurnEvaluation:
        """All outcomes, once every step was asked."""
        if isinstance(self._predictor, RecordedPredictions) and self._limit is None:
            self._predictor.check(set(self._order))
        outcomes = tuple(outcome for outcome in self._order.values() if outcome is not None)
        return TurnEvaluation(
            outcomes, tuple(self._steps.broken), len(self._kept.keys() & self._order.keys())
        )


def _kept(store: RunStore) -> Iterator[tuple[tuple[str, int], StepOutcome]]:
    for entry in store.entries():
        # What cannot be read is asked again: no step counts twice.
        with suppress(ValidationError):
            outcome = StepOutcome.model_validate(entry)
            if outcome.error is None:
                yield (outcome.id, outcome.step), outcome
