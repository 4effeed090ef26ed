"""Any app that takes and gives messages: how it is asked, what it answered, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from arq_graph.errors import InputError

Decide = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]
Operator = Literal["approve", "reject"] | Decide
"""Whose word calls wait for: all are approved, all are rejected, or a function of the calls gives the decisions."""

App = Any
"""Anything with `invoke` or `ainvoke`, which take `{"messages": […]}` and a config, and give messages."""


@dataclass(frozen=True)
class Waiting:
    """An interrupt that an app waits in: calls for an operator, words for the user, or something else."""

    id: str | None
    value: Any
    calls: Sequence[Mapping[str, Any]] = ()
    spoken: str | None = None


def is_app(value: object) -> bool:
    """Whether it can be invoked or awaited; a class of such apps makes one, and is none."""
    return not isinstance(value, type) and any(
        callable(getattr(value, name, None)) for name in ("invoke", "ainvoke")
    )


def new_messages(answer: Any, opening: HumanMessage) -> list[BaseMessage]:
    """What came after the message that a turn began with; all, where the app gives only what is new.

    Raises:
        InputError: The answer is neither `{"messages": […]}`, nor messages, nor text.
    """
    messages = _messages(answer)
    same_id = [at for at, each in enumerate(messages) if each.id == opening.id]
    same_words = [
        at for at, each in enumerate(messages) if each.type == "human" and each.text == opening.text
    ]
    openings = same_id or same_words
    return messages[openings[-1] + 1 :] if openings else messages


def _messages(given: Any) -> list[BaseMessage]:
    held = given.get("messages") if isinstance(given, Mapping) else given
    if isinstance(held, str):
        return [AIMessage(held)]
    if isinstance(held, BaseMessage):
        return [held]
    if not isinstance(held, Sequence):
        raise InputError(
            f"the app answered with {type(given).__name__}; it must give {{'messages': […]}}, messages, or text"
        )
    try:
        return convert_to_messages(held)
    except Exception as error:
        raise InputError(f"the app answered with messages that are none: {error}") from error


def waiting_in(answer: Any) -> list[Waiting]:
    """The interrupts that the app waits in."""
    found = answer.get("__interrupt__") if isinstance(answer, Mapping) else None
    return [_waiting(getattr(each, "id", None), getattr(each, "value", each)) for each in found or ()]


def _waiting(id: str | None, value: Any) -> Waiting:
    if isinstance(value, str):
        return Waiting(id, value, spoken=value)
    if isinstance(value, Mapping):
        calls = value.get("action_requests")
        if isinstance(calls, list | tuple) and calls and all(isinstance(call, Mapping) for call in calls):
            return Waiting(id, value, calls=calls)
        if value.get("type") == "speak" and isinstance(value.get("text"), str):
            return Waiting(id, value, spoken=value["text"])
    return Waiting(id, value)


def decided(operator: Operator, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The operator's word on calls, as LangChain's human-in-the-loop middleware has it."""
    if callable(operator):
        return {"decisions": list(operator(calls))}
    return {"decisions": [{"type": operator} for _ in calls]}


def resuming(answers: Sequence[tuple[Waiting, Any]]) -> Any:
    """What goes on with an app that waits, from each interrupt with its answer."""
    # Who waits in an interrupt is LangGraph's; nothing else here depends on it.
    command = import_module("langgraph.types").Command
    if len(answers) == 1:
        return command(resume=answers[0][1])
    return command(resume={waiting.id: answer for waiting, answer in answers})
