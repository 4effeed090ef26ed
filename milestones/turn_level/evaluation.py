"""Running an agent over recorded conversations, step by step, with the true history up to each. Pre-Act 4.2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.modules import describe_error
from arq_graph.errors import require_count
from arq_graph.milestones.event_loop import run_concurrently, run_in_loop
from arq_graph.milestones.recording import recording_scope
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.turn_level.actions import Action
from arq_graph.milestones.turn_level.agents import Predict, predictor
from arq_graph.milestones.turn_level.metrics import StepOutcome, TurnMetrics, lexical_similarity, turn_metrics
from arq_graph.milestones.turn_level.steps import Dataset, TurnStep, read_steps

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
    """Evaluate the turns of an agent, one after the other; the settings are those of `aevaluate_turns`.

    Raises:
        InputError: An event loop runs already: await `aevaluate_turns` there. All else is as that raises.
    """
    return run_in_loop(aevaluate_turns(agent, dataset, **{"concurrency": 1, **settings}), "aevaluate_turns")


async def aevaluate_turns(
    agent: Any,
    dataset: Dataset,
    *,
    tools: Any = None,
    limit: int | None = None,
    results: str | Path | None = None,
    depends_on: Mapping[str, str] | None = None,
    on_step: Callable[[StepOutcome], None] = lambda _: None,
    concurrency: int = 4,
) -> TurnEvaluation:
    """Ask an agent for its next action at every step of recorded conversations, and compare. Pre-Act 4.2.

    Each step is asked with the true history before it, whatever the agent said at earlier steps, and once. A step
    on which the agent raises counts as not matched, and does not stop the rest. How similar two final answers are is
    ROUGE-L, which compares words (`metrics.lexical_similarity`).

    Args:
        agent: A chat model or its name: it is given the record's instructions as system message, the history and
            the tools. Or a compiled LangGraph app: it is given the history, and no tool runs. Or a function, async or
            not, or another runnable, of the history as LangChain messages that gives a message (LangChain's or
            OpenAI's) or a text.
        dataset: A file that `read_transcripts` reads, a transcript, or transcripts.
        tools: The tools that are bound to a chat model: OpenAI definitions, LangChain tools, or schemas by name;
            None: those of each record. Other agents have their own.
        limit: How many steps at most, from the first; None: all.
        results: A JSON Lines file in which each outcome is kept as it comes. Where it holds some of the same run,
            those steps are not asked again, unless they ended in an error. None: nowhere.
        depends_on: What else the outcomes depend on, by a name that a message can show, such as the agent's file.
        on_step: Called with each `StepOutcome` as it is there, first those of an earlier run.
        concurrency: How many steps are asked at once, 1 or more.

    Returns:
        The outcomes, in the order of the dataset.

    Raises:
        InputError: The agent is none, the dataset cannot be read, or `results` holds another run.
        ToolError: One of the `tools` cannot be described.
    """
    require_count("concurrency", concurrency)
    if not isinstance(dataset, str | Path | Transcript):
        dataset = list(dataset)
    predict = predictor(agent, tools=tools)
    steps, broken = read_steps(dataset, limit)
    store = None
    if results is not None:
        of = {
            "the dataset": fingerprint(Path(dataset) if isinstance(dataset, str) else dataset),
            "the agent": agent if isinstance(agent, str) else type(agent).__name__,
            "the tools": "those of the records" if tools is None else fingerprint(tools),
        }
        store = RunStore(results, "turns", {**of, **(depends_on or {})})
    before = _kept(store)
    outcomes = {step.key: before[step.key] for step in steps if step.key in before}
    kept = len(outcomes)
    for outcome in outcomes.values():
        on_step(outcome)
    with store or nullcontext():
        remaining = [step for step in steps if step.key not in before]
        asked = ((step.key, _outcome(step, predict)) for step in remaining)
        async with aclosing(run_concurrently(asked, concurrency)) as finished:
            async for key, outcome in finished:
                outcomes[key] = outcome
                if store is not None:
                    store.append(outcome.model_dump())
                on_step(outcome)
    return TurnEvaluation(tuple(outcomes[step.key] for step in steps), tuple(broken), kept)


def _kept(store: RunStore | None) -> dict[tuple[str, int], StepOutcome]:
    """What an earlier run kept without errors; steps that cannot be read are asked again."""
    kept = {}
    for entry in store.entries() if store else ():
        with suppress(ValidationError):
            outcome = StepOutcome.model_validate(entry)
            if outcome.error is None:
                kept[outcome.id, outcome.step] = outcome
    return kept


async def _outcome(step: TurnStep, predict: Predict) -> StepOutcome:
    outcome = partial(StepOutcome, id=step.conversation, step=step.number, truth=step.truth)
    try:
        with recording_scope(f"{step.conversation} / step {step.number}"):
            predicted = Action.of(await predict(step))
    except Exception as error:
        return outcome(predicted=None, error=describe_error(error, with_location=False)[:MAX_ERROR])
    are_answers = step.truth.kind == predicted.kind == "answer"
    score = lexical_similarity(step.truth.answer, predicted.answer) if are_answers else None
    return outcome(predicted=predicted, similarity=score)
