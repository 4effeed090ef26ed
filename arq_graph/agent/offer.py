"""Offers: things that the agent can do, and may mention unasked where they fit."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import GetJsonSchemaHandler, model_validator

from arq_graph.agent.guideline import Condition, ConditionField, Guideline, Id
from arq_graph.agent.part import Part, Text

PRIORITY = -1


class Offer(Part):
    """Something that the agent can do, and may mention unasked, once, where it fits. In a file, a text is short for it.

    It is judged like a guideline. Any guideline without a `priority` outweighs it; to keep one from being mentioned,
    let a guideline have its id in `overrides`.

    Args:
        what: What the agent can do: "wrap an order as a gift".
        when: When that fits, as the condition of a `Guideline`. None: when the customer's need calls for it.
        id: Its id, unlike that of any guideline. The agent numbers offers that have none `offer-1`, `offer-2`, … by
            position; until then it is empty.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    what: Text
    when: ConditionField = None
    id: Id = ""

    if TYPE_CHECKING:

        def __init__(self, what: str, when: Condition = None, *, id: str = "") -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _read_short_form(cls, value: object) -> object:
        return {"what": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "minLength": 1}, handler(schema)]}

    @cached_property
    def rule(self) -> Guideline:
        """The guideline that stands for it."""
        condition = self.when
        if condition is None:
            condition = (
                f"this would serve what the customer is after, and they have not brought it up: {self.what}"
            )
        action = f"mention in a few words that you can do this, unless it is out of place now: {self.what}"
        return Guideline(
            condition,
            action,
            id=self.id,
            continuous=False,
            priority=PRIORITY,
            on_failure="skip",
            sensitive_to_tools=True,
        )


def make_offer_id(number: int) -> str:
    """Return the id of an offer that has none, by its number in the list."""
    return f"offer-{number}"


def assign_offer_ids(offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Return the offers, those without an id numbered by their position."""
    numbered: list[Offer] = []
    for number, offer in enumerate(offers, start=1):
        if not offer.id:
            offer = offer.replace(id=make_offer_id(number))
        numbered.append(offer)
    return tuple(numbered)
