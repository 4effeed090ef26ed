"""Messages that nodes read and write: unanswered calls, results of tools, and notes in their metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolCall,
    ToolMessage,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from arq_graph.agent.spec import Agent
from arq_graph.nodes.journey_run import note_done_steps
from arq_graph.nodes.state_view import StateView
from arq_graph.reasoning.history import History, Line
from arq_graph.reasoning.tool_calls import PlacedCall, pair_calls

CALLED_BY = "called_by"
"""Key of the `response_metadata` of a message that calls tools: the agent's specification, by its name."""

ABANDONED = "abandoned: no result was recorded; the call may or may not have taken effect"


def make_agent_message(agent: str, text: str = "", **fields: Any) -> AIMessage:
    """Make a message of an agent, with an id.

    LangGraph gives an id to a message that lacks one whenever it reads a write that isn't committed yet, a new one
    each time.
    """
    return AIMessage(text, id=str(uuid4()), name=format_message_name(agent), **fields)


def format_message_name(agent: str) -> str:
    """Return the name of an agent's messages, in the form that OpenAI accepts."""
    return re.sub(r"[\s<|\\/>]+", "_", agent)[:64]


def make_tool_call(tool: str, arguments: Mapping[str, Any]) -> ToolCall:
    """Make a tool call with an id of its own."""
    return ToolCall(name=tool, args=dict(arguments), id=f"call_{uuid4().hex}", type="tool_call")


def make_tool_message(
    call: ToolCall, content: str, status: Literal["success", "error"] = "error"
) -> ToolMessage:
    """Make the result that a call gets from this library, not from its tool."""
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"] or "", status=status)


def read_note(message: BaseMessage, key: str) -> Mapping[str, Any]:
    """Return the mapping that arq_graph stored in a message's metadata; an empty one if there is none."""
    note = message.response_metadata.get(key)
    return note if isinstance(note, Mapping) else {}


def iterate_back_to_customer(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """Iterate over the messages since the customer last spoke, the newest first."""
    return takewhile(lambda message: not isinstance(message, HumanMessage), reversed(messages))


def find_unanswered_calls(messages: Sequence[AnyMessage]) -> list[PlacedCall]:
    """Return the calls without a result in the last message with calls, if that message belongs to this turn."""
    current_turn = list(iterate_back_to_customer(messages))
    calls = pair_calls(current_turn[::-1])
    return [call for call in calls if call.message is calls[-1].message and call.result is None]


def make_history_repair(history: History, current_turn_tools: Container[str] = ()) -> list[BaseMessage]:
    """Return the messages that give a result to each call of an unfinished earlier turn, and to each without an id.

    A customer who writes again while a turn is unfinished abandons it. Providers reject a history in which a call
    lacks a result, so each such call gets one, directly after the results that its message already has.

    Args:
        history: The history.
        current_turn_tools: Tools whose unanswered calls in this turn count as abandoned, too. Pass them from a node
            that runs before any call of this turn: such a call came with the input, or a crash has left it.

    Returns:
        The update that replaces the whole history; empty if no call is abandoned.
    """
    if not history.has_unanswered_calls:
        return []
    messages = history.messages
    turn_start = len(messages) - len(list(iterate_back_to_customer(messages)))
    missing_results: dict[int, list[BaseMessage]] = {}
    for placed_call in pair_calls(messages):
        call, index = placed_call.call, placed_call.message_index
        is_abandoned = index < turn_start or call["name"] in current_turn_tools or not call["id"]
        if is_abandoned and placed_call.result is None:
            missing_results.setdefault(index, []).append(make_tool_message(call, ABANDONED))
    if not missing_results:
        return []
    replacement: list[BaseMessage] = [RemoveMessage(REMOVE_ALL_MESSAGES)]
    results_to_add: list[BaseMessage] = []
    for index, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            replacement.extend(results_to_add)
            results_to_add = []
        replacement.append(message)
        results_to_add.extend(missing_results.get(index, ()))
    replacement.extend(results_to_add)
    return replacement


def make_calling_message(agent: Agent, state: StateView, calls: Sequence[ToolCall]) -> AIMessage:
    """Make the agent's message that calls tools, with the note that `count_tool_rounds` looks for."""
    notes: dict[str, Any] = {CALLED_BY: {agent.name: agent.fingerprint}}
    notes |= note_done_steps(agent, state)
    return make_agent_message(agent.name, tool_calls=list(calls), response_metadata=notes)


def count_tool_rounds(state: StateView) -> int:
    """Return how many times the agent has called tools since the customer last spoke; other agents don't count.

    A message without a note of its specification, as in a history written by hand, counts by its name.
    """
    name = format_message_name(state.agent_name)
    rounds = 0
    for message in iterate_back_to_customer(state.messages):
        if isinstance(message, AIMessage) and message.tool_calls and message.name == name:
            fingerprint = read_note(message, CALLED_BY).get(state.agent_name, state.agent_fingerprint)
            if fingerprint == state.agent_fingerprint:
                rounds += 1
    return rounds


def list_ids(lines: Iterable[Line]) -> list[str]:
    """Return the ids of lines of the conversation."""
    return [line.id for line in lines]


def classify_result(line: Line) -> Literal["filled", "failed", "empty"]:
    """Classify a tool's result by its structure alone.

    It failed if its status is `error`, or if it is an object with a filled `error`, or a list of only such objects. It
    is empty if it is an empty text, list or object, null, or an object that has an empty list and otherwise only empty
    values, zeros and flags.
    """
    if isinstance(line.message, ToolMessage) and line.message.status == "error":
        return "failed"
    text = line.text.strip()
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return "filled" if text else "empty"
    reports = result if isinstance(result, list) else [result]
    if reports and all(isinstance(report, dict) and report.get("error") for report in reports):
        return "failed"
    if result in (None, "", [], {}) or _reports_nothing_found(result):
        return "empty"
    return "filled"


def _reports_nothing_found(result: Any) -> bool:
    """Return True for an object such as `{"results": [], "total": 0, "ok": true}`; see `classify_result`."""
    values = result.values() if isinstance(result, dict) else ()
    has_empty_list = [] in values
    return has_empty_list and all(value is True or not value for value in values)
