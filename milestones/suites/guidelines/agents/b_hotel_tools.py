"""The tools of a hotel's front desk."""

from typing import Annotated


def apply_discount(
    booking: Annotated[str, "the booking's number, like HH-310"], percent: Annotated[int, "1 to 100"]
) -> str:
    """Take a percentage off the price of a booking."""
    return f"{percent}% taken off booking {booking}"


def list_lunch_boxes() -> dict[str, str]:
    """List tomorrow's lunch boxes with what is in them."""
    return {
        "Pier": "cheddar and chutney roll, apple, shortbread",
        "Abbey": "chicken wrap with pesto (pine nuts, cashew nuts), grapes",
        "Whaler": "smoked salmon bagel, almond tart",
    }
