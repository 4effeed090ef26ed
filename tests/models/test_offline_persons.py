"""Whoever a designer calls the other side, the pupil or the skipper, is the one whom the agent talks to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.prompts import judge, reply

ROLES = ["climber", "beekeeper", "trumpeter", "novice", "villager", "ranger", "choir member", "boat owner"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("the {} asks which hives are free", "Which hives are free this week?"),
        ("a {} wants to rent a rope", "I want to rent a rope."),
        ("the {} says that the lantern leaks", "The lantern leaks."),
        ("the {} complains about the gravel", "I have to complain about the gravel!"),
        ("if the {} needs a permit", "I need a permit."),
    ],
)
def test_anybody_may_be_the_one_who_asks(role: str, condition: str, said: str) -> None:
    assert judge(condition.format(role), said)["condition_applies"]


@settings(max_examples=40)
@given(st.text("bcdfgklmnprtvz", min_size=4, max_size=9))
def test_a_person_is_known_by_asking_not_by_a_list(role: str) -> None:
    assert judge(f"the {role} asks which berths are dry", "Which berths are dry?")["condition_applies"]
    assert not judge(f"the {role} asks which berths are dry", "Where can I buy bait?")["condition_applies"]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("the order needs a signature", "I need a pen."),
        ("the climber asks for a helmet", "Who is the climber over there?"),
        ("the system says that the hut is closed", "Hello, I am new here."),
    ],
)
def test_a_thing_that_needs_something_is_no_person(condition: str, said: str) -> None:
    assert not judge(condition, said)["condition_applies"]


def test_what_the_order_needs_is_told_by_a_tool() -> None:
    lookup = ("get_order", {"order_id": "K-1"}, {"order_id": "K-1", "needs": "a signature"})
    assert judge("the order needs a signature", "What about K-1?", lookup)["condition_applies"]


def test_a_judgement_quotes_the_guideline_in_its_own_words() -> None:
    judged = judge("the beekeeper asks for smoke", "Do you have smoke?", action="tell the beekeeper's club")
    assert judged["condition"] == "the beekeeper asks for smoke"
    assert judged["action"] == "tell the beekeeper's club"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("remind the climber that chalk is not allowed in the hall", "Chalk is not allowed in the hall."),
        ("tell the novice that it takes two weeks", "It takes two weeks."),
        ("ask the trumpeter to play softer", "Could you please play softer?"),
        ("tell the villager that the villager's well is dry", "Your well is dry."),
        ('say "The ranger is out."', "The ranger is out."),
    ],
)
def test_whom_the_agent_is_to_tell_is_spoken_to(action: str, said: str) -> None:
    assert reply("What now?", guidelines={"G1": action}) == said


def replied(tool: str, result: Any) -> str:
    return str(reply("What is there?", (tool, {}, result), guidelines={"G1": "tell what there is"}))


def test_what_is_free_was_not_freed() -> None:
    said = replied("free_berths", {"berths": [{"berth": "B2", "length": 9}]})
    assert "freed" not in said
    assert "B2" in said


def test_what_was_listed_was_not_done() -> None:
    said = replied("muddy_paths", [{"path": "Otter"}, {"path": "Heron"}])
    assert "I have" not in said
    assert "Otter" in said


def test_what_changes_something_is_still_said_to_be_done() -> None:
    assert "I have cancelled the berth" in replied("cancel_berth", {"berth": "B2"})


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("a berth was booked", "I want to book a berth."),
        ("the tent is rented", "Could you rent me the tent?"),
        ("the boat has been cleaned", "Please clean the boat."),
    ],
)
def test_what_is_wished_for_has_not_come_about(condition: str, said: str) -> None:
    assert not judge(condition, said)["condition_applies"]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("the tent is torn", "I want to go home, the tent is torn."),
        ("a berth was booked", "A berth was booked."),
    ],
)
def test_what_is_stated_beside_a_wish_holds(condition: str, said: str) -> None:
    assert judge(condition, said)["condition_applies"]


@pytest.mark.parametrize(
    ("condition", "said", "holds"),
    [
        ("the boiler needs a repair", "My boiler needs a repair.", True),
        ("the boiler needs a repair", "My boiler is broken, please repair it.", True),
        ("the boiler needs a repair", "My sink needs a repair.", False),
        ("the boiler needs a repair", "I need a repair of my car.", False),
        ("the kiln needs to be cleaned", "The kiln needs to be cleaned.", True),
        ("the kiln needs to be cleaned", "My pot needs to be cleaned.", False),
        ("the climber needs to be told the rules", "What are the rules?", True),
    ],
)
def test_what_needs_a_repair_is_a_thing_on_no_list(condition: str, said: str, holds: bool) -> None:
    assert judge(condition, said)["condition_applies"] is holds
