"""Run a planned conversation, repeat it if its arm asks for another trial, and measure it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import uuid4

from arq_graph.errors import describe_error
from arq_graph.milestones.evaluation.arms import AppFactory, Arms, PreparedApp, read_world_outcome
from arq_graph.milestones.evaluation.budget import Budget
from arq_graph.milestones.evaluation.conversation import SimulatedConversation, aconverse
from arq_graph.milestones.evaluation.results import ConversationResult, build_transcript, dump_messages
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import PlanKey, PlannedConversation
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.recording import recording_scope
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
        with recording_scope(f"{self.suite_name} / {planned.id}"), self.budget.track() as total_usage:
            result = await self._run_trials(planned, total_usage)
        return replace(result, calls=total_usage.calls, cost=self.budget.compute_cost(total_usage))

    async def run_in_worker(self, keys: Sequence[PlanKey]) -> Sequence[ConversationResult]:
        """Run a batch of conversations at once; the process that sent them watches the budget."""
        # LangChain would log that a conversation's limit of calls was reached; the report says so.
        logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)
        runner = replace(self, budget=self.budget.require_prices_only())
        conversations = []
        for arm, scenario_name, run, seed in keys:
            planned = PlannedConversation(arm, self.scenarios[scenario_name], run, seed)
            conversations.append(runner.run_conversation(planned))
        return await asyncio.gather(*conversations)

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
            next_trial = await self._prepare_next_trial(planned, trial, conversation, app_usage)
            if next_trial is None:
                break
            trial = next_trial
            trials += 1
        # The record has the calls of all trials, although only the last one is measured.
        conversation.app_usage.include(app_usage)
        return await self._measure(planned, trial.prepared, conversation, trials, total_usage)

    def _prepare_trial(self, planned: PlannedConversation, retry_factory: AppFactory | None = None) -> _Trial:
        prepared = self.arms.prepare_app(planned, retry_factory)
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
        )
        await trial.prepared.delete_thread(thread_id)
        return conversation

    async def _prepare_next_trial(
        self,
        planned: PlannedConversation,
        trial: _Trial,
        conversation: SimulatedConversation,
        app_usage: UsageTracker,
    ) -> _Trial | None:
        """Ask the arm for another trial, and prepare it; None if this was the last.

        If that raises, the conversation counts as failed.
        """
        if conversation.ended in ("limit", "error"):
            return None
        is_over_budget = self.budget.stop_reason is not None
        # Over budget, the arm may still decide against another trial, but it can't call a model.
        call_limit = UsageTracker(max_calls=0).listen() if is_over_budget else nullcontext()
        try:
            with app_usage.listen(), call_limit:
                retry_factory = await self.arms.ask_for_retry(trial.prepared, conversation.messages)
            if retry_factory is None:
                return None
            return self._prepare_trial(planned, retry_factory)
        except (Exception, SystemExit) as error:
            conversation.ended = "limit" if is_over_budget else "error"
            conversation.failure = error
            return None

    async def _measure(
        self,
        planned: PlannedConversation,
        prepared: PreparedApp,
        conversation: SimulatedConversation,
        trials: int,
        total_usage: UsageTracker,
    ) -> ConversationResult:
        messages = dump_messages(conversation.messages)
        failure = conversation.failure
        ended = conversation.ended
        problem = self._find_problem(conversation)
        if problem is None:
            try:
                record = await self._make_record(planned, prepared, conversation, trials)
                return ConversationResult(record, messages)
            except Exception as error:  # a judge or a check of the user's own may raise anything
                failure = error
                ended = "error"
                problem = f"it could not be measured: {describe_error(error)}"
        broken = make_broken_conversation(planned, problem, ended)
        # Unlike in `_find_problem`, the models of the user and the judge count, too.
        is_model_unreachable = is_model_failure(failure, total_usage.failures)
        return ConversationResult(broken, messages, is_model_unreachable=is_model_unreachable)

    def _find_problem(self, conversation: SimulatedConversation) -> str | None:
        """Return why a conversation says nothing about its arm, or None."""
        if conversation.ended == "limit":
            count = conversation.user_message_count
            return f"stopped after {count} turn{'' if count == 1 else 's'}: {self.budget.stop_reason}"
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
        transcript = build_transcript(planned, conversation.messages, prepared.agent)
        tools = transcript.tools or None
        score = await ascore(scenario.measured_graph, transcript, tools=tools, judge=self.judge)
        counts = _count_moves(transcript, conversation.moves)
        tokens = conversation.app_usage.total
        return make_conversation_record(
            transcript,
            score,
            graph=self.graph_names[scenario.name],
            arm=planned.arm,
            scenario=scenario.name,
            goal=scenario.goal,
            probes=scenario.probes,
            twin=scenario.twin,
            expected=_dump_expectation(scenario),
            user=scenario.kind,
            run=planned.run,
            seed=planned.seed,
            outcome=read_world_outcome(prepared.world),
            trials=trials,
            moves=counts.moves,
            speech=counts.categories,
            dialogue_acts=counts.dialogue_acts,
            ended=conversation.ended,
            error=conversation.error,
            model_calls=conversation.app_usage.calls,
            input_tokens=tokens["input_tokens"],
            output_tokens=tokens["output_tokens"],
            steps=_make_module_usages(conversation.app_usage),
            turn_seconds=tuple(round(seconds, 4) for seconds in conversation.turn_seconds),
        )


def make_broken_conversation(
    planned: PlannedConversation, problem: str, ended: Ended | None = "error"
) -> BrokenConversation:
    """Return the outcome of a conversation that couldn't be run or measured."""
    return BrokenConversation(
        error=f"{planned.id}: {problem}",
        arm=planned.arm,
        scenario=planned.scenario.name,
        run=planned.run,
        ended=ended,
    )


class _MoveCounts(NamedTuple):
    """The numbers of an agent's moves by kind, and of its messages by category and by dialogue act."""

    moves: Mapping[str, int]
    categories: Mapping[str, int]
    dialogue_acts: Mapping[str, int]


def _count_moves(
    transcript: Transcript, moves_by_turn: Mapping[str, Sequence[Mapping[str, Any]]]
) -> _MoveCounts:
    """Count the agent's moves.

    Speech and acts are counted in the transcript, which any app has. Thoughts, and the labels of speech, are in the
    app's channel `moves`.
    """
    thoughts = 0
    categories: Counter[str] = Counter()
    dialogue_acts: Counter[str] = Counter()
    for moves in moves_by_turn.values():
        for move in moves:
            thoughts += move.get("kind") == "think"
            if move.get("category"):
                categories[str(move["category"])] += 1
            if move.get("dialogue_act"):
                dialogue_acts[str(move["dialogue_act"])] += 1
    counts = {"speak": 0, "act": 0, "invalid": 0}
    for event in transcript.measured_events:
        counts["speak"] += isinstance(event, Message) and event.speaker == "agent"
        counts["act"] += isinstance(event, Call)
        counts["invalid"] += isinstance(event, Result) and event.failed
    if moves_by_turn:
        counts = {"think": thoughts} | counts
    return _MoveCounts(counts, categories, dialogue_acts)


def _make_module_usages(usage: UsageTracker) -> dict[str, StepUsage]:
    """Return the calls and tokens of each module, such as the matcher."""
    usages = {}
    for module, module_usage in usage.by_module.items():
        tokens = module_usage.usage or {"input_tokens": 0, "output_tokens": 0}
        usages[module] = StepUsage(
            calls=module_usage.calls,
            input_tokens=tokens["input_tokens"],
            output_tokens=tokens["output_tokens"],
        )
    return usages


def _dump_expectation(scenario: Scenario) -> dict[str, Any]:
    """Return what the report shows of the expectation: all but the example replies."""
    if scenario.expect is None:
        return {}
    return scenario.expect.model_dump(mode="json", exclude={"reply", "wrong"}, exclude_defaults=True)
