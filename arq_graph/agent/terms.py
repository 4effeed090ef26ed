"""Words of the business, and values that may be known about a customer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, JsonValue

from arq_graph.agent.part import Part, Text


class Term(Part, title="glossary term"):
    """A word of the business with its meaning.

    Args:
        name: The word.
        description: Its meaning.
        synonyms: Other words for the same.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    name: Text
    description: Text
    synonyms: Annotated[Sequence[Text], AfterValidator(tuple)] = ()


class Variable(Part):
    """A value that may be known about a customer or a conversation.

    Args:
        name: Its name; a thread's state stores values under it in `variables`.
        description: Its meaning.
        value: The value for threads that have none; any JSON value.
        settable: Whether the caller of the app may set it as part of the input.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    name: Text
    description: Text
    value: JsonValue = None
    settable: bool = False
