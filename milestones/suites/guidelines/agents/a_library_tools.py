"""The tools of the library."""

from __future__ import annotations

SHELVES = {"Harbour Lights": "Blue 4", "The Glass Orchard": "Green 11"}
DUE = "14 March"


def search_catalogue(title: str) -> dict[str, object]:
    """Look in our own catalogue.

    Args:
        title: The title of the book.
    """
    return {"title": title, "copies": 1 if title in SHELVES else 0, "shelf": SHELVES.get(title)}


def search_partners(title: str) -> dict[str, object]:
    """Look in the catalogues of our partner libraries.

    Args:
        title: The title of the book.
    """
    return {"title": title, "found_at": "Ashby Town Library", "arrives": "within 6 days"}


def place_hold(title: str, card: str) -> dict[str, str]:
    """Put a member on the waiting list of a book that is on loan to somebody else.

    Args:
        title: The title of the book.
        card: The number of the member's card.
    """
    return {"title": title, "card": card, "place_in_line": "2"}


def renew_loan(title: str, card: str) -> dict[str, str]:
    """Let a member keep a book that they have on loan for two more weeks.

    Args:
        title: The title of the book.
        card: The number of the member's card.
    """
    if title == "The Glass Orchard":
        raise PermissionError(f"another member waits for it; it is due on {DUE}")
    return {"title": title, "card": card, "due": "28 March"}
