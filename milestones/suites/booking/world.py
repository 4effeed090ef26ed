"""A town's booking desk, in the manner of MultiWOZ (Budzianowski et al. 2018): search, look up, book."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from arq_graph.agent.part import Part

Domain = Literal["hotel", "restaurant", "attraction", "train", "taxi"]
Value = str | int
Values = Mapping[str, Value]

DATABASE: Mapping[str, list[Values]] = json.loads(Path(__file__).with_name("database.json").read_bytes())
"""The entities by domain."""

MOST_SHOWN = 10
"""The number of entities that a search shows."""

HIDDEN = frozenset(("address", "phone", "postcode", "opening_hours", "entrance_fee"))
"""The attributes that a search does not show: they have to be looked up. A train's name is its number."""


class Wish(Part):
    """The wish of a customer in one domain.

    Args:
        find: The constraints on the entity; the times of a train are bounds.
        book: The constraints on the booking; None: nothing is to be booked. If a taxi's place is the name of another
            domain, it means the entity that was offered or booked there.
        request: The attributes that the customer asks for.
        full: Bookings that are refused: those of which all values of one of these hold.
    """

    find: Mapping[str, Value] = {}
    book: Values | None = None
    request: tuple[str, ...] = ()
    full: tuple[Values, ...] = ()


class BookingDesk:
    """The desk of one conversation: its methods are the agent's tools, and what was done decides the outcome.

    Args:
        goal: The customer's wishes, by domain.
    """

    def __init__(self, goal: Mapping[str, Any]) -> None:
        self.wishes = TypeAdapter(dict[Domain, Wish]).validate_python(goal)
        self.bookings: dict[str, Values] = {}
        self._last_shown: dict[str, list[Values]] = {}
        self._known_attributes: dict[tuple[str, Value], set[str]] = defaultdict(set)
        self._booking_count = 0  # each booking has a reference of its own

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
        entity = self._get_entity(domain, name)
        self._last_shown[domain] = [entity]
        self._known_attributes[domain, entity["name"]].update(attributes)
        return {attribute: entity.get(attribute, "not known") for attribute in attributes}

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
        taxis = DATABASE["taxi"]
        name = taxis[self._booking_count % len(taxis)]["name"]
        return self._book("taxi", locals())

    def outcome(self) -> dict[str, bool | float]:
        """Judge how it ended, by calls and bookings alone, in the manner of MultiWOZ's and AutoTOD's measures.

        `inform`: in each wanted domain an entity that meets all constraints was offered. Where something is to be
        booked, that is what the last booking is for; elsewhere what the last search or look-up with a result showed,
        all of which must meet them. `success`: besides, all attributes that were asked for stood in a result about it,
        and the bookings are those that were wanted, with these values, and no others.
        """
        inform = success = True
        for domain, wish in self.wishes.items():
            offers = self._list_offers(domain)
            inform &= bool(offers) and all(_meets(entity, wish.find) for entity in offers)
            success &= any(
                self._known_attributes[domain, entity["name"]].issuperset(wish.request) for entity in offers
            )
            success &= self._has_wanted_booking(domain, wish.book)
        success &= self.bookings.keys() <= self.wishes.keys()
        return {"inform": inform, "success": inform and success}

    def _list_offers(self, domain: Any) -> list[Values]:
        if self.wishes[domain].book is None:
            return self._last_shown.get(domain, [])
        if domain not in self.bookings:
            return []
        return [self._get_entity(domain, self.bookings[domain]["name"])]

    def _has_wanted_booking(self, domain: Any, wanted_booking: Values | None) -> bool:
        booking = self.bookings.get(domain)
        if booking is None or wanted_booking is None:
            return booking is wanted_booking
        for slot, value in wanted_booking.items():
            accepted_values = [value]
            if value in self.wishes:
                accepted_values = [entity["name"] for entity in self._list_offers(value)] or accepted_values
            if not any(_is_same_value(slot, booking.get(slot, ""), accepted) for accepted in accepted_values):
                return False
        return True

    def _find(self, domain: str, arguments: dict[str, Any]) -> dict[str, Any]:
        del arguments["self"]
        matches = [entity for entity in DATABASE[domain] if _meets(entity, arguments)]
        if matches:
            self._last_shown[domain] = matches[:MOST_SHOWN]
        rows = []
        for entity in matches[:MOST_SHOWN]:
            row = {slot: value for slot, value in entity.items() if slot not in HIDDEN}
            self._known_attributes[domain, entity["name"]].update(row)
            rows.append(row)
        return {"found": len(matches), f"{domain}s": rows}

    def _get_entity(self, domain: str, name: Value) -> Values:
        for entity in DATABASE[domain]:
            if _normalize(entity["name"]) == _normalize(name):
                return entity
        raise ValueError(f"there is no {domain} called {name!r}")

    def _book(self, domain: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        entity = self._get_entity(domain, arguments["name"])
        booking = {slot: value for slot, value in arguments.items() if isinstance(value, Value)}
        booking["name"] = entity["name"]
        refused_bookings = self.wishes[domain].full if domain in self.wishes else ()
        if any(_has_values(booking, refused) for refused in refused_bookings):
            raise ValueError("this could not be booked: nothing is free then, but perhaps at another time")
        self.bookings[domain] = booking
        self._booking_count += 1
        result = {"reference": f"{domain[:2].upper()}{100 + self._booking_count}", **booking}
        if domain == "taxi":
            result |= entity
        self._known_attributes[domain, entity["name"]].update(result)
        return result


def _meets(entity: Values, constraints: Values) -> bool:
    """Return True if an entity is as asked for: times are bounds, names match in part, all else must be equal."""
    for slot, constraint in constraints.items():
        value, required = _normalize(entity.get(slot, "")), _normalize(constraint)
        if required == "any":
            continue
        if slot == "leave_at":
            is_met = value >= required
        elif slot == "arrive_by":
            is_met = value <= required
        elif slot == "name":
            is_met = required in value
        else:
            is_met = value == required
        if not is_met:
            return False
    return True


def _has_values(booking: Values, values: Values) -> bool:
    return all(_normalize(booking.get(slot, "")) == _normalize(value) for slot, value in values.items())


def _is_same_value(slot: str, booked: Value, accepted: Value) -> bool:
    """Return True if a booking has a value; a place may be named with more words, such as its address."""
    if slot in ("departure", "destination"):
        return _normalize(accepted) in _normalize(booked)
    return _normalize(booked) == _normalize(accepted)


def _normalize(value: Value) -> str:
    """Return a value for comparing: in lower case, and 9:15 as 09:15."""
    text = str(value).strip().casefold()
    return f"0{text}" if text[1:2] == ":" else text


desk = BookingDesk({})  # whose tools the agent's file names; each conversation has a desk of its own
