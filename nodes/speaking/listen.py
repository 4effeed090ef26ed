"""Waiting for the customer's answer within a task: one interrupt in a node of its own (ReSpAct, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Send, interrupt
from pydantic import StringConstraints, ValidationError

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError
from arq_graph.nodes.messages import find_unanswered_calls, read_note
from arq_graph.nodes.node import Node
from arq_graph.nodes.speaking.move_schema import WORLD_CALL
from arq_graph.nodes.speaking.speech import ANSWERS, SPEECH
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.tool_node import route_calls

CustomerAnswer: Any = Annotated[str, StringConstraints(strict=True, pattern=r"\S")]
"""A text that isn't blank."""


class Listener(Node):
    """Wait in `interrupt()` for the answer to the last utterance, and add it to the messages.

    The interrupt's value is `{"type": "speak", "text": …, "category": …}`, with `dialogue_act` where there is one.
    Resume with `Command(resume="the answer")`.

    Args:
        messages_key: Channel of the messages.

    Raises:
        InputError: The answer isn't a text, or is blank; the interrupt can be answered again.
    """

    name = "listen"

    def __init__(self, *, messages_key: str = "messages") -> None:
        self.messages_key = messages_key
        self.declare_channels({messages_key: list[AnyMessage]})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Interrupt for the customer, or add the answer."""
        utterance = _find_open_utterance(StateView(input, self.messages_key).messages)
        if utterance is None:
            return {}
        request = {"type": "speak", "text": utterance.text}
        note = read_note(utterance, SPEECH)
        for label in ("category", "dialogue_act"):
            if note.get(label):
                request[label] = note[label]
        try:
            answer = interrupt(request, response_schema=CustomerAnswer)
        except ValidationError as error:
            raise InputError(
                f"the customer's answer must be a non-blank string: {error.errors()[0]['msg']}; resume again "
                'with Command(resume="…")'
            ) from error
        metadata = {ANSWERS: utterance.id or ""}
        message = HumanMessage(answer, id=str(uuid4()), response_metadata=metadata)
        return {self.messages_key: [message]}


def route_moves(
    agent: Agent, *, otherwise: str, messages_key: str = "messages"
) -> Callable[[Any], str | Sequence[str] | list[Send]]:
    """Return the router after a speaker, to one of these nodes.

    - `approve`: an operator has to approve a call.
    - `tools`: there are calls of tools.
    - `act`: there is an action in a world.
    - `listen`: an utterance waits for an answer.

    Args:
        agent: The specification.
        otherwise: Where to go after an utterance that waits for no answer.
        messages_key: Channel of the messages.
    """
    route_call = route_calls(agent, otherwise=otherwise, messages_key=messages_key)

    def route(state: Any) -> str | Sequence[str] | list[Send]:
        messages = StateView(state, messages_key).messages
        called = {placed_call.call["name"] for placed_call in find_unanswered_calls(messages)}
        if WORLD_CALL in called and WORLD_CALL not in agent.toolbox:
            return WORLD_CALL
        if _find_open_utterance(messages) is not None:
            return "listen"
        return route_call(state)

    return route


def _find_open_utterance(messages: Sequence[AnyMessage]) -> AIMessage | None:
    """Return the last message if it is an utterance that waits for an answer."""
    last = messages[-1] if messages else None
    if isinstance(last, AIMessage) and read_note(last, SPEECH).get("waits"):
        return last
    return None
