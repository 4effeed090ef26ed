"""The tools of the bank's chat."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

Card = Literal["Mint", "Slate"]
PAYEES = {"P1": "Alex Moreno", "P2": "Alex Turner", "P3": "Priya Shah"}


def freeze_card(card: Card) -> dict[str, str]:
    """Freeze a card for as long as the customer likes; they unfreeze it in the app themselves.

    Args:
        card: Which of the customer's cards.
    """
    return {"card": card, "state": "frozen"}


def cancel_card(card: Card) -> dict[str, str]:
    """Cancel a card for good, and send a new one with another number; this cannot be undone.

    Args:
        card: Which of the customer's cards.
    """
    return {"card": card, "state": "cancelled", "new_card": "arrives within 5 working days"}


def list_payees() -> dict[str, str]:
    """List the customer's saved payees, by id."""
    return PAYEES


def send_money(
    payee: Literal["P1", "P2", "P3"], amount: Annotated[float, Field(gt=0, le=1000)]
) -> dict[str, object]:
    """Send money from the customer's account to a saved payee.

    Args:
        payee: The id of the payee.
        amount: How much, in pounds: up to 1,000.
    """
    return {
        "to": PAYEES[payee],
        "amount": f"{amount:g} pounds",
        "state": "waits for the customer's PIN in the app",
    }
