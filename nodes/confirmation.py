"""Confirmation: calls that run only once the customer has agreed to exactly them.

1. A strategy leaves each such call as a verdict of the kind `confirm`.
2. The node that sends the reply makes it with `make_reply`: code writes the confirmation question below the reply, and
   one update holds the message and its record in the channel `agreements`.
3. The question stays open until an agent says something else (`find_answered_question`).
4. Once the customer has answered, every strategy begins with `resolve_agreement`. After a yes, code makes the pending
   calls in order, without a model. After anything else, the strategy says which of them the customer still wants, and
   these are asked about again.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Awaitable, Callable, Container, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

import regex  # type: ignore[import-untyped]
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall, ToolVerdict
from arq_graph.nodes.blueprint_node import UserFunction
from arq_graph.nodes.channels import StateView, Update, count_tool_rounds
from arq_graph.nodes.events import ConfirmationAsked
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import make_agent_message, read_note
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.yes import has_question_mark, is_yes
from arq_graph.reasoning.sections import INVISIBLE

Agrees: TypeAlias = Callable[[str, str], "bool | Awaitable[bool | None] | None"]
"""A function of a customer's message and a question, sync or async, that returns whether the message agrees to the
question; None leaves it to the list of yeses."""

QUESTION_ID = "asks_for_a_yes"
"""Key of a message's `response_metadata`: the id of the question that it ends with, by the agent's name."""

HOW_TO_AGREE = "Reply yes to go ahead."

# Characters and markup that can hide or reorder the text after them, or that are shown as another character: HTML, its
# entities, code fences, controls.
_MARKUP = r"<(?=[A-Za-z/!?])|&(?=#?\w+;)|`(?=``)|~(?=~~)"
_HIDING = regex.compile(_MARKUP + r"|[\u202a-\u202e\u2066-\u2069]|(?!\s)\p{Cc}")
_UNREADABLE = regex.compile(rf"{_MARKUP}|{INVISIBLE}|\u2800|(?! )\s")


# --- asking


@dataclass(frozen=True)
class Reply:
    """A reply to the customer, which may end with the confirmation question.

    The `update` of `agreements` records the question, and must be written in the same step as the `message`. Emit the
    `event` after the reply's own event. Without a question the update is empty, and there is no event.
    """

    message: AIMessage
    update: Update = field(default_factory=dict)
    event: ConfirmationAsked | None = None


def make_reply(
    agent: Agent,
    state: StateView,
    text: str,
    to_confirm: Sequence[ToolVerdict],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> Reply:
    """Make a reply with a text, and below it the confirmation question about the calls `to_confirm`, if there are any.

    The text is left out if it asks something itself or could hide the question.
    """
    message = make_agent_message(agent.name, text, response_metadata=dict(metadata or {}))
    if not to_confirm:
        return Reply(message)
    question = format_question(agent, to_confirm)
    pending_calls: list[PendingCall] = []
    for verdict in to_confirm:
        pending_calls.append(
            PendingCall(tool=verdict.tool, arguments=verdict.arguments, granted_by=verdict.granted_by)
        )
    agreement = Agreement(
        turn=to_confirm[0].turn,
        id=str(uuid4()),
        question_message_id=str(message.id),
        question=question,
        calls=tuple(pending_calls),
    )
    message.content = question
    if text.strip() and not find_question_violation(text, to_confirm):
        message.content = f"{text.strip()}\n\n{question}"
    message.response_metadata[QUESTION_ID] = {state.agent: agreement.id}
    event = ConfirmationAsked(id=agreement.id, question=question, calls=agreement.calls)
    return Reply(message, merge_agreements(state, agreement), event)


def find_question_violation(text: str, to_confirm: Sequence[ToolVerdict]) -> str | None:
    """Return why a text can't stand above the confirmation question about calls; None if it can.

    Have it revised once; after that `make_reply` sends the question alone.
    """
    if not to_confirm:
        return None
    if has_question_mark(text):
        return "it asks a question, but the confirmation question follows below, and a yes must answer only that one"
    if hiding := _HIDING.search(text):
        return f"it holds {json.dumps(hiding[0])}, which could hide code's own question below it: write plain text"
    return None


def format_question(agent: Agent, calls: Sequence[ToolVerdict | PendingCall]) -> str:
    """Return code's question about calls: each with its tool and every argument, then how to agree."""
    lines, replies = [], []
    for number, call in enumerate(calls, start=1):
        line, reply = _format_call(agent, call.tool, call.arguments)
        if len(calls) > 1:
            line = f"{number}. {line}"
        lines.append(line)
        replies.append(reply)
    lines.extend(dict.fromkeys(replies))
    return "\n".join(lines)


def format_example_question(agent: Agent, tool: str) -> str:
    """Return code's question about a tool, with the arguments' names in place of their values."""
    return " ".join(_format_call(agent, tool, None))


def _format_call(agent: Agent, name: str, arguments: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return a call as the customer reads it, and how to agree to it."""
    tool_schema = ToolSchema(agent.toolbox[name])
    values: dict[str, str] = {}
    for argument in tool_schema.arguments:
        if arguments is None:
            values[argument.name] = f"‹{argument.name}›"
        else:
            default = tool_schema.defaults.get(argument.name)
            values[argument.name] = _format_value(arguments.get(argument.name, default))
    confirmation = agent.confirm.get(name)
    how_to_agree = (confirmation and confirmation.reply) or HOW_TO_AGREE
    if confirmation and confirmation.ask:
        return confirmation.ask.format_map(values), how_to_agree
    text = tool_schema.title
    if values:
        labelled = ", ".join(f"{label.replace('_', ' ')}: {value}" for label, value in values.items())
        text += f" ({labelled})"
    return text, how_to_agree


def _format_value(value: Any) -> str:
    """Return a value as the customer reads it, in full: texts in quotation marks, unreadable characters escaped."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    text = json.dumps(value, ensure_ascii=False, default=str)
    escaped: str = _UNREADABLE.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
    return escaped


# --- the open question


def find_answered_question(state: StateView) -> tuple[Agreement, list[BaseMessage]] | None:
    """Return the open question with all messages of the customer since.

    A question is open while the message that ends with it is the agent's last one, and reads as it was sent. None if
    no question is open, or the customer hasn't answered it.
    """
    agreements = state.read_records("agreements", Agreement)
    customer_agreements = [agreement for agreement in agreements if agreement.by == "customer"]
    position: int | None = None
    if customer_agreements:
        position = _find_question(state, customer_agreements[-1])
    if position is None:
        _warn_of_lost_question(state, {agreement.id for agreement in agreements})
        return None
    answers: list[BaseMessage] = []
    for message in state.messages[position + 1 :]:
        if isinstance(message, AIMessage) and message.text.strip():
            return None
        if isinstance(message, HumanMessage):
            answers.append(message)
    return (customer_agreements[-1], answers) if answers else None


def _find_question(state: StateView, agreement: Agreement) -> int | None:
    """Return the position of the message that ends with the question; None if it is gone or reads otherwise."""
    for position, message in enumerate(state.messages):
        if message.id == agreement.question_message_id:
            return position if message.text.endswith(agreement.question) else None
    return None


def _warn_of_lost_question(state: StateView, known_ids: Container[str]) -> None:
    """Warn whoever wires the graph if the record of the last question isn't stored until its answer."""
    agent_messages = [message for message in state.messages if isinstance(message, AIMessage)]
    if not agent_messages:
        return
    question_id = read_note(agent_messages[-1], QUESTION_ID).get(state.agent)
    if isinstance(question_id, str) and question_id not in known_ids:
        warnings.warn(
            f"the last message of {state.agent!r} asks for a yes, but the channel `agreements` no longer has the "
            "question, so answers to it are ignored. An agent that is a node of another graph has to keep its state "
            "between turns: compile it with checkpointer=True",
            stacklevel=2,
        )


# --- the answer


@dataclass(frozen=True)
class AgreementOutcome:
    """The outcome of the open question, once the customer has answered.

    - After a yes: the `call` to make now, the `update` of `agreements` that marks it as made, and the `verdicts` on it.
      If it can't run, or something went wrong since the yes: only `verdicts`, on calls that are declined, or that the
      customer is asked about again.
    - After anything else: the `pending` calls, by the ids that a prompt shows.
    - Without an open question: nothing.
    """

    call: ToolCall | None = None
    update: Update = field(default_factory=dict)
    verdicts: tuple[ToolVerdict, ...] = ()
    pending: Mapping[str, PendingCall] = field(default_factory=dict)

    def describe_pending(self) -> list[dict[str, Any]]:
        """Return the pending calls as a prompt shows them."""
        return [
            {"id": id, "tool": call.tool, "arguments": call.arguments} for id, call in self.pending.items()
        ]

    def select_wanted_calls(self, answer: Any) -> list[PendingCall]:
        """Return the pending calls that the customer still wants, by a model's answer."""
        ids = getattr(answer, "still_wanted", None) or ()
        return [call for id, call in self.pending.items() if id in ids]


def resolve_agreement(gate: Gate, agrees: Agrees | None) -> Generator[UserFunction, Any, AgreementOutcome]:
    """Resolve the open question by the customer's answer; yields the functions that are to be run.

    `agrees` accepts further answers as a yes, besides the shipped list.
    """
    answered_question = find_answered_question(gate.state)
    if answered_question is None:
        return AgreementOutcome()
    agreement, answers = answered_question
    pending = [call for call in agreement.calls if call.tool_call_id is None and call.tool in gate.tools]

    answer_id = gate.state.turn_id
    answer_text = "\n".join(message.text for message in answers)
    # A message that was edited keeps its id, so the text is compared, too.
    was_agreed_to = (agreement.answer_message_id, agreement.answer_text) == (answer_id, answer_text)
    if not was_agreed_to:
        if gate.state.is_speculative:
            agrees = None  # a function of the user's is called once
        has_agreed = yield from _has_agreed(agreement, pending, answers, answer_text, agrees)
        if not has_agreed:
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

    first_call, *other_calls = pending
    verdicts = gate.check_agreed_call(first_call, gate.rules.find_refusal(first_call.tool))
    if verdicts[0].kind != "run":
        verdicts += gate.recheck_pending_calls(other_calls)
        return AgreementOutcome(verdicts=tuple(verdicts))
    tool_call = make_call(first_call.tool, first_call.arguments)
    calls: list[PendingCall] = []
    for call in agreement.calls:
        if call is first_call:
            call = call.model_copy(update={"tool_call_id": tool_call["id"]})
        calls.append(call)
    fields = {"answer_message_id": answer_id, "answer_text": answer_text, "calls": tuple(calls)}
    update = merge_agreements(gate.state, agreement.model_copy(update=fields))
    verdict = verdicts[0].model_copy(update={"rationale": "the customer agreed to it"})
    return AgreementOutcome(tool_call, update, (verdict,))


def _has_agreed(
    agreement: Agreement,
    calls: Sequence[PendingCall],
    answers: Sequence[BaseMessage],
    answer_text: str,
    agrees: Agrees | None,
) -> Generator[UserFunction, Any, bool]:
    if not calls:
        return False
    if answer_text.strip() == agreement.id:  # a button
        return True
    if agrees is not None:
        try:
            agreed = yield partial(agrees, answer_text, agreement.question)
        except Exception:
            return False
        if agreed is not None:
            return agreed is True
    # `is_yes` reads its list from a file at first use, which must not block an event loop.
    is_listed: bool = yield partial(is_yes, answers, [call.tool for call in calls])
    return is_listed


def make_call(tool: str, arguments: dict[str, Any]) -> ToolCall:
    """Return a tool call with an id of its own."""
    return ToolCall(name=tool, args=dict(arguments), id=f"call_{uuid4().hex}", type="tool_call")


def merge_agreements(state: StateView, *agreements: Agreement) -> Update:
    """Return the update that replaces or adds these records, keeps the others of their turns, and drops older ones."""
    turn_ids: set[str | None] = set()
    for agreement in agreements:
        turn_ids |= {agreement.turn, agreement.answer_message_id}
    turn_ids.discard(None)
    replaced_ids = {agreement.id for agreement in agreements}
    records: list[Agreement] = []
    for agreement in state.read_records("agreements", Agreement):
        is_current = not turn_ids.isdisjoint({agreement.turn, agreement.answer_message_id})
        if is_current and agreement.id not in replaced_ids:
            records.append(agreement)
    records.extend(agreements)
    return {"agreements": state.replace_records("agreements", records)}
