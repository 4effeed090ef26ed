"""The tools of the car hire."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

PRICES = {"small": 31, "estate": 54, "van": 72}
RENTALS: dict[str, list[dict[str, str]]] = {
    "01215550170": [
        {"rental": "M-81", "car": "Opel Corsa", "until": "13 March"},
        {"rental": "M-86", "car": "Ford Focus", "until": "12 March"},
    ],
    "01215550188": [{"rental": "M-90", "car": "Skoda Octavia", "until": "14 March"}],
}


def search_cars(
    branch: Literal["OXF", "NPQ", "NPP"],
    pick_up: date,
    days: Annotated[int, Field(ge=1, le=60)],
    category: Literal["small", "estate", "van"],
    child_seat: bool = False,
) -> dict[str, object]:
    """Look for a free car and its price.

    Args:
        branch: The code of the branch where it is picked up and brought back.
        pick_up: The day of the pick-up, like 2026-01-31.
        days: For how many days.
        category: What kind of car.
        child_seat: Whether a child seat is to be fitted.
    """
    price = {"per_day": f"{PRICES[category]} pounds", "total": f"{PRICES[category] * days} pounds"}
    return {
        "free": True,
        "branch": branch,
        "from": str(pick_up),
        "category": category,
        "seat": child_seat,
        **price,
    }


def list_rentals(phone: Annotated[str, Field(pattern=r"^\d{10,11}$")]) -> list[dict[str, str]]:
    """List the cars that a customer has on hire at the moment.

    Args:
        phone: The customer's phone number, digits alone.
    """
    return RENTALS.get(phone, [])


def extend_rental(rental: str, days: Annotated[int, Field(ge=1, le=14)]) -> dict[str, object]:
    """Let a customer keep a car for longer; the card on file is charged at once.

    Args:
        rental: The number of the rental, like M-10.
        days: By how many days.
    """
    found = next((each for cars in RENTALS.values() for each in cars if each["rental"] == rental), None)
    if found is None:
        raise LookupError(f"there is no rental {rental}")
    day = int(found["until"].split()[0]) + days
    return {"rental": rental, "car": found["car"], "until": f"{day} March"}
