"""What the bike desk can do, and what it looks at to decide what applies."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

RENTALS = {
    "R-101": {"bike": "a cargo bike", "from": "Monday", "paid": "300 kroner"},
    "R-102": {"bike": "a tandem", "from": "Friday", "paid": "450 kroner"},
}
MEMBERS = {"N-7", "N-8"}
NOTICE = Path(__file__).with_name("notice.txt")


def find_rental(rental_id: str) -> dict[str, str]:
    """Look up a rental: the bike, the day, and what was paid.

    Args:
        rental_id: The number of the rental, like R-101.
    """
    return {"rental_id": rental_id, **RENTALS[rental_id]}


def cancel_rental(rental_id: str) -> str:
    """Cancel a rental. It cannot be undone.

    Args:
        rental_id: The number of the rental, like R-101.
    """
    return f"The rental {rental_id} of {RENTALS[rental_id]['bike']} is cancelled."


def refund_rental(rental_id: str, percent: int = 100) -> str:
    """Refund what was paid for a rental.

    Args:
        rental_id: The number of the rental, like R-101.
        percent: How much of it, from 1 to 100.
    """
    return f"{percent}% of {RENTALS[rental_id]['paid']} for {rental_id} are on their way to you."


async def is_member(state: dict[str, Any]) -> bool:
    """Whether the customer's card is known; stands for a look-up with an async driver."""
    await asyncio.sleep(0)
    return state["variables"]["member_id"] in MEMBERS


def has_notice(state: dict[str, Any]) -> bool:
    """Whether the shop has put up a notice."""
    return "noon" in NOTICE.read_text(encoding="utf-8")
