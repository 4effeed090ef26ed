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
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall, ToolVerdict
from arq_graph.errors import describe_error
from arq_graph.nodes.blueprint_node import DeferredCall, QuestionBatch
from arq_graph.nodes.confirmation import warn_of_unstored_questions, write_agreements
from arq_graph.nodes.consent import has_consented, make_consent_question
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import count_tool_rounds, make_calling_message, make_tool_call
from arq_graph.nodes.node import Update
from arq_graph.nodes.open_question import find_answered_question, has_unrecorded_question
from arq_graph.nodes.yes import find_reservation, is_listed_yes, read_plain_text
from arq_graph.reasoning.answer import Answer
from arq_graph.reasoning.sections import make_id

Agrees: TypeAlias = Callable[[str, str], "bool | Awaitable[bool | None] | None"]
"""A function of a customer's message and a question, sync or async, that returns whether the message agrees to the
question; None falls back to the built-in rules."""

AgreementRequest: TypeAlias = "DeferredCall | QuestionBatch"

AGREES_TO = "agrees_to"
"""Key of a customer message's `additional_kwargs`, which a confirm button sets to the id of the question."""

_MAX_QUOTED = 80
"""Characters of an answer that a warning quotes."""


@dataclass(frozen=True)
class CallMade:
    """The outcome of a yes that makes the next of the pending calls.

    Args:
        message: The message that makes the call.
        update: The update of `agreements` that marks the call as made.
        verdicts: The verdict on the call.
    """

    message: AIMessage
    update: Update
    verdicts: tuple[ToolVerdict, ...]


@dataclass(frozen=True)
class AgreementOutcome:
    """What is left of an answered question for a strategy to decide; nothing if no question is open.

    Args:
        verdicts: After a yes, if the next call can't be made or an earlier one has failed: the verdicts on the pending
            calls, which are declined or asked about again.
        pending: After any other answer, the pending calls by the ids that the prompt shows.
    """

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
) -> Generator[AgreementRequest, Any, CallMade | AgreementOutcome]:
    """Resolve the open question by the customer's answer.

    Yields functions to call, and at most one question to ask a model. `agrees` may accept further answers as a yes.
    """
    answered_question = find_answered_question(gate.state)
    if answered_question is None:
        if has_unrecorded_question(gate.agent, gate.state):
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
        has_agreed = yield from _has_agreed(gate, agreement, pending, answers, own_rule)
        if not has_agreed:
            pending_by_id = {make_id("C", number): call for number, call in enumerate(pending, start=1)}
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


def _make_first_call(
    gate: Gate, agreement: Agreement, pending: Sequence[PendingCall]
) -> CallMade | AgreementOutcome:
    """Make the first of the pending calls, if the gate still accepts it."""
    first_call, *other_calls = pending
    check = gate.check_agreed_call(first_call)
    if not check.is_accepted:
        return AgreementOutcome(verdicts=check.verdicts + gate.recheck_pending_calls(other_calls))
    tool_call = make_tool_call(first_call.tool, first_call.arguments)
    message = make_calling_message(gate.agent, gate.state, [tool_call])
    calls: list[PendingCall] = []
    for call in agreement.calls:
        if call is first_call:
            made_as = {"tool_call_id": tool_call["id"], "message_id": message.id}
            call = call.model_copy(update=made_as)
        calls.append(call)
    update = write_agreements(gate.state, agreement.model_copy(update={"calls": tuple(calls)}))
    verdicts = check.annotate(rationale="the customer agreed to it").verdicts
    return CallMade(message, update, verdicts)


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


def _has_agreed(
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
    is_listed: bool = yield partial(is_listed_yes, answers, tools, own_phrases)
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
) -> Generator[DeferredCall, Any, bool | None]:
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
