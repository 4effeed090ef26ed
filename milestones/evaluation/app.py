"""Any app that takes and gives messages: how it is asked, what it answered, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from arq_graph.errors import InputError

Decide = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]
Operator = Literal["approve", "reject"] | Decide
"""Whose word calls wait for: all are approved, all are rejected, or a function of the calls gives the decisions."""


App = Any
"""Anything with `invoke` or `ainvoke`, which take `{"messages": […]}` and a config, and give messages."""


@dataclass(frozen=True)
class Waiting:
    """An interrupt that an app waits in.

    Args:
        id: Its id, if it has one.
        calls: Calls that wait for an operator, in the shape of LangChain's human-in-the-loop middleware.
        spoken: What the agent says to the user and waits for an answer to.
        value: What it is, as the app gave it.
    """

    id: str | None
    calls: tuple[Mapping[str, Any], ...] = ()
    spoken: str | None = None
    value: Any = None


def is_app(value: object) -> bool:
    """Whether it can be invoked or awaited; a class of such apps makes one, and is none."""
    if isinstance(value, type):
        return False
    return callable(getattr(value, "invoke", None)) or callable(getattr(value, "ainvoke", None))


def remembers(app: App) -> bool:
    """Whether it keeps the thread itself, so that only what is new is given to it."""
    return bool(getattr(app, "checkpointer", None))


def settings_of(app: App) -> Mapping[str, Any]:
    """What a compiled LangGraph graph with a checkpointer is invoked with, so that each step is not waited for."""
    return {"durability": "exit"} if remembers(app) and hasattr(app, "aget_state") else {}


def as_messages(given: Any) -> list[BaseMessage]:
    """The messages of an answer: `{"messages": […]}`, a list of messages, one message, or text.

    Raises:
        InputError: It is none of these.
    """
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
        return [
            each if isinstance(each, BaseMessage) else convert_to_messages([dict(each)])[0] for each in held
        ]
    except Exception as error:
        raise InputError(f"the app answered with messages that are none: {error}") from error


def new_messages(answer: Any, opening: HumanMessage) -> list[BaseMessage]:
    """What came after the message that a turn began with; all, where the app gives only what is new.

    Raises:
        InputError: The answer holds no messages.
    """
    messages = as_messages(answer)
    for same in (_same_id, _same_text):
        for index in range(len(messages) - 1, -1, -1):
            if same(messages[index], opening):
                return messages[index + 1 :]
    return messages


def _same_id(message: BaseMessage, opening: HumanMessage) -> bool:
    return message.id is not None and message.id == opening.id


def _same_text(message: BaseMessage, opening: HumanMessage) -> bool:
    return message.type == "human" and message.text == opening.text


def waiting_in(answer: Any) -> list[Waiting]:
    """The interrupts that the app waits in."""
    found = answer.get("__interrupt__") if isinstance(answer, Mapping) else None
    return [_waiting(getattr(each, "value", each), getattr(each, "id", None)) for each in found or ()]


def _waiting(value: Any, id: str | None) -> Waiting:
    if isinstance(value, str):
        return Waiting(id, spoken=value, value=value)
    if isinstance(value, Mapping):
        calls = value.get("action_requests")
        if isinstance(calls, list | tuple) and all(isinstance(call, Mapping) for call in calls) and calls:
            return Waiting(id, calls=tuple(calls), value=value)
        if value.get("type") == "speak" and isinstance(value.get("text"), str):
            return Waiting(id, spoken=value["text"], value=value)
    return Waiting(id, value=value)


def require_operator(operator: object) -> None:
    """Refuse what is no operator.

    Raises:
        InputError: It is neither "approve" nor "reject" nor a function.
    """
    if not callable(operator) and operator not in ("approve", "reject"):
        raise InputError(
            f'the operator is {operator!r}; it is "approve", "reject", or a function of the calls that gives their '
            "decisions"
        )


def decided(operator: Operator, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The operator's word on calls, as the human-in-the-loop shape has it.

    Raises:
        InputError: The operator is neither "approve" nor "reject" nor a function.
    """
    if operator in ("approve", "reject"):
        return {"decisions": [{"type": operator} for _ in calls]}
    require_operator(operator)
    return {"decisions": list(cast(Decide, operator)(calls))}


def resuming(answers: Sequence[tuple[Waiting, Any]]) -> Any:
    """What goes on with an app that waits.

    Args:
        answers: Each interrupt with its answer.
    """
    # Who waits in an interrupt is LangGraph's; nothing else here depends on it.
    command = import_module("langgraph.types").Command
    if len(answers) == 1:
        return command(resume=answers[0][1])
    return command(resume={waiting.id: answer for waiting, answer in answers})
