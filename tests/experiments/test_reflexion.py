"""An arm that tries again after a failure, with its reflections on the trials before."""

from __future__ import annotations

from typing import Any

import pytest

from arq_graph import ScriptedChatModel, errors
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Limits, MilestoneGraph, Scenario, Suite, UserSpec, evaluate
from tests.brain import Asked, Brain, do, filled, say
from tests.suites.household import SUITE, way

HOUSE = next(each for each in Suite.from_yaml(SUITE).scenarios if each.name == "place pen (helpful)")
GIVE_UP = say("I cannot find it.", ends_task=True)
DONE = say("It is done.", ends_task=True)


class Learner:
    """Gives up at once, until it reads so many notes of its own; then it knows the way."""

    def __init__(self, needs: int) -> None:
        self.needs = needs
        self.heads: list[str] = []
        self.reflected: list[Asked] = []
        self.trial = 0
        self.model = ScriptedChatModel(self.answer, model_name=f"learner-{needs}")

    def answer(self, call: Any) -> Any:
        asked = Asked(call)
        if asked.module == "reflexion":
            self.reflected.append(asked)
            self.trial += 1
            note = {"reflection": f"Note {self.trial}: look on shelf 2.", "says_what_to_do": True}
            return {**filled(asked.schema), **note}
        if not asked.turn:  # a trial begins
            self.heads.append(asked.head)
            knows = len(self.heads) > self.needs
            actions = [do(action) for action in way(HOUSE.make_world(1))] if knows else []
            self.brain = Brain(moves=[*actions, DONE if knows else GIVE_UP])
        return self.brain(call)


def held(arm: str, learner: Learner, **changes: Any) -> Any:
    return evaluate(Suite([HOUSE.replace(**changes)]), load_arms([arm]), model=learner.model)


@pytest.mark.parametrize(
    ("arm", "needs", "trials", "success"),
    [
        ("respact+reflexion", 0, 1, True),
        ("react+reflexion", 1, 2, True),
        ("respact+reflexion", 9, 3, False),
        ("respact+reflexion:5", 4, 5, True),
        ("respact", 1, 1, False),
    ],
)
def test_a_task_is_tried_until_it_is_done_or_the_trials_are_spent(arm, needs, trials, success):
    learner = Learner(needs)
    (one,) = held(arm, learner).conversations
    assert (one.error, one.outcome["success"], one.trials) == (None, success, trials)
    assert len(learner.reflected) == trials - 1
    # Of all trials the last one is told; what they cost is the cost of all.
    assert one.moves["act"] == (len(way(HOUSE.make_world(1))) if success else 0)
    assert one.progress_rate == (1.0 if success else 0.0)
    assert one.model_calls == len(learner.model.calls)
    assert ("reflexion" in one.steps) is (trials > 1)


def test_each_trial_reads_the_notes_on_those_before_it_and_each_note_the_notes_before():
    learner = Learner(9)
    held("respact+reflexion", learner)
    notes = [[number for number in (1, 2) if f"Note {number}" in head] for head in learner.heads]
    assert notes == [[], [1], [1, 2]]
    assert [asked.section("lessons") for asked in learner.reflected] == [None, ["Note 1: look on shelf 2."]]
    assert all("I cannot find it." in asked.tail for asked in learner.reflected)


def test_the_bound_of_calls_holds_for_each_trial_and_not_for_the_reflection():
    learner = Learner(1)
    (one,) = held("respact+reflexion", learner, limits=Limits(calls=1)).conversations
    assert (one.trials, one.ended, len(learner.reflected)) == (3, "calls", 2)


@pytest.mark.parametrize(
    ("needs", "kept", "why"),
    [(0, 1, None), (9, 0, "max_calls: the limit of 1 is reached (model calls so far: 1)")],
)
def test_at_a_limit_a_success_is_stored_and_a_failure_is_not_reflected_on(needs, kept, why):
    learner = Learner(needs)
    most = len(way(HOUSE.make_world(1))) + 1 if kept else 1
    report = evaluate(Suite([HOUSE]), load_arms(["respact+reflexion"]), model=learner.model, max_calls=most)
    assert (len(report.conversations), report.stopped) == (kept, why)
    assert len(learner.model.calls) == most and not learner.reflected


def test_a_reflection_that_fails_ends_the_conversation_alone():
    def answer(call: Any) -> Any:
        return ValueError("out of words") if call.module == "reflexion" else Brain(moves=[GIVE_UP])(call)

    report = evaluate(Suite([HOUSE]), load_arms(["respact+reflexion"]), model=ScriptedChatModel(answer))
    (one,) = report.conversations
    assert (one.ended, one.trials) == ("error", 1) and "out of words" in one.error


def test_with_the_offline_model_it_comes_to_its_end():
    (one,) = evaluate(Suite([HOUSE]), load_arms(["react+reflexion:2"]), model="offline").conversations
    assert (one.error, one.trials) == (None, 2)


def test_what_does_not_tell_a_failure_or_cannot_begin_anew_is_refused(tmp_path):
    user = UserSpec.model_validate({"intents": ["Hello."]})
    graph = MilestoneGraph.from_actions([{"name": "act"}])
    (broken,) = evaluate(
        Suite([Scenario("plain", user, graph)]), load_arms(["respact+reflexion"]), model="offline"
    ).broken
    assert "outcome() says `success`" in broken.error
    (tmp_path / "mine.py").write_text("class App:\n    def invoke(self, given): ...\napp = App()\n")
    with pytest.raises(errors.InputError, match="cannot begin anew"):
        load_arms(["mine:app+reflexion"], folder=tmp_path)
    with pytest.raises(errors.InputError, match="did you mean `respact`"):
        load_arms(["respatc+reflexion"])
    with pytest.raises(errors.InputError, match="trials"):
        load_arms(["respact+reflexion:0"])
