"""The tools of the hotel's front desk."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field


def set_checkout(room: int, time: Annotated[str, Field(pattern=r"^\d\d:\d\d$")]) -> dict[str, object]:
    """Set until when a guest keeps the room on the day that they leave.

    Args:
        room: The number of the room.
        time: Until when, like 12:00.
    """
    return {"room": room, "check_out": time}


def send_to_room(
    room: int, item: Literal["pillow", "blanket", "towel", "toothbrush", "iron"], quantity: int
) -> dict[str, object]:
    """Have something brought to a room; housekeeping sets off at once.

    Args:
        room: The number of the room.
        item: What is to be brought.
        quantity: How many.
    """
    return {"room": room, "item": item, "quantity": quantity, "arrives": "within 15 minutes"}


def find_rooms(arrival: date, nights: int, guests: int) -> dict[str, object]:
    """Look for free bedrooms for people who stay overnight.

    Args:
        arrival: The first day, like 2026-01-31.
        nights: For how many nights.
        guests: For how many people.
    """
    if date(2026, 4, 3) <= arrival <= date(2026, 4, 6):  # Easter
        return {"free": []}
    return {
        "free": [
            {"kind": "room with a view of the lime trees", "guests": guests, "price": f"{128 * nights} euros"}
        ]
    }


def find_meeting_rooms(day: date, people: int) -> dict[str, object]:
    """Look for free meeting rooms, which have tables and a projector and no beds, for one day.

    Args:
        day: The day, like 2026-01-31.
        people: How many take part.
    """
    return {"day": str(day), "free": [{"name": "the Orangery", "seats": people + 4, "price": "340 euros"}]}
