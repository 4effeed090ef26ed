"""Agreement: what the customer's answer to a confirmation question means for the pending calls.

A question stays open until an agent says something else (`find_answered_question`). Once the customer has answered it,
every strategy starts with `resolve_agreement`. An answer is a yes if it comes from a button, if the developer's
`agrees` returns True, if it consists of listed phrases, or if both keys of `nodes/consent.py` turn. After a yes, code
makes the pending calls in order, without asking a model about them. After any other answer, the strategy decides which
of them the customer still wants, and asks about these again.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall, ToolVerdict
from arq_graph.errors import describe_error
from arq_graph.nodes.blueprint_node import Callback, QuestionBatch
from arq_graph.nodes.confirmation import (
    HOW_TO_AGREE,
    QUESTION_ID,
    warn_of_unstored_questions,
    write_agreements,
)
from arq_graph.nodes.consent import has_consented, make_consent_question
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import (
    count_tool_rounds,
    format_message_name,
    make_calling_message,
    make_tool_call,
    read_note,
)
from arq_graph.nodes.node import Update
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.yes import find_reservation, is_yes, read_plain_text
from arq_graph.reasoning.answer import Answer

Agrees: TypeAlias = Callable[[str, str], "bool | Awaitable[bool | None] | None"]
"""A function of a customer's message and a question, sync or async, that returns whether the message agrees to the
question; None falls back to the built-in rules."""

AgreementRequest: TypeAlias = "Callback | QuestionBatch"

HAND_BACK = "__is_handoff_back"
"""Key of the `response_metadata` of messages with which an agent of langgraph-supervisor returns to its supervisor."""

AGREES_TO = "agrees_to"
"""Key of a customer message's `additional_kwargs`, which a confirm button sets to the id of the question."""

_MAX_QUOTED = 80
"""Characters of an answer that a warning quotes."""


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
    agreement = _find_last_agreement(state)
    position = _find_question(state.messages, agreement.question) if agreement else None
    if agreement is None or position is None:
        _warn_of_lost_question(state)
        return None
    answers: list[BaseMessage] = []
    other_message: AIMessage | None = None
    for message in state.messages[position + 1 :]:
        if isinstance(message, HumanMessage):
            if other_message is not None:
                _warn_of_closed_question(state.agent_name, agreement, other_message)
                return None
            answers.append(message)
        elif isinstance(message, AIMessage) and _is_utterance(message):
            if message.name not in (None, format_message_name(state.agent_name)):
                other_message = message  # closes the question if the customer writes after it
                continue
            if not answers:
                _warn_of_closed_question(state.agent_name, agreement, message)
            return None
    return AnsweredQuestion(agreement, answers) if answers else None


def _find_last_agreement(state: StateView) -> Agreement | None:
    """Return the newest agreement that was asked of the customer.

    If this version of the specification has asked for none, an earlier one may have.
    """
    own_agreements = state.read_records("agreements", Agreement)
    agreements = state.read_records_of_name("agreements", Agreement)
    for agreement in own_agreements[::-1] + agreements[::-1]:
        if agreement.by == "customer":
            return agreement
    return None


def _find_question(messages: Sequence[BaseMessage], question: str) -> int | None:
    """Return the position of the last agent message that ends with the question."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if isinstance(message, AIMessage) and message.text.endswith(question):
            return position
    return None


def _find_last_agent_message(messages: Sequence[BaseMessage]) -> AIMessage | None:
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message
    return None


def _is_utterance(message: AIMessage) -> bool:
    """Return True if a message has text and isn't one of LangGraph's hand-off messages."""
    is_hand_back = bool(message.response_metadata.get(HAND_BACK))
    return bool(message.text.strip()) and not is_hand_back


def _warn_of_closed_question(agent: str, agreement: Agreement, message: AIMessage) -> None:
    if agreement.answer_message_id is not None:
        return  # the customer has agreed before
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


def _has_unrecorded_question(gate: Gate) -> bool:
    """Return True if the last reply ends like a confirmation question, but neither a record nor its metadata says so.

    That is what a client shows that sends a history of texts to a graph without a checkpointer.
    """
    last_message = _find_last_agent_message(gate.state.messages)
    if last_message is None or gate.state.read_records_of_name("agreements", Agreement):
        return False
    ways_to_agree = [HOW_TO_AGREE]
    for confirmation in gate.agent.confirm.values():
        if confirmation.reply:
            ways_to_agree.append(confirmation.reply)
    has_note = bool(read_note(last_message, QUESTION_ID))
    return last_message.text.endswith(tuple(ways_to_agree)) and not has_note


@dataclass(frozen=True)
class AgreementOutcome:
    """The outcome of the open question, once the customer has answered it.

    Without an open question, or once all its calls were made, all fields are empty.

    Args:
        message: After a yes, the message that makes the next call.
        update: The update of `agreements` that marks this call as made.
        verdicts: After a yes, the verdict on this call; if it can't be made, or an earlier one has failed, those on the
            pending calls, which are declined or asked about again.
        pending: After any other answer, the pending calls by the ids that the prompt shows.
    """

    message: AIMessage | None = None
    update: Update = field(default_factory=dict)
    verdicts: tuple[ToolVerdict, ...] = ()
    pending: Mapping[str, PendingCall] = field(default_factory=dict)

    def describe_pending(self) -> list[dict[str, Any]]:
        """Return the pending calls as the prompt shows them."""
        return [
            {"id": id, "tool": call.tool, "arguments": call.arguments} for id, call in self.pending.items()
        ]

    def select_wanted_calls(self, answer: Any) -> list[PendingCall]:
        """Return the pending calls that the customer still wants, according to the model's answer."""
        ids = getattr(answer, "still_wanted", None) or ()
        return [call for id, call in self.pending.items() if id in ids]


def resolve_agreement(
    gate: Gate, agrees: Agrees | None
) -> Generator[AgreementRequest, Any, AgreementOutcome]:
    """Resolve the open question by the customer's answer.

    Yields functions to call, and at most one question to ask a model. `agrees` may accept further answers as a yes.
    """
    answered_question = find_answered_question(gate.state)
    if answered_question is None:
        if _has_unrecorded_question(gate):
            warn_of_unstored_questions(gate.agent)
        return AgreementOutcome()
    agreement, answers = answered_question
    if agreement.specification not in ("", gate.state.agent_fingerprint):
        agreement = _adopt_agreement(gate, agreement)
    pending = [call for call in agreement.calls if call.tool_call_id is None and call.tool in gate.tools]

    answer_id = gate.state.turn_id
    answer_text = "\n".join(message.text for message in answers)
    # An edited message keeps its id, so the text is compared, too.
    yes_is_recorded = (agreement.answer_message_id, agreement.answer_text) == (answer_id, answer_text)
    if not yes_is_recorded:
        # `Parallel` also runs this speculatively; only the real run calls the developer's function.
        own_rule = None if gate.state.is_speculative else agrees
        is_yes_now = yield from _is_yes(gate, agreement, pending, answers, own_rule)
        if not is_yes_now:
            pending_by_id = {f"C{number}": call for number, call in enumerate(pending, start=1)}
            return AgreementOutcome(pending=pending_by_id)
    if not pending:
        return AgreementOutcome()

    failed_ids = {getattr(line.message, "tool_call_id", "") for line in gate.failed_results}
    has_failed = any(call.tool_call_id in failed_ids for call in agreement.calls)
    # A yes allows one round per call, so that the turn ends even if results are lost.
    has_used_all_rounds = count_tool_rounds(gate.state) >= len(agreement.calls)
    if has_failed or has_used_all_rounds:
        return AgreementOutcome(verdicts=gate.recheck_pending_calls(pending))
    fields = {"answer_message_id": answer_id, "answer_text": answer_text}
    return _make_first_call(gate, agreement.model_copy(update=fields), pending)


def _make_first_call(gate: Gate, agreement: Agreement, pending: Sequence[PendingCall]) -> AgreementOutcome:
    """Make the first of the pending calls, if the gate still accepts it."""
    first_call, *other_calls = pending
    check = gate.check_agreed_call(first_call)
    if not check.is_accepted:
        return AgreementOutcome(verdicts=check.verdicts + gate.recheck_pending_calls(other_calls))
    tool_call = make_tool_call(first_call.tool, first_call.arguments)
    message = make_calling_message(gate.state, [tool_call])
    calls: list[PendingCall] = []
    for call in agreement.calls:
        if call is first_call:
            made_as = {"tool_call_id": tool_call["id"], "message_id": message.id}
            call = call.model_copy(update=made_as)
        calls.append(call)
    update = write_agreements(gate.state, agreement.model_copy(update={"calls": tuple(calls)}))
    verdicts = check.annotate(rationale="the customer agreed to it").verdicts
    return AgreementOutcome(message, update, verdicts)


def _adopt_agreement(gate: Gate, agreement: Agreement) -> Agreement:
    """Return an agreement of another version of the agent's specification as one of this version.

    The guidelines that granted the calls may no longer exist, so those that grant them now take their place.
    """
    calls: list[PendingCall] = []
    for call in agreement.calls:
        granted_by = gate.granted.get(call.tool, ())
        calls.append(call.model_copy(update={"granted_by": granted_by}))
    fields = {"specification": gate.state.agent_fingerprint, "calls": tuple(calls)}
    return agreement.model_copy(update=fields)


def _is_yes(
    gate: Gate,
    agreement: Agreement,
    calls: Sequence[PendingCall],
    answers: Sequence[BaseMessage],
    agrees: Agrees | None,
) -> Generator[AgreementRequest, Any, bool]:
    """Return True if the customer agrees to the calls."""
    if not calls:
        return False
    for message in answers:
        if message.additional_kwargs.get(AGREES_TO) == agreement.id:  # from a button
            return True
    if agrees is not None:
        own_result = yield from _apply_own_rule(agrees, answers, agreement.question)
        if own_result is not None:
            return own_result is True
    text = read_plain_text(answers)
    tools = [call.tool for call in calls]
    own_phrases = _list_own_phrases(gate.agent, tools)
    # Yielded as functions, since the first use reads phrases and prompt from files, which must not block an event loop.
    is_listed: bool = yield partial(is_yes, answers, tools, own_phrases)
    # The model is asked once in a turn: in a later round the customer's answer is still the same.
    may_ask = _allows_free_words(gate.agent, tools) and count_tool_rounds(gate.state) == 0
    if is_listed or text is None or not may_ask:
        return is_listed
    reservation = yield partial(find_reservation, text, agreement.question, len(calls), own_phrases)
    if reservation is not None:
        return False
    question = yield partial(make_consent_question, agreement.question, calls, text)
    (consent,) = yield QuestionBatch([question])
    return isinstance(consent, Answer) and has_consented(consent.value, text)


def _apply_own_rule(
    agrees: Agrees, answers: Sequence[BaseMessage], question: str
) -> Generator[Callback, Any, bool | None]:
    """Return the result of the developer's function; an error is never a yes."""
    answer_text = "\n".join(message.text for message in answers)
    try:
        result: bool | None = yield partial(agrees, answer_text, question)
    except Exception as error:
        warnings.warn(
            f"`agrees` failed for the answer {answer_text[:_MAX_QUOTED]!r}, so the answer doesn't count as a yes: "
            f"{describe_error(error)}. Let the function return True, False or None for every message",
            stacklevel=2,
        )
        return False
    return result


def _list_own_phrases(agent: Agent, tools: Sequence[str]) -> list[str]:
    """Return the phrases that the designer lists as a yes to calls of each of these tools."""
    phrases_by_tool: list[set[str]] = []
    for tool in tools:
        confirmation = agent.confirm.get(tool)
        phrases_by_tool.append(set(confirmation.yes if confirmation else ()))
    return sorted(set.intersection(*phrases_by_tool))


def _allows_free_words(agent: Agent, tools: Sequence[str]) -> bool:
    strict_tools = {name for name, confirmation in agent.confirm.items() if confirmation.reading == "strict"}
    return strict_tools.isdisjoint(tools)
