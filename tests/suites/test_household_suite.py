"""The household suite: what its files say is so, every task can be done, and what a record tells of a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from arq_graph import Environment, Observation
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Call, Limits, Result, Suite, Transcript, evaluate, score
from arq_graph.milestones.suites.household.world import LAMP, get_kind
from tests.brain import ask, brain, do, say, think
from tests.suites.household import SUITE, way

ALL = Suite.from_yaml(SUITE)
HELPFUL = [each for each in ALL.scenarios if each.user.kind == "helpful"]
END = say("It is done.", ends_task=True)


def only(name: str, **changes: Any) -> Suite:
    """The suite with one scenario."""
    (scenario,) = (each for each in ALL.scenarios if each.name == name)
    return Suite([scenario.replace(**changes)])


def held(suite: Suite, arm: str, *moves: Any) -> Any:
    """The record of one conversation."""
    (record,) = evaluate(suite, load_arms([arm]), model=brain(moves=moves)).conversations
    return record


def test_there_are_six_types_of_tasks_three_of_each_for_three_kinds_of_users():
    assert len(ALL.scenarios) == 54
    of_type = {each.use_case for each in ALL.scenarios}
    assert len(of_type) == 6
    for name in of_type:
        kinds = [each.user.kind for each in ALL.scenarios if each.use_case == name]
        assert sorted(kinds) == ["helpful"] * 3 + ["perturbed"] * 3 + ["unhelpful"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("scenario", HELPFUL, ids=lambda each: each.name)
def test_who_knows_the_way_reaches_every_milestone_and_no_other_way_of_half_of_it_does(scenario):
    world = scenario.make_world(1)
    events: list[Call | Result] = []
    actions = way(world)
    assert isinstance(world, Environment)
    world.reset()
    for action in actions:
        assert action in world.actions()
        seen: Observation = world.step(action)
        events += [Call("act", {"action": action}), Result(len(events) + 1, "act", seen.text)]
        measured = score(scenario.milestones, Transcript(tuple(events)))
        assert measured.goal_completed is world.outcome()["success"]
    assert (measured.progress_rate, measured.coverage) == (1.0, 1.0)
    assert world.done and world.actions() == () and not world.step("look").valid
    half = Transcript(tuple(each for each in events if not str(getattr(each, "arguments", "")).count("take")))
    assert score(scenario.milestones, half).goal_completed is False


@pytest.mark.parametrize("scenario", HELPFUL, ids=lambda each: each.name)
def test_what_a_guide_knows_is_so(scenario):
    world = scenario.make_world(1)
    for name, told in scenario.user.knowledge.items():
        kind = get_kind(LAMP) if name == "lamp" else world.thing
        assert name in (kind, f"{kind}s")
        places = sorted(place for thing, place in world.where.items() if get_kind(thing) == kind)
        said = told.removeprefix("both ").split(", the other ")
        found = sorted(each.split(" ", 1)[1] for each in said) * (2 if told.startswith("both") else 1)
        assert places == found


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("helpful", "Sure. The mug is on counter 2."),
        ("perturbed", "Sure. The mug is on counter."),
        ("unhelpful", "Sure. The mug is on counter 8."),
    ],
)
def test_a_conversation_tells_what_was_thought_said_and_done(kind, said):
    suite = only(f"clean mug ({kind})")
    actions = way(suite.scenarios[0].make_world(1))
    moves = [think("Where is it?"), ask("Where is the mug?"), do("fly"), *map(do, actions), END]
    one = held(suite, "respact", *moves)
    assert (one.error, one.goal_completed, one.progress_rate) == (None, True, 1.0)
    assert one.outcome == {"success": True}
    assert one.moves == {"think": 1, "speak": 2, "act": len(actions) + 1, "invalid": 1}
    assert one.speech == {"probing_question": 1, "status_update": 1}
    assert (one.dialogue_acts, one.turns, one.ended) == ({}, 2, "user")


def test_an_action_that_fails_the_task_is_told_by_the_world():
    one = held(only("heat egg (helpful)"), "react", do("go to fridge 1"), END)
    assert (one.goal_completed, one.outcome) == (False, {"success": False})


def test_react_says_nothing_before_its_report():
    suite = only("place pen (helpful)")
    one = held(suite, "react", ask("Where is the pen?"), say("I am looking."), do("look"), END)
    assert one.moves == {"think": 0, "speak": 1, "act": 1, "invalid": 0}


def test_who_may_ask_nothing_is_not_told_how_to_ask():
    heads = {}
    for arm in ("react", "respact"):
        model = brain(moves=[say("Look here."), END])
        evaluate(only("place pen (helpful)"), load_arms([arm]), model=model)
        heads[arm] = str(model.calls[0].messages[0].text)
        told = [str(call.messages[-1].text) for call in model.calls[1:]]
        assert any("nobody can be asked" in text for text in told) is (arm == "react")
    assert "Ask when something is uncertain" in heads["respact"] and "<example>" in heads["respact"]
    assert "Ask when" not in heads["react"] and "<example>" not in heads["react"]


def test_a_speaker_under_the_schema_says_which_act_each_utterance_is():
    suite = only("place pen (helpful)")
    one = held(suite, "respact-schema", ask("Where is the pen?", dialogue_act="ReqForObjLocAndOD"), END)
    assert one.dialogue_acts == {"ReqForObjLocAndOD": 1, "ReqForInstruction": 1}


def test_in_an_inner_monologue_no_action_comes_without_a_thought_of_its_own():
    suite = only("place pen (helpful)")
    moves = [do("look"), think("I look around."), do("look"), do("inventory"), think("What do I hold?")]
    one = held(suite, "inner-monologue", *moves, do("inventory"), END)
    assert one.moves == {"think": 2, "speak": 1, "act": 2, "invalid": 0}
    assert one.model_calls == 7


def test_zero_shot_shows_no_worked_example():
    prompts = {}
    for arm in ("respact", "zero-shot"):
        model = brain(moves=[END])
        evaluate(only("place pen (helpful)"), load_arms([arm]), model=model)
        prompts[arm] = str(model.calls[0].messages[0].text)
    assert "<example>" in prompts["respact"] and "<example>" not in prompts["zero-shot"]
    before, _, behind = prompts["respact"].partition("An answered example")
    assert prompts["zero-shot"].startswith(before.strip()) and prompts["zero-shot"].endswith(behind[-200:])


SPEAKERS = ["react", "respact", "respact-schema", "inner-monologue", "zero-shot"]


@pytest.mark.slow
def test_with_the_offline_model_each_arm_comes_to_its_end_within_bounds():
    suite = only("light key (unhelpful)", limits=Limits(turns=5, calls=60))
    for one in evaluate(suite, load_arms(SPEAKERS), model="offline").conversations:
        assert one.error is None and one.ended in ("user", "turns") and one.outcome["success"] is False


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["guided", "arq", "pre-act", "create_agent"])
def test_an_arm_that_calls_tools_says_that_it_cannot_act_in_a_world_of_texts(arm):
    (broken,) = evaluate(only("place pen (helpful)"), load_arms([arm]), model="offline").broken
    assert "acted in with texts" in broken.error
