"""The tools of the clinic's front desk."""

from __future__ import annotations

TIMES = {"A1": "Monday 10:00", "A2": "Tuesday 14:00", "B1": "Friday 27 March 15:00"}


def find_times() -> dict[str, str]:
    """Look up the next free times."""
    return {id: time for id, time in TIMES.items() if id.startswith("A")}


def find_later_times() -> dict[str, str]:
    """Look up free times in the weeks after that."""
    return {id: time for id, time in TIMES.items() if id.startswith("B")}


def book(slot: str) -> dict[str, str]:
    """Book an appointment.

    Args:
        slot: The number of the free time, like A1.
    """
    return {"booked": TIMES[slot]}
