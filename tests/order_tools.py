"""The tools of an order desk, and a call that ran."""

from langchain_core.messages import AIMessage, ToolMessage

A1 = {"order_id": "A-1"}


def get_order(order_id: str) -> str:
    """Look up an order. It is free.

    Args:
        order_id: The order's number.
    """
    return f"{order_id} is late"


def cancel(order_id: str, reason: str = "none") -> str:
    """Cancel an order. For good.

    Args:
        order_id: The order's number.
        reason: Why.
    """
    return f"cancelled {order_id} {reason}"


def search(words: str) -> str:
    """Search the help pages.

    Args:
        words: What for.
    """
    return words


def ran(text="it is late", *, tool="get_order", args=A1, status="success", id="c1"):
    call = AIMessage("", tool_calls=[{"name": tool, "args": args, "id": id, "type": "tool_call"}])
    return [call, ToolMessage(text, tool_call_id=id, name=tool, status=status)]


def get_calls(update):
    """Return the calls of an update."""
    messages = [message for message in update.get("messages", ()) if getattr(message, "tool_calls", ())]
    # LangGraph would give another id to a message without one at every look at a write that is not committed yet.
    assert all(message.id for message in messages)
    return [(call["name"], call["args"]) for message in messages for call in message.tool_calls]
