"""The order desk's tools: a small shop in memory, the same at every start."""

from __future__ import annotations

ORDERS: dict[str, dict[str, str]] = {
    "ORD-1001": {"status": "in transit", "item": "a two-person tent", "expected": "Thursday"},
    "ORD-1002": {"status": "at the warehouse", "item": "hiking boots, size 42", "shipping": "standard"},
    "ORD-1003": {"status": "delivered", "item": "a head lamp", "left": "at the front door"},
    "ORD-1004": {"status": "delayed", "item": "a camping stove", "expected": "next week"},
}


class Shop:
    """A shop with its orders; what is done to one of them is kept."""

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
        return {"order_id": order_id, **self._order(order_id)}

    def find_order(self, item: str) -> dict[str, str]:
        """Find an order by what was ordered, where its number is not known.

        Args:
            item: What was ordered.
        """
        for order_id, order in self.orders.items():
            if item.casefold() in order["item"]:
                return {"order_id": order_id, **order}
        raise ValueError(f"there is no order of {item}")

    def expedite_shipping(self, order_id: str) -> str:
        """Switch an order that is still at the warehouse to expedited shipping.

        Args:
            order_id: The number of the order, like ORD-1001.
        """
        order = self._order(order_id)
        if order["status"] != "at the warehouse":
            raise ValueError("only an order that is still at the warehouse can be expedited")
        order["shipping"] = "expedited"
        return f"Your order {order_id} now goes out with expedited shipping, at no cost."

    def apply_discount(self, order_id: str, percent: int = 10) -> str:
        """Put a discount on an order as goodwill.

        Args:
            order_id: The number of the order, like ORD-1001.
            percent: How much, from 1 to 10.
        """
        self._order(order_id)
        if not 1 <= percent <= 10:
            raise ValueError("a discount is between 1 and 10 percent")
        if order_id in self.discounts:
            raise ValueError("the order has its discount already")
        self.discounts[order_id] = percent
        return f"There is now a discount of {percent}% on your order {order_id}."

    def hand_over_to_human(self) -> str:
        """Hand the conversation over to a colleague, who goes on with it."""
        self.is_with_a_colleague = True
        return "A colleague takes over, in about five minutes."

    def mark_resolved(self) -> str:
        """Mark the customer's case as resolved."""
        self.is_resolved = True
        return "Your case is resolved."

    def _order(self, order_id: str) -> dict[str, str]:
        if order_id not in self.orders:
            raise ValueError(f"there is no order {order_id}")
        return self.orders[order_id]


# What agent.yaml names: one shop for the process. A suite gives each conversation a shop of its own (`tools:Shop`).
_shop = Shop()
get_order_details = _shop.get_order_details
find_order = _shop.find_order
expedite_shipping = _shop.expedite_shipping
apply_discount = _shop.apply_discount
hand_over_to_human = _shop.hand_over_to_human
mark_resolved = _shop.mark_resolved
