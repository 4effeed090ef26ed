"""The booking desk: its searches and bookings, and what counts as informed and as a success."""

import pytest

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import evaluate
from arq_graph.milestones.suites.booking.world import DATABASE, BookingDesk
from tests.brain import act, brain, say
from tests.suites.scripted_runs import call_world, load_suite, run_scripted_agent

SUITE = load_suite("booking")
HOTEL = {
    "hotel": {
        "find": {"area": "old town", "price_range": "cheap", "internet": "yes"},
        "request": ["phone"],
        "book": {"people": 2, "day": "sunday", "nights": 3},
        "full": [{"nights": 5}],
    }
}
FIND = ("find_hotels", {"area": "Old Town", "price_range": "cheap", "internet": "yes"})
PHONE = ("look_up", {"domain": "hotel", "name": "cloister guesthouse", "attributes": ["phone"]})
BOOKING = {"name": "Cloister Guesthouse", "people": 2, "day": "Sunday", "nights": 3}
BOOK = ("book_hotel", BOOKING)
BOOK_OTHER = ("book_hotel", {**BOOKING, "name": "Lantern Lodge"})  # without internet
TAXI = {"departure": "Town Pool", "destination": "Bell Court", "leave_at": "9:15"}


def select(name):
    return SUITE.replace(scenarios=[scenario for scenario in SUITE.scenarios if scenario.name == name])


def run_calls(goal, *calls):
    desk = BookingDesk(goal)
    for tool, arguments in calls:
        assert call_world(desk, tool, arguments)[1] == "success", (tool, arguments)
    return desk


def get_outcome(goal, *calls):
    outcome = run_calls(goal, *calls).outcome()
    return outcome["inform"], outcome["success"]


def fulfil_every_wish(desk):
    """Yield the calls of an agent that understands every wish at once."""
    chosen = {}
    for domain, wish in desk.wishes.items():
        booking = {slot: chosen.get(value, value) for slot, value in (wish.book or {}).items()}
        if domain == "taxi":
            yield "order_taxi", booking
            continue
        yield f"find_{domain}s", dict(wish.find)
        name = getattr(desk, f"find_{domain}s")(**wish.find)[f"{domain}s"][0]["name"]
        chosen[domain] = name
        if wish.request:
            yield "look_up", {"domain": domain, "name": name, "attributes": list(wish.request)}
        for full in wish.full:
            yield f"book_{domain}", {"name": name, **booking, **full}
        if wish.book is not None:
            yield f"book_{domain}", {"name": name, **booking}


@pytest.mark.slow
def test_an_agent_that_understands_every_wish_succeeds_in_every_scenario():
    records = run_scripted_agent(SUITE, fulfil_every_wish)
    assert len(records) >= 15
    for record in records:
        assert record.outcome == {"inform": True, "success": True}, record.scenario
        assert (record.goal_completed, record.progress_rate) == (True, 1.0), record.scenario


def test_an_agent_that_makes_one_wrong_booking_does_not_complete_the_goal():
    def book_for_too_many(desk):
        for tool, arguments in fulfil_every_wish(desk):
            yield tool, {**arguments, "people": 7} if tool == "book_hotel" else arguments

    (record,) = run_scripted_agent(select("the whole visit"), book_for_too_many)
    assert record.outcome == {"inform": True, "success": False}
    assert (record.goal_completed, record.progress_rate) == (False, 1.0)


SLOT_NAMES = {
    "price_range": "price range",
    "people": "number of people",
    "nights": "number of nights",
    "leave_at": "time to leave",
    "arrive_by": "time to arrive",
}


@pytest.mark.parametrize("scenario", SUITE.scenarios, ids=lambda scenario: scenario.name)
def test_a_customer_knows_every_wish_or_falls_back_to_it(scenario):
    goal, intents = scenario.world.keywords["goal"], scenario.user.intents
    for wish, intent in zip(goal.values(), intents, strict=True):
        changed_slots = []
        for slot, value in (wish.get("find", {}) | wish.get("book", {})).items():
            stated = intent.slots.get(SLOT_NAMES.get(slot, slot))
            if value not in goal and str(stated) != str(value):
                changed_slots.append(slot)
        assert len(changed_slots) == (1 if intent.fallback else 0)
        for full in wish.get("full", ()):
            assert set(full) & set(changed_slots)


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["react", "respact"])
def test_the_customer_of_a_shipped_arm_falls_back_after_a_refusal(arm):
    room = {"name": "Cloister Guesthouse", "people": 1, "day": "sunday"}
    moves = [
        act("find_hotels", {"area": "old town", "price_range": "cheap", "internet": "yes"}),
        say("How many people, from which day, and for how many nights?"),
        act("book_hotel", room | {"nights": 5}),
        say("I could not book five nights at Cloister Guesthouse."),
        act("book_hotel", room | {"nights": 3}),
        say("Three nights at Cloister Guesthouse are booked; the reference is HO100."),
    ]
    suite = select("five nights are too many (helpful)")
    (record,) = evaluate(suite, load_arms([arm]), model=brain(moves=moves)).conversations
    assert (record.error, record.ended, record.goal_completed) == (None, "user", True)
    assert record.outcome == {"inform": True, "success": True}
    assert record.moves["invalid"] == 1


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([FIND, PHONE, BOOK], (True, True)),
        ([BOOK, PHONE], (True, True)),  # the order does not matter
        ([FIND, BOOK], (True, False)),  # the phone was never looked up
        ([FIND, PHONE], (False, False)),  # nothing was booked
        ([FIND, PHONE, ("book_hotel", {**BOOKING, "people": 3})], (True, False)),
        ([FIND, PHONE, BOOK_OTHER], (False, False)),
        ([FIND, PHONE, BOOK_OTHER, BOOK], (True, True)),  # corrected
        ([FIND, PHONE, BOOK, ("order_taxi", TAXI)], (True, False)),  # nobody wanted a taxi
    ],
)
def test_bookings_and_look_ups_decide_the_outcome(calls, expected):
    assert get_outcome(HOTEL, *calls) == expected


def test_without_a_booking_the_last_shown_entities_decide():
    park = {"attraction": {"find": {"type": "park", "area": "hill"}, "request": ["address"]}}
    address = {"domain": "attraction", "name": "Lookout Park", "attributes": ["address"]}
    look_up = ("look_up", address)
    assert get_outcome(park, ("find_attractions", {"type": "park", "area": "hill"})) == (True, False)
    all_parks = ("find_attractions", {"type": "park"})
    assert get_outcome(park, all_parks) == (False, False)  # it showed parks elsewhere, too
    assert get_outcome(park, all_parks, look_up) == (True, True)
    wrong = ("look_up", {**address, "name": "Mill Gardens"})
    assert get_outcome(park, look_up, wrong) == (False, False)
    assert get_outcome(park, look_up, ("find_attractions", {"type": "zoo"})) == (True, True)  # shows nothing


def test_a_taxi_must_go_between_the_booked_places():
    goal = HOTEL | {"taxi": {"book": {"departure": "Town Pool", "destination": "hotel", "leave_at": "09:15"}}}
    for destination in ("Cloister Guesthouse", "Cloister Guesthouse, Weaver Lane"):
        taxi = ("order_taxi", {**TAXI, "destination": destination})
        assert get_outcome(goal, PHONE, BOOK, taxi) == (True, True)
    assert get_outcome(goal, PHONE, BOOK, ("order_taxi", TAXI)) == (True, False)
    assert get_outcome(goal, PHONE, BOOK) == (False, False)


def test_each_booking_gets_its_own_reference():
    desk = run_calls({}, BOOK)
    bookings = [
        desk.book_hotel(**BOOKING | {"nights": 2}),
        desk.book_restaurant("Lisboa", 2, "monday", "20:00"),
        desk.order_taxi(**TAXI),
    ]
    assert [booking["reference"] for booking in bookings] == ["HO102", "RE103", "TA104"]


def test_searches_honour_times_and_ignore_criteria_that_are_left_out():
    desk = BookingDesk({})
    journey = {"departure": "Northgate", "destination": "Brackwater", "day": "friday"}
    trains = desk.find_trains(**journey, leave_at="7:30", arrive_by="16:40")["trains"]
    assert [train["leave_at"] for train in trains] == ["11:45", "14:30"]
    assert desk.find_trains(**journey)["found"] == 4
    assert desk.find_hotels()["found"] == len(DATABASE["hotel"]) > 10
    assert len(desk.find_hotels()["hotels"]) == 10
    assert desk.find_restaurants(name="pizzeria")["restaurants"][0]["area"] == "university"


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("book_hotel", {**BOOKING, "nights": 5}, "could not be booked: nothing is free then"),
        ("book_hotel", {**BOOKING, "name": "Grand Hotel"}, "no hotel called 'Grand Hotel'"),
        ("order_taxi", {"departure": "Town Pool", "destination": "Bell Court"}, "time to leave or to arrive"),
    ],
)
def test_a_refused_booking_is_not_stored(tool, arguments, message):
    desk = BookingDesk(HOTEL)
    text, status = call_world(desk, tool, arguments)
    assert message in text and status == "error" and desk.bookings == {}
