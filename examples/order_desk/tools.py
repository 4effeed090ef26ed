"""The order desk's tools: a small shop in memory, the same at every start."""

from __future__ import annotations

ORDERS: dict[str, dict[str, str]] = {
    "ORD-1001": {"status": "in transit", "item": "a two-person tent", "expected_delivery": "Thursday"},
    "ORD-1002": {"status": "at the warehouse", "item": "hiking boots, size 42", "shipping": "standard"},
    "ORD-1003": {"status": "delivered", "item": "a head lamp", "delivered_on": "Monday"},
    "ORD-1004": {"status": "delayed", "item": "a camping stove", "expected_delivery": "next week"},
}


def get_order_details(order_id: str) -> dict[str, str]:
    """Look up an order: its status, what was ordered, and when it is expected.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    if order_id not in ORDERS:
        raise ValueError(f"there is no order {order_id}")
    return {"order_id": order_id, **ORDERS[order_id]}


def expedite_shipping(order_id: str) -> dict[str, str]:
    """Switch an order that is still at the warehouse to expedited shipping.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    if ORDERS.get(order_id, {}).get("status") != "at the warehouse":
        raise ValueError("only an order that is still at the warehouse can be expedited")
    return {"order_id": order_id, "shipping": "expedited", "cost": "none"}


def apply_discount(order_id: str, percent: int = 10) -> dict[str, str]:
    """Put a discount on an order as goodwill.

    Args:
        order_id: The number of the order, like ORD-1001.
        percent: How much, from 1 to 10.
    """
    if not 1 <= percent <= 10:
        raise ValueError("a discount is between 1 and 10 percent")
    return {"order_id": order_id, "discount": f"{percent}%"}


def hand_over_to_human() -> dict[str, str]:
    """Hand the conversation over to a colleague, who goes on with it."""
    return {"handed_over": "yes", "waiting_time": "about five minutes"}


def mark_resolved() -> dict[str, str]:
    """Mark the customer's case as resolved."""
    return {"case": "resolved"}


class Shop:
    """The same shop for one conversation: what is done to an order is kept, and no other conversation sees it."""

    def __init__(self) -> None:
        self.orders = {number: dict(order) for number, order in ORDERS.items()}
        self.discounts: dict[str, int] = {}
        self.is_with_a_colleague = False
        self.is_resolved = False

    def get_order_details(self, order_id: str) -> dict[str, str]:
        """Look up an order: its status, what was ordered, and when it is expected.

        Args:
            order_id: The number of the order, like ORD-1001.
        """
        if order_id not in self.orders:
            raise ValueError(f"there is no order {order_id}")
        return {"order_id": order_id, **self.orders[order_id]}

    def expedite_shipping(self, order_id: str) -> dict[str, str]:
        """Switch an order that is still at the warehouse to expedited shipping.

        Args:
            order_id: The number of the order, like ORD-1001.
        """
        done = expedite_shipping(order_id)
        self.orders[order_id]["shipping"] = done["shipping"]
        return done

    def apply_discount(self, order_id: str, percent: int = 10) -> dict[str, str]:
        """Put a discount on an order as goodwill.

        Args:
            order_id: The number of the order, like ORD-1001.
            percent: How much, from 1 to 10.
        """
        done = apply_discount(order_id, percent)
        if order_id not in self.orders:
            raise ValueError(f"there is no order {order_id}")
        if order_id in self.discounts:
            raise ValueError("the order has its discount already")
        self.discounts[order_id] = percent
        return done

    def hand_over_to_human(self) -> dict[str, str]:
        """Hand the conversation over to a colleague, who goes on with it."""
        self.is_with_a_colleague = True
        return hand_over_to_human()

    def mark_resolved(self) -> dict[str, str]:
        """Mark the customer's case as resolved."""
        self.is_resolved = True
        return mark_resolved()
