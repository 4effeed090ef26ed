"""A bank's desk that sends prepared replies, and a model that chooses among them."""

from typing import Any

from langchain_core.messages import HumanMessage

from arq_graph import Agent, Guideline, Reply, Variable
from tests.order_tools import ran

ACCOUNT = {
    "id": "DE-7",
    "balance": 59.90,
    "owner": {"name": "Ada {Day}"},
    "cards": [{"no": "4-1"}, {"no": "4-2"}],
}
RESULT = '{"id": "DE-7", "balance": 59.90, "owner": {"name": "Ada {day}"}, "cards": [{"no": "4-1"}, {"no": "4-2"}]}'
OTHERWISE = "A colleague will call you."


def get_account(account: str) -> str:
    """Look an account up.

    Args:
        account: Its number, like DE-7.
    """
    return RESULT


def block_card(card: str) -> str:
    """Block a card."""
    return f"blocked {card}"


HELLO = Reply("hello", {"en": "Good day!", "de": "Guten Tag!"}, when="the conversation begins")
BALANCE = Reply(
    "balance",
    {"en": "You have {amount} euros.", "de": "Sie haben {amount} Euro."},
    fields={"amount": {"result": "get_account.balance", "type": "number"}},
)
OWNER = Reply(
    "owner", "{name} owns it; write {{name}}.", fields={"name": {"result": "get_account.owner.name"}}
)
CARD = Reply(
    "card",
    "The card {card} is blocked.",
    fields={"card": {"result": "get_account.cards.no", "customer": True}},
)
TIER = Reply("tier", "You are {tier}.", fields={"tier": {"variable": "tier"}})
WHICH = Reply("which", "Which card is it?")
OTHER = Reply("other", OTHERWISE, otherwise=True)
REPLIES = [HELLO, BALANCE, OWNER, CARD, TIER, WHICH, OTHER]


def make_bank(*replies: Reply, **fields: Any) -> Agent:
    """Return an agent that sends these replies, or all of the above, and the one for when no other fits."""
    guidelines = [
        Guideline("they ask for money", "tell the balance", tools=[get_account]),
        Guideline("a card is lost", "block it", tools=[block_card]),
    ]
    settings: dict[str, Any] = {
        "guidelines": guidelines,
        "variables": [Variable("tier", "The customer's tier.", "gold")],
        "replies": [*replies, OTHER] if replies else REPLIES,
        "composition": "strict",
        "fallback": "FREE TEXT",
    }
    return Agent("Bank", "You help the customers of a bank.", **{**settings, **fields})


def choose(*replies: Any, language: str = "en", **fields: Any) -> dict[str, Any]:
    """Return a model's answer: each reply is an id, or an id with the value and source of each field."""
    chosen = []
    for reply in replies:
        id, values = (reply, {}) if isinstance(reply, str) else reply
        rows = [{"field": name, "value": value, "source": source} for name, (value, source) in values.items()]
        chosen.append({"reply": id, "values": rows})
    return {"language": language, "replies": chosen, "is_every_reply_right": True, **fields}


def make_state(text: str = "How much have I got?", *results: str, **channels: Any) -> dict[str, Any]:
    """Return a state in which the account was looked up for a customer's message."""
    messages = [HumanMessage(text, id="h1")]
    for result in results or (RESULT,):
        messages += ran(result, tool="get_account", args={"account": "DE-7"})
    return {"messages": messages, **channels}
