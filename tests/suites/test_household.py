"""The household: its world, its suite, and the arms that act in it."""

from typing import Any

import pytest

from arq_graph import errors
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Call, Result, Suite, Transcript, evaluate, score
from arq_graph.milestones.suites.household.world import CLOSED, LAMP, Household, get_kind
from tests.brain import ask, brain, do, say, think
from tests.suites.scripted_runs import load_suite
from tests.suites.winning_actions import winning_actions

SUITE = load_suite("household")
HELPFUL = [scenario for scenario in SUITE.scenarios if scenario.user.kind == "helpful"]
END = say("It is done.", ends_task=True)


def test_a_reset_puts_everything_back():
    house = Household("place", "pen", "drawer")

    def visit_every_place():
        return [house.reset(), *(house.step(f"go to {place}").text for place in house.house)]

    before = visit_every_place()
    assert house.step("take key 1 from side table 1").valid
    assert visit_every_place() == before


def test_an_impossible_action_changes_nothing():
    house = Household("clean", "mug", "shelf")
    place = house.where["mug 1"]
    for action in (f"take mug 1 from {place}", "fly", "", "clean mug 1 in sink 1", "put mug 1 in sink 1"):
        observation = house.step(action)
        assert (observation.text, observation.valid) == ("Nothing happens.", False)
    assert house.where["mug 1"] == place


def test_a_closed_place_shows_its_things_once_it_is_open():
    house = Household("place", "spoon", "cabinet")
    cabinet = next(place for place in house.house if get_kind(place) in CLOSED)
    assert house.step(f"go to {cabinet}").text == f"You are at {cabinet}. It is closed."
    assert f"open {cabinet}" in house.actions()
    assert f"In {cabinet} you see" in house.step(f"open {cabinet}").text
    assert "It is closed" in house.step(f"close {cabinet}").text


def test_a_heated_thing_that_was_cooled_again_is_not_hot():
    house = Household("heat", "potato", "desk")
    *before, go_to_desk, put = winning_actions(house)
    for action in [*before, "go to fridge 1", "cool potato 1 in fridge 1", go_to_desk, put]:
        assert house.step(action).valid
    assert not house.done


def test_a_person_with_a_thing_in_hand_takes_no_other():
    house = Household("two", "pen", "sofa", "flat")
    assert house.step("inventory").text == "You hold nothing."
    for action in winning_actions(house):
        house.step(action)
        if action.startswith("take"):
            break
    assert not any(action.startswith("take") for action in house.actions())
    assert house.step("inventory").text.startswith("You hold pen")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (("wash", "mug", "desk"), "task is 'wash'"),
        (("heat", "mugg", "desk"), "thing is 'mugg'"),
        (("heat", "mug", ""), "target is ''; it must be one of bed, bin"),
        (("light", "mug", "", "castle"), "house is 'castle'; it must be one of cottage, flat, villa"),
    ],
)
def test_the_error_about_an_unknown_task_lists_the_choices(task, message):
    with pytest.raises(errors.InputError, match=message):
        Household(*task)


def test_the_suite_has_three_scenarios_of_each_task_for_each_kind_of_user():
    assert len(SUITE.scenarios) == 54
    for use_case in {scenario.use_case for scenario in SUITE.scenarios}:
        kinds = [scenario.user.kind for scenario in SUITE.scenarios if scenario.use_case == use_case]
        assert sorted(kinds) == ["helpful"] * 3 + ["perturbed"] * 3 + ["unhelpful"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("scenario", HELPFUL, ids=lambda scenario: scenario.name)
def test_the_winning_actions_reach_every_milestone_and_half_of_them_are_not_enough(scenario):
    world = scenario.make_world(1)
    actions = winning_actions(world)
    world.reset()
    events: list[Call | Result] = []
    for action in actions:
        assert action in world.actions()
        text = world.step(action).text
        events += [Call("act", {"action": action}), Result(len(events) + 1, "act", text)]
        result = score(scenario.milestones, Transcript(tuple(events)))
        assert result.goal_completed is world.outcome()["success"]
    assert (result.progress_rate, result.coverage) == (1.0, 1.0)
    assert world.done and world.actions() == () and not world.step("look").valid
    without_takes = [event for event in events if "take" not in str(getattr(event, "arguments", ""))]
    assert score(scenario.milestones, Transcript(tuple(without_takes))).goal_completed is False


@pytest.mark.parametrize("scenario", HELPFUL, ids=lambda scenario: scenario.name)
def test_a_guide_knows_where_things_are(scenario):
    world = scenario.make_world(1)
    for name, knowledge in scenario.user.knowledge.items():
        kind = get_kind(LAMP) if name == "lamp" else world.thing
        assert name in (kind, f"{kind}s")
        places = sorted(place for thing, place in world.where.items() if get_kind(thing) == kind)
        described = knowledge.removeprefix("both ").split(", the other ")
        known_places = sorted(text.split(" ", 1)[1] for text in described)
        if knowledge.startswith("both"):
            known_places *= 2
        assert places == known_places


def select(name: str) -> Suite:
    """Return the suite with one scenario."""
    return Suite([scenario for scenario in SUITE.scenarios if scenario.name == name])


def run_moves(name: str, arm: str, *moves: Any) -> Any:
    """Return the record of one scenario, in which the model makes these moves."""
    (record,) = evaluate(select(name), load_arms([arm]), model=brain(moves=moves)).conversations
    return record


@pytest.mark.parametrize("kind", ["helpful", "unhelpful"])
def test_a_record_counts_thoughts_utterances_and_actions(kind):
    name = f"clean mug ({kind})"
    actions = winning_actions(select(name).scenarios[0].make_world(1))
    moves = [think("Where is it?"), ask("Where is the mug?"), do("fly"), *map(do, actions), END]
    record = run_moves(name, "respact", *moves)
    assert (record.error, record.goal_completed, record.progress_rate) == (None, True, 1.0)
    assert record.outcome == {"success": True}
    assert record.moves == {"think": 1, "speak": 2, "act": len(actions) + 1, "invalid": 1}
    assert record.speech == {"probing_question": 1, "status_update": 1}
    assert (record.dialogue_acts, record.turns, record.ended) == ({}, 2, "user")


def test_the_world_decides_that_a_task_failed():
    record = run_moves("heat egg (helpful)", "react", do("go to fridge 1"), END)
    assert (record.goal_completed, record.outcome) == (False, {"success": False})


def test_react_may_not_ask_and_zero_shot_sees_no_example():
    prompts = {}
    for arm in ("react", "respact", "zero-shot"):
        model = brain(moves=[say("Look here."), END])
        evaluate(select("place pen (helpful)"), load_arms([arm]), model=model)
        prompts[arm] = str(model.calls[0].messages[0].text)
        corrections = [str(call.messages[-1].text) for call in model.calls[1:]]
        assert any("nobody can be asked" in text for text in corrections) is (arm == "react")
    assert "Ask when something is uncertain" in prompts["respact"] and "<example>" in prompts["respact"]
    assert "Ask when" not in prompts["react"] and "<example>" not in prompts["react"]
    assert "Ask when" in prompts["zero-shot"] and "<example>" not in prompts["zero-shot"]


def test_a_speaker_under_the_schema_labels_each_utterance_with_its_act():
    question = ask("Where is the pen?", dialogue_act="ReqForObjLocAndOD")
    record = run_moves("place pen (helpful)", "respact-schema", question, END)
    assert record.dialogue_acts == {"ReqForObjLocAndOD": 1, "ReqForInstruction": 1}


def test_an_inner_monologue_has_a_thought_before_each_action():
    moves = [do("look"), think("I look around."), do("look"), do("inventory"), think("What do I hold?")]
    record = run_moves("place pen (helpful)", "inner-monologue", *moves, do("inventory"), END)
    assert record.moves == {"think": 2, "speak": 1, "act": 2, "invalid": 0}
    assert record.model_calls == 7


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["guided", "arq", "pre-act", "create_agent"])
def test_an_arm_that_calls_tools_cannot_act_in_a_world_of_texts(arm):
    (broken,) = evaluate(select("place pen (helpful)"), load_arms([arm]), model="offline").broken
    assert "acted in with texts" in broken.error
