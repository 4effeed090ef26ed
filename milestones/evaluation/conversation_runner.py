"""Run a planned conversation, repeat it if its arm asks for another trial, and measure it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import uuid4

from arq_graph.errors import describe_error
from arq_graph.milestones.concurrency import gather_concurrently
from arq_graph.milestones.evaluation.arms import AppFactory, Arms, PreparedApp, read_world_outcome
from arq_graph.milestones.evaluation.budget import Budget
from arq_graph.milestones.evaluation.conversation import (
    SimulatedConversation,
    aconverse,
    is_over_call_limit,
)
from arq_graph.milestones.evaluation.results import ConversationResult, build_transcript, dump_messages
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import PlanKey, PlannedConversation
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.recording_scope import recording_scope
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    Ended,
    StepUsage,
    make_conversation_record,
)
from arq_graph.milestones.scoring import ascore
from arq_graph.milestones.transcript import Call, Message, Result, Transcript
from arq_graph.milestones.users.user_spec import User
from arq_graph.reasoning.failures import is_model_failure
from arq_graph.reasoning.usage import UsageTracker


class _Trial(NamedTuple):
    """An app and a user, ready for one trial of a conversation."""

    prepared: PreparedApp
    user: User


@dataclass(frozen=True)
class ConversationRunner:
    """Runs and measures the conversations of a suite, in this process or in a worker.

    Args:
        suite_name: The name of the suite.
        scenarios: Its scenarios, by name.
        graph_names: The names of their milestone graphs in the report, by scenario.
        arms: The arms.
        user_model: The model that plays the users.
        judge: Judges milestones that code can't check.
        budget: The model calls and the money that the run may spend.
    """

    suite_name: str
    scenarios: Mapping[str, Scenario]
    graph_names: Mapping[str, str]
    arms: Arms
    user_model: Any
    judge: Judge | None
    budget: Budget

    async def run_conversation(self, planned: PlannedConversation) -> ConversationResult:
        """Run and measure a conversation; an error is reported in the result.

        Raises:
            InputError: The cost is limited, and that of a call is unknown.
        """
        names = (self.suite_name, planned.scenario.name, planned.arm, str(planned.run))
        with recording_scope(*names), self.budget.track() as total_usage:
            result = await self._run_trials(planned, total_usage)
        return replace(result, calls=total_usage.calls, cost=self.budget.compute_cost(total_usage))

    async def run_in_worker(self, keys: Sequence[PlanKey]) -> Sequence[ConversationResult]:
        """Run a batch of conversations at once; the process that sent them watches the budget."""
        runner = replace(self, budget=self.budget.make_worker_budget())
        conversations = []
        for arm, scenario_name, run, seed in keys:
            planned = PlannedConversation(arm, self.scenarios[scenario_name], run, seed)
            conversations.append(runner.run_conversation(planned))
        return await gather_concurrently(conversations)

    def label(self, record: ConversationRecord, scenario: Scenario) -> ConversationRecord:
        """Return a record with all that a scenario says of its conversations, but that doesn't shape them.

        So a run that is resumed has today's labels. A goal that End required anyway is only a label, too.
        """
        labels = {
            "graph": self.graph_names[scenario.name],
            "use_case": scenario.use_case,
            "task": scenario.task or scenario.name,
            "goal": scenario.goal,
            "probes": scenario.probes,
            "twin": scenario.twin,
            "expected": _dump_expectation(scenario),
            "user": scenario.user_kind,
        }
        return record.model_copy(update=labels)

    async def _run_trials(
        self, planned: PlannedConversation, total_usage: UsageTracker
    ) -> ConversationResult:
        """Run the conversation as often as its arm asks for another trial, and measure the last trial.

        Args:
            planned: The conversation.
            total_usage: The model calls of app, user and judge.
        """
        try:
            trial = self._prepare_trial(planned)
        except (Exception, SystemExit) as error:
            reason = f"it could not begin: {describe_error(error)}"
            return ConversationResult(make_broken_conversation(planned, reason))
        app_usage = UsageTracker()
        trials = 1
        while True:
            conversation = await self._run_trial(planned, trial)
            app_usage.include(conversation.app_usage)
            is_over_budget = self.budget.stop_reason is not None
            try:
                next_trial = await self._prepare_next_trial(
                    planned, trial, conversation, app_usage, is_over_budget
                )
            except (Exception, SystemExit) as error:
                is_refused_call = is_over_budget and is_over_call_limit(error)
                conversation.ended = "budget" if is_refused_call else "error"
                conversation.failure = error
                break
            if next_trial is None:
                break
            trial = next_trial
            trials += 1
        # The record has the calls of all trials, although only the last one is measured. `include` is a union, so that
        # no call counts twice.
        conversation.app_usage.include(app_usage)
        return await self._measure(planned, trial.prepared, conversation, trials, total_usage)

    def _prepare_trial(
        self, planned: PlannedConversation, next_trial_factory: AppFactory | None = None
    ) -> _Trial:
        prepared = self.arms.prepare_app(planned, next_trial_factory)
        return _Trial(prepared, planned.scenario.make_user(planned.seed, self.user_model))

    async def _run_trial(self, planned: PlannedConversation, trial: _Trial) -> SimulatedConversation:
        # A thread that is stored for good must not be continued by another run.
        thread_id = f"{planned.id} / {uuid4().hex[:8]}"
        conversation = await aconverse(
            trial.prepared.app,
            trial.user,
            limits=planned.scenario.limits,
            thread_id=thread_id,
            should_stop=lambda: self.budget.stop_reason is not None,
            history=planned.scenario.history_messages,
            variables=planned.scenario.variables,
            agent=trial.prepared.agent,
        )
        await trial.prepared.delete_thread(thread_id)
        return conversation

    async def _prepare_next_trial(
        self,
        planned: PlannedConversation,
        trial: _Trial,
        conversation: SimulatedConversation,
        app_usage: UsageTracker,
        is_over_budget: bool,
    ) -> _Trial | None:
        """Ask the arm for another trial, and prepare it; None if this was the last. Raises what the arm raises."""
        if conversation.ended in ("budget", "error"):
            return None
        # Over budget, the arm may still decide against another trial, but it can't call a model.
        call_limit = UsageTracker(max_calls=0).listen() if is_over_budget else nullcontext()
        with app_usage.listen(), call_limit:
            factory = await self.arms.ask_for_next_trial(trial.prepared, conversation.messages)
        if factory is None:
            return None
        return self._prepare_trial(planned, factory)

    async def _measure(
        self,
        planned: PlannedConversation,
        prepared: PreparedApp,
        conversation: SimulatedConversation,
        trials: int,
        total_usage: UsageTracker,
    ) -> ConversationResult:
        messages = dump_messages(conversation.messages)
        problem = self._find_problem(conversation)
        if problem is not None:
            broken = make_broken_conversation(planned, problem, conversation.ended)
            # In `_find_problem` only the app's model counts, since the conversation is about that. But a failure of any
            # model, also that of the simulated user or the judge, counts towards stopping the run.
            is_model_unreachable = is_model_failure(conversation.failure, total_usage.failures)
            return ConversationResult(broken, messages, is_model_unreachable=is_model_unreachable)
        try:
            record = await self._make_record(planned, prepared, conversation, trials)
        except Exception as error:  # custom judges and checks may raise anything
            broken = make_broken_conversation(planned, f"it could not be measured: {describe_error(error)}")
            is_model_unreachable = is_model_failure(error, total_usage.failures)
            return ConversationResult(broken, messages, is_model_unreachable=is_model_unreachable)
        return ConversationResult(record, messages)

    def _find_problem(self, conversation: SimulatedConversation) -> str | None:
        """Return why a conversation says nothing about its arm, or None."""
        if conversation.ended == "budget":
            count = conversation.user_message_count
            plural = "" if count == 1 else "s"
            return f"stopped after {count} message{plural} of the user: {self.budget.stop_reason}"
        failure = conversation.failure
        if failure is not None and conversation.is_user_failure:
            return f"the simulated user failed: {describe_error(failure)}"
        if failure is not None and is_model_failure(failure, conversation.app_usage.failures):
            return f"the model is out of reach: {describe_error(failure)}"
        if not conversation.user_message_count:
            return "the user never spoke"
        return None

    async def _make_record(
        self,
        planned: PlannedConversation,
        prepared: PreparedApp,
        conversation: SimulatedConversation,
        trials: int,
    ) -> ConversationRecord:
        scenario = planned.scenario
        # The developer's function may wait for a database.
        outcome = await asyncio.to_thread(read_world_outcome, prepared.world)
        transcript = build_transcript(planned, conversation.messages, prepared.agent, prepared.world)
        tools = transcript.tools or None
        score = await ascore(scenario.measured_graph, transcript, tools=tools, judge=self.judge)
        tokens = conversation.app_usage.total
        record = make_conversation_record(
            transcript,
            score,
            arm=planned.arm,
            scenario=scenario.name,
            run=planned.run,
            seed=planned.seed,
            outcome=outcome,
            trials=trials,
            moves=_count_moves(transcript, conversation.moves),
            speech=_count_labels(conversation.moves, "category"),
            dialogue_acts=_count_labels(conversation.moves, "dialogue_act"),
            ended=conversation.ended,
            error=conversation.error,
            model_calls=conversation.app_usage.calls,
            input_tokens=tokens["input_tokens"],
            output_tokens=tokens["output_tokens"],
            steps=_make_step_usages(conversation.app_usage),
            turn_seconds=tuple(round(seconds, 4) for seconds in conversation.turn_seconds),
        )
        return self.label(record, scenario)


def make_broken_conversation(
    planned: PlannedConversation, problem: str, ended: Ended | None = "error"
) -> BrokenConversation:
    """Return what a report says of a conversation that couldn't be run or measured."""
    return BrokenConversation(
        error=f"{planned.id}: {problem}",
        arm=planned.arm,
        scenario=planned.scenario.name,
        run=planned.run,
        ended=ended,
    )


def _count_moves(
    transcript: Transcript, moves_by_turn: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, int]:
    """Count the agent's moves by kind: "speak", "act", and "invalid", the acts that were refused or failed.

    These are counted in the transcript, which any app has. Thoughts ("think") are only in the app's channel `moves`.
    """
    counts = {"speak": 0, "act": 0, "invalid": 0}
    for event in transcript.measured_events:
        if isinstance(event, Message) and event.speaker == "agent":
            counts["speak"] += 1
        elif isinstance(event, Call):
            counts["act"] += 1
        elif isinstance(event, Result) and event.failed:
            counts["invalid"] += 1
    if not moves_by_turn:
        return counts
    thought_count = _count_labels(moves_by_turn, "kind")["think"]
    return {"think": thought_count} | counts


def _count_labels(moves_by_turn: Mapping[str, Sequence[Mapping[str, Any]]], field: str) -> Counter[str]:
    """Count the values that a field has in the app's channel `moves`, such as the categories of its speech."""
    counts: Counter[str] = Counter()
    for moves in moves_by_turn.values():
        for move in moves:
            if move.get(field):
                counts[str(move[field])] += 1
    return counts


def _make_step_usages(usage: UsageTracker) -> dict[str, StepUsage]:
    """Return the calls and tokens of each step, such as the matcher."""
    step_usages = {}
    for step, tracked in usage.by_module.items():
        tokens = tracked.usage or {"input_tokens": 0, "output_tokens": 0}
        step_usages[step] = StepUsage(
            calls=tracked.calls,
            input_tokens=tokens["input_tokens"],
            output_tokens=tokens["output_tokens"],
        )
    return step_usages


def _dump_expectation(scenario: Scenario) -> dict[str, Any]:
    """Return what the report shows of the expectation: all but the example replies."""
    if scenario.expect is None:
        return {}
    return scenario.expect.model_dump(mode="json", exclude={"reply", "wrong"}, exclude_defaults=True)
