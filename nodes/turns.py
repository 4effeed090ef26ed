"""What belongs to the current turn, how its tools' results ended, and what an unfinished turn has left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
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

from arq_graph.agent.state import GuidelineMatch, Move, Plan, ToolInsight
from arq_graph.nodes.channels import Reader
from arq_graph.nodes.judgements import ACTIVE_FROM
from arq_graph.reasoning.conversation import Conversation, Line

ABANDONED = "abandoned: no result was recorded; the call may or may not have taken effect"


def matches_of_turn(state: Reader) -> list[GuidelineMatch]:
    """This turn's judgements; none where guidelines were not matched in this turn."""
    matches = state.of_turn("guideline_matches", GuidelineMatch, state.turn)
    return [each for match in matches for each in match.expand()]


def is_of_later_use(match: GuidelineMatch) -> bool:
    """Whether a later step or turn looks at more of a match than that it was made: the matter it is about is open."""
    holds = match.matched or match.active or (match.score or 0) >= ACTIVE_FROM
    return holds or bool(match.missing_information) or match.origin == "failure"


def folded(matches: Sequence[GuidelineMatch]) -> list[GuidelineMatch]:
    """The matches that are of later use, and all others in one record for each way in which they came out."""
    kept, alike = [], dict[tuple[bool, Any], list[str]]()
    for match in matches:
        if is_of_later_use(match):
            kept.append(match)
        else:
            alike.setdefault((match.independent_of_tools, match.origin), []).append(match.guideline)
    for (independent_of_tools, origin), (first, *others) in alike.items():
        merged = GuidelineMatch(
            guideline=first,
            other_guidelines=tuple(others),
            turn=matches[0].turn,
            active=False,
            matched=False,
            origin=origin,
            independent_of_tools=independent_of_tools,
        )
        kept.append(merged)
    return kept


def plan_of_turn(state: Reader) -> Plan | None:
    """This turn's plan so far; None where there is none yet."""
    return next(reversed(state.of_turn("plan", Plan, state.turn)), None)


def draft_of_turn(state: Reader) -> str | None:
    """What a planner, or a speaker's last move, left as the draft of this turn's reply; None where neither did."""
    moves = state.of_turn("moves", Move, state.turn)
    if moves and moves[-1].kind == "speak":
        return moves[-1].text
    plan = plan_of_turn(state)
    return plan.final_answer if plan else None


def left_open(state: Reader, conversation: Conversation) -> list[ToolInsight]:
    """What the last reply had to ask the customer for: an argument, or a yes.

    The one exception to the rule that records of other turns are ignored: an answer comes in the turn after the
    question. Whatever the turn before that one left open is over.
    """
    return [
        insight
        for insight in state.of_turn("tool_insights", ToolInsight, conversation.answered_turn)
        if insight.kind in ("missing", "invalid", "confirm")
    ]


def pending_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """The calls of the last message with calls that have no result yet, if they belong to this turn."""
    answered: set[str] = set()
    for message in _since_the_customer(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage) and message.tool_calls:
            return [call for call in message.tool_calls if (call["id"] or "") not in answered]
    return []


def message_name(agent: str) -> str:
    """What an agent's messages carry as their name, in the form that OpenAI takes."""
    return re.sub(r"[\s<|\\/>]+", "_", agent)[:64]


def noted(message: BaseMessage, key: str) -> Mapping[str, Any]:
    """What we have noted in a message; whoever sends one may have written anything there."""
    note = message.response_metadata.get(key)
    return note if isinstance(note, Mapping) else {}


def spoken_by(agent: str, text: str = "", **fields: Any) -> AIMessage:
    """A message of an agent's.

    It has an id of its own: LangGraph gives one to a message without whenever it reads a write that is not committed
    yet, another one each time.
    """
    return AIMessage(text, id=str(uuid4()), name=message_name(agent), **fields)


def rounds_of_turn(state: Reader) -> int:
    """How many times the agent has called tools since the customer last spoke; what others called does not count."""
    said = [each for each in _since_the_customer(state.messages()) if isinstance(each, AIMessage)]
    return sum(bool(each.tool_calls) and each.name == message_name(state.agent) for each in said)


def _since_the_customer(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """The messages since the customer last spoke, the newest first."""
    return takewhile(lambda message: not isinstance(message, HumanMessage), reversed(messages))


def abandoned_calls(messages: Sequence[AnyMessage], tools: Container[str] = ()) -> list[BaseMessage]:
    """The update that gives a result to every call of an unfinished earlier turn; empty where there are none.

    A customer who writes again while a turn is unfinished abandons it. Providers reject a history in which a call has
    no result, so each such call gets one, directly after those that its message already has. So does a call of this
    turn that has no id or is to one of `tools`: what decides on calls runs before they are made, so it came with the
    input, or a crash has left it.
    """
    customer = [number for number, message in enumerate(messages) if isinstance(message, HumanMessage)]
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    result: list[BaseMessage] = [RemoveMessage(REMOVE_ALL_MESSAGES)]
    owed: list[BaseMessage] = []
    for number, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            result += owed
            owed = []
        result.append(message)
        if isinstance(message, AIMessage):
            is_over = bool(customer) and number < customer[-1]
            owed += [
                result_of(call, ABANDONED)
                for call in message.tool_calls
                if (call["id"] or "") not in answered and (is_over or call["name"] in tools or not call["id"])
            ]
    result += owed
    return result if len(result) > len(messages) + 1 else []


def result_of(call: ToolCall, content: str, status: Literal["success", "error"] = "error") -> ToolMessage:
    """The result that code gives to a call in the place of the tool's."""
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"] or "", status=status)


def outcome_of(line: Line) -> Literal["told", "failed", "empty"]:
    """How a tool's result ended, by its structure alone.

    A tool that raised has status `error`; others report a failure as an object with a filled `error`, or as a list of
    such objects alone. Nothing is an empty text, list or object, null, or an object of empty lists.
    """
    if isinstance(line.message, ToolMessage) and line.message.status == "error":
        return "failed"
    text = line.message.text.strip()
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return "told" if text else "empty"
    reports = result if isinstance(result, list) else [result]
    if reports and all(isinstance(each, dict) and each.get("error") for each in reports):
        return "failed"
    return "empty" if result in (None, "", [], {}) or _lists_nothing(result) else "told"


def _lists_nothing(result: Any) -> bool:
    """Whether an object lists nothing, and tells nothing else: `{"results": [], "total": 0}`."""
    values = result.values() if isinstance(result, dict) else ()
    return any(value == [] for value in values) and all(value is True or not value for value in values)
