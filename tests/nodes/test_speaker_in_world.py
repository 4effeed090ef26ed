"""A move in a world: what is shown of it, which actions code lets through, and when nothing is left but to speak."""

from __future__ import annotations

import pytest

from arq_graph import Agent
from arq_graph.agent.state import Move, WorldStatus
from tests.nodes.order_tools import called
from tests.nodes.speaker_desk import customer, move, said
from tests.speaking import do, say, think

HELPER = Agent("Helper", "You help in a kitchen.")
TASK = customer("Wash the mug.")
KITCHEN = WorldStatus(turn="h1", beginning="A kitchen.", actions=("look", "open the cupboard"))


def in_kitchen(script, *after, world=KITCHEN, moves=(), **options):
    state = {"world": [world] if world else [], "moves": list(moves)}
    made = {"desk": HELPER, "in_world": True, "setting": "task", **options}
    return move(script, TASK, *after, state=state, **made)


@pytest.mark.parametrize(
    ("world", "action", "complaint"),
    [
        (KITCHEN.model_copy(update={"done": True}), "look", "the world's task has ended"),
        (None, "look", "the world's task has ended"),
        (KITCHEN, " ", "it is empty"),
        (KITCHEN.model_copy(update={"actions": None}), "", "it is empty"),
        (KITCHEN, "fly", "what can: look, open the cupboard"),
        (KITCHEN.model_copy(update={"actions": ()}), "look", "what can: nothing"),
        (KITCHEN.model_copy(update={"actions": ("Look", "LOOK")}), "look", "what can: Look, LOOK"),
    ],
)
def test_an_action_that_cannot_be_is_told_why(world, action, complaint):
    update, asked = in_kitchen([do(action), say("I stop here.", ends_task=True)], world=world)
    assert complaint in asked[1].complaint
    assert said(update) == "I stop here."


@pytest.mark.parametrize(
    ("actions", "action", "taken"),
    [
        (KITCHEN.actions, "Open  the CUPBOARD ", "open the cupboard"),
        (None, " dance ", "dance"),
        (("look", "Look"), "Look", "Look"),
    ],
)
def test_an_action_that_can_be_is_taken_as_the_world_has_it(actions, action, taken):
    update, asked = in_kitchen([do(action)], world=KITCHEN.model_copy(update={"actions": actions}))
    assert (len(asked), called(update)) == (1, [("act", {"action": taken})])


def test_what_the_world_does_not_tell_is_not_shown():
    _, asked = in_kitchen([do("look")], world=WorldStatus(turn="h1", beginning="A kitchen.", invalid=2))
    assert asked[0].section("world") == {"beginning": "A kitchen.", "done": False, "invalid_actions": 2}
    _, asked = in_kitchen([do("look")], world=KITCHEN.model_copy(update={"score": 0.0}))
    assert asked[0].section("world")["score"] == 0.0
    assert asked[0].section("world")["actions"] == ["look", "open the cupboard"]


def test_a_world_that_has_ended_is_only_spoken_of():
    done = KITCHEN.model_copy(update={"done": True})
    script = [say("What else?", ends_task=False), say("The mug is clean.", ends_task=True)]
    update, asked = in_kitchen(script, world=done)
    assert "end the task, and say how far it got" in asked[1].complaint
    assert said(update) == "The mug is clean."


def test_what_was_thought_before_an_action_is_not_thought_again_after_it():
    before = [
        Move(turn="h1", kind="think", text="It may be there."),
        Move(turn="h1", kind="act", text="look"),
    ]
    script = [think("It may be  THERE."), think("look"), do("look")]
    update, asked = in_kitchen(script, moves=before)
    assert "this was thought before" in asked[1].complaint
    assert len(asked) == 3, "what was done is no thought"
    assert [each.text for each in update["moves"] if each.kind == "think"] == ["It may be there.", "look"]
