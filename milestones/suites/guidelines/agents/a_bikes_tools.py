"""The tools of the bicycle workshop."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

TICKETS = {"01715550192": "R-318", "01715550147": "R-402"}
REPAIRS: dict[str, dict[str, str]] = {
    "R-318": {
        "bike": "grey tourer",
        "state": "waiting for a part",
        "part": "rear hub",
        "due": "Monday, 16 March",
    },
    "R-377": {"bike": "red racer", "state": "ready", "price": "38 pounds"},
    "R-402": {"bike": "blue tandem", "state": "ready", "price": "64 pounds"},
}


def reserve_loop(
    day: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
) -> dict[str, str]:
    """Reserve a Loop for a customer whose bike is in repair.

    Args:
        day: The day from which they need it.
    """
    return {"reserved": "Loop 7", "from": f"{day}, 8:00", "where": "12 Station Road"}


def find_repair(phone: Annotated[str, Field(pattern=r"^\d{10,11}$")]) -> dict[str, str]:
    """Find the ticket of a customer's repair by their phone number.

    Args:
        phone: The phone number that they left with us, digits alone.
    """
    if phone not in TICKETS:
        raise LookupError("there is no repair under this phone number")
    return {"ticket": TICKETS[phone]}


def get_repair(ticket: str) -> dict[str, str]:
    """Look up how far a repair is.

    Args:
        ticket: The number of its ticket, like R-100.
    """
    if ticket not in REPAIRS:
        raise LookupError(f"there is no ticket {ticket}")
    return REPAIRS[ticket]
