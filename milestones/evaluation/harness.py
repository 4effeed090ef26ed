"""The conversations of a run: each held and measured, here or by workers, and kept as it ends."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import ceil
from shlex import quote
from typing import Any
from uuid import uuid4

from arq_graph.agent.modules import describe_error
from arq_graph.errors import ArqGraphError, InputError, ModelUnavailableError
from arq_graph.milestones.evaluation.arms import Arms, PreparedApp
from arq_graph.milestones.evaluation.conversation import Conversation, aconverse, is_model_failure
from arq_graph.milestones.evaluation.results import (
    ConversationResult,
    Outcome,
    entry_of,
    read_stored_conversation,
    transcript_of,
    written,
)
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.spending import SpendingLimit
from arq_graph.milestones.evaluation.suite import PlannedConversation
from arq_graph.milestones.evaluation.workers import Job, call
from arq_graph.milestones.event_loop import run_concurrently
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.recording import recording_scope
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    Ended,
    StepUsage,
    conversation_record,
)
from arq_graph.milestones.scoring import ascore
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Call, Message, Result, Transcript
from arq_graph.reasoning.usage import UsageTracker, track_usage

MOST_OUT_OF_REACH = 3
"""So many conversations in a row whose model is out of reach end a run: the others would fare no better.

So do as many pieces of work in a row whose worker died.
"""

OnConversation = Callable[[PlannedConversation, Outcome], None]
Begin = Callable[[], Executor]


@dataclass
class Crew:
    """Workers elsewhere: what begins one, how many there are, and how many conversations each holds at once."""

    begin: Begin
    workers: int
    concurrency: int
    job: Job
    idle: list[Executor]


Work = tuple[Sequence[PlannedConversation], Coroutine[Any, Any, Sequence[ConversationResult]]]


@dataclass
class Run:
    """The conversations of a run, each held and measured; the settings are those of `aevaluate`."""

    arms: Arms
    scenarios: Mapping[str, Scenario]
    graphs: Mapping[str, str]
    user_model: Any
    judge: Judge | None
    limit: SpendingLimit
    suite: str
    dead: int = 0  # pieces of work in a row whose worker died
    broken: str | None = None  # why workers can do nothing more

    @property
    def stop_reason(self) -> str | None:
        """Why nothing more may begin; None while the run may continue."""
        return self.broken or self.limit.exceeded

    async def through(
        self,
        planned: Sequence[PlannedConversation],
        concurrency: int,
        kept: RunStore | None,
        crew: Crew | None,
        done: OnConversation,
    ) -> dict[str, Outcome]:
        """Hold what is not kept yet, here or by a crew, and keep it; an error ends them all."""
        outcomes: dict[str, Outcome] = {}
        before = self._read(kept, planned)
        for one in planned:
            if record := before.get(one.id):
                # It may have been named since, if End required it before.
                outcomes[one.id] = record.model_copy(update={"goal": one.scenario.goal})
                done(one, outcomes[one.id])
        works = self._works(deque(one for one in planned if one.id not in outcomes), crew)
        lost = 0
        async with aclosing(run_concurrently(works, crew.workers if crew else concurrency)) as finished:
            async for ones, found in finished:
                for one, held in zip(ones, found, strict=True):
                    if kept:
                        kept.append(entry_of(one, held))
                    outcomes[one.id] = held.outcome
                    done(one, held.outcome)
                for held in found:
                    lost = lost + 1 if held.is_unreached else 0
                    if lost >= MOST_OUT_OF_REACH:
                        raise ModelUnavailableError(
                            f"a model was out of reach in {lost} conversations in a row, so the run ends here; the "
                            f"last: {held.outcome.error}"
                        )
        return outcomes

    def _read(
        self, kept: RunStore | None, planned: Sequence[PlannedConversation]
    ) -> dict[str, ConversationRecord]:
        """Read what is finished already, including runs and arms that were not given again."""
        before: dict[str, ConversationRecord] = {}
        for entry in filter(None, map(read_stored_conversation, kept.entries() if kept else ())):
            self.limit.add(entry.calls, entry.cost)
            if entry.record is not None:
                before.setdefault(entry.record.id, entry.record)  # one that was held twice counts once
        known = [each for each in before.values() if each.scenario in self.scenarios]
        if left_out := {each.id for each in known} - {one.id for one in planned}:
            runs, arms = max(each.run or 1 for each in known), {each.arm or "" for each in known}
            lacking = [f"--runs {runs} (in Python, runs=)"] if runs > max(one.run for one in planned) else []
            if arms - {one.arm for one in planned}:
                lacking.append(f"--arms {quote(','.join(sorted(arms)))}")
            raise InputError(
                f"{len(left_out)} of the conversations that are kept would be left out: give {' and '.join(lacking)}, "
                "or more"
            )
        return before

    def _works(self, still: deque[PlannedConversation], crew: Crew | None) -> Iterator[Work]:
        while still:
            if self.stop_reason:
                return
            if crew is None:
                ones = [still.popleft()]
                yield ones, self._hold_all(ones)
            else:
                count = min(crew.concurrency, ceil(len(still) / crew.workers))
                ones = [still.popleft() for _ in range(count)]
                yield ones, self._by_worker(ones, crew.idle.pop(), crew)

    async def _by_worker(
        self, ones: Sequence[PlannedConversation], worker: Executor, crew: Crew
    ) -> Sequence[ConversationResult]:
        """Have conversations held by a worker; if it dies, only these are lost."""
        plans = [(one.arm, one.scenario.name, one.run, one.seed) for one in ones]
        try:
            # Dask takes equal pieces of work for one, so each has a number of its own.
            work = worker.submit(call, crew.job, plans, uuid4().hex)
            found: Sequence[ConversationResult] = await asyncio.wrap_future(work)
            self.dead = 0
        except ArqGraphError:
            raise  # no worker could do it
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            worker = crew.begin()
            self.dead += 1
            if self.dead >= MOST_OUT_OF_REACH:
                self.broken = (
                    f"workers died {self.dead} times in a row, the last with {describe_error(error)}"
                )
            found = [
                ConversationResult(_broken(one, f"its worker died: {describe_error(error)}"), 0, 0.0)
                for one in ones
            ]
        crew.idle.append(worker)
        for held in found:
            self.limit.add(held.calls, held.cost)
        return found

    async def in_worker(
        self, plans: Sequence[tuple[str, str, int, int]], _number: str
    ) -> Sequence[ConversationResult]:
        """In a worker: hold conversations at once; the limit is watched by the process that sent them."""
        # LangChain would log that a conversation's limit of calls was reached; the report says so.
        logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)
        planned = [
            PlannedConversation(arm, self.scenarios[name], run, seed) for arm, name, run, seed in plans
        ]
        return await replace(self, limit=self.limit.for_worker())._hold_all(planned)

    async def _hold_all(self, planned: Sequence[PlannedConversation]) -> Sequence[ConversationResult]:
        return await asyncio.gather(*map(self._hold, planned))

    async def _hold(self, one: PlannedConversation) -> ConversationResult:
        """Hold one conversation; whatever goes wrong stands in the result."""
        with recording_scope(f"{self.suite} / {one.id}"), track_usage() as used:
            self.limit.running.append(used)
            outcome, messages, failure = await self._held(one)
            self.limit.running.remove(used)
        cost = self.limit.cost_of(used)
        self.limit.add(used.calls, cost)
        is_unreached = isinstance(outcome, BrokenConversation) and is_model_failure(failure, used.failures)
        return ConversationResult(outcome, used.calls, cost, messages, is_unreached)

    async def _held(
        self, one: PlannedConversation
    ) -> tuple[Outcome, Sequence[Mapping[str, Any]], BaseException | None]:
        spent, trials, make = UsageTracker(), 0, None
        while True:
            trials += 1
            try:
                made = self.arms.prepare_app(one, make)
                user = one.scenario.make_user(one.seed, self.user_model)
            except (Exception, SystemExit) as error:
                return _broken(one, f"it could not begin: {describe_error(error)}"), (), None
            thread = f"{one.id} / {uuid4().hex[:8]}"  # one that is kept for good must not be gone on with
            held = await aconverse(
                made.app,
                user,
                limits=one.scenario.limits,
                thread_id=thread,
                should_stop=lambda: self.stop_reason is not None,
                history=one.scenario.messages_before,
                variables=one.scenario.variables,
            )
            await made.delete_thread(thread)
            spent.include(held.usage)
            is_spent = self.stop_reason is not None
            with spent.listen(), UsageTracker(0 if is_spent else None).listen():
                try:
                    is_over = held.ended in ("limit", "error")
                    make = None if is_over else await self.arms.find_next_trial(made, held.messages)
                except Exception as error:
                    held.ended, held.failure, make = "limit" if is_spent else "error", error, None
            if make is None:
                break
        held.usage = spent
        messages = written(held.messages)
        try:
            outcome = await self._outcome(one, made, held, messages, trials=trials)
        except Exception as error:  # a judge or a check of the user's own may raise anything
            return _broken(one, f"it could not be measured: {describe_error(error)}"), messages, error
        return outcome, messages, held.failure

    async def _outcome(
        self,
        one: PlannedConversation,
        made: PreparedApp,
        held: Conversation,
        messages: Sequence[Mapping[str, Any]],
        *,
        trials: int,
    ) -> Outcome:
        if held.ended == "limit":
            turns = f"{held.turns} turn{'' if held.turns == 1 else 's'}"
            return _broken(one, f"stopped after {turns}: {self.stop_reason}", "limit")
        if held.failure is not None and (
            held.is_user_failure or is_model_failure(held.failure, held.usage.failures)
        ):
            who = "the simulated user failed" if held.is_user_failure else "the model is out of reach"
            return _broken(one, f"{who}: {describe_error(held.failure)}")
        if not held.turns:
            return _broken(one, "nothing was said", held.ended)
        scenario = one.scenario
        transcript = transcript_of(one, messages, made.agent)
        tools = transcript.tools or None
        return conversation_record(
            transcript,
            await ascore(scenario.measured_graph, transcript, tools=tools, judge=self.judge),
            graph=self.graphs[scenario.name],
            arm=one.arm,
            scenario=scenario.name,
            goal=scenario.goal,
            probes=scenario.probes,
            twin=scenario.twin,
            expected=_expected(scenario),
            user=scenario.kind,
            run=one.run,
            seed=one.seed,
            outcome=made.read_outcome(),
            trials=trials,
            **_moves(transcript, held.moves),
            ended=held.ended,
            error=held.error,
            model_calls=held.usage.calls,
            input_tokens=held.usage.total["input_tokens"],
            output_tokens=held.usage.total["output_tokens"],
            steps={
                name: StepUsage(
                    calls=used.calls,
                    input_tokens=used.usage["input_tokens"] if used.usage else 0,
                    output_tokens=used.usage["output_tokens"] if used.usage else 0,
                )
                for name, used in held.usage.by_module.items()
            },
            turn_seconds=tuple(round(each, 4) for each in held.turn_seconds),
        )


def _moves(transcript: Transcript, turns: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The fields of a record about an agent's moves; `turns` are those that its app's channel `moves` tells of.

    What was said and done stands in the transcript of any app. Only a speaker tells of its thoughts.
    """
    told = [move for moves in turns.values() for move in moves]
    events = transcript.measured_events
    thoughts = {"think": sum(move.get("kind") == "think" for move in told)} if turns else {}
    moves = {
        **thoughts,
        "speak": sum(isinstance(event, Message) and event.speaker == "agent" for event in events),
        "act": sum(isinstance(event, Call) for event in events),
        "invalid": sum(isinstance(event, Result) and event.failed for event in events),
    }
    labels = {"speech": "category", "dialogue_acts": "dialogue_act"}
    counts = {
        name: Counter(str(move[label]) for move in told if move.get(label)) for name, label in labels.items()
    }
    return {"moves": moves, **counts}


def _expected(scenario: Scenario) -> dict[str, Any]:
    """The expectation for readers of the report, without the examples."""
    expected = scenario.expect
    return (
        expected.model_dump(mode="json", exclude={"reply", "wrong"}, exclude_defaults=True)
        if expected
        else {}
    )


def _broken(one: PlannedConversation, error: str, ended: Ended | None = "error") -> BrokenConversation:
    return BrokenConversation(
        error=f"{one.id}: {error}", arm=one.arm, scenario=one.scenario.name, run=one.run, ended=ended
    )
