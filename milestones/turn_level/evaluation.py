"""Running an agent over recorded conversations, step by step, with the true history up to each. Pre-Act 4.2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.at_once import at_once
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.transcripts.formats import Format
from arq_graph.milestones.turn_level.agents import predictor
from arq_graph.milestones.turn_level.asking import aperform, perform
from arq_graph.milestones.turn_level.comparison import StepOutcome
from arq_graph.milestones.turn_level.dataset import Dataset, DatasetSteps
from arq_graph.milestones.turn_level.metrics import TurnMetrics, turn_metrics
from arq_graph.milestones.turn_level.similarity import scorer
from arq_graph.milestones.turn_level.steps import TurnStep

OnStep = Callable[[StepOutcome], None]


@dataclass(frozen=True)
class TurnEvaluation:
    """What an agent did at every step.

    Args:
        outcomes: One a step, in the order of the dataset.
        broken: The records that could not be read.
    """

    outcomes: tuple[StepOutcome, ...]
    broken: tuple[BrokenConversation, ...] = ()

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
    format: Format | None = None,
    limit: int | None = None,
    done: Iterable[StepOutcome] = (),
    on_step: OnStep | None = None,
    timeout: float = 60.0,
) -> TurnEvaluation:
    """Ask an agent for its next action at every step of recorded conversations, and compare. Pre-Act 4.2.

    Each step is asked with the true history before it, whatever the agent said at earlier steps, and once. A step
    on which the agent raises counts as not matched, and does not stop the rest; nor does one on which the
    similarity raises, which is left without a similarity.

    Args:
        agent: A chat model or its name: it is given the record's instructions as system message, the history and
            the tools. Or a compiled LangGraph app: it is given the history, and no tool runs (`GraphAgent`). Or a
            function, or another runnable, of the history as LangChain messages that gives an `Action`, a message
            or a text.
        dataset: A file that `read_transcripts` reads, a transcript, or transcripts.
        tools: What is bound to a chat model: OpenAI definitions, LangChain tools, or schemas by name; None: the
            tools that each record brings.
        similarity: Of answers: any LangChain `Embeddings`, or a function of two texts; None takes
            `lexical_similarity`. `EmbeddingScorer` shows the paper's BGE.
        format: The file's format; None: it is recognised.
        limit: How many steps at most, from the first; None: all.
        done: Outcomes of an earlier run, which are taken over; those with an error are asked again.
        on_step: Called with each new outcome, as soon as it is there.
        timeout: Seconds that a chat model may take for one step, retries included; more than 0.

    Raises:
        InputError: The file or the agent cannot be used.
        ToolError: A tool cannot be used, the model takes none, or the agent is async only.
    """
    run = _Evaluation(agent, dataset, tools, similarity, format, limit, done, on_step, timeout)
    for step in run.to_ask():
        run.keep(perform(run.predictor, run.scorer, step))
    return run.result()


async def aevaluate_turns(
    agent: Any,
    dataset: Dataset,
    *,
    tools: Any = None,
    similarity: Any = None,
    format: Format | None = None,
    limit: int | None = None,
    done: Iterable[StepOutcome] = (),
    on_step: OnStep | None = None,
    timeout: float = 60.0,
    concurrency: int = 4,
) -> TurnEvaluation:
    """As `evaluate_turns`, without blocking and with several steps at once.

    Args:
        agent: See `evaluate_turns`; a function may be async.
        dataset: See `evaluate_turns`.
        tools: See `evaluate_turns`.
        similarity: See `evaluate_turns`.
        format: See `evaluate_turns`.
        limit: See `evaluate_turns`.
        done: See `evaluate_turns`.
        on_step: See `evaluate_turns`; the outcomes come in the order in which they are there.
        timeout: See `evaluate_turns`.
        concurrency: How many steps are asked at once; 1 or more.

    Raises:
        InputError: The file or the agent cannot be used.
        ToolError: A tool cannot be used, or the model takes none.
    """
    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}: it must be at least 1")
    run = _Evaluation(agent, dataset, tools, similarity, format, limit, done, on_step, timeout)
    works = ((step, aperform(run.predictor, run.scorer, step)) for step in run.to_ask())
    async with aclosing(at_once(works, concurrency)) as outcomes:
        async for _, outcome in outcomes:
            run.keep(outcome)
    return run.result()


class _Evaluation:
    """One evaluation: what is asked, and what came of it."""

    def __init__(
        self,
        agent: Any,
        dataset: Dataset,
        tools: Any,
        similarity: Any,
        format: Format | None,
        limit: int | None,
        done: Iterable[StepOutcome],
        on_step: OnStep | None,
        timeout: float,
    ) -> None:
        self.predictor = predictor(agent, tools=tools, timeout=timeout)
        self.scorer = scorer(similarity)
        self._steps = DatasetSteps(dataset, format=format, limit=limit)
        self._done = {(each.id, each.step): each for each in done if each.error is None}
        self._on_step = on_step
        self._order: dict[tuple[str, int], int] = {}
        self._outcomes: dict[tuple[str, int], StepOutcome] = {}

    def to_ask(self) -> Iterator[TurnStep]:
        for step in self._steps:
            key = (step.conversation, step.number)
            self._order[key] = len(self._order)
            if key in self._done:
                self._outcomes[key] = self._done[key]
            else:
                yield step

    def keep(self, outcome: StepOutcome) -> None:
        self._outcomes[outcome.id, outcome.step] = outcome
        if self._on_step is not None:
            self._on_step(outcome)

    def result(self) -> TurnEvaluation:
        ordered = sorted(self._outcomes, key=self._order.__getitem__)
        return TurnEvaluation(tuple(self._outcomes[key] for key in ordered), tuple(self._steps.broken))
