"""The tool of the gym's chat."""

from __future__ import annotations

from typing import Literal

TIMES = {"Spinning": "18:00", "Yoga": "17:30", "First Steps": "19:00", "Power Lab": "19:30"}


def book_trial_class(
    class_name: Literal["Spinning", "Yoga", "First Steps", "Power Lab"],
    day: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"],
) -> dict[str, str]:
    """Book a free trial place in a class; the trainer is told, and the place is held.

    Args:
        class_name: The class.
        day: The day of the week on which the customer comes.
    """
    return {"booked": class_name, "day": day, "time": TIMES[class_name], "bring": "a towel and water"}
