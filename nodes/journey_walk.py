"""The agent's journeys in one matching pass: code opens and settles their steps, with what a model judged about them.

A pass calls `advance`, asks about the steps that need a judgement (`nodes/journey_judge.py`), and calls it again, until
no open step lacks one. `make_matches` then returns the matches of the steps, like those of other guidelines.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from typing import Any, Literal

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.journey import Journey, JourneyStep, make_rule_id
from arq_graph.agent.journey_progress import JourneyProgress
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AppliedGuideline, GuidelineMatch, ToolVerdict
from arq_graph.nodes.agent_node import describe_variables
from arq_graph.nodes.blueprint_node import DeferredCall
from arq_graph.nodes.journey_run import JourneyRun
from arq_graph.nodes.journey_schema import JourneyBlueprint, StepJudgement
from arq_graph.nodes.judgements import MAX_SCORE, MIN_SCORE, make_plain_match
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.turn_records import select_verdicts
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.history import Line

Evaluate = Callable[[Guideline], Generator[DeferredCall, Any, bool]]
"""Calls the function of a condition."""

MAX_JUDGED = 6
"""How many steps one question is about at most: the open ones, and those that may open once these are answered."""

_LOOKAHEAD = 2


class JourneyWalk:
    """How far the customer is in each journey, while a matching pass finds it out.

    Args:
        agent: The specification.
        state: The state.
        evaluate: Calls the function of a condition.
    """

    def __init__(self, agent: Agent, state: StateView, evaluate: Evaluate) -> None:
        self.state = state
        self._agent = agent
        self._evaluate = evaluate
        self._stored = state.read_record("journeys", JourneyProgress)
        stored = {entry.journey: entry for entry in self._stored.journeys} if self._stored else {}
        self.runs = {journey.id: JourneyRun(journey, stored.get(journey.id)) for journey in agent.journeys}
        self.judgements: dict[str, StepJudgement] = {}
        """What the model judged in this pass, by the id of a step's rule."""
        self._conditions: dict[str, bool] = {}
        self._told = {
            record.guideline: record.times
            for record in state.read_records("applied_guidelines", AppliedGuideline)
        }
        # In a turn's first pass, what became of the calls that were proposed last is in the records of the last turn.
        turn_id = state.turn_id if state.current_turn_matches else state.answered_turn_id
        self._verdicts = state.read_turn_records("tool_insights", ToolVerdict, turn_id)
        self.asked: Collection[str] = ()
        """The ids of the steps' rules that the last question was about."""
        self.asked_to_begin_anew: set[str] = set()
        """The ids of the journeys that have ended and that a question was about."""
        self._ended_before = {id for id, run in self.runs.items() if run.state in ("done", "given_up")}
        self.question: Question[JourneyBlueprint] | None = None
        """The first question of the pass, which is asked together with those about guidelines."""
        self._active: dict[str, bool] = {}
        self.citable_ids = {entry["id"] for entry in describe_variables(agent, state)}
        self.citable_ids.update(state.conversation.lines_by_id)

    # ------------------------------------------------------------------ what the model is asked about

    def list_steps_to_judge(self) -> list[tuple[Journey, JourneyStep]]:
        """Return the open steps without a judgement that need one, and those that may open once these are settled."""
        steps: list[tuple[Journey, JourneyStep]] = []
        for run in self.runs.values():
            if run.state != "active":
                continue
            unjudged: list[JourneyStep] = []
            for step in run.list_open():
                if self._needs_judgement(run, step) and step not in unjudged:
                    unjudged.append(step)
            if unjudged:
                unjudged += self._look_ahead(run, unjudged)
            steps.extend((run.journey, step) for step in unjudged)
        return steps[:MAX_JUDGED]

    def _look_ahead(self, run: JourneyRun, steps: list[JourneyStep]) -> list[JourneyStep]:
        """Return the steps that may open in this pass because a judgement settles those before them."""
        assumed_done = {step.id for step in steps if _may_be_settled_by_judgement(step)}
        ahead: list[JourneyStep] = []
        for _ in range(_LOOKAHEAD):
            opened: list[JourneyStep] = []
            for step in run.journey.steps:
                is_known = run.is_settled(step.id) or step in steps or step in ahead
                if not is_known and step.after and run.may_open(step, assumed_done):
                    opened.append(step)
            assumed_done.update(step.id for step in opened if _may_be_settled_by_judgement(step))
            ahead.extend(step for step in opened if self._needs_judgement(run, step))
        return ahead

    def _needs_judgement(self, run: JourneyRun, step: JourneyStep) -> bool:
        is_judged = make_rule_id(run.journey.id, step.id) in self.judgements
        return not is_judged and _may_be_settled_by_judgement(step)

    # ------------------------------------------------------------------ what follows from the answers

    def read_answer(self, answer: JourneyBlueprint) -> None:
        """Take over a model's judgements; ids that weren't asked about are left out."""
        for entry in answer.steps:
            if entry.step in self.asked:
                self.judgements[entry.step] = entry.judgement
        for run in self.runs.values():
            id = run.journey.id
            if run.is_under_way and run.journey.give_up and id in answer.given_up:
                run.state = "given_up"
            elif id in self.asked_to_begin_anew and id in answer.begun_anew and not run.is_under_way:
                run.begin(self.state.turn_id)
        for change in answer.changed:
            for run in self.runs.values():
                for step in run.journey.steps:
                    rule_id = make_rule_id(run.journey.id, step.id)
                    if rule_id == change.step and run.is_under_way and run.is_done(step.id):
                        self._change_step(run, step, change.answered_by)

    def may_begin_anew(self, run: JourneyRun) -> bool:
        """Return True if a journey had ended before, but the customer is in it; the model is asked once in a pass."""
        id = run.journey.id
        is_candidate = id in self._ended_before and id not in self.asked_to_begin_anew
        return is_candidate and not run.is_under_way and self._active.get(id, False)

    def _change_step(self, run: JourneyRun, step: JourneyStep, answered_by: str | None) -> None:
        """Have a step that is done follow a change that the customer made."""
        rule_id = make_rule_id(run.journey.id, step.id)
        line = self.state.conversation.lines_by_id.get(answered_by or "")
        reason = f"the customer changed {rule_id}"
        if line and not step.tools:
            run.steps[step.id] = run.steps[step.id].model_copy(
                update={"source": line.turn_id, "reason": f"answered anew ({line.id})"}
            )
            run.reopen_later_steps(step.id, reason)
            return
        run.reopen(step.id, reason, self._told.get(rule_id, 0))
        if not step.tools:  # the steps after a call wait for its new result, which may be the same
            run.reopen_later_steps(step.id, reason)

    def advance(self, is_condition_met: Mapping[str, bool]) -> Generator[DeferredCall, Any, None]:
        """Begin and leave journeys, and settle steps, until nothing more follows from what is known.

        `is_condition_met` says for each journey with a condition of its own if it holds.
        """
        has_changed = True
        while has_changed:  # each time, a journey begins or ends, or a step is settled
            has_changed = False
            for run in self.runs.values():
                has_changed = self._update_state(run, is_condition_met) or has_changed
                if run.state != "active":
                    continue
                for step in run.list_open():
                    has_changed = (yield from self._settle(run, step)) or has_changed
                if run.is_finished:
                    run.state = "done"
                    has_changed = True

    def _update_state(self, run: JourneyRun, is_condition_met: Mapping[str, bool]) -> bool:
        """Begin a journey, leave it, or return to it; return True if it begins."""
        is_part_of_open_step = self._is_part_of_open_step(run.journey.id)
        is_active = is_part_of_open_step or is_condition_met.get(run.journey.id, False)
        if run.journey.condition is None and not self._is_part(run.journey.id):
            is_active = True
        self._active[run.journey.id] = is_active
        if run.state == "not_begun" and is_active:
            run.begin(self.state.turn_id)
            return True
        if run.is_under_way:
            run.state = "active" if is_active else "left"
        return False

    def _is_part(self, id: str) -> bool:
        return any(step.journey == id for journey in self._agent.journeys for step in journey.steps)

    def _is_part_of_open_step(self, id: str) -> bool:
        for run in self.runs.values():
            if run.state == "active":
                for step in run.list_open():
                    is_taken = step.id in run.steps and run.steps[step.id].state == "open"
                    if step.journey == id and is_taken:
                        return True
        return False

    def _settle(self, run: JourneyRun, step: JourneyStep) -> Generator[DeferredCall, Any, bool]:
        """Settle an open step if it is done or skipped; return True if that is new."""
        rule_id = make_rule_id(run.journey.id, step.id)
        judgement = self.judgements.get(rule_id)
        was_open = step.id in run.steps and run.steps[step.id].state == "open"
        if was_open and (line := self._find_call(step, rule_id)):
            run.do_by_call(
                step.id, line.call["args"] if line.call else {}, line.turn_id, f"called ({line.id})"
            )
            return True
        holds = yield from self._find_condition(step, rule_id, judgement)
        if holds == "no":
            return run.settle(step.id, "skipped", "its condition does not hold")
        if holds == "yes":
            run.open_step(step.id, self._told.get(rule_id, 0))
        if step.id not in run.steps or run.steps[step.id].state != "open":
            return False
        if judgement is not None:
            update = {"asks": judgement.asks_for_something}
            run.steps[step.id] = run.steps[step.id].model_copy(update=update)
        reason, source = yield from self._find_completion(run, step, judgement)
        return bool(reason) and run.settle(step.id, "done", reason, source=source)

    def _find_condition(
        self, step: JourneyStep, rule_id: str, judgement: StepJudgement | None
    ) -> Generator[DeferredCall, Any, Literal["no", "yes", "not_known_yet"]]:
        if step.condition is None:
            return "yes"
        if isinstance(step.condition, str):
            return judgement.condition_holds if judgement else "not_known_yet"
        holds = yield from self._call_condition(step.condition, rule_id)
        return "yes" if holds else "no"

    def _call_condition(self, condition: Any, id: str) -> Generator[DeferredCall, Any, bool]:
        """Call a condition's function, once in a pass."""
        if id not in self._conditions:
            self._conditions[id] = yield from self._evaluate(Guideline(condition, id=id))
        return self._conditions[id]

    def _find_completion(
        self, run: JourneyRun, step: JourneyStep, judgement: StepJudgement | None
    ) -> Generator[DeferredCall, Any, tuple[str, str | None]]:
        """Return why an open step is done, and the message that it rests on; ("", None) if it isn't."""
        rule_id = make_rule_id(run.journey.id, step.id)
        if step.journey is not None:
            is_done = self.runs[step.journey].state == "done"
            return (f"the journey {step.journey} is done", None) if is_done else ("", None)
        if step.done_when is not None:
            is_done = bool(judgement and judgement.done_when_holds)
            if not isinstance(step.done_when, str):
                is_done = yield from self._call_condition(step.done_when, f"{rule_id}-done"[-64:])
            return ("its done_when holds", None) if is_done else ("", None)
        progress = run.steps[step.id]
        if step.tools:
            return (
                ("the call that was made stands", progress.source)
                if self._was_refused(step, run)
                else ("", None)
            )
        if judgement is not None and judgement.asks_for_something:
            id = judgement.answered_by
            if id is not None and id in self.citable_ids:
                line = self.state.conversation.lines_by_id.get(id)
                return f"answered ({id})", line.turn_id if line else id
        is_told = self._told.get(rule_id, 0) > progress.told_before
        if progress.asks is False and is_told:
            return "a reply told it", None
        return "", None

    def _find_call(self, step: JourneyStep, rule_id: str) -> Line | None:
        """Return the newest successful result in this turn of a call that a step granted, which no step has used."""
        if step.done_when is not None:
            return None
        names = {tool.name for tool in step.tools}
        granted: set[str] = set()
        for verdict in select_verdicts(self._verdicts, "run"):
            if rule_id in verdict.granted_by and verdict.tool in names:
                granted.add(verdict.tool)
        used: set[str | None] = set()
        for run in self.runs.values():
            used.update(progress.source for progress in run.steps.values())
        own_results: list[Line] = []
        for line in self.state.conversation.current_turn_results:
            is_own = line.call is not None and line.call["name"] in granted
            if is_own and classify_result(line) != "failed" and line.turn_id not in used:
                own_results.append(line)
        return own_results[-1] if own_results else None

    def _was_refused(self, step: JourneyStep, run: JourneyRun) -> bool:
        """Return True if the call that a step was done by was proposed again, unchanged, and so was refused."""
        arguments = run.steps[step.id].arguments
        names = {tool.name for tool in step.tools}
        for verdict in select_verdicts(self._verdicts, "declined"):
            if arguments is not None and verdict.tool in names and verdict.arguments == arguments:
                return True
        return False

    # ------------------------------------------------------------------ what is written

    def make_matches(self) -> dict[str, GuidelineMatch]:
        """Return the matches of the journeys that code decides, and of the steps that are open or were judged."""
        matches: dict[str, GuidelineMatch] = {}
        for run in self.runs.values():
            id = run.journey.id
            is_active = self._active.get(id, False) and run.is_under_way
            if run.journey.condition is None or (is_active and self._is_part_of_open_step(id)):
                reason = "a step of another journey is open" if self._is_part(id) else "it has no condition"
                matches[id] = self._make_match(id, is_active, reason if is_active else f"it is {run.state}")
            if not run.is_under_way:
                continue
            for step in run.journey.steps:
                rule_id = make_rule_id(id, step.id)
                if (step.journey is None and step.id in run.steps) or rule_id in self.judgements:
                    matches[rule_id] = self._make_step_match(run, step)
        return matches

    def _make_step_match(self, run: JourneyRun, step: JourneyStep) -> GuidelineMatch:
        rule_id = make_rule_id(run.journey.id, step.id)
        progress, judgement = run.steps.get(step.id), self.judgements.get(rule_id)
        rationale = (getattr(judgement, "condition_rationale", None) if judgement else None) or ""
        is_open = run.is_open(step)
        if is_open and judgement and judgement.condition_holds == "not_known_yet":
            return self._make_match(
                rule_id, False, rationale, missing_information=rationale or "not known yet"
            )
        is_taken = is_open and progress is not None and progress.state == "open"
        reason = f"the step is {progress.state if progress else 'not open yet'}"
        if progress and progress.reason:
            reason += f": {progress.reason}"
        return self._make_match(rule_id, is_taken, "; ".join(filter(None, (reason, rationale))))

    def _make_match(self, id: str, is_matched: bool, rationale: str, **fields: Any) -> GuidelineMatch:
        score = MAX_SCORE if is_matched else MIN_SCORE
        origin = "model" if id in self.judgements else "code"
        return make_plain_match(
            id, self.state.turn_id, is_matched, score=score, rationale=rationale, origin=origin, **fields
        )

    def list_possible_rules(self) -> list[str]:
        """Return the ids of what may be active after this pass: journeys, open steps, and those that may open."""
        ids: list[str] = []
        for run in self.runs.values():
            if run.journey.condition is None:
                ids.append(run.journey.id)
            for step in run.journey.steps:
                is_first = not run.is_under_way and not step.after
                if step.journey is None and (is_first or run.is_open(step)):
                    ids.append(make_rule_id(run.journey.id, step.id))
        for journey, step in self.list_steps_to_judge():
            ids.append(make_rule_id(journey.id, step.id))
        return list(dict.fromkeys(ids))

    def make_record(self) -> JourneyProgress | None:
        """Return how far the journeys are now; None if that is what is stored already."""
        states = [state for run in self.runs.values() if (state := run.make_state())]
        record = JourneyProgress(turn=self.state.turn_id, journeys=tuple(states))
        is_same = self._stored is not None and self._stored.journeys == record.journeys
        return None if is_same or not (states or self._stored) else record


def _may_be_settled_by_judgement(step: JourneyStep) -> bool:
    """Return True if what a model says about a step may settle it: it is skipped, or what it asks for is known."""
    is_asked = step.done_when is None and not step.tools and step.journey is None
    return is_asked or isinstance(step.condition, str) or isinstance(step.done_when, str)
