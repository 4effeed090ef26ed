"""The tools of the caterer."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

PRICES = {"garden": 28, "fireside": 34, "celebration": 52}


def get_price(
    menu: Literal["garden", "fireside", "celebration"], guests: Annotated[int, Field(ge=10, le=80)]
) -> dict[str, str]:
    """Look up what a menu costs for a party.

    Args:
        menu: Which menu.
        guests: For how many guests: 10 to 80.
    """
    return {"per_guest": f"{PRICES[menu]} pounds", "total": f"{PRICES[menu] * guests} pounds"}


def check_date(day: date) -> dict[str, object]:
    """Look up whether we can still cater for a party on a day.

    Args:
        day: The day, like 2026-01-31.
    """
    return {"day": str(day), "free": day != date(2026, 5, 16)}


def book_tasting(day: date, people: Annotated[int, Field(ge=1, le=6)]) -> dict[str, object]:
    """Book a tasting of our menus in our kitchen, which is free of charge.

    Args:
        day: The day, like 2026-01-31.
        people: How many come.
    """
    return {"booked": str(day), "people": people, "at": "18:30", "where": "7 Quarry Road"}
