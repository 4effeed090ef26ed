"""The bank's systems, which remember nothing: what a desk calls."""


def find_card(customer_number: str) -> dict[str, str]:
    """Find a customer's card.

    Args:
        customer_number: The customer number, like C-1234.
    """
    return {"customer_number": customer_number, "card": "ending in 4417"}


def block_card(card: str) -> dict[str, str]:
    """Block a card for good.

    Args:
        card: The card, as it was found.
    """
    return {"blocked": card}


def send_card(card: str) -> dict[str, str]:
    """Send a new card to the address that the bank has.

    Args:
        card: The card that it replaces.
    """
    return {"replaces": card, "arrives": "2026-12-07"}


def find_payment(payment: str) -> dict[str, str | float]:
    """Find a payment.

    Args:
        payment: The number of the payment, like 2026/77.
    """
    return {"payment": payment, "amount": 49.9, "shop": "Lumen Lamps"}


def open_dispute(payment: str) -> dict[str, str]:
    """Open a dispute about a payment.

    Args:
        payment: The number of the payment, like 2026/77.
    """
    return {"dispute": f"D-{payment.replace('/', '-')}", "payment": payment}
