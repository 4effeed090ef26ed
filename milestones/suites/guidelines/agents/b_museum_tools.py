"""The tool of a museum's desk."""

from typing import Annotated, Literal


def book_tour(
    people: int,
    day: Annotated[str, "as YYYY-MM-DD"],
    language: Annotated[Literal["de", "en", "es", "fr", "it"], "the language of the tour"],
) -> dict[str, str]:
    """Book a guided tour."""
    return {"number": "T-318", "day": day, "time": "11:15", "people": str(people), "language": language}
