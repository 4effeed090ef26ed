"""One of several things, as a blueprint: an object with a single property that names what is chosen.

No two of them begin with the same key, which OpenAI's strict mode asks of a choice; and as they are told apart by that
one property, an answer that is wrong is reported for itself alone, not for every option.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag, create_model

from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.blueprint import ARQ, respond

Field = tuple[Any, Any]

MAX_WAITING = 16


class StillWanted(ARQ, ABC):
    """What becomes of the calls that wait for the customer's yes."""

    still_wanted: list[str] | None = respond(
        "Ids in `awaiting_confirmation` of the calls that the customer, going by their last message, still wants or "
        "has not given up; they are asked about again. Null if nothing waits.",
        max_length=MAX_WAITING,
    )


def one_of(question: str, options: Mapping[str, tuple[type[ARQ], str]]) -> Field:
    """A field whose answer is one of several blueprints, for `create_model`."""
    made = {}
    for key, (blueprint, words) in options.items():
        only: Any = {key: (blueprint, respond(words))}
        made[key] = create_model(f"{key}_chosen", __base__=ARQ, __doc__=words, **only)
    if len(made) == 1:
        return next(iter(made.values())), respond(question)
    tagged: list[Any] = [Annotated[option, Tag(key)] for key, option in made.items()]
    return reduce(or_, tagged), respond(question, discriminator=Discriminator(_property))


def chosen(answer: Any) -> tuple[str, Any]:
    """The property of the option that an answer chose, and what it says there."""
    key = str(_property(answer))
    return key, getattr(answer, key)


def _property(answer: Any) -> Any:
    fields = answer if isinstance(answer, Mapping) else getattr(type(answer), "model_fields", {})
    return next(iter(fields), None)


def call_options(
    tools: Sequence[ToolArguments],
    basis: type[ARQ],
    taken: Collection[str],
    further: Mapping[str, Field] | None = None,
) -> dict[str, tuple[type[ARQ], str]]:
    """An option for a call of each tool, by the property that stands for it."""
    options: dict[str, tuple[type[ARQ], str]] = {}
    for tool in tools:
        fields: dict[str, Any] = dict(further or {})
        if tool.arguments:
            fields = {"arguments": (tool.blueprint(basis), respond("Each of its arguments.")), **fields}
        if not fields:
            fields["go_ahead"] = (Literal[True], respond("It takes no arguments: true makes the call."))
        call = create_model(f"{tool.name}_call", __base__=ARQ, __doc__="The call.", **fields)
        options[property_of(tool.name, taken)] = (call, f"A call of {tool.name}.")
    return options


def property_of(tool: str, taken: Collection[str]) -> str:
    """The property that stands for a call of a tool."""
    return f"tool_{tool}"[:64] if tool in taken else tool
