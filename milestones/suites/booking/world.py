"""A town's booking desk, in the manner of MultiWOZ (Budzianowski et al. 2018): search, look up, book."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from arq_graph.agent.part import Part

DATABASE = Path(__file__).with_name("database.json")
MOST_SHOWN = 10
"""How many entities a search shows."""

Domain = Literal["hotel", "restaurant", "attraction", "train", "taxi"]
Value = str | int
Values = Mapping[str, Value]

HIDDEN = frozenset(("address", "phone", "postcode", "opening_hours", "entrance_fee"))
"""What a search does not show of an entity: it has to be looked up. A train's name is its number."""

_PLACES = ("departure", "destination")


class Wish(Part):
    """What a customer wants in one domain.

    Args:
        find: What must hold of the entity; the times of a train are bounds.
        book: What must hold of the booking; None: nothing is to be booked. Where a taxi's place is the name of another
            domain, what was offered or booked there is meant.
        request: The attributes that the customer wants to be told.
        full: Bookings that are refused: those of which all values of one of these hold.
    """

    find: Mapping[str, Value] = {}
    book: Values | None = None
    request: tuple[str, ...] = ()
    full: tuple[Values, ...] = ()


class BookingDesk:
    """The desk of one conversation: its methods are the agent's tools, and what was done decides the outcome.

    Args:
        goal: What the customer wants, by domain; see `Wish`.
    """

    def __init__(self, goal: Mapping[str, Any]) -> None:
        self.wishes = TypeAdapter(dict[Domain, Wish]).validate_python(goal)
        self.bookings: dict[str, Values] = {}
        self._offered: dict[str, list[Values]] = {}
        self._told: dict[tuple[str, Value], set[str]] = defaultdict(set)
        self._booked = 0  # how often, so that each booking has a reference of its own

    def find_hotels(
        self,
        name: str = "any",
        area: str = "any",
        price_range: str = "any",
        type: str = "any",
        stars: str = "any",
        parking: str = "any",
        internet: str = "any",
    ) -> dict[str, Any]:
        """Search by area, price range (cheap, moderate, expensive), type (hotel, guesthouse), stars (0 to 5).

        Parking and internet, where they are free, are yes or no. What does not matter is "any".
        """
        return self._find("hotel", locals())

    def find_restaurants(
        self, name: str = "any", area: str = "any", price_range: str = "any", food: str = "any"
    ) -> dict[str, Any]:
        """Search by price range (cheap, moderate, expensive) and cuisine. What does not matter is "any"."""
        return self._find("restaurant", locals())

    def find_attractions(self, name: str = "any", area: str = "any", type: str = "any") -> dict[str, Any]:
        """Search for places to visit, by their type, such as museum or park. What does not matter is "any"."""
        return self._find("attraction", locals())

    def find_trains(
        self,
        departure: str = "any",
        destination: str = "any",
        day: str = "any",
        leave_at: str = "any",
        arrive_by: str = "any",
    ) -> dict[str, Any]:
        """Search by the earliest time to leave and the latest to arrive, like 09:15. What does not matter is "any"."""
        return self._find("train", locals())

    def look_up(
        self, domain: Literal["hotel", "restaurant", "attraction", "train"], name: str, attributes: list[str]
    ) -> dict[str, Any]:
        """Look up attributes of one, by its whole name: phone, address, postcode, opening_hours, entrance_fee …"""
        entity = self._entity(domain, name)
        self._offered[domain] = [entity]
        self._told[domain, entity["name"]].update(attributes)
        return {each: entity.get(each, "not known") for each in attributes}

    def book_hotel(self, name: str, people: int, day: str, nights: int) -> dict[str, Any]:
        """Book a hotel from a day of the week on, in place of one that was booked before."""
        return self._book("hotel", locals())

    def book_restaurant(self, name: str, people: int, day: str, time: str) -> dict[str, Any]:
        """Book a table for a day of the week and a time like 19:00, in place of one that was booked before."""
        return self._book("restaurant", locals())

    def book_train(self, name: str, people: int) -> dict[str, Any]:
        """Book seats on the train of this number, in place of one that was booked before."""
        return self._book("train", locals())

    def order_taxi(
        self, departure: str, destination: str, leave_at: str = "any", arrive_by: str = "any"
    ) -> dict[str, Any]:
        """Order a taxi, in place of one that was ordered before, for a time to leave or to arrive by, like 17:15."""
        if {leave_at, arrive_by} == {"any"}:
            raise ValueError("a taxi needs a time to leave or to arrive")
        taxis = _database()["taxi"]
        return self._book("taxi", {**locals(), "name": taxis[self._booked % len(taxis)]["name"]})

    def outcome(self) -> dict[str, bool | float]:
        """How it ended, by calls and bookings alone, in the manner of MultiWOZ's and AutoTOD's measures.

        `inform`: in each wanted domain an entity that meets all constraints was offered. Where something is to be
        booked, that is what the last booking is for; elsewhere what the last search or look-up with a result showed,
        all of which must meet them. `success`: besides, all attributes that were asked for stood in a result about it,
        and the bookings are those that were wanted, with these values, and no others.
        """
        offers: dict[str, list[Values]] = {
            domain: self._offer(domain, wish) for domain, wish in self.wishes.items()
        }
        to_book = {domain for domain, wish in self.wishes.items() if wish.book is not None}
        inform, success = True, self.bookings.keys() == to_book
        for domain, wish in self.wishes.items():
            offer, booking = offers[domain], self.bookings.get(domain, {})
            inform &= bool(offer) and all(_meets(each, wish.find) for each in offer)
            success &= any(self._told[domain, each["name"]].issuperset(wish.request) for each in offer)
            for slot, value in (wish.book or {}).items():
                meant = [each["name"] for each in offers.get(str(value), ())] or [value]
                success &= any(_is_said(slot, booking.get(slot, ""), each) for each in meant)
        return {"inform": inform, "success": inform and success}

    def _offer(self, domain: str, wish: Wish) -> list[Values]:
        if wish.book is None:
            return self._offered.get(domain, [])
        return [self._entity(domain, self.bookings[domain]["name"])] if domain in self.bookings else []

    def _find(self, domain: str, asked: dict[str, Any]) -> dict[str, Any]:
        del asked["self"]
        found = [each for each in _database()[domain] if _meets(each, asked)]
        shown = [{slot: each[slot] for slot in each if slot not in HIDDEN} for each in found[:MOST_SHOWN]]
        for each in shown:
            self._told[domain, each["name"]].update(each)
        self._offered |= {domain: found[:MOST_SHOWN]} if found else {}
        return {"found": len(found), f"{domain}s": shown}

    def _entity(self, domain: str, name: Value) -> Values:
        for each in _database()[domain]:
            if _plain(each["name"]) == _plain(name):
                return each
        raise ValueError(f"there is no {domain} called {name!r}")

    def _book(self, domain: Any, asked: dict[str, Any]) -> dict[str, Any]:
        entity = self._entity(domain, asked["name"])
        values = {slot: value for slot, value in asked.items() if isinstance(value, Value)}
        booking = values | {"name": entity["name"]}
        for full in self.wishes[domain].full if domain in self.wishes else ():
            if all(_plain(booking.get(slot, "")) == _plain(value) for slot, value in full.items()):
                raise ValueError(
                    "this could not be booked: nothing is free then, but perhaps at another time"
                )
        self.bookings[domain] = booking
        self._booked += 1
        result = {"reference": f"{domain[:2].upper()}{100 + self._booked}", **booking}
        result |= entity if domain == "taxi" else {}
        self._told[domain, entity["name"]].update(result)
        return result


@cache
def _database() -> dict[str, list[Values]]:
    found: dict[str, list[Values]] = json.loads(DATABASE.read_text(encoding="utf-8"))
    return found


def _meets(entity: Values, asked: Values) -> bool:
    """Whether an entity is as it was asked for: times as bounds, names in part, all else as it stands."""
    for slot, value in asked.items():
        has, wanted = _plain(entity.get(slot, "")), _plain(value)
        by_slot = {"leave_at": has >= wanted, "arrive_by": has <= wanted, "name": wanted in has}
        if wanted != "any" and not by_slot.get(slot, has == wanted):
            return False
    return True


def _is_said(slot: str, has: Value, wanted: Value) -> bool:
    """Whether a booking has a value; a place may be named with more words, such as its address."""
    return _plain(has) == _plain(wanted) or (slot in _PLACES and _plain(wanted) in _plain(has))


def _plain(value: Value) -> str:
    """A value for comparing: case does not matter, nor whether 9:15 is written as 09:15."""
    text = str(value).strip().casefold()
    return f"0{text}" if text[1:2] == ":" else text


desk = BookingDesk({})  # whose tools the agent's file names; each conversation has a desk of its own
