"""The open confirmation question: the last thing that an agent said, found in the messages and in the records."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement
from arq_graph.nodes.confirmation import HOW_TO_AGREE, QUESTION_ID
from arq_graph.nodes.messages import format_message_name, read_note
from arq_graph.nodes.state_view import StateView
from arq_graph.reasoning.history import is_from_colleague

HAND_BACK = "__is_handoff_back"
"""Key of the `response_metadata` of messages with which an agent of langgraph-supervisor returns to its supervisor."""


class AnsweredQuestion(NamedTuple):
    """An open confirmation question, and the customer's messages since it was asked."""

    agreement: Agreement
    answers: list[BaseMessage]


def find_answered_question(state: StateView) -> AnsweredQuestion | None:
    """Return the open question with the customer's answers; None if no question is open, or nobody has answered it.

    A question is open if it was the last thing that an agent had said when the customer answered. It is found by its
    text, since clients that send the whole history give messages ids of their own. Its calls come from the stored
    record.
    """
    agreement = _find_last_question(state)
    position = _find_question(state.messages, agreement.question) if agreement else None
    if agreement is None or position is None:
        _warn_of_lost_question(state)
        return None
    later_messages = state.messages[position + 1 :]
    answers: list[BaseMessage] = [message for message in later_messages if isinstance(message, HumanMessage)]
    closing_message = _find_closing_message(state, later_messages)
    if closing_message is None:
        return AnsweredQuestion(agreement, answers) if answers else None
    earlier_messages = later_messages[: later_messages.index(closing_message)]
    was_answered = any(isinstance(message, HumanMessage) for message in earlier_messages)
    is_own_reply = was_answered and _is_own(state, closing_message)
    has_agreed_before = agreement.answer_message_id is not None
    if not is_own_reply and not has_agreed_before:
        _warn_of_closed_question(state.agent_name, closing_message)
    return None


def _find_closing_message(state: StateView, later_messages: Sequence[BaseMessage]) -> AIMessage | None:
    """Return the message that closes a question: the agent's own, or another agent's before the customer's answer."""
    other_message: AIMessage | None = None
    for message in later_messages:
        if isinstance(message, HumanMessage) and other_message is not None:
            return other_message
        if isinstance(message, AIMessage) and _is_utterance(message):
            if _is_own(state, message):
                return message
            other_message = message
    return None


def _is_own(state: StateView, message: AIMessage) -> bool:
    return message.name in (None, format_message_name(state.agent_name)) and not is_from_colleague(message)


def _find_last_question(state: StateView) -> Agreement | None:
    """Return the newest question to the customer.

    If this version of the specification has asked none, an earlier one may have.
    """
    for read_records in (state.read_records, state.read_records_of_name):
        for agreement in reversed(read_records("agreements", Agreement)):
            if agreement.by == "customer":
                return agreement
    return None


def _find_question(messages: Sequence[BaseMessage], question: str) -> int | None:
    """Return the position of the last agent message that ends with the question."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        is_by_agent = isinstance(message, AIMessage) and not is_from_colleague(message)
        if is_by_agent and message.text.endswith(question):
            return position
    return None


def _find_last_agent_message(messages: Sequence[BaseMessage]) -> AIMessage | None:
    for message in reversed(messages):
        if isinstance(message, AIMessage) and not is_from_colleague(message):
            return message
    return None


def _is_utterance(message: AIMessage) -> bool:
    """Return True if a message has text and isn't one of LangGraph's hand-off messages."""
    is_hand_back = bool(message.response_metadata.get(HAND_BACK))
    return bool(message.text.strip()) and not is_hand_back


def _warn_of_closed_question(agent: str, message: AIMessage) -> None:
    warnings.warn(
        f"a confirmation question of {agent!r} was closed by a message of {message.name or 'another agent'!r}, so the "
        "customer's answer is ignored. The question has to be the last thing that the customer reads: let a supervisor "
        "forward it word for word, or say nothing after it",
        stacklevel=2,
    )


def _warn_of_lost_question(state: StateView) -> None:
    """Warn the developer if the customer answers a question of which this agent has no record."""
    last_message = _find_last_agent_message(state.messages)
    if last_message is None:
        return
    question_ids = read_note(last_message, QUESTION_ID)
    question_id = question_ids.get(state.agent_name)
    agreements = state.read_records_of_name("agreements", Agreement)
    if isinstance(question_id, str) and all(agreement.id != question_id for agreement in agreements):
        warnings.warn(
            f"the last message of {state.agent_name!r} asks for a yes, but the channel `agreements` no longer has the "
            "question, so answers to it are ignored. Pass the node the whole state, and write its whole update, not "
            "the messages alone. An agent that is a node of another graph must keep its state between turns: compile "
            "it with checkpointer=True",
            stacklevel=2,
        )
    elif question_ids and question_id is None:
        names = ", ".join(map(repr, question_ids))
        warnings.warn(
            f"the customer answers a confirmation question of {names}, which {state.agent_name!r} can't read: only the "
            "agent that asked can accept the answer. If it was renamed, have it ask again",
            stacklevel=2,
        )


def has_unrecorded_question(agent: Agent, state: StateView) -> bool:
    """Return True if the last reply ends like a confirmation question, but neither a record nor its metadata says so.

    That is what a client shows that sends a history of texts to a graph without a checkpointer.
    """
    last_message = _find_last_agent_message(state.messages)
    if last_message is None or state.read_records_of_name("agreements", Agreement):
        return False
    ways_to_agree = [HOW_TO_AGREE]
    for confirmation in agent.confirm.values():
        if confirmation.reply:
            ways_to_agree.append(confirmation.reply)
    has_note = bool(read_note(last_message, QUESTION_ID))
    return last_message.text.endswith(tuple(ways_to_agree)) and not has_note
