"""What code knows about journeys' steps in one matching pass: conditions that are functions, calls, and replies."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Literal, NamedTuple

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.journey import JourneyStep, make_rule_id
from arq_graph.agent.journey_progress import StepProgress
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AppliedGuideline, ToolVerdict
from arq_graph.nodes.agent_node import describe_variables
from arq_graph.nodes.blueprint_node import DeferredCall
from arq_graph.nodes.journey_run import STEP_IS_DONE, JourneyRun
from arq_graph.nodes.journey_schema import StepJudgement
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.turn_records import select_verdicts
from arq_graph.reasoning.history import Line

Evaluate = Callable[[Guideline], Generator[DeferredCall, Any, bool]]
"""Calls the function of a condition."""


class Completion(NamedTuple):
    """Why a step is done, and the message or variable that it rests on."""

    reason: str
    source: str | None = None


class JourneyFacts:
    """The facts of a matching pass, from the state and, for conditions that are functions, from `evaluate`."""

    def __init__(self, agent: Agent, state: StateView, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._results: dict[str, bool] = {}
        self._lines = state.conversation.lines_by_id
        self.citable_ids = {entry["id"] for entry in describe_variables(agent, state)} | self._lines.keys()
        # In a turn's first pass, what became of the calls that were proposed last is in the records of the last turn.
        self._is_first_pass = not state.current_turn_matches
        turn_id = state.answered_turn_id if self._is_first_pass else state.turn_id
        self._results_to_count = state.conversation.current_turn_results
        if self._is_first_pass:
            self._results_to_count = state.conversation.answered_turn_results
        self._verdicts = state.read_turn_records("tool_insights", ToolVerdict, turn_id)
        declined = select_verdicts(self._verdicts, "declined")
        self._repeated_calls = [verdict for verdict in declined if verdict.problem == STEP_IS_DONE]
        self._times_told: dict[str, int] = {}
        for record in state.read_records("applied_guidelines", AppliedGuideline):
            self._times_told[record.guideline] = record.times

    def count_replies(self, rule_id: str) -> int:
        """Return how many replies have followed a step."""
        return self._times_told.get(rule_id, 0)

    def find_line(self, id: str | None) -> Line | None:
        """Return a line of the conversation; None if the prompts don't show one with that id."""
        return self._lines.get(id or "")

    def find_condition(
        self, step: JourneyStep, rule_id: str, judgement: StepJudgement | None
    ) -> Generator[DeferredCall, Any, Literal["no", "yes", "not_known_yet"]]:
        """Return whether a step's condition holds."""
        if step.condition is None:
            return "yes"
        if isinstance(step.condition, str):
            return judgement.condition_holds if judgement else "not_known_yet"
        holds = yield from self._call_function(step.condition, rule_id)
        return "yes" if holds else "no"

    def find_completion(
        self, step: JourneyStep, rule_id: str, progress: StepProgress, judgement: StepJudgement | None
    ) -> Generator[DeferredCall, Any, Completion | None]:
        """Return why an open step is done, unless it is another journey or a call has just done it."""
        if step.done_when is not None:
            is_done = bool(judgement and judgement.done_when_holds)
            if not isinstance(step.done_when, str):
                is_done = yield from self._call_function(step.done_when, f"{rule_id} done")
            return Completion("its done_when holds") if is_done else None
        if step.tools:
            is_refused = any(rule_id in verdict.granted_by for verdict in self._repeated_calls)
            return Completion("the call that was made stands") if is_refused else None
        if judgement and judgement.asks_for_something and judgement.answered_by in self.citable_ids:
            line = self.find_line(judgement.answered_by)
            source = line.turn_id if line else judgement.answered_by
            return Completion(f"answered ({judgement.answered_by})", source)
        if progress.asks is False and self.count_replies(rule_id) > progress.told_before:
            return Completion("a reply told it")
        return None

    def find_call(self, run: JourneyRun, step: JourneyStep) -> Line | None:
        """Return the newest successful result of a call that a step granted and that hasn't done one.

        The call is one of this turn or, in its first pass, of the last turn: a graph may call tools without matching
        again. What was called before a step was opened again doesn't count.
        """
        if not step.is_done_by_call:
            return None
        stored = run.steps.get(step.id)
        if self._is_first_pass and stored and stored.reason:
            return None
        rule_id = make_rule_id(run.journey.id, step.id)
        runs = select_verdicts(self._verdicts, "run")
        granted = {verdict.tool for verdict in runs if rule_id in verdict.granted_by}
        granted &= {tool.name for tool in step.tools}
        used = {progress.source for progress in run.steps.values()}
        for line in self._results_to_count[::-1]:
            is_granted = line.call is not None and line.call["name"] in granted
            if is_granted and line.turn_id not in used and classify_result(line) != "failed":
                return line
        return None

    def _call_function(self, condition: Any, key: str) -> Generator[DeferredCall, Any, bool]:
        """Call a condition's function, once in a pass; `key` names it in errors."""
        if key not in self._results:
            rule = Guideline(condition).model_copy(update={"id": key})
            self._results[key] = yield from self._evaluate(rule)
        return self._results[key]
