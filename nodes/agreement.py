"""Agreement: what the customer's answer to a confirmation question means for the calls that wait.

The question stays open until an agent says something else (`find_answered_question`). Once the customer has answered,
every strategy begins with `resolve_agreement`. An answer is a yes if it is a button, if the designer's `agrees` says
so, if it is made of listed phrases, or if both keys of `nodes/consent.py` turn. After a yes, code makes the pending
calls in order, without asking a model about them. After anything else, the strategy says which of them the customer
still wants, and these are asked about again.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Container, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall, ToolVerdict
from arq_graph.errors import describe_error
from arq_graph.nodes.blueprint_node import Callback, QuestionBatch
from arq_graph.nodes.channels import StateView, Update, count_tool_rounds
from arq_graph.nodes.confirmation import (
    HOW_TO_AGREE,
    QUESTION_ID,
    make_call,
    merge_agreements,
    warn_of_forgotten_questions,
)
from arq_graph.nodes.consent import has_consented, make_consent_question
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import format_message_name, make_agent_message, read_note
from arq_graph.nodes.yes import find_reservation, is_yes, read_plain_text
from arq_graph.reasoning.answer import Answer

Agrees: TypeAlias = Callable[[str, str], "bool | Awaitable[bool | None] | None"]
"""A function of a customer's message and a question, sync or async, that returns whether the message agrees to the
question; None falls back to the built-in rules."""

AgreementRequest: TypeAlias = "Callback | QuestionBatch"

HAND_BACK = "__is_handoff_back"
"""Key of the `response_metadata` of messages by which langgraph-supervisor and others return to their supervisor."""

AGREES_TO = "agrees_to"
"""Key of a customer message's `additional_kwargs` that a confirm button sets to the id of the question."""

_MAX_SHOWN = 80


class AnsweredQuestion(NamedTuple):
    """The record of an open confirmation question, and the customer's messages since it was asked."""

    agreement: Agreement
    answers: list[BaseMessage]


def find_answered_question(state: StateView) -> AnsweredQuestion | None:
    """Return the open question with all messages of the customer since.

    A question is open while it is the last thing that an agent has said. It is found by its text, since clients that
    send the whole history give messages ids of their own; the calls are those of the stored record. None if no question
    is open, or the customer hasn't answered it.
    """
    agreements = state.read_records_of_name("agreements", Agreement)
    own_agreements = state.read_records("agreements", Agreement)
    customer_agreements = [agreement for agreement in own_agreements if agreement.by == "customer"]
    if not customer_agreements:
        # An earlier version of the specification may have asked.
        customer_agreements = [agreement for agreement in agreements if agreement.by == "customer"]
    position: int | None = None
    if customer_agreements:
        position = _find_question(state.messages, customer_agreements[-1].question)
    if position is None:
        _warn_of_lost_question(state, {agreement.id for agreement in agreements})
        return None
    answers: list[BaseMessage] = []
    for message in state.messages[position + 1 :]:
        if isinstance(message, HumanMessage):
            answers.append(message)
        elif isinstance(message, AIMessage) and _says_something(message):
            is_other_agent = message.name not in (None, format_message_name(state.agent))
            if is_other_agent or not answers:
                _warn_of_closed_question(state.agent, message)
            return None
    return AnsweredQuestion(customer_agreements[-1], answers) if answers else None


def _find_question(messages: Sequence[BaseMessage], question: str) -> int | None:
    """Return the last position of an agent's message that ends with the question."""
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


def _says_something(message: AIMessage) -> bool:
    """Return whether an agent says something; messages of LangGraph's hand-off tools don't count."""
    is_hand_back = bool(message.response_metadata.get(HAND_BACK))
    return bool(message.text.strip()) and not is_hand_back


def _warn_of_closed_question(agent: str, message: AIMessage) -> None:
    warnings.warn(
        f"a confirmation question of {agent!r} was closed by a message of {message.name or 'another agent'!r}, so an "
        "answer to it is ignored. Let the agent whose question is open answer the customer's next message",
        stacklevel=2,
    )


def _warn_of_lost_question(state: StateView, known_ids: Container[str]) -> None:
    """Warn whoever wires the graph if the customer answers a question whose record this agent doesn't have."""
    last_message = _find_last_agent_message(state.messages)
    if last_message is None:
        return
    question_ids = read_note(last_message, QUESTION_ID)
    question_id = question_ids.get(state.agent)
    if isinstance(question_id, str) and question_id not in known_ids:
        warnings.warn(
            f"the last message of {state.agent!r} asks for a yes, but the channel `agreements` no longer has the "
            "question, so answers to it are ignored. A node has to be given the whole state, and all of its update "
            "has to be written, not the messages alone. An agent that is a node of another graph has to keep its state "
            "between turns: compile it with checkpointer=True",
            stacklevel=2,
        )
    elif question_ids and question_id is None:
        names = ", ".join(map(repr, question_ids))
        warnings.warn(
            f"the customer answers a confirmation question of {names}, which {state.agent!r} drops: only the agent "
            "that asked can take the answer. If the agent was renamed, put the question again",
            stacklevel=2,
        )


def _is_question_forgotten(gate: Gate) -> bool:
    """Return True if the last reply reads like a question of ours, but has neither its metadata nor a stored record."""
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
    """The outcome of the open question, once the customer has answered.

    - After a yes: the `message` that makes the call, the `update` of `agreements` that marks it as made, and the
      `verdicts` on it. If it can't run, or something went wrong since the yes: only `verdicts`, on calls that are
      declined, or that the customer is asked about again.
    - After anything else: the `pending` calls, by the ids that a prompt shows.
    - Without an open question, or once all its calls are made: nothing.
    """

    message: AIMessage | None = None
    update: Update = field(default_factory=dict)
    verdicts: tuple[ToolVerdict, ...] = ()
    pending: Mapping[str, PendingCall] = field(default_factory=dict)

    def describe_pending(self) -> list[dict[str, Any]]:
        """Return the pending calls as a prompt shows them."""
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
    """Resolve the open question by the customer's answer; yields functions to call and at most one question.

    `agrees` accepts further answers as a yes.
    """
    answered_question = find_answered_question(gate.state)
    if answered_question is None:
        if _is_question_forgotten(gate):
            warn_of_forgotten_questions(gate.agent)
        return AgreementOutcome()
    agreement, answers = answered_question
    if agreement.specification not in ("", gate.state.specification):
        agreement = _adopt_agreement(gate, agreement)
    pending = [call for call in agreement.calls if call.tool_call_id is None and call.tool in gate.tools]

    answer_id = gate.state.turn_id
    answer_text = "\n".join(message.text for message in answers)
    # A message that was edited keeps its id, so the text is compared, too.
    yes_is_recorded = (agreement.answer_message_id, agreement.answer_text) == (answer_id, answer_text)
    if not yes_is_recorded:
        # `Parallel` runs this speculatively, too; the developer's function is left to the real run.
        own_rule = None if gate.state.is_speculative else agrees
        is_yes_now = yield from _is_yes(gate, agreement, pending, answers, own_rule)
        if not is_yes_now:
            pending_by_id = {f"C{number}": call for number, call in enumerate(pending, start=1)}
            return AgreementOutcome(pending=pending_by_id)
    if not pending:
        return AgreementOutcome()

    failed_ids = {getattr(line.message, "tool_call_id", "") for line in gate.failed_results}
    has_failed = any(call.tool_call_id in failed_ids for call in agreement.calls)
    # A yes allows one round per call, so that the turn ends even if calls are lost.
    has_used_all_rounds = count_tool_rounds(gate.state) >= len(agreement.calls)
    if has_failed or has_used_all_rounds:
        return AgreementOutcome(verdicts=tuple(gate.recheck_pending_calls(pending)))
    fields = {"answer_message_id": answer_id, "answer_text": answer_text}
    return _make_agreed_call(gate, agreement.model_copy(update=fields), pending)


def _make_agreed_call(gate: Gate, agreement: Agreement, pending: Sequence[PendingCall]) -> AgreementOutcome:
    """Make the first of the pending calls, if the gate still lets it through."""
    first_call, *other_calls = pending
    verdicts = gate.check_agreed_call(first_call, gate.rules.find_refusal(first_call.tool))
    if verdicts[0].kind != "run":
        verdicts += gate.recheck_pending_calls(other_calls)
        return AgreementOutcome(verdicts=tuple(verdicts))
    tool_call = make_call(first_call.tool, first_call.arguments)
    message = make_agent_message(gate.agent.name, tool_calls=[tool_call])
    calls: list[PendingCall] = []
    for call in agreement.calls:
        if call is first_call:
            made_as = {"tool_call_id": tool_call["id"], "message_id": message.id}
            call = call.model_copy(update=made_as)
        calls.append(call)
    update = merge_agreements(gate.state, agreement.model_copy(update={"calls": tuple(calls)}))
    verdict = verdicts[0].model_copy(update={"rationale": "the customer agreed to it"})
    return AgreementOutcome(message, update, (verdict,))


def _adopt_agreement(gate: Gate, agreement: Agreement) -> Agreement:
    """Return an agreement of another version of the agent as its own.

    Which guidelines granted the calls says nothing any more, so those count that grant them now.
    """
    calls: list[PendingCall] = []
    for call in agreement.calls:
        granted_by = gate.granted.get(call.tool, ())
        calls.append(call.model_copy(update={"granted_by": granted_by}))
    fields = {"specification": gate.state.specification, "calls": tuple(calls)}
    return agreement.model_copy(update=fields)


def _is_yes(
    gate: Gate,
    agreement: Agreement,
    calls: Sequence[PendingCall],
    answers: Sequence[BaseMessage],
    agrees: Agrees | None,
) -> Generator[AgreementRequest, Any, bool]:
    """Return whether the customer agrees to the calls."""
    if not calls:
        return False
    if any(message.additional_kwargs.get(AGREES_TO) == agreement.id for message in answers):  # a button
        return True
    text = read_plain_text(answers)
    if agrees is not None:
        answer_text = "\n".join(message.text for message in answers)
        try:
            agreed = yield partial(agrees, answer_text, agreement.question)
        except Exception as error:  # an error is never a yes
            warnings.warn(
                f"`agrees` failed for the answer {answer_text[:_MAX_SHOWN]!r}, so the answer doesn't count as a yes: "
                f"{describe_error(error)}. Let the function return True, False or None for every message",
                stacklevel=2,
            )
            return False
        if agreed is not None:
            return agreed is True
    tools = [call.tool for call in calls]
    own_phrases = _list_own_phrases(gate.agent, tools)
    # Phrases and prompt are read from files at first use, which must not block an event loop.
    is_listed: bool = yield partial(is_yes, answers, tools, own_phrases)
    # The model is asked once a turn: in a later round the answer is still the same.
    may_ask = _allows_free_words(gate.agent, tools) and count_tool_rounds(gate.state) == 0
    if is_listed or text is None or not may_ask:
        return is_listed
    reservation = yield partial(find_reservation, text, agreement.question, len(calls), own_phrases)
    if reservation is not None:
        return False
    question = yield partial(make_consent_question, agreement.question, calls, text)
    (consent,) = yield QuestionBatch([question])
    return isinstance(consent, Answer) and has_consented(consent.value, text)


def _list_own_phrases(agent: Agent, tools: Sequence[str]) -> list[str]:
    """Return the designer's phrases that are a yes to calls of all these tools."""
    phrases_by_tool: list[set[str]] = []
    for tool in tools:
        confirmation = agent.confirm.get(tool)
        phrases_by_tool.append(set(confirmation.yes if confirmation else ()))
    return sorted(set.intersection(*phrases_by_tool))


def _allows_free_words(agent: Agent, tools: Sequence[str]) -> bool:
    confirmations = [agent.confirm[tool] for tool in tools if tool in agent.confirm]
    return all(confirmation.reading == "free" for confirmation in confirmations)
