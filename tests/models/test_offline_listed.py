"""A thing that a result lists is called as it is listed there; one that none lists is called as the customer said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.desks import ask


def list_tours() -> list[dict[str, Any]]:
    """List the tours that run today."""
    return [{"tour": "Gorge tour at 14:00", "price": 20}, {"tour": "Old mill walk at 10:00", "price": 10}]


def book_tour(tour: str, guest_name: str) -> dict[str, str]:
    """Book a tour for a guest.

    Args:
        tour: Name of the tour.
        guest_name: Who comes along.
    """
    return {"booking": "B-1"}


def reserve_tour(tour: str, hour: str) -> dict[str, str]:
    """Reserve a tour.

    Args:
        tour: Name of the tour.
        hour: When it begins, e.g. 22:00.
    """
    return {"booking": "B-1"}


WHICH = "Which tours run today?"
GORGE = [{"tour": "Gorge tour at 14:00", "guest_name": "Anna Berg"}]


@pytest.mark.parametrize(
    "said",
    [
        ("Please book the Gorge tour at 14:00 for Anna Berg",),
        ("Book the Gorge tour for Anna Berg",),
        ("Book the gorge tour for Anna Berg",),
        ("I'd like the Gorge tour at 14:00, my name is Anna Berg",),
        ("Please book a tour", "Gorge tour at 14:00", "Anna Berg"),
        ("Please book a tour", "The Gorge tour at 14:00, Anna Berg"),
    ],
)
def test_what_is_listed_is_booked_under_its_whole_name_and_not_looked_up_again(said):
    assert ask([list_tours, book_tour], WHICH, *said)[0] == GORGE


def test_a_name_is_not_completed_where_two_are_listed_that_have_it():
    def list_walks() -> list[dict[str, str]]:
        """List the walks."""
        return [{"walk": "Gorge walk by day"}, {"walk": "Gorge walk by night"}]

    def book_walk(walk: str) -> dict[str, str]:
        """Book a walk."""
        return {"booking": "B-1"}

    (arguments,) = ask([list_walks, book_walk], "Which walks are there?", "Please book the Gorge walk")[0]
    assert "by" not in arguments["walk"]


def test_an_order_that_names_no_tour_is_asked_for_one_though_a_listed_one_is_called_a_tour():
    calls, reply = ask([list_tours, book_tour], WHICH, "Please book a tour")
    assert (calls, "the tour" in reply) == ([], True), reply


@pytest.mark.parametrize(
    ("called", "arguments"),
    [
        (book_tour, {"tour": "Gorge tour at 14:00", "guest_name": "Anna Berg"}),
        (reserve_tour, {"tour": "Gorge", "hour": "14:00"}),
    ],
)
def test_the_hour_in_a_name_is_kept_unless_something_else_takes_it(called, arguments):
    for_whom = " for Anna Berg" if "guest_name" in arguments else ""
    assert ask([called], f"Please {called.__name__[:-5]} the Gorge tour at 14:00{for_whom}")[0] == [arguments]
