"""Tools of the agent. Put calls of your own systems in the place of this shop in memory."""

from __future__ import annotations


class Shop:
    """A shop with two orders; suite.yaml gives each simulated customer a new one."""

    def __init__(self) -> None:
        self.orders = {"ORD-1001": "delayed", "ORD-1002": "in transit"}

    def get_order(self, order_id: str) -> dict[str, str]:
        """Look up an order.

        Args:
            order_id: The number of the order, like ORD-1001.
        """
        return {"order_id": order_id, "status": self.orders.get(order_id, "unknown")}

    def cancel_order(self, order_id: str) -> str:
        """Cancel an order.

        Args:
            order_id: The number of the order, like ORD-1001.
        """
        if order_id not in self.orders:
            raise LookupError(f"the order {order_id} is unknown")
        self.orders[order_id] = "cancelled"
        return f"The order {order_id} is cancelled."


_shop = Shop()
get_order = _shop.get_order
cancel_order = _shop.cancel_order
