"""One journey in one conversation: which of its steps are done, and which are open."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Literal

from arq_graph.agent.journey import Journey, JourneyStep, make_rule_id
from arq_graph.agent.journey_progress import DONE_STEPS, JourneyProgress, JourneyState, StepProgress
from arq_graph.agent.spec import Agent
from arq_graph.nodes.state_view import StateView

STEP_IS_DONE = "the same call has done this step already, and its result still counts"
"""Why a call isn't made again whose step is open again."""

RunState = Literal["not_begun", "active", "left", "done", "given_up"]


class JourneyRun:
    """How far the customer is in a journey; the methods change it as the turn goes on.

    Args:
        journey: The journey.
        stored: How far it was when it was last stored; None: it has not begun.
    """

    def __init__(self, journey: Journey, stored: JourneyState | None) -> None:
        self.journey = journey
        self.state: RunState = stored.state if stored else "not_begun"
        self.times_begun = stored.times_begun if stored else 0
        self.began_in = stored.began_in if stored else ""
        self.steps: dict[str, StepProgress] = {}
        for progress in stored.steps if stored else ():
            if progress.step in journey.by_id:
                self.steps[progress.step] = progress

    @property
    def is_under_way(self) -> bool:
        """True if it has begun and not ended."""
        return self.state in ("active", "left")

    def begin(self, turn_id: str) -> None:
        """Begin the journey, or go on with one that was given up; one that was done begins again from the start."""
        if self.state != "given_up":
            for id, progress in self.steps.items():
                self.steps[id] = StepProgress(
                    step=id,
                    state="waiting",
                    reason="the journey began again",
                    was_done=progress.was_done,
                )
            self.times_begun += 1
            self.began_in = turn_id
        self.state = "active"

    def is_done(self, id: str) -> bool:
        """Return True if a step is done."""
        return id in self.steps and self.steps[id].state == "done"

    def is_resolved(self, id: str) -> bool:
        """Return True if a step is done or skipped."""
        return id in self.steps and self.steps[id].state in ("done", "skipped")

    def is_taken(self, id: str) -> bool:
        """Return True if a step has opened and is neither done nor skipped."""
        return id in self.steps and self.steps[id].state == "open"

    def is_done_by_telling(self, id: str) -> bool:
        """Return True if a step is open, and done once a reply follows it."""
        step = self.journey.by_id[id]
        is_done_otherwise = bool(step.tools) or step.done_when is not None
        return self.is_taken(id) and self.steps[id].asks is False and not is_done_otherwise

    def is_open(self, step: JourneyStep) -> bool:
        """Return True if a step is to be taken, or judged again, now: what has to come before it is done or skipped.

        A skipped step is judged again until a step after it is done: what decided it may have been a mistake. While the
        customer changes a step whose tool has to run again, no step after it is open.
        """
        if self.is_done(step.id):
            return False
        if self.is_resolved(step.id) and any(map(self.is_done, self.journey.find_later_steps(step.id))):
            return False
        for id, progress in self.steps.items():
            is_call_changed = progress.state == "open" and progress.arguments is not None
            if is_call_changed and step.id in self.journey.find_later_steps(id):
                return False
        return self.may_open(step)

    def may_open(self, step: JourneyStep, assumed_done: Container[str] = ()) -> bool:
        """Return True if the steps before a step let it open, with further ones that are assumed to be done."""
        if not step.after:
            return True
        done = [self.is_done(id) or id in assumed_done for id in step.after]
        if step.requires == "any" and any(done):
            return True
        return all(self.is_resolved(id) or id in assumed_done for id in step.after)

    def list_open(self) -> list[JourneyStep]:
        """Return the steps that are open, in their order."""
        return [step for step in self.journey.steps if self.is_open(step)]

    @property
    def is_finished(self) -> bool:
        """True if one of the last steps is done, or if everything is done or skipped."""
        for step in self.journey.steps:
            if self.is_done(step.id) and not self.journey.following[step.id]:
                return True
        return all(self.is_resolved(step.id) for step in self.journey.steps)

    def open_step(self, id: str, told_before: int) -> bool:
        """Note that a step is open; return True if it wasn't."""
        if self.is_taken(id):
            return False
        progress = self.steps.setdefault(id, StepProgress(step=id, state="waiting"))
        reason = "" if progress.state == "skipped" else progress.reason
        self.update(id, state="open", reason=reason, told_before=told_before, source=None)
        return True

    def skip(self, step: JourneyStep) -> bool:
        """Skip a step whose condition doesn't hold, unless one before it may still open it; True if that is new."""
        if all(map(self.is_resolved, step.after)):
            return self.resolve(step.id, "skipped", "its condition does not hold")
        return self.resolve(step.id, "waiting", "")

    def resolve(
        self, id: str, state: Literal["done", "skipped", "waiting"], reason: str, **fields: Any
    ) -> bool:
        """Note that a step is done, skipped or waits, and why; return True if it wasn't so before.

        Once a step is done, those before it that it didn't need are skipped, and those that only lead to these.
        """
        if id in self.steps and self.steps[id].state == state:
            return False
        progress = self.steps.get(id) or StepProgress(step=id, state=state)
        fields["was_done"] = state == "done" or progress.was_done
        self.steps[id] = progress.model_copy(update={"state": state, "reason": reason, **fields})
        for earlier_id in self.journey.by_id[id].after:
            leads_to_nothing = all(map(self.is_resolved, self.journey.following[earlier_id]))
            if not self.is_resolved(earlier_id) and (state == "done" or leads_to_nothing):
                outcome = "was done without it" if state == "done" else "no longer needs it"
                self.resolve(earlier_id, "skipped", f"{make_rule_id(self.journey.id, id)} {outcome}")
        return True

    def do_by_call(self, id: str, arguments: Mapping[str, Any], source: str, reason: str) -> None:
        """Note that a call did a step; if it was done before with other arguments, the later steps are open again."""
        before = self.steps[id].arguments
        self.resolve(id, "done", reason, source=source, arguments=dict(arguments))
        if before is not None and before != dict(arguments):
            rule_id = make_rule_id(self.journey.id, id)
            self.reopen_later_steps(id, f"{rule_id} has another result ({source})")

    def update(self, id: str, **fields: Any) -> None:
        """Change fields of a step's progress."""
        self.steps[id] = self.steps[id].model_copy(update=fields)

    def reopen_later_steps(self, id: str, reason: str) -> None:
        """Have all steps after a step wait until what is before them is done again."""
        for later_id in self.journey.find_later_steps(id):
            if later_id in self.steps:
                self.update(later_id, state="waiting", reason=reason, source=None)

    def make_state(self) -> JourneyState | None:
        """Return what is stored; None if the journey has not begun."""
        if self.state == "not_begun":
            return None
        steps = [self.steps[step.id] for step in self.journey.steps if step.id in self.steps]
        return JourneyState(
            journey=self.journey.id,
            state=self.state,
            times_begun=self.times_begun,
            began_in=self.began_in,
            steps=tuple(steps),
        )


def read_stored_journeys(state: StateView) -> dict[str, JourneyState]:
    """Return how far the journeys that have begun were when they were last stored, by their ids."""
    record = state.read_record("journeys", JourneyProgress)
    return {journey.journey: journey for journey in record.journeys} if record else {}


def note_done_steps(agent: Agent, state: StateView, followed: Container[str] = ()) -> dict[str, Any]:
    """Return the note about the agent's journeys that a message gets: all that was done, and what it tells itself.

    Args:
        agent: The specification.
        state: The state.
        followed: The ids of the guidelines that the message follows.
    """
    if not agent.journeys:
        return {}
    stored = read_stored_journeys(state)
    ids: list[str] = []
    for journey in agent.journeys:
        run = JourneyRun(journey, stored.get(journey.id))
        if run.state == "done" or run.times_begun > 1:
            ids.append(journey.id)
        for step_id, progress in run.steps.items():
            rule_id = make_rule_id(journey.id, step_id)
            if progress.was_done or (rule_id in followed and run.is_done_by_telling(step_id)):
                ids.append(rule_id)
    return {DONE_STEPS: {agent.name: ids}}


def find_calls_of_open_steps(state: StateView) -> dict[str, dict[str, Any]]:
    """Return the arguments of the calls that did steps which are open again, by the ids of the steps' rules."""
    calls: dict[str, dict[str, Any]] = {}
    for journey in read_stored_journeys(state).values():
        for progress in journey.steps:
            if progress.state == "open" and progress.arguments is not None:
                calls[make_rule_id(journey.journey, progress.step)] = progress.arguments
    return calls
