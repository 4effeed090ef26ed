"""Ask an agent for its next action at every step of recorded conversations. Pre-Act 4.2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import describe_error, require_count
from arq_graph.milestones.concurrency import run_concurrently
from arq_graph.milestones.event_loop import make_sync
from arq_graph.milestones.recording_scope import recording_scope
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.turn_level.actions import Action
from arq_graph.milestones.turn_level.predictors import Predictor, make_predictor
from arq_graph.milestones.turn_level.turn_metrics import (
    StepOutcome,
    TurnMetrics,
    compute_turn_metrics,
    measure_similarity,
)
from arq_graph.milestones.turn_level.turn_steps import Dataset, TurnStep, read_steps

MAX_ERROR = 500


@dataclass(frozen=True)
class TurnEvaluation:
    """The actions of an agent at every step in the order of the dataset, and the records that could not be read.

    `resumed` is the number of outcomes that an earlier run had stored in `results`.
    """

    outcomes: tuple[StepOutcome, ...]
    broken: tuple[BrokenConversation, ...] = ()
    resumed: int = 0

    @cached_property
    def metrics(self) -> TurnMetrics:
        """The figures over all steps."""
        return compute_turn_metrics(self.outcomes)


async def aevaluate_turns(
    agent: Any,
    dataset: Dataset,
    *,
    tools: Any = None,
    limit: int | None = None,
    results: str | Path | None = None,
    depends_on: Mapping[str, str] | None = None,
    on_step: Callable[[StepOutcome], None] = lambda _: None,
    concurrency: int = 1,
) -> TurnEvaluation:
    """Ask an agent for its next action at every step of recorded conversations, and compare. Pre-Act 4.2.

    Each step is asked once, with the true history before it, whatever the agent said at earlier steps. A step on which
    the agent raises counts as not matched, and does not stop the rest. The similarity of two final answers is ROUGE-L,
    which compares words (`turn_metrics.measure_similarity`).

    Args:
        agent: A chat model or its name: it is given the record's instructions as system message, the history and
            the tools. Or a compiled LangGraph app: it is given the history, and no tool runs. Or a function, async or
            not, or another runnable, of the history as LangChain messages that gives a message (LangChain's or
            OpenAI's) or a text.
        dataset: A file that `read_transcripts` reads, a transcript, or transcripts.
        tools: The tools that are bound to a chat model: OpenAI definitions, LangChain tools, or schemas by name;
            None: those of each record. Other agents have their own.
        limit: The number of steps at most, from the first; None: all.
        results: A JSON Lines file in which each outcome is stored as it comes. Steps that it holds from the same run
            are not asked again, unless they ended in an error. None: outcomes are not stored.
        depends_on: Anything else that the outcomes depend on, such as the agent's file, by the name that errors show.
        on_step: Called with each `StepOutcome` as it comes, first those of an earlier run.
        concurrency: The number of steps that are asked at once, 1 or more.

    Raises:
        InputError: The agent can't be asked, the dataset cannot be read, or `results` holds another run.
        ToolError: One of the `tools` cannot be described.
    """
    require_count("concurrency", concurrency)
    if isinstance(dataset, str):
        dataset = Path(dataset)
    elif not isinstance(dataset, Path | Transcript):
        dataset = list(dataset)
    predict = make_predictor(agent, tools=tools)
    steps, broken = read_steps(dataset, limit)
    store = None
    if results is not None:
        fingerprints = {
            "the dataset": fingerprint(dataset),
            "the agent": agent if isinstance(agent, str) else type(agent).__name__,
            "the tools": "those of the records" if tools is None else fingerprint(tools),
        }
        store = RunStore(results, "turns", {**fingerprints, **(depends_on or {})})
    outcomes: dict[tuple[str, int], StepOutcome] = {}
    remaining_steps = []
    with store or nullcontext():
        stored_outcomes = _read_stored_outcomes(store)
        for step in steps:
            if step.key in stored_outcomes:
                outcomes[step.key] = stored_outcomes[step.key]
                on_step(outcomes[step.key])
            else:
                remaining_steps.append(step)
        resumed = len(outcomes)
        if store is not None and remaining_steps:
            store.require_appendable()
        predictions = ((step.key, _evaluate_step(step, predict)) for step in remaining_steps)
        async with aclosing(run_concurrently(predictions, concurrency)) as finished:
            async for new_outcomes in finished:
                outcomes.update(new_outcomes)
                if store is not None:
                    for _, outcome in new_outcomes:
                        store.append(outcome.model_dump())
                for _, outcome in new_outcomes:
                    on_step(outcome)
    return TurnEvaluation(tuple(outcomes[step.key] for step in steps), tuple(broken), resumed)


evaluate_turns = make_sync(aevaluate_turns, "evaluate_turns")


def _read_stored_outcomes(store: RunStore | None) -> dict[tuple[str, int], StepOutcome]:
    """Return the outcomes of an earlier run, without errors and without those that can't be read."""
    outcomes: dict[tuple[str, int], StepOutcome] = {}
    if store is None:
        return outcomes
    for entry in store.entries():
        with suppress(ValidationError):
            outcome = StepOutcome.model_validate(entry)
            if outcome.error is None:
                outcomes[outcome.id, outcome.step] = outcome
    return outcomes


async def _evaluate_step(step: TurnStep, predict: Predictor) -> StepOutcome:
    make_outcome = partial(StepOutcome, id=step.conversation, step=step.number, truth=step.truth)
    try:
        with recording_scope(step.conversation, f"step {step.number}"):
            predicted = Action.from_output(await predict(step))
    except Exception as error:
        return make_outcome(predicted=None, error=describe_error(error, with_location=False)[:MAX_ERROR])
    similarity = None
    if step.truth.kind == predicted.kind == "answer":
        similarity = measure_similarity(step.truth.answer, predicted.answer)
    return make_outcome(predicted=predicted, similarity=similarity)
