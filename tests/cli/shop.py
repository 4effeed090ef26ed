"""A bike shop: its agent, tools, milestones, a suite with arms of its own, and a model that serves it over HTTP."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages

from tests.brain import Prompt, brain
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
    if order_id not in ("B-1", "B-1002"):
        raise ValueError("there is no order " + order_id)
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


class Echo:
    def invoke(self, input, config=None):
        return "You said: \\x1b[31m" + input["messages"][-1].text


class Kaputt:
    def __init__(self, words):
        self.words = words

    def invoke(self, input, config=None):
        raise RuntimeError(self.words)


class Unreached:
    def invoke(self, input, config=None):
        from arq_graph import ScriptedChatModel

        def fail(call):
            raise ConnectionError("no way there")

        ScriptedChatModel(fail).invoke("hello")


echo, kaputt, unreached = Echo(), Kaputt("kaputt"), Unreached()
hostile = Kaputt("\\x1b[2J[bold]gone\\nmore")
'''

MILESTONES = """
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC}
- {name: Thanked, type: NFC, check: {said_by: user, pattern: "(?i)thank"}, dependencies: [get_order]}
- {name: End, type: NFC, dependencies: [Thanked]}
"""

SUITE = """
name: Desk
defaults: {agent: agent.yaml, milestones: milestones.yaml, limits: {turns: 4}}
scenarios:
- name: order
  kinds: [helpful, unhelpful]
  goal: get_order
  user:
    intents: [{request: "Where is my order?", slots: {order_id: B-1002}}]
"""


def write_shop(folder: Path) -> Path:
    """Write all files of the shop, and name its agent's."""
    files = {"desk.py": TOOLS, "agent.yaml": AGENT, "milestones.yaml": MILESTONES, "suite.yaml": SUITE}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "agent.yaml"


def journal(shop: Path) -> list[str]:
    """Return what the shop's tools did."""
    file = shop.with_name("journal.txt")
    return file.read_text().splitlines() if file.exists() else []


def clerk(**changes: Any) -> BaseChatModel:
    """A model that looks up and cancels orders when a customer says so."""
    settings: dict[str, Any] = {
        "judge": {"look-up": _score_word("where"), "cancel": _score_word("cancel")},
        "call": {"get_order": _find_numbers, "cancel_order": _find_numbers},
        "reply": lambda asked: f"You said: {_get_last_text(asked)[:60]} ({len(asked.lines)})",
    }
    return brain(**{**settings, **changes})


def _get_last_text(asked: Prompt) -> str:
    return str(next(line["text"] for line in reversed(asked.lines) if line.get("from") == "customer"))


def _score_word(word: str) -> Callable[[Prompt], int]:
    return lambda asked: 9 if word in _get_last_text(asked).lower() else 2


def _find_numbers(asked: Prompt) -> Any:
    if any(line.get("from") == "tool" for line in asked.turn):
        return []
    numbers = [word.strip(".?!") for word in _get_last_text(asked).split() if word.startswith("B-")]
    return [{"order_id": number} for number in numbers] or {}


def make_endpoint_handler(model: BaseChatModel) -> Callable[[Request], Reply]:
    """Return the answers of an endpoint that serves this model."""
    modules = {"GuidelineBatch": "matcher", "ToolBatch": "tools"}
    modules |= {"MessageBlueprint": "message", "ReplyChoice": "message"}

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
