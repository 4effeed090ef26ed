"""What a customer says once serves one argument of a call, chosen by the words beside it."""

from __future__ import annotations

import pytest

from tests.models.desks import ask
from tests.models.prompts import TEXT, arguments_of, closed, tool

USE = "the customer needs it: use the tool"


def lend(item: str, lender: str, borrower: str) -> str:
    """Lend an item.

    Args:
        item: What is lent.
        lender: Who lends it.
        borrower: Who gets it.
    """
    return "noted"


def book_lesson(pupil: str, teacher: str, day: str, start: str) -> str:
    """Book a lesson.

    Args:
        pupil: The pupil's name.
        teacher: The teacher's name.
        day: The day, like 2026-12-01.
        start: When it begins, e.g. 22:00.
    """
    return "booked"


def seat(guest: str, table: str) -> str:
    """Seat a guest at a table.

    Args:
        guest: Name of the guest.
        table: Name of the table.
    """
    return "seated"


def assign_plot(plot_id: str, gardener: str) -> str:
    """Assign a plot to a gardener.

    Args:
        plot_id: The plot, like PLOT-7.
        gardener: The gardener's name.
    """
    return "assigned"


def dye(fabric: str, shade: str) -> str:
    """Dye a fabric.

    Args:
        fabric: The fabric.
        shade: The shade.
    """
    return "dyed"


def heat(oven: str, level: str) -> str:
    """Heat an oven.

    Args:
        oven: The oven.
        level: How hot.
    """
    return "heated"


def pay(payer: str, payee: str, amount: float) -> str:
    """Pay somebody.

    Args:
        payer: Who pays.
        payee: Who gets it.
        amount: How much.
    """
    return "paid"


LESSON = {"pupil": "Mara", "teacher": "Ilan", "day": "2027-05-03", "start": "18:00"}


@pytest.mark.parametrize(
    ("called", "said", "arguments"),
    [
        (lend, "Lend the ladder from Mara to Ilan", {"item": "ladder", "lender": "Mara", "borrower": "Ilan"}),
        (lend, "Lend the ladder to Ilan from Mara", {"item": "ladder", "lender": "Mara", "borrower": "Ilan"}),
        (book_lesson, "Book a lesson for Mara with Ilan on 3 May 2027 at 18:00", LESSON),
        (book_lesson, "Book a lesson with Ilan for Mara on 2027-05-03 at 6pm", LESSON),
        (seat, "Seat Mara at the table Linden", {"guest": "Mara", "table": "Linden"}),
        (seat, "Please seat the guest Mara at the Linden table", {"guest": "Mara", "table": "Linden"}),
        (assign_plot, "Assign PLOT-12 to Mara", {"plot_id": "PLOT-12", "gardener": "Mara"}),
        (heat, "Heat the oven Vulcan to 220 Celsius", {"oven": "Vulcan", "level": "220 Celsius"}),
        (pay, "Pay 30 from Mara to Ilan", {"payer": "Mara", "payee": "Ilan", "amount": 30}),
        (pay, "Pay 12.50 euros to Ilan, from Mara", {"payer": "Mara", "payee": "Ilan", "amount": 12.5}),
    ],
)
def test_each_name_serves_the_argument_that_it_stands_for(called, said, arguments):
    assert ask([called], said)[0] == [arguments]


@pytest.mark.parametrize(
    ("called", "said", "asked"),
    [
        (lend, "Lend the ladder to Ilan", "the lender"),
        (seat, "Seat Mara", "the table"),
        (dye, "Dye the curtain", "the shade"),
        (dye, "Dye Mara's curtain", "the fabric"),
        (book_lesson, "Book a lesson for Mara on 2027-05-03 at 18:00", "the teacher"),
    ],
)
def test_what_nobody_said_is_asked_for_and_not_filled_with_what_is_taken(called, said, asked):
    calls, reply = ask([called], said)
    assert (calls, asked in reply) == ([], True), reply


def test_a_name_of_an_earlier_request_gives_way_to_the_one_of_this():
    calls, _ = ask([assign_plot], "Is Rowan a good plot?", "Assign PLOT-9 to Mara")
    assert calls == [{"plot_id": "PLOT-9", "gardener": "Mara"}]


def test_an_answer_that_lists_what_was_asked_for_is_taken_in_that_order():
    calls, _ = ask([lend], "I want to lend something", "The ladder, Mara and Ilan")
    (arguments,) = calls
    assert (arguments["lender"], arguments["borrower"]) == ("Mara", "Ilan")
    assert "ladder" in arguments["item"]


def test_the_parts_of_a_name_are_two_arguments():
    described = tool("look_up", "", USE, first_name=(TEXT, ""), last_name=(TEXT, ""))
    assert arguments_of(described, "my name is Mara Voss") == {"first_name": "Mara", "last_name": "Voss"}
    assert arguments_of(described, "my name is Mara") == {"first_name": "Mara"}


def test_the_members_of_an_object_share_nothing_either():
    route = closed(origin=TEXT, destination=TEXT)
    described = tool("find_ferry", route=(route, "The route."))
    assert arguments_of(described, "a ferry from Bari to Split") == {
        "route": {"origin": "Bari", "destination": "Split"}
    }


def send_gift(person: str, place: str) -> str:
    """Send a gift.

    Args:
        person: Who gets it.
        place: Where it is sent.
    """
    return "sent"


def reserve_seat(traveller: str, city: str) -> str:
    """Reserve a seat."""
    return "reserved"


def plan_trip(name: str, to: str) -> str:
    """Plan a trip."""
    return "planned"


BOTH_WAYS = [
    (send_gift, "Send a gift", ("person", "place")),
    (reserve_seat, "Reserve a seat", ("traveller", "city")),
    (plan_trip, "Plan a trip", ("name", "to")),
]


@pytest.mark.parametrize(("called", "order", "names"), BOTH_WAYS)
@pytest.mark.parametrize("said", ["to Oslo for Ben", "for Ben to Oslo"])
def test_a_place_is_gone_to_and_a_person_is_served_in_either_order(called, order, names, said):
    assert ask([called], f"{order} {said}")[0] == [dict(zip(names, ("Ben", "Oslo"), strict=True))]


def test_what_goes_to_somebody_in_a_place_goes_to_the_person():
    assert ask([send_gift], "Send a gift to Ben in Oslo")[0] == [{"person": "Ben", "place": "Oslo"}]


@pytest.mark.parametrize(
    ("said", "lacking"), [("Send a gift for Ben", "the place"), ("Send a gift to Oslo", "the person")]
)
def test_one_name_does_not_serve_both(said, lacking):
    calls, reply = ask([send_gift], said)
    assert (calls, lacking in reply) == ([], True), reply
