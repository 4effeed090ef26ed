"""The agent's journeys in one matching pass: code opens and resolves their steps, with what a model judged about them.

A pass calls `advance`, asks about the steps that need a judgement (`nodes/journey_judge.py`), and calls it again, until
no open step lacks one. `make_matches` then returns the matches of the steps, like those of other guidelines.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

from arq_graph.agent.journey import Journey, JourneyStep, make_rule_id
from arq_graph.agent.journey_progress import JourneyProgress
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch
from arq_graph.nodes.blueprint_node import DeferredCall
from arq_graph.nodes.journey_facts import Evaluate, JourneyFacts
from arq_graph.nodes.journey_run import JourneyRun, read_stored_journeys
from arq_graph.nodes.journey_schema import JourneyBlueprint, StepJudgement
from arq_graph.nodes.judgements import MAX_SCORE, MIN_SCORE, make_plain_match
from arq_graph.nodes.state_view import StateView

MAX_JUDGED = 6
"""The most steps per question: the open ones, and those that may open once these are answered."""

_LOOKAHEAD = 2


QuestionScope: TypeAlias = Mapping[str, Sequence[str]]
"""The ids of what a question is about.

`judge`: the steps to judge; `done`: those that the customer may have changed; `give_up` and `ended`: the journeys that
they may have given up, or may begin anew.
"""


class JourneyWalk:
    """Tracks how far the customer is in each journey during a matching pass.

    Args:
        agent: The specification.
        state: The state.
        evaluate: Calls the function of a condition.
    """

    def __init__(self, agent: Agent, state: StateView, evaluate: Evaluate) -> None:
        self.state = state
        self.facts = JourneyFacts(agent, state, evaluate)
        self._stored = read_stored_journeys(state)
        self.runs = {
            journey.id: JourneyRun(journey, self._stored.get(journey.id)) for journey in agent.journeys
        }
        self.judgements: dict[str, StepJudgement] = {}
        """What the model judged in this pass, by the id of a step's rule."""
        self._ended_before = {id for id, run in self.runs.items() if run.state in ("done", "given_up")}
        self._parts: set[str | None] = set()
        for journey in agent.journeys:
            self._parts.update(step.journey for step in journey.steps)
        self._active: dict[str, bool] = {}
        # More than any journeys take: each of their steps may wait, open and be resolved, a few times at most.
        self._max_rounds = 10 + 4 * sum(len(journey.steps) for journey in agent.journeys)

    def list_steps_to_judge(self) -> list[tuple[Journey, JourneyStep]]:
        """Return the open steps without a judgement that need one, and those that may open once these are resolved."""
        steps: list[tuple[Journey, JourneyStep]] = []
        for run in self.runs.values():
            if run.state != "active":
                continue
            unjudged = [step for step in run.list_open() if self._needs_judgement(run, step)]
            if unjudged:
                unjudged += self._look_ahead(run, unjudged)
            steps.extend((run.journey, step) for step in unjudged)
        return steps[:MAX_JUDGED]

    def _look_ahead(self, run: JourneyRun, steps: list[JourneyStep]) -> list[JourneyStep]:
        """Return the steps that may open in this pass because a judgement resolves those before them."""
        assumed_done = {step.id for step in steps if _may_be_resolved_by_judgement(step)}
        ahead: list[JourneyStep] = []
        for _ in range(_LOOKAHEAD):
            opened: list[JourneyStep] = []
            for step in run.journey.steps:
                is_known = run.is_resolved(step.id) or step in steps or step in ahead
                if not is_known and step.after and run.may_open(step, assumed_done):
                    opened.append(step)
            assumed_done.update(step.id for step in opened if _may_be_resolved_by_judgement(step))
            ahead.extend(step for step in opened if self._needs_judgement(run, step))
        return ahead

    def _needs_judgement(self, run: JourneyRun, step: JourneyStep) -> bool:
        is_judged = make_rule_id(run.journey.id, step.id) in self.judgements
        return not is_judged and _may_be_resolved_by_judgement(step)

    def list_ended(self) -> list[JourneyRun]:
        """Return the journeys that had ended before this pass, but whose condition holds again."""
        return [
            run
            for id, run in self.runs.items()
            if id in self._ended_before and not run.is_under_way and self._active.get(id)
        ]

    def read_answer(self, answer: JourneyBlueprint, scope: QuestionScope) -> None:
        """Apply a model's answer, without anything that wasn't asked about."""
        for entry in answer.steps:
            if entry.step in scope["judge"]:
                self.judgements[entry.step] = entry.judgement
        for id in scope["give_up"]:
            if id in answer.given_up:
                self.runs[id].state = "given_up"
        for id in scope["ended"]:
            self._ended_before.discard(id)  # asked about once
            if id in answer.begun_anew:
                self.runs[id].begin(self.state.turn_id)
        answers = {
            change.step: change.answered_by for change in answer.changed if change.step in scope["done"]
        }
        for run in self.runs.values():
            for step in run.journey.steps:
                rule_id = make_rule_id(run.journey.id, step.id)
                if rule_id in answers and run.is_done(step.id):
                    self._change_step(run, step, answers[rule_id])

    def _change_step(self, run: JourneyRun, step: JourneyStep, answered_by: str | None) -> None:
        """Update or reopen a step that is done after the customer has changed their answer."""
        rule_id = make_rule_id(run.journey.id, step.id)
        reason = f"the customer changed {rule_id}"
        line = self.facts.find_line(answered_by)
        if line and not step.tools and step.done_when is None:
            run.update(step.id, source=line.turn_id, reason=f"answered anew ({line.id})")
        else:
            told_before = self.facts.count_replies(rule_id)
            run.update(step.id, state="open", reason=reason, source=None, told_before=told_before)
        if not step.is_done_by_call:  # after a call, only another result reopens them
            run.reopen_later_steps(step.id, reason)

    def advance(self, is_condition_met: Mapping[str, bool]) -> Generator[DeferredCall, Any, None]:
        """Begin and leave journeys, and resolve steps, until nothing more follows from what is known.

        `is_condition_met` says for each journey with a condition of its own if it holds.
        """
        for _ in range(self._max_rounds):  # each time, the state of a journey or a step has changed
            has_changed = False
            for run in self.runs.values():
                has_changed = self._update_state(run, is_condition_met) or has_changed
                if run.state != "active":
                    continue
                for step in run.list_open():
                    has_changed = (yield from self._resolve(run, step)) or has_changed
                if run.is_finished:
                    run.state = "done"
                    has_changed = True
            if not has_changed:
                break

    def _update_state(self, run: JourneyRun, is_condition_met: Mapping[str, bool]) -> bool:
        """Begin a journey, leave it, or return to it; return True if its state has changed."""
        id = run.journey.id
        is_always_active = run.journey.condition is None and id not in self._parts
        is_active = is_always_active or is_condition_met.get(id, False) or self._is_part_of_open_step(id)
        self._active[id] = is_active
        if run.state == "not_begun" and is_active:
            run.begin(self.state.turn_id)
            return True
        state_before = run.state
        if run.is_under_way:
            run.state = "active" if is_active else "left"
        return run.state != state_before

    def _is_part_of_open_step(self, id: str) -> bool:
        for run in self.runs.values():
            for step in run.list_open():
                if step.journey == id and run.state == "active" and run.is_taken(step.id):
                    return True
        return False

    def _resolve(self, run: JourneyRun, step: JourneyStep) -> Generator[DeferredCall, Any, bool]:
        """Open, complete or skip a step if it can be; return True if another journey or step may follow from it."""
        rule_id = make_rule_id(run.journey.id, step.id)
        judgement = self.judgements.get(rule_id)
        line = self.facts.find_call(run, step) if run.is_taken(step.id) else None
        if line is not None and line.call is not None:
            run.do_by_call(step.id, line.call["args"], line.turn_id, f"called ({line.id})")
            return True
        holds = yield from self.facts.find_condition(step, rule_id, judgement)
        if holds == "no":
            return run.skip(step)
        has_opened = holds == "yes" and run.open_step(step.id, self.facts.count_replies(rule_id))
        if not run.is_taken(step.id):
            return False
        if step.journey is not None:
            if self.runs[step.journey].state == "done":
                return run.resolve(step.id, "done", f"the journey {step.journey} is done")
            return has_opened  # the journey begins now
        if judgement is not None:
            run.update(step.id, asks=judgement.asks_for_something)
        completion = yield from self.facts.find_completion(step, rule_id, run.steps[step.id], judgement)
        if completion is None:
            return False
        return run.resolve(step.id, "done", completion.reason, source=completion.source)

    def make_matches(self) -> dict[str, GuidelineMatch]:
        """Return the matches of the journeys that code decides, and of the steps that are open or were judged."""
        matches: dict[str, GuidelineMatch] = {}
        active_before = {match.guideline for match in self.state.current_turn_matches if match.active}
        for run in self.runs.values():
            id = run.journey.id
            is_active = self._active.get(id, False) and run.is_under_way
            if run.journey.condition is None or (is_active and self._is_part_of_open_step(id)):
                reason = "a step of another journey is open" if id in self._parts else "it has no condition"
                matches[id] = self._make_match(id, is_active, reason if is_active else f"it is {run.state}")
            for step in run.journey.steps:
                rule_id = make_rule_id(id, step.id)
                has_begun = step.journey is None and step.id in run.steps
                is_current = run.is_under_way and (has_begun or rule_id in self.judgements)
                if is_current or rule_id in active_before:
                    matches[rule_id] = self._make_step_match(run, step)
        return matches

    def _make_step_match(self, run: JourneyRun, step: JourneyStep) -> GuidelineMatch:
        rule_id = make_rule_id(run.journey.id, step.id)
        progress, judgement = run.steps.get(step.id), self.judgements.get(rule_id)
        rationale = (getattr(judgement, "condition_rationale", None) if judgement else None) or ""
        is_open = run.is_under_way and run.is_open(step)
        if is_open and judgement and judgement.condition_holds == "not_known_yet":
            missing = rationale or "not known yet"
            return self._make_match(rule_id, False, rationale, is_judged=True, missing_information=missing)
        is_taken = is_open and run.is_taken(step.id)
        reason = f"the step is {progress.state if progress else 'not open yet'}"
        if progress and progress.reason:
            reason += f": {progress.reason}"
        rationale = "; ".join(filter(None, (reason, rationale)))
        is_judged = is_open and judgement is not None
        return self._make_match(rule_id, is_taken, rationale, is_judged=is_judged)

    def _make_match(
        self, id: str, is_matched: bool, rationale: str, *, is_judged: bool = False, **fields: Any
    ) -> GuidelineMatch:
        score = MAX_SCORE if is_matched else MIN_SCORE
        origin = "model" if is_judged else "code"
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
        return None if record.journeys == tuple(self._stored.values()) else record


def _may_be_resolved_by_judgement(step: JourneyStep) -> bool:
    """Return True if what a model says about a step may resolve it: it is skipped, or what it asks for is known."""
    is_asked = step.done_when is None and not step.tools and step.journey is None
    return is_asked or isinstance(step.condition, str) or isinstance(step.done_when, str)
