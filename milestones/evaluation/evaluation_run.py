"""The run of an evaluation: its planned conversations, in this process or in workers, each stored as it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from math import ceil
from shlex import quote
from typing import Any

from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.milestones.concurrency import run_concurrently
from arq_graph.milestones.evaluation.conversation_runner import ConversationRunner, make_broken_conversation
from arq_graph.milestones.evaluation.results import (
    ConversationResult,
    Outcome,
    make_entry,
    read_stored_conversation,
)
from arq_graph.milestones.evaluation.suite import PlannedConversation
from arq_graph.milestones.evaluation.workers import WorkerDiedError, WorkerPool
from arq_graph.milestones.reports.records import ConversationRecord
from arq_graph.milestones.store import RunStore

OnConversation = Callable[[PlannedConversation, Outcome], None]
_MAX_UNREACHABLE = 3
"""The number of conversations in a row without a model that end a run: the others would fare no better."""

Batch = tuple[Sequence[PlannedConversation], Coroutine[Any, Any, Sequence[ConversationResult]]]


@dataclass
class EvaluationRun:
    """The planned conversations of an evaluation, of which those that a store holds aren't run again.

    Args:
        runner: Runs a conversation.
        planned: All conversations.
        concurrency: The number of conversations at the same time, in each worker.
        store: The results file.
        pool: The workers; None: this process runs the conversations.
        on_conversation: Called with each conversation and its outcome.
        outcomes: The outcomes so far, by the conversation's id.
        unreachable_in_a_row: The number of conversations in a row in which a model was out of reach.
    """

    runner: ConversationRunner
    planned: Sequence[PlannedConversation]
    concurrency: int
    store: RunStore | None
    pool: WorkerPool | None
    on_conversation: OnConversation
    outcomes: dict[str, Outcome] = field(default_factory=dict, init=False)
    unreachable_in_a_row: int = field(default=0, init=False)

    @property
    def stop_reason(self) -> str | None:
        """The reason why no other conversation may begin, or None."""
        pool_stop_reason = self.pool.stop_reason if self.pool else None
        return pool_stop_reason or self.runner.budget.stop_reason

    async def execute(self) -> None:
        """Run what isn't finished yet.

        Raises:
            InputError: The store holds runs or arms that aren't planned.
            ModelUnavailableError: Models were out of reach in several conversations in a row.
        """
        self._restore_outcomes()
        remaining = deque(planned for planned in self.planned if planned.id not in self.outcomes)
        if self.pool is None:
            batches, concurrency = self._make_single_batches(remaining), self.concurrency
        else:
            batches, concurrency = self._make_worker_batches(remaining, self.pool), self.pool.size
        async with aclosing(run_concurrently(batches, concurrency)) as finished:
            async for batch, results in finished:
                for planned, result in zip(batch, results, strict=True):
                    self._save(planned, result)
                self._require_reachable_models(results)

    def _restore_outcomes(self) -> None:
        finished = self._read_finished()
        self._require_all_planned(finished)
        for planned in self.planned:
            record = finished.get(planned.id)
            if record is not None:
                # A milestone that End required before may have been named as the goal since.
                outcome = record.model_copy(update={"goal": planned.scenario.goal})
                self.outcomes[planned.id] = outcome
                self.on_conversation(planned, outcome)

    def _read_finished(self) -> dict[str, ConversationRecord]:
        """Read the finished conversations of the store, and count what all of them spent."""
        finished: dict[str, ConversationRecord] = {}
        if self.store is None:
            return finished
        for entry in self.store.entries():
            stored = read_stored_conversation(entry)
            if stored is None:
                continue
            self.runner.budget.add(stored.calls, stored.cost)
            if stored.record is not None:
                finished.setdefault(stored.record.id, stored.record)
        return finished

    def _require_all_planned(self, finished: dict[str, ConversationRecord]) -> None:
        """Refuse to leave out finished runs and arms; scenarios may be removed from the suite."""
        records = [record for record in finished.values() if record.scenario in self.runner.scenarios]
        planned_ids = {planned.id for planned in self.planned}
        left_out = [record for record in records if record.id not in planned_ids]
        if not left_out:
            return
        runs = max(record.run or 1 for record in records)
        arms = {record.arm or "" for record in records}
        advice = []
        if runs > max(planned.run for planned in self.planned):
            advice.append(f"--runs {runs} (in Python, runs=)")
        if arms - {planned.arm for planned in self.planned}:
            advice.append(f"--arms {quote(','.join(sorted(arms)))}")
        raise InputError(
            f"{len(left_out)} of the stored conversations are outside this plan: "
            f"pass at least {' and '.join(advice)}"
        )

    def _make_single_batches(self, remaining: deque[PlannedConversation]) -> Iterator[Batch]:
        while remaining and not self.stop_reason:
            batch = [remaining.popleft()]
            yield batch, self._run_batch(batch)

    def _make_worker_batches(
        self, remaining: deque[PlannedConversation], pool: WorkerPool
    ) -> Iterator[Batch]:
        while remaining and not self.stop_reason:
            # The last conversations are divided among all workers.
            size = min(self.concurrency, ceil(len(remaining) / pool.size))
            batch = [remaining.popleft() for _ in range(size)]
            yield batch, self._run_batch_in_worker(batch, pool)

    async def _run_batch(self, batch: Sequence[PlannedConversation]) -> Sequence[ConversationResult]:
        return [await self.runner.run_conversation(planned) for planned in batch]

    async def _run_batch_in_worker(
        self, batch: Sequence[PlannedConversation], pool: WorkerPool
    ) -> Sequence[ConversationResult]:
        keys = [(planned.arm, planned.scenario.name, planned.run, planned.seed) for planned in batch]
        try:
            results: Sequence[ConversationResult] = await pool.call(keys)
        except WorkerDiedError as error:
            # What they spent is unknown.
            reason = f"its worker died: {error}"
            return [ConversationResult(make_broken_conversation(planned, reason)) for planned in batch]
        for result in results:
            self.runner.budget.add(result.calls, result.cost)
        return results

    def _save(self, planned: PlannedConversation, result: ConversationResult) -> None:
        if self.store is not None:
            self.store.append(make_entry(planned, result))
        self.outcomes[planned.id] = result.outcome
        self.on_conversation(planned, result.outcome)

    def _require_reachable_models(self, results: Sequence[ConversationResult]) -> None:
        for result in results:
            self.unreachable_in_a_row = self.unreachable_in_a_row + 1 if result.is_model_unreachable else 0
            if self.unreachable_in_a_row >= _MAX_UNREACHABLE:
                raise ModelUnavailableError(
                    f"a model was out of reach in {self.unreachable_in_a_row} conversations in a row, so the run "
                    f"ends here; the last: {result.outcome.error}"
                )
