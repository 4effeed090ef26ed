"""A bike shop's agent, and a model that serves it over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages

from tests.brain import Asked, brain
from tests.reasoning.endpoint import Endpoint, Reply, Request, ok

AGENT = """
name: Bike shop
profile: You help the customers of a bike shop.
guidelines:
- id: look-up
  condition: the customer asks about an order
  action: look the order up
  tools: [desk:get_order]
- id: cancel
  condition: the customer wants to cancel an order
  action: cancel the order
  tools: [desk:cancel_order]
- id: polite
  action: be polite
  continuous: true
confirm: {cancel_order: operator}
"""

TOOLS = '''
from pathlib import Path

JOURNAL = Path(__file__).with_name("journal.txt")


def get_order(order_id: str) -> dict:
    """Look up an order.

    Args:
        order_id: The number of the order, like B-1.
    """
    if order_id == "B-0":
        raise ValueError("there is no order B-0")
    note("get " + order_id)
    return {"order_id": order_id, "status": "in the workshop"}


def cancel_order(order_id: str, reason: str = "none") -> dict:
    """Cancel an order.

    Args:
        order_id: The number of the order, like B-1.
        reason: Why.
    """
    note("cancel " + order_id)
    return {"order_id": order_id, "cancelled": True, "reason": reason}


def note(line):
    with JOURNAL.open("a") as journal:
        journal.write(line + "\\n")
'''


def journal(shop: Path) -> list[str]:
    """What the shop's tools did."""
    file = shop.with_name("journal.txt")
    return file.read_text().splitlines() if file.exists() else []


def clerk(**changes: Any) -> BaseChatModel:
    """A model that looks up and cancels orders when a customer says so."""
    settings: dict[str, Any] = {
        "judge": {"look-up": _if_said("where"), "cancel": _if_said("cancel")},
        "call": {"get_order": _with_number, "cancel_order": _with_number},
        "reply": lambda asked: f"You said: {_last(asked)[:60]} ({len(asked.lines)})",
    }
    return brain(**{**settings, **changes})


def _last(asked: Asked) -> str:
    return str(next(line["text"] for line in reversed(asked.lines) if line.get("from") == "customer"))


def _if_said(word: str) -> Callable[[Asked], int]:
    return lambda asked: 9 if word in _last(asked).lower() else 2


def _with_number(asked: Asked) -> Any:
    if any(line.get("from") == "tool" for line in asked.turn):
        return []
    numbers = [word.strip(".?!") for word in _last(asked).split() if word.startswith("B-")]
    return [{"order_id": number} for number in numbers] or {}


def serving(model: BaseChatModel) -> Callable[[Request], Reply]:
    """What an endpoint answers that serves this model."""
    modules = {"GuidelineBatch": "matcher", "ToolBatch": "tools", "MessageBlueprint": "message"}

    def answer(request: Request) -> Reply:
        name = request.body["response_format"]["json_schema"]["name"]
        reply = model.invoke(
            convert_to_messages(request.messages),
            {"metadata": {"arq_module": modules.get(name, name)}},
            response_format=request.body["response_format"],
        )
        return ok(json.loads(reply.text))

    return answer


def options(endpoint: Endpoint) -> list[str]:
    """The options that name an endpoint's model."""
    return ["--model", endpoint.model_name, "--base-url", endpoint.base_url]
