"""The agreement that a tool's calls need before they run."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import GetJsonSchemaHandler, model_validator

from arq_graph.agent.part import Part, Text

ConfirmedBy = Literal["customer", "operator", "interrupt"]


class Confirmation(Part):
    """The agreement that a tool's calls need before they run. In a file, `customer` is short for `{by: customer}`.

    Args:
        by: Who has to agree: the customer (code asks in the chat), the operator (the run stops for a person who
            approves, edits or rejects the call), or interrupt (the customer, through LangGraph's interrupt instead of
            a message).
        ask: The question to the customer, in any language, with every argument of the tool in braces: "Soll
            ich {order_id} stornieren?". None: code writes it from the tool's name and arguments.
        reply: How to agree, in any language, with a word that counts as a yes: "Antworten Sie mit Ja." None:
            "Reply yes to go ahead."
        yes: Phrases of your own that are a yes, besides the shipped list.
        reading: How an answer in other words is read. free: it counts if code finds no reservation in it and a model
            agrees. strict: only listed phrases count, and no model is asked.
        unclear: What the reply says about the answer that is expected when the same question is put for the third
            time. None: English words of ours.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    by: ConfirmedBy
    ask: Text | None = None
    reply: Text | None = None
    yes: tuple[Text, ...] = ()
    reading: Literal["free", "strict"] = "free"
    unclear: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_short_form(cls, value: object) -> object:
        return {"by": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _has_texts_only_for_customers(self) -> Self:
        if (self.ask or self.reply) and self.by == "operator":
            raise ValueError("`ask` and `reply` are for the customer; an operator sees the call itself")
        for phrase in self.yes:
            if not any(character.isalnum() for character in phrase):
                raise ValueError(f"`yes`: {phrase!r} has no word")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": ["customer", "operator", "interrupt"]}, handler(schema)]}
