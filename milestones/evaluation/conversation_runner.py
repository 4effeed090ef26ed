"""Running a planned conversation, and measuring it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from arq_graph.agent.modules import describe_error
from arq_graph.milestones.evaluation.arms import AppFactory, Arms, PreparedApp, read_world_outcome
from arq_graph.milestones.evaluation.conversation import Conversation, aconverse
from arq_graph.milestones.evaluation.results import (
    ConversationResult,
    build_transcript,
    dump_messages,
)
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.spending import Budget
from arq_graph.milestones.evaluation.suite import PlannedConversation
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
from arq_graph.reasoning.failures import is_model_failure
from arq_graph.reasoning.usage import UsageTracker, track_usage

PlanKey = tuple[str, str, int, int]
"""A planned conversation as it is sent to a worker: arm, scenario's name, run and seed."""


@dataclass(frozen=True)
class ConversationRunner:
    """Runs and measures the conversations of a suite, in this process or in a worker.

    Args:
        suite_name: The name of the suite.
        scenarios: Its scenarios, by name.
        graph_names: The names of their milestone graphs in the report, by scenario.
        arms: The arms.
        user_model: The model that plays the users.
        judge: Decides what code can't.
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
        """Run a conversation and measure it; whatever goes wrong is part of the result."""
        with recording_scope(f"{self.suite_name} / {planned.id}"), track_usage() as usage:
            self.budget.running_usages.append(usage)
            result = await self._run_trials(planned, usage)
            self.budget.running_usages.remove(usage)
        cost = self.budget.compute_cost(usage)
        self.budget.add(usage.calls, cost)
        return replace(result, calls=usage.calls, cost=cost)

    async def run_in_worker(self, keys: Sequence[PlanKey]) -> Sequence[ConversationResult]:
        """Run a batch of conversations at once; the process that sent them watches the budget."""
        # LangChain would log that a conversation's limit of calls was reached; the report says so.
        logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)
        runner = replace(self, budget=self.budget.without_maximum())
        conversations = []
        for arm, scenario_name, run, seed in keys:
            planned = PlannedConversation(arm, self.scenarios[scenario_name], run, seed)
            conversations.append(runner.run_conversation(planned))
        return await asyncio.gather(*conversations)

    async def _run_trials(self, planned: PlannedConversation, usage: UsageTracker) -> ConversationResult:
        """Run the conversation, again as often as its arm tries again, and measure the last trial.

        Args:
            planned: The conversation.
            usage: The model calls of app, user and judge.
        """
        app_usage = UsageTracker()
        make_app: AppFactory | None = None
        trials = 0
        while True:
            trials += 1
            try:
                prepared = self.arms.prepare_app(planned, make_app)
                user = planned.scenario.make_user(planned.seed, self.user_model)
            except (Exception, SystemExit) as error:
                broken = make_broken_conversation(planned, f"it could not begin: {describe_error(error)}")
                return ConversationResult(broken)
            # A thread that is stored for good must not be continued by another run.
            thread_id = f"{planned.id} / {uuid4().hex[:8]}"
            conversation = await aconverse(
                prepared.app,
                user,
                limits=planned.scenario.limits,
                thread_id=thread_id,
                should_stop=lambda: self.budget.stop_reason is not None,
                history=planned.scenario.history_messages,
                variables=planned.scenario.variables,
            )
            await prepared.delete_thread(thread_id)
            app_usage.include(conversation.usage)
            make_app = await self._ask_for_retry(prepared, conversation, app_usage)
            if make_app is None:
                break
        conversation.usage = app_usage
        return await self._measure(planned, prepared, conversation, trials, usage)

    async def _ask_for_retry(
        self, prepared: PreparedApp, conversation: Conversation, usage: UsageTracker
    ) -> AppFactory | None:
        """Ask the arm for another trial; its failure is that of the conversation."""
        if conversation.ended in ("limit", "error"):
            return None
        is_budget_used_up = self.budget.stop_reason is not None
        # Over budget, the arm may still decide against another trial; its first model call ends the conversation.
        max_calls = 0 if is_budget_used_up else None
        try:
            with usage.listen(), UsageTracker(max_calls).listen():
                return await self.arms.ask_for_retry(prepared, conversation.messages)
        except Exception as error:
            conversation.ended = "limit" if is_budget_used_up else "error"
            conversation.failure = error
            return None

    async def _measure(
        self,
        planned: PlannedConversation,
        prepared: PreparedApp,
        conversation: Conversation,
        trials: int,
        usage: UsageTracker,
    ) -> ConversationResult:
        messages = dump_messages(conversation.messages)
        failure = conversation.failure
        broken = self._explain_if_unusable(planned, conversation)
        if broken is None:
            try:
                record = await self._make_record(planned, prepared, conversation, messages, trials)
                return ConversationResult(record, messages)
            except Exception as error:  # a judge or a check of the user's own may raise anything
                failure = error
                reason = f"it could not be measured: {describe_error(error)}"
                broken = make_broken_conversation(planned, reason)
        is_model_unreachable = is_model_failure(failure, usage.failures)
        return ConversationResult(broken, messages, is_model_unreachable=is_model_unreachable)

    def _explain_if_unusable(
        self, planned: PlannedConversation, conversation: Conversation
    ) -> BrokenConversation | None:
        """Return why a conversation says nothing about its arm, or None."""
        if conversation.ended == "limit":
            turns = f"{conversation.turns} turn{'' if conversation.turns == 1 else 's'}"
            return make_broken_conversation(
                planned, f"stopped after {turns}: {self.budget.stop_reason}", "limit"
            )
        failure = conversation.failure
        if failure is not None and conversation.is_user_failure:
            return make_broken_conversation(planned, f"the simulated user failed: {describe_error(failure)}")
        if is_model_failure(failure, conversation.usage.failures):
            assert failure is not None
            return make_broken_conversation(planned, f"the model is out of reach: {describe_error(failure)}")
        if not conversation.turns:
            return make_broken_conversation(planned, "nothing was said", conversation.ended)
        return None

    async def _make_record(
        self,
        planned: PlannedConversation,
        prepared: PreparedApp,
        conversation: Conversation,
        messages: Sequence[Mapping[str, Any]],
        trials: int,
    ) -> ConversationRecord:
        scenario = planned.scenario
        transcript = build_transcript(planned, messages, prepared.agent)
        tools = transcript.tools or None
        score = await ascore(scenario.measured_graph, transcript, tools=tools, judge=self.judge)
        usage = conversation.usage
        tokens = usage.total
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
            **_count_moves(transcript, conversation.moves),
            ended=conversation.ended,
            error=conversation.error,
            model_calls=usage.calls,
            input_tokens=tokens["input_tokens"],
            output_tokens=tokens["output_tokens"],
            steps=_make_step_usages(usage),
            turn_seconds=tuple(round(seconds, 4) for seconds in conversation.turn_seconds),
        )


def make_broken_conversation(
    planned: PlannedConversation, error: str, ended: Ended | None = "error"
) -> BrokenConversation:
    """Return the outcome of a conversation that couldn't be run or measured."""
    return BrokenConversation(
        error=f"{planned.id}: {error}",
        arm=planned.arm,
        scenario=planned.scenario.name,
        run=planned.run,
        ended=ended,
    )


def _count_moves(
    transcript: Transcript, moves_by_turn: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the fields of a record about the agent's moves.

    Speech and acts are counted in the transcript, which any app has. Thoughts, and the labels of speech, are in the
    app's channel `moves`.
    """
    events = transcript.measured_events
    channel_moves = [move for moves in moves_by_turn.values() for move in moves]
    counts: dict[str, int] = {}
    if moves_by_turn:
        counts["think"] = sum(move.get("kind") == "think" for move in channel_moves)
    counts["speak"] = sum(isinstance(event, Message) and event.speaker == "agent" for event in events)
    counts["act"] = sum(isinstance(event, Call) for event in events)
    counts["invalid"] = sum(isinstance(event, Result) and event.failed for event in events)
    categories = Counter(str(move["category"]) for move in channel_moves if move.get("category"))
    acts = Counter(str(move["dialogue_act"]) for move in channel_moves if move.get("dialogue_act"))
    return {"moves": counts, "speech": categories, "dialogue_acts": acts}


def _make_step_usages(usage: UsageTracker) -> dict[str, StepUsage]:
    step_usages = {}
    for step, module_usage in usage.by_module.items():
        tokens = module_usage.usage or {"input_tokens": 0, "output_tokens": 0}
        step_usages[step] = StepUsage(
            calls=module_usage.calls,
            input_tokens=tokens["input_tokens"],
            output_tokens=tokens["output_tokens"],
        )
    return step_usages


def _dump_expectation(scenario: Scenario) -> dict[str, Any]:
    """Return what the report shows of the expectation: all but the example replies."""
    if scenario.expect is None:
        return {}
    return scenario.expect.model_dump(mode="json", exclude={"reply", "wrong"}, exclude_defaults=True)
