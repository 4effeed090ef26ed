"""The functions that desk.yaml names."""


def get_order(order_id: str) -> dict[str, str]:
    """Look up an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return {"order_id": order_id, "status": "delayed"}


def cancel_order(order_id: str) -> str:
    """Cancel an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return f"{order_id} is cancelled"
