"""Takeover: what a person who takes over is told, and what happens to messages until the conversation is given back."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from pydantic import ValidationError

from arq_graph.agent.spec import Agent
from arq_graph.agent.takeover import Takeover, TakeoverSummary, hand_over
from arq_graph.agent.tools import get_function
from arq_graph.errors import describe_first_error, shorten
from arq_graph.nodes.confirmation import write_agreements
from arq_graph.nodes.events import HandedOver
from arq_graph.nodes.journey_run import read_stored_journeys
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.open_question import find_answered_question
from arq_graph.nodes.state_view import StateView, make_channel_error, view_state
from arq_graph.reasoning.history import Line
from arq_graph.reasoning.sections import COLLEAGUE

TAKEN_OVER = "taken_over"
"""Name of the node that records messages during a takeover."""

_MAX_CALLS = 20
_MAX_LAST_MESSAGES = 6
_MAX_LENGTH = 400


def colleague_message(text: str, name: str = "colleague") -> AIMessage:
    """Make a message of the person who has taken over, to append to the thread.

    Prompts show it as a colleague's words: neither as the customer's nor as the agent's own.

    Args:
        text: What the person writes to the customer.
        name: The person's name.
    """
    return AIMessage(text, name=name, response_metadata={COLLEAGUE: True})


def read_takeover(state: StateView) -> Takeover | None:
    """Return the current takeover; None if there is none.

    Raises:
        StateError: The channel holds something else.
    """
    value = state.get("takeover")
    try:
        return None if value is None else Takeover.model_validate(value)
    except ValidationError as error:
        expected = f"a takeover such as {{'reason': '…'}}, or None: {describe_first_error(error)}"
        raise make_channel_error("takeover", expected) from error


def route_takeover(first_nodes: Sequence[str]) -> Callable[[Any], str | Sequence[str]]:
    """Return the router from a graph's start: to `taken_over` during a takeover, else to the first nodes."""

    def route(state: Any) -> str | Sequence[str]:
        is_taken_over = StateView(state).get("takeover") is not None
        return TAKEN_OVER if is_taken_over else first_nodes

    # So that LangGraph reads no other channel: to read the messages takes longer the longer the conversation is.
    channels = get_channel_types("takeover")
    route.__annotations__["state"] = TypedDict("TakeoverState", channels, total=False)  # type: ignore[operator]
    return route


class TakeoverRecorder(Node):
    """Answer nothing while a person has the conversation; the customer's message is in the thread already.

    A confirmation question that is open is closed, so that nothing said to the person counts as a yes. If the takeover
    was written from outside, its summary is added.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.

    Raises:
        StateError: When run: a channel holds another type.
    """

    name = TAKEN_OVER

    def __init__(self, agent: Agent, *, messages_key: str = "messages") -> None:
        self.agent = agent
        self.messages_key = messages_key
        channels = get_channel_types("takeover", "agreements", "journeys")
        self.declare_channels({messages_key: list[AnyMessage]} | channels)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Close the open question, and complete the record."""
        state = view_state(self.agent, input, self.messages_key)
        takeover = read_takeover(state)
        update: Update = {}
        if takeover is not None and takeover.summary is None:
            update = write_takeover(self.agent, state, takeover)
        _warn_of_unmarked_message(state)
        return update | _close_question(state)


def _warn_of_unmarked_message(state: StateView) -> None:
    """Warn if the last message before the customer's has neither an agent's name nor a colleague's mark."""
    earlier_lines = [line for line in state.conversation.lines[:-1] if line.speaker != "tool"]
    if earlier_lines and earlier_lines[-1].speaker == "agent" and not earlier_lines[-1].message.name:
        warnings.warn(
            f"agent {state.agent_name!r} takes {shorten(earlier_lines[-1].text, 60)!r} for its own words, though a "
            "person has the conversation: write a person's messages with colleague_message(text, name)",
            stacklevel=2,
        )


def is_hand_over(agent: Agent, tool: str) -> bool:
    """Return True if the agent's tool of this name is `hand_over`."""
    own_tool = agent.toolbox.get(tool)
    return own_tool is not None and get_function(own_tool) is hand_over


def write_takeover(agent: Agent, state: StateView, takeover: Takeover) -> Update:
    """Return the update that records a takeover with its summary, and emit the event."""
    summary = summarize_for_colleague(agent, state)
    changes = {"agent": agent.name, "turn": state.turn_id, "summary": summary}
    takeover = takeover.model_copy(update=changes)
    state.emit(HandedOver(takeover=takeover))
    return {"takeover": takeover.model_dump(mode="json")}


def _close_question(state: StateView) -> Update:
    """Return the update after which no answer counts for the open question; empty if none is open."""
    answered = find_answered_question(state)
    if answered is None or not answered.agreement.calls:
        return {}
    warnings.warn(
        f"a confirmation question of {state.agent_name!r} was closed, since a person has taken the conversation over: "
        "the customer's answer doesn't count, and the agent has to ask again once it is given back",
        stacklevel=2,
    )
    return write_agreements(state, answered.agreement.model_copy(update={"calls": ()}))


def summarize_for_colleague(agent: Agent, state: StateView) -> TakeoverSummary:
    """Summarize the conversation for the person who takes over, without a model."""
    asked: list[str] = []
    messages: list[str] = []
    done: list[str] = []
    agreed: list[str] = []
    for line in state.history.lines:
        text = shorten(line.text, _MAX_LENGTH)
        if line.speaker == "customer":
            asked[1:] = [text]  # after the first one, only the last
        if line.speaker in ("customer", "agent", "colleague"):
            messages.append(f"{line.speaker}: {text}")
        elif line.call and not is_hand_over(agent, line.call["name"]):
            done.append(_describe_call(line))
            if line.call["name"] in agent.confirm and classify_result(line) != "failed":
                agreed.append(done[-1])
    answered = find_answered_question(state)
    is_open = answered is not None and any(call.tool_call_id is None for call in answered.agreement.calls)
    return TakeoverSummary(
        asked=tuple(asked),
        done=tuple(done[-_MAX_CALLS:]),
        agreed=tuple(agreed[-_MAX_CALLS:]),
        open_question=answered.agreement.question if answered and is_open else None,
        journeys=tuple(_describe_journeys(state)),
        last_messages=tuple(messages[-_MAX_LAST_MESSAGES:]),
    )


def _describe_journeys(state: StateView) -> Iterator[str]:
    """Yield how far each journey is: `return (active): done order, reason; open refund`."""
    for journey in read_stored_journeys(state).values():
        parts: list[str] = []
        for kind in ("done", "open"):
            steps = [step.step for step in journey.steps if step.state == kind]
            if steps:
                parts.append(f"{kind} {', '.join(steps)}")
        yield f"{journey.journey} ({journey.state}): {'; '.join(parts) or 'no step is open'}"


def _describe_call(line: Line) -> str:
    call = line.call or {}
    outcome = "failed: " if classify_result(line) == "failed" else ""
    arguments = json.dumps(call["args"], ensure_ascii=False, default=str)
    result = shorten(line.text, _MAX_LENGTH)
    return f"{call['name']} {shorten(arguments, _MAX_LENGTH)} → {outcome}{result}"
