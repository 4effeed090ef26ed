"""What a specification is made of: guidelines, the terms of a glossary, and variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from arq_graph.agent import entries
from arq_graph.agent.entries import Misfit
from arq_graph.agent.tools import ToolLike, tool_like
from arq_graph.errors import SpecError

Condition = str | Callable[[Any], bool] | None
OnFailure = Literal["raise", "activate", "skip"]

GUIDELINE = {
    "condition": entries.condition,
    "action": entries.text,
    "id": entries.own_identifier,
    "tools": entries.listing(tool_like, "tools"),
    "continuous": entries.flag,
    "priority": entries.whole_number,
    "entails": entries.identifiers,
    "depends_on": entries.identifiers,
    "overrides": entries.identifiers,
    "on_failure": entries.optional(entries.one_of("raise", "activate", "skip")),
    "sensitive_to_tools": entries.flag,
}
TERM = {
    "name": entries.text,
    "description": entries.text,
    "synonyms": entries.listing(entries.text, "texts"),
}
VARIABLE = {"name": entries.text, "description": entries.text, "value": entries.anything_sayable}


@dataclass(frozen=True, init=False)
class Guideline:
    """When a condition holds, the agent takes an action.

    Args:
        condition: When it applies, in words. None: always. A function of the state: decided in code.
        action: What the agent then does, says or refrains from, in words.
        id: 1 to 64 of `A-Z a-z 0-9 _ -`, not beginning with `_`. The agent gives `G1`, `G2`, … by place to
            those without one; until then it is empty.
        tools: Tools that may be called only while this guideline is active: LangChain tools, typed functions,
            or "module:function". A bare name refers to a tool that the same agent names elsewhere.
        continuous: Whether the action is to be kept up rather than done once. None: a model is asked.
        priority: Among guidelines that conflict the higher priority wins; any whole number.
        entails: Ids of guidelines that are active whenever this one is.
        depends_on: Ids of guidelines without which this one is not active.
        overrides: Ids of guidelines that are not active while this one is.
        on_failure: What to do when no valid judgement can be had: "raise", "activate" or "skip". None: as the
            matcher is set.
        sensitive_to_tools: Whether a tool's result could make the condition true. None: a model is asked, or
            it is taken to be so.

    Raises:
        SpecError: A value does not fit its field.
    """

    condition: Condition
    action: str
    id: str
    tools: tuple[ToolLike, ...]
    continuous: bool | None
    priority: int
    entails: tuple[str, ...]
    depends_on: tuple[str, ...]
    overrides: tuple[str, ...]
    on_failure: OnFailure | None
    sensitive_to_tools: bool | None

    def __init__(
        self,
        condition: Condition,
        action: str,
        id: str | None = None,
        tools: Sequence[ToolLike] = (),
        continuous: bool | None = None,
        priority: int = 0,
        entails: Sequence[str] = (),
        depends_on: Sequence[str] = (),
        overrides: Sequence[str] = (),
        on_failure: OnFailure | None = None,
        sensitive_to_tools: bool | None = None,
    ) -> None:
        values = {
            "condition": condition,
            "action": action,
            "id": id,
            "tools": tools,
            "continuous": continuous,
            "priority": priority,
            "entails": entails,
            "depends_on": depends_on,
            "overrides": overrides,
            "on_failure": on_failure,
            "sensitive_to_tools": sensitive_to_tools,
        }
        _fill(self, _owner("guideline", id or action), GUIDELINE, values)


@dataclass(frozen=True, init=False)
class Term:
    """A word of the business, and what it means here.

    Args:
        name: The word.
        description: What it means.
        synonyms: Other words for the same.

    Raises:
        SpecError: A value does not fit its field.
    """

    name: str
    description: str
    synonyms: tuple[str, ...]

    def __init__(self, name: str, description: str, synonyms: Sequence[str] = ()) -> None:
        values = {"name": name, "description": description, "synonyms": synonyms}
        _fill(self, _owner("glossary term", name), TERM, values)


@dataclass(frozen=True, init=False)
class Variable:
    """Something that may be known about a customer or a conversation.

    Args:
        name: Its name; a thread's state holds values under it in `variables`.
        description: What it means.
        value: The value where the thread has none; anything that JSON can say.

    Raises:
        SpecError: A value does not fit its field.
    """

    name: str
    description: str
    value: Any

    def __init__(self, name: str, description: str, value: Any = None) -> None:
        values = {"name": name, "description": description, "value": value}
        _fill(self, _owner("variable", name), VARIABLE, values)


def _owner(kind: str, name: object) -> str:
    return f"{kind} {entries.shortened(name)!r}" if isinstance(name, str) and name else kind


def _fill(
    entry: object, owner: str, readers: Mapping[str, entries.Reader], values: Mapping[str, object]
) -> None:
    try:
        settled = entries.settle(owner, readers, values)
    except Misfit as misfit:
        raise SpecError(misfit.message) from misfit.__cause__
    for field, value in settled.items():
        object.__setattr__(entry, field, value)
