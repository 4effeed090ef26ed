"""The tools of a plant nursery's order line."""

from typing import Annotated, Any

PLANTS: dict[int, dict[str, Any]] = {
    118: {"name": "dwarf olive", "height": "60 cm", "stands": "down to -5 °C", "in_stock": 12},
    204: {
        "name": "soft shield fern",
        "price": "£16",
        "offer": "with the code FERN15 it is £13.60 until Sunday",
    },
    305: {"name": "oleander", "price": "£24", "pruning": "in March; old branches close to the ground"},
}


def get_plant(number: Annotated[int, "the catalogue number"]) -> dict[str, Any]:
    """Look up a plant of the catalogue."""
    return PLANTS[number]


def cancel_box(number: Annotated[str, "the box's number, like PB-77"]) -> str:
    """Cancel a customer's monthly plant box for good."""
    return f"plant box {number} is cancelled"
