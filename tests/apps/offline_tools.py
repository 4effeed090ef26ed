"""The tools that the offline model plans and speaks with."""

from __future__ import annotations


def cancel_order(order_id: str) -> str:
    """Cancel an order.

    Args:
        order_id: The order's number, such as A-1.
    """
    return f"Order {order_id} is cancelled"


def search_books(title: str) -> list[str]:
    """Search for books.

    Args:
        title: A word of the title, such as Dune.
    """
    return []
