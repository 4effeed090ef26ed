"""Run the planned conversations of an evaluation, in this process or in workers, and store each as it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
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
    make_entry,
    parse_stored_conversations,
)
from arq_graph.milestones.evaluation.suite import PlannedConversation
from arq_graph.milestones.evaluation.workers import WorkerDiedError, WorkerPool
from arq_graph.milestones.reports.records import ConversationRecord, GraphRecord, ReportedConversation
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.store import RunStore

OnConversation = Callable[[PlannedConversation, ReportedConversation], None]
_MAX_UNREACHABLE = 3
"""The run ends after so many conversations in a row in which a model was unreachable."""

Batch = Sequence[PlannedConversation]


@dataclass
class EvaluationRun:
    """The planned conversations of an evaluation; those that its store holds already aren't run again.

    Args:
        runner: Runs a conversation.
        plan: All conversations.
        concurrency: The number of conversations at the same time, in each worker.
        store: The results file.
        pool: The workers; None: this process runs the conversations.
        on_conversation: Called with each planned conversation and what the report says of it.
        conversations: The conversations so far, by id.
        unreachable_in_a_row: The number of conversations in a row in which a model was unreachable.
    """

    runner: ConversationRunner
    plan: Sequence[PlannedConversation]
    concurrency: int
    store: RunStore | None
    pool: WorkerPool | None
    on_conversation: OnConversation
    conversations: dict[str, ReportedConversation] = field(default_factory=dict, init=False)
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
            ModelUnavailableError: Models were unreachable in several conversations in a row.
        """
        self._restore_conversations()
        if self.store is not None and len(self.conversations) < len(self.plan):
            self.store.require_appendable()
        batches = self._make_batches()
        batches_at_once = self.pool.size if self.pool else self.concurrency
        async with aclosing(run_concurrently(batches, batches_at_once)) as finished:
            async for new_results in finished:
                ended: list[tuple[PlannedConversation, ConversationResult]] = []
                for batch, results in new_results:
                    ended.extend(zip(batch, results, strict=True))
                for planned, result in ended:
                    self._save(planned, result)
                for planned, result in ended:
                    self.on_conversation(planned, result.conversation)
                self._require_reachable_models([result for _, result in ended])

    def make_report(self, graphs: Mapping[str, GraphRecord], offline_roles: tuple[str, ...]) -> Report:
        """Return the report of the planned conversations.

        A conversation that the budget cut off is among the broken ones, which say where it stopped, and among the
        missing ones, which the run still needs.

        Args:
            graphs: The milestone graphs, by name.
            offline_roles: The roles that the offline model played.
        """
        records = []
        broken = []
        missing = 0
        for planned in self.plan:
            conversation = self.conversations.get(planned.id)
            if conversation is None or conversation.ended == "budget":
                missing += 1
            if isinstance(conversation, ConversationRecord):
                records.append(conversation)
            elif conversation is not None:
                broken.append(conversation)
        return Report(
            stand_ins=offline_roles,
            conversations=tuple(records),
            broken=tuple(broken),
            graphs=graphs,
            missing=missing,
            stopped=self.stop_reason if missing else None,
        )

    def _restore_conversations(self) -> None:
        if self.store is None:
            return
        finished: dict[str, ConversationRecord] = {}
        for stored in parse_stored_conversations(self.store.entries()):
            self.runner.budget.add(stored.calls, stored.cost)
            if stored.record is not None:
                finished.setdefault(stored.record.id, stored.record)
        self._require_all_planned(finished)
        for planned in self.plan:
            record = finished.get(planned.id)
            if record is not None:
                record = self.runner.label(record, planned.scenario)
                self.conversations[planned.id] = record
                self.on_conversation(planned, record)

    def _require_all_planned(self, finished: dict[str, ConversationRecord]) -> None:
        """Raise if the plan lacks runs or arms of stored conversations; scenarios may have been removed."""
        planned_ids = {planned.id for planned in self.plan}
        records = [record for record in finished.values() if record.scenario in self.runner.scenarios]
        unplanned = [record for record in records if record.id not in planned_ids]
        if not unplanned:
            return
        stored_runs = max(record.run or 1 for record in records)
        stored_arms = {record.arm or "" for record in records}
        advice = []
        if stored_runs > max(planned.run for planned in self.plan):
            advice.append(f"--runs {stored_runs} (in Python, runs=)")
        if stored_arms - {planned.arm for planned in self.plan}:
            advice.append(f"--arms {quote(','.join(sorted(stored_arms)))}")
        raise InputError(
            f"{len(unplanned)} of the stored conversations are outside this plan: "
            f"pass at least {' and '.join(advice)}"
        )

    def _make_batches(self) -> Iterator[tuple[Batch, Coroutine[Any, Any, Sequence[ConversationResult]]]]:
        """Yield each batch with the coroutine that runs it.

        `run_concurrently` takes a batch only when there is room for it, so that none begins once the run must stop. A
        batch is one conversation in this process, and up to `concurrency` conversations in a worker.
        """
        remaining = deque(planned for planned in self.plan if planned.id not in self.conversations)
        while remaining and not self.stop_reason:
            size = 1
            if self.pool is not None:
                # The last conversations are divided among all workers.
                size = min(self.concurrency, ceil(len(remaining) / self.pool.size))
            batch = [remaining.popleft() for _ in range(size)]
            yield batch, self._run_batch(batch)

    async def _run_batch(self, batch: Batch) -> Sequence[ConversationResult]:
        if self.pool is None:
            (planned,) = batch
            return [await self.runner.run_conversation(planned)]
        keys = [planned.key for planned in batch]
        try:
            results: Sequence[ConversationResult] = await self.pool.call(keys)
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
        self.conversations[planned.id] = result.conversation

    def _require_reachable_models(self, results: Sequence[ConversationResult]) -> None:
        for result in results:
            if not result.is_model_unreachable:
                self.unreachable_in_a_row = 0
                continue
            self.unreachable_in_a_row += 1
            if self.unreachable_in_a_row >= _MAX_UNREACHABLE:
                raise ModelUnavailableError(
                    f"a model was out of reach in {self.unreachable_in_a_row} conversations in a row, so the run "
                    f"ends here; the last: {result.conversation.error}"
                )
