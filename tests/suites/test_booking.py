"""The booking desk: what can be found and booked, and what counts as informed and as a success."""

from __future__ import annotations

import json

import pytest

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import evaluate
from arq_graph.milestones.suites.booking.world import DATABASE, BookingDesk
from tests.brain import act, brain, say
from tests.suites.episodes import done, held, shipped

SUITE = shipped("booking")
HOTEL = {"hotel": {"find": {"area": "old town", "price_range": "cheap", "internet": "yes"}, "request": ["phone"],
                   "book": {"people": 2, "day": "sunday", "nights": 3}, "full": [{"nights": 5}]}}  # fmt: skip
FOUND = ("find_hotels", {"area": "Old Town", "price_range": "cheap", "internet": "yes"})
PHONE = ("look_up", {"domain": "hotel", "name": "cloister guesthouse", "attributes": ["phone"]})
BOOKED = ("book_hotel", {"name": "Cloister Guesthouse", "people": 2, "day": "Sunday", "nights": 3})
TAXI = ("order_taxi", {"departure": "Town Pool", "destination": "Bell Court", "leave_at": "9:15"})


def named(name):
    return SUITE.replace(scenarios=[one for one in SUITE.scenarios if one.name == name])


def desk(goal, *deeds):
    world = BookingDesk(goal)
    for tool, arguments in deeds:
        assert done(world, tool, arguments)[1] == "success", (tool, arguments)
    return world


def outcome(goal, *deeds):
    told = desk(goal, *deeds).outcome()
    return told["inform"], told["success"]


def way(world):
    """The calls of one who understood every wish at once."""
    chosen = {}
    for domain, wish in world.wishes.items():
        booked = {slot: chosen.get(value, value) for slot, value in (wish.book or {}).items()}
        if domain == "taxi":
            yield "order_taxi", booked
            continue
        yield f"find_{domain}s", dict(wish.find)
        entities = getattr(world, f"find_{domain}s")(**wish.find)[f"{domain}s"]
        chosen[domain] = entities[0]["name"]
        if wish.request:
            yield "look_up", {"domain": domain, "name": chosen[domain], "attributes": list(wish.request)}
        for full in wish.full:
            yield f"book_{domain}", {"name": chosen[domain], **booked, **full}
        if wish.book is not None:
            yield f"book_{domain}", {"name": chosen[domain], **booked}


@pytest.mark.slow
def test_one_who_understands_every_wish_succeeds_in_every_scenario():
    records = held(SUITE, way).conversations
    assert len(records) >= 15
    for record in records:
        assert record.outcome == {"inform": True, "success": True}, record.scenario
        assert (record.goal_completed, record.progress_rate) == (True, 1.0), record.scenario


SAID = {
    "price_range": "price range",
    "people": "number of people",
    "nights": "number of nights",
    "leave_at": "time to leave",
    "arrive_by": "time to arrive",
}


def test_customers_know_all_that_their_goals_hold_or_fall_back_to_it():
    for scenario in SUITE.scenarios:
        goal, intents = scenario.world.keywords["goal"], scenario.user.intents
        assert len(goal) == len(intents), scenario.name
        for wish, intent in zip(goal.values(), intents, strict=True):
            said = {slot: str(value) for slot, value in intent.slots.items()}
            wanted = wish.get("find", {}) | wish.get("book", {})
            changed = [
                slot
                for slot, value in wanted.items()
                if value not in goal and said.get(SAID.get(slot, slot)) != str(value)
            ]
            assert bool(changed) is (intent.fallback is not None) and len(changed) < 2, (
                scenario.name,
                changed,
            )
            assert all(any(slot in changed for slot in full) for full in wish.get("full", ())), scenario.name
        assert scenario.use_case != "fallback" or intents[0].fallback


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["react", "respact"])
def test_a_refusal_is_told_and_the_customer_falls_back_in_the_shipped_arms(arm):
    room = {"name": "Cloister Guesthouse", "people": 1, "day": "sunday"}
    moves = [
        act("find_hotels", {"area": "old town", "price_range": "cheap", "internet": "yes"}),
        say("How many people, from which day, and for how many nights?"),
        act("book_hotel", room | {"nights": 5}),
        say("I could not book five nights at Cloister Guesthouse."),
        act("book_hotel", room | {"nights": 3}),
        say("Three nights at Cloister Guesthouse are booked; the reference is HO100."),
    ]
    (record,) = evaluate(
        named("five nights are too many (helpful)"), load_arms([arm]), model=brain(moves=moves)
    ).conversations
    assert (record.error, record.ended, record.goal_completed) == (None, "user", True)
    assert record.outcome == {"inform": True, "success": True}
    assert record.moves["invalid"] == 1


@pytest.mark.parametrize(
    ("deeds", "expected"),
    [
        ([FOUND, PHONE, BOOKED], (True, True)),
        ([BOOKED, PHONE], (True, True)),  # the order does not matter
        ([FOUND, BOOKED], (True, False)),  # the phone was never looked up
        ([FOUND, PHONE], (False, False)),  # nothing was booked
        ([FOUND, PHONE, ("book_hotel", {**BOOKED[1], "people": 3})], (True, False)),
        (
            [FOUND, PHONE, ("book_hotel", {**BOOKED[1], "name": "Lantern Lodge"})],
            (False, False),
        ),  # no internet
        (
            [FOUND, PHONE, ("book_hotel", {**BOOKED[1], "name": "Lantern Lodge"}), BOOKED],
            (True, True),
        ),  # put right
        ([FOUND, PHONE, BOOKED, TAXI], (True, False)),  # nobody wanted a taxi
        ([], (False, False)),
    ],
)
def test_what_was_booked_and_looked_up_decides(deeds, expected):
    assert outcome(HOTEL, *deeds) == expected


@pytest.mark.parametrize(
    ("deeds", "expected"),
    [
        ([("find_attractions", {"type": "park", "area": "hill"})], (True, False)),
        ([("find_attractions", {"type": "park"})], (False, False)),  # those elsewhere were shown, too
        ([("find_attractions", {"type": "park"}),
          ("look_up", {"domain": "attraction", "name": "Lookout Park", "attributes": ["address"]})], (True, True)),
        ([("look_up", {"domain": "attraction", "name": "Lookout Park", "attributes": ["address"]}),
          ("look_up", {"domain": "attraction", "name": "Mill Gardens", "attributes": ["address"]})], (False, False)),
        ([("look_up", {"domain": "attraction", "name": "Lookout Park", "attributes": ["address"]}),
          ("find_attractions", {"type": "zoo"})], (True, True)),  # a search that finds nothing offers nothing
    ],
)  # fmt: skip
def test_where_nothing_is_booked_what_was_shown_last_decides(deeds, expected):
    park = {"attraction": {"find": {"type": "park", "area": "hill"}, "request": ["address"]}}
    assert outcome(park, *deeds) == expected


def test_a_taxi_goes_between_the_places_that_were_booked():
    goal = HOTEL | {"taxi": {"book": {"departure": "Town Pool", "destination": "hotel", "leave_at": "09:15"}}}
    right = ("order_taxi", {**TAXI[1], "destination": "Cloister Guesthouse"})
    assert outcome(goal, PHONE, BOOKED, right) == (True, True)
    with_address = {**TAXI[1], "destination": "Cloister Guesthouse, Weaver Lane"}
    assert outcome(goal, PHONE, BOOKED, ("order_taxi", with_address)) == (True, True)
    assert outcome(goal, PHONE, BOOKED, TAXI) == (True, False)
    assert outcome(goal, PHONE, BOOKED) == (False, False)


def test_whoever_does_all_but_one_thing_right_has_not_completed_the_goal():
    def nearly(world):
        for tool, arguments in way(world):
            yield tool, {**arguments, "people": 7} if tool == "book_hotel" else arguments

    (record,) = held(named("the whole visit"), nearly).conversations
    assert record.outcome == {"inform": True, "success": False}
    assert (record.goal_completed, record.progress_rate) == (False, 1.0)


def test_each_booking_has_a_reference_of_its_own_even_in_place_of_another():
    world = desk({}, BOOKED)
    booked = [
        world.book_hotel(**BOOKED[1] | {"nights": 2}),
        world.book_restaurant("Lisboa", 2, "monday", "19:00"),
    ]
    booked += [world.book_restaurant("Lisboa", 2, "monday", "20:00"), world.order_taxi(**TAXI[1])]
    assert [each["reference"] for each in booked] == ["HO102", "RE103", "RE104", "TA105"]


def test_trains_keep_their_times_and_what_does_not_matter_is_any():
    world = BookingDesk({})
    asked = {"departure": "Northgate", "destination": "Brackwater", "day": "friday"}
    found = world.find_trains(**asked, leave_at="7:30", arrive_by="16:40")
    assert [each["leave_at"] for each in found["trains"]] == ["11:45", "14:30"]
    assert world.find_trains(**asked)["found"] == 4
    assert world.find_hotels()["found"] == len(json.loads(DATABASE.read_text())["hotel"]) > 10
    assert len(world.find_hotels()["hotels"]) == 10
    assert world.find_restaurants(name="pizzeria")["restaurants"][0]["area"] == "university"


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("book_hotel", {**BOOKED[1], "nights": 5}, "could not be booked: nothing is free then"),
        ("book_hotel", {**BOOKED[1], "name": "Grand Hotel"}, "no hotel called 'Grand Hotel'"),
        ("book_train", {"name": "BR1", "people": 1}, "no train called 'BR1'"),
        ("order_taxi", {"departure": "Town Pool", "destination": "Bell Court"}, "time to leave or to arrive"),
    ],
)
def test_what_cannot_be_booked_is_refused_and_leaves_no_booking(tool, arguments, said):
    world = BookingDesk(HOTEL)
    result, status = done(world, tool, arguments)
    assert said in result and status == "error" and world.bookings == {}
