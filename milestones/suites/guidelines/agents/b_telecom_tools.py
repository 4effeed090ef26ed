"""The tools of a mobile network's help desk."""

from typing import Annotated, Any

OUTAGES = {"NE1 4AB": 5, "YO1 7HH": 70}


def check_network(postcode: Annotated[str, "like NE1 4AB"]) -> dict[str, Any]:
    """Check the mobile network at a postcode: is it out, for how long, and when will it be repaired?"""
    hours = OUTAGES.get(postcode.upper())
    if hours is None:
        return {"postcode": postcode, "status": "working, no faults known"}
    return {"postcode": postcode, "status": "out", "hours_so_far": hours, "repaired_by": "not known yet"}


def add_credit(contract: Annotated[str, "its number, like KM-2208"], pounds: int) -> str:
    """Put a credit on a customer's contract."""
    return f"£{pounds} credited to contract {contract}"
