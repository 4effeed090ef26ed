"""An arm that tries again after a failure, with its reflections on the trials before."""

from typing import Any

import pytest

from arq_graph import ScriptedChatModel, errors
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Limits, MilestoneGraph, Scenario, Suite, UserSpec, evaluate
from tests.brain import Brain, Prompt, do, say
from tests.schemas import fill_schema
from tests.suites.scripted_runs import load_suite
from tests.suites.winning_actions import winning_actions

[HOUSE] = [
    scenario for scenario in load_suite("household").scenarios if scenario.name == "place pen (helpful)"
]
WINNING_ACTIONS = winning_actions(HOUSE.make_world(1))
GIVE_UP = say("I cannot find it.", ends_task=True)
DONE = say("It is done.", ends_task=True)


class Learner:
    """A model whose agent gives up at once until it has made `needed_notes` notes, and then wins."""

    def __init__(self, needed_notes: int) -> None:
        self.needed_notes = needed_notes
        self.heads: list[str] = []
        self.reflections: list[Prompt] = []
        self.model = ScriptedChatModel(self.answer, model_name=f"learner-{needed_notes}")

    def answer(self, call: Any) -> Any:
        asked = Prompt(call)
        if asked.module == "reflexion":
            self.reflections.append(asked)
            text = f"Note {len(self.reflections)}: look on shelf 2."
            note = {"reflection": text, "says_what_to_do": True}
            return {**fill_schema(asked.schema), **note}
        if not asked.turn:  # a trial begins
            self.heads.append(asked.head)
            moves = [GIVE_UP]
            if len(self.heads) > self.needed_notes:
                moves = [do(action) for action in WINNING_ACTIONS] + [DONE]
            self.brain = Brain(moves=moves)
        return self.brain(call)


def evaluate_arm(arm: str, learner: Learner, **changes: Any) -> Any:
    return evaluate(Suite([HOUSE.replace(**changes)]), load_arms([arm]), model=learner.model)


@pytest.mark.parametrize(
    ("arm", "needed_notes", "trials", "success"),
    [
        ("respact+reflexion", 0, 1, True),
        ("react+reflexion", 1, 2, True),
        ("respact+reflexion", 9, 3, False),
        ("respact+reflexion:5", 4, 5, True),
    ],
)
def test_a_task_is_tried_until_it_is_done_or_the_trials_are_spent(arm, needed_notes, trials, success):
    learner = Learner(needed_notes)
    [conversation] = evaluate_arm(arm, learner).conversations
    assert conversation.error is None
    assert (conversation.outcome["success"], conversation.trials) == (success, trials)
    # The record shows the last trial, and counts the costs of all.
    assert conversation.moves["act"] == (len(WINNING_ACTIONS) if success else 0)
    assert conversation.progress_rate == (1.0 if success else 0.0)
    assert conversation.model_calls == len(learner.model.calls)
    assert len(learner.reflections) == trials - 1
    assert ("reflexion" in conversation.steps) is (trials > 1)


def test_each_trial_and_each_reflection_reads_the_notes_on_the_trials_before_it():
    learner = Learner(9)
    evaluate_arm("respact+reflexion", learner)
    notes = [[number for number in (1, 2) if f"Note {number}" in head] for head in learner.heads]
    assert notes == [[], [1], [1, 2]]
    lessons = [asked.section("lessons") for asked in learner.reflections]
    assert lessons == [None, ["Note 1: look on shelf 2."]]
    assert all("I cannot find it." in asked.tail for asked in learner.reflections)


def test_the_limit_of_calls_holds_for_each_trial_and_not_for_the_reflection():
    learner = Learner(1)
    [conversation] = evaluate_arm("respact+reflexion", learner, limits=Limits(calls=1)).conversations
    assert (conversation.trials, conversation.ended, len(learner.reflections)) == (3, "calls", 2)


@pytest.mark.parametrize(
    ("needed_notes", "max_calls", "conversations", "stopped"),
    [
        (0, len(WINNING_ACTIONS) + 1, 1, None),
        (9, 1, 0, "max_calls: the limit of 1 is reached (model calls so far: 1)"),
    ],
)
def test_at_a_limit_a_success_is_stored_and_a_failure_is_not_reflected_on(
    needed_notes, max_calls, conversations, stopped
):
    learner = Learner(needed_notes)
    arms = load_arms(["respact+reflexion"])
    report = evaluate(Suite([HOUSE]), arms, model=learner.model, max_calls=max_calls)
    assert (len(report.conversations), report.stopped) == (conversations, stopped)
    assert len(learner.model.calls) == max_calls
    assert learner.reflections == []


def test_a_reflection_that_fails_ends_the_conversation_alone():
    def answer(call: Any) -> Any:
        if call.module == "reflexion":
            return ValueError("out of words")
        return Brain(moves=[GIVE_UP])(call)

    report = evaluate(Suite([HOUSE]), load_arms(["respact+reflexion"]), model=ScriptedChatModel(answer))
    [conversation] = report.conversations
    assert (conversation.ended, conversation.trials) == ("error", 1)
    assert "out of words" in conversation.error


def test_arms_and_worlds_that_reflexion_cannot_repeat_are_refused(tmp_path):
    user = UserSpec.model_validate({"intents": ["Hello."]})
    graph = MilestoneGraph.from_actions([{"name": "act"}])
    suite = Suite([Scenario("plain", user, graph)])
    [broken] = evaluate(suite, load_arms(["respact+reflexion"]), model="offline").broken
    assert "outcome() says `success`" in broken.error
    (tmp_path / "mine.py").write_text("class App:\n    def invoke(self, given): ...\napp = App()\n")
    for arm, problem in (
        ("mine:app+reflexion", "cannot begin anew"),
        ("respatc+reflexion", "did you mean `respact`"),
        ("respact+reflexion:0", "trials"),
    ):
        with pytest.raises(errors.InputError, match=problem):
            load_arms([arm], folder=tmp_path)
