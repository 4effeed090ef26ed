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
from arq_graph.nodes.channels import Node, StateView
from arq_graph.nodes.messages import unanswered_calls
from arq_graph.nodes.speaking.move_schema import ACT
from arq_graph.nodes.speaking.speech import ANSWERS, speech_of
from arq_graph.nodes.tool_node import route_calls

CustomerAnswer: Any = Annotated[str, StringConstraints(strict=True, pattern=r"\S")]
"""What the customer answers: a text that says something."""


class Listen(Node):
    """Wait in `interrupt()` for the answer to the last utterance, and add it to the messages.

    The interrupt's value is `{"type": "speak", "text": …, "category": …}`, with `dialogue_act` where there is one.
    Resume with `Command(resume="the answer")`.

    Raises:
        InputError: The answer is no text; the interrupt can be answered again.
    """

    name = "listen"

    def __init__(self) -> None:
        self.declare_channels({"messages": list[AnyMessage]})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Interrupt for the customer, or take in the answer."""
        said = _waiting(StateView(input).messages)
        if said is None:
            return {}
        kept = speech_of(said)
        labels = {name: kept[name] for name in ("category", "dialogue_act") if kept.get(name)}
        try:
            answer = interrupt({"type": "speak", "text": said.text, **labels}, response_schema=CustomerAnswer)
        except ValidationError as error:
            raise InputError(
                f"the customer's answer must be a text that says something: {error.errors()[0]['msg']}; resume again "
                'with Command(resume="…")'
            ) from error
        about = {ANSWERS: said.id or ""}
        return {"messages": [HumanMessage(answer, id=str(uuid4()), response_metadata=about)]}


def route_moves(agent: Agent, *, otherwise: str) -> Callable[[Any], str | Sequence[str] | list[Send]]:
    """Route behind the speaker to `approve`, for an operator, to `tools`, the world's `act`, or `listen`.

    `otherwise` is where to go behind an utterance that waits for no answer.
    """
    to_calls = route_calls(agent, otherwise=otherwise)

    def route(state: Any) -> str | Sequence[str] | list[Send]:
        messages = StateView(state).messages
        if any(call["name"] == ACT and ACT not in agent.toolbox for call in unanswered_calls(messages)):
            return ACT
        return "listen" if _waiting(messages) is not None else to_calls(state)

    return route


def _waiting(messages: list[AnyMessage]) -> AIMessage | None:
    """The last message, where it is an utterance that waits for an answer."""
    last = messages[-1] if messages else None
    return last if isinstance(last, AIMessage) and speech_of(last).get("waits") else None
