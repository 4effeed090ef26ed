"""An order desk, as somebody might have written it who now tests it."""

from arq_graph import Agent, Guideline


def get_order(order_id: str) -> dict[str, str]:
    """Look up an order."""
    return {"order_id": order_id, "status": "delayed"}


def cancel_order(order_id: str, notes: dict[str, str] | None = None) -> str:
    """Cancel an order."""
    return f"{order_id} is cancelled"


def give_discount(order_id: str, percent: int = 5) -> str:
    """Give a discount."""
    return f"{percent}% off"


STATUS = Guideline("the customer asks where an order is", "look it up", tools=[get_order])
DESK = Agent(
    "Order desk",
    "You are the order desk of a small shop.",
    [
        STATUS,
        Guideline("the order is delayed", "apologise and give a discount", tools=[give_discount]),
        Guideline("the customer wants to cancel an order", "cancel it", id="cancel", tools=[cancel_order]),
        Guideline("the customer is angry", "calm them down"),
        Guideline("the customer is angry", "offer a call"),
        Guideline(None, "never promise a date"),
    ],
    confirm={"cancel_order": "customer"},
)
MILESTONES = """
forbidden: [{tool: cancel_order, before: get_order}]
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC}
- {name: cancel_order, type: FC, dependencies: [get_order]}
- {name: Thanked, type: NFC, dependencies: [cancel_order]}
- {name: End, type: NFC, dependencies: [cancel_order]}
"""
