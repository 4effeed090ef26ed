"""Confirmation: calls that run only once the customer has agreed to exactly them.

1. A strategy leaves each such call as a tool insight of the kind `confirm`.
2. The node that sends the reply asks for confirmation (`ask_for_confirmation`): code writes the question below the
   reply, and one update holds the message and its record in the channel `agreements`.
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

# What may hide or turn the words after it, or be another character when shown: HTML, its entities, code fences,
# controls.
_MARKUP = r"<(?=[A-Za-z/!?])|&(?=#?\w+;)|`(?=``)|~(?=~~)"
_HIDING = regex.compile(_MARKUP + r"|[\u202a-\u202e\u2066-\u2069]|(?!\s)\p{Cc}")
_UNREADABLE = regex.compile(rf"{_MARKUP}|{INVISIBLE}|\u2800|(?! )\s")


# --- asking


def ask_for_confirmation(
    agent: Agent,
    state: StateView,
    text: str,
    calls: Sequence[ToolVerdict],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> tuple[AIMessage, Update, ConfirmationAsked | None]:
    """Return the reply with code's question about `calls` below its text, the update of `agreements`, and the event.

    The message and the update must be written in one step: `{messages_key: [reply], **update}`. The event belongs
    behind the one of the reply. If the text asks something itself, or could hide the question, it is left out. Without
    calls the text is the whole reply, and there is no event.
    """
    reply = make_agent_message(agent.name, text, response_metadata=dict(metadata or {}))
    if not calls:
        return reply, {}, None
    question = format_question(agent, calls)
    pending_calls = [
        PendingCall(tool=call.tool, arguments=call.arguments, granted_by=call.granted_by) for call in calls
    ]
    agreement = Agreement(
        turn=calls[0].turn,
        id=str(uuid4()),
        question_message_id=str(reply.id),
        question=question,
        calls=tuple(pending_calls),
    )
    reply.content = question
    if text.strip() and not find_question_conflict(text, calls):
        reply.content = f"{text.strip()}\n\n{question}"
    reply.response_metadata[QUESTION_ID] = {state.agent: agreement.id}
    event = ConfirmationAsked(id=agreement.id, question=question, calls=agreement.calls)
    return reply, merge_agreements(state, agreement), event


def find_question_conflict(text: str, calls: Sequence[ToolVerdict]) -> str | None:
    """Return why a text can't stand above code's question about `calls`; None if it can.

    Have it revised once; after that `ask_for_confirmation` sends the question alone.
    """
    if not calls:
        return None
    if has_question_mark(text):
        return "it asks something: code's own question stands below it, and a yes must not be one to anything else"
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
    tool, confirmation = ToolSchema(agent.toolbox[name]), agent.confirm.get(name)
    values = {}
    for argument in tool.arguments:
        if arguments is None:
            values[argument.name] = f"‹{argument.name}›"
        else:
            default = tool.defaults.get(argument.name)
            values[argument.name] = _format_value(arguments.get(argument.name, default))
    how_to_agree = (confirmation and confirmation.reply) or HOW_TO_AGREE
    if confirmation and confirmation.ask:
        return confirmation.ask.format_map(values), how_to_agree
    labelled = ", ".join(f"{label.replace('_', ' ')}: {value}" for label, value in values.items())
    return f"{tool.title} ({labelled})" if labelled else tool.title, how_to_agree


def _format_value(value: Any) -> str:
    """Return a value as the customer reads it, in full: texts in quotation marks, unreadable characters escaped."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    text = json.dumps(value, ensure_ascii=False, default=str)
    escaped: str = _UNREADABLE.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
    return escaped


# --- the open question


def find_answered_question(state: StateView) -> tuple[Agreement, list[BaseMessage]] | None:
    """Return the open question with all messages of the customer's since; None if none is open or answered.

    It is open while the message that ends with it is the agent's last one, and reads as it was sent.
    """
    agreements = state.read_records("agreements", Agreement)
    agreement = next((record for record in reversed(agreements) if record.by == "customer"), None)
    position = _find_question(state, agreement) if agreement else None
    if agreement is None or position is None:
        _warn_of_lost_question(state, {record.id for record in agreements})
        return None
    answers: list[BaseMessage] = []
    for message in state.messages[position + 1 :]:
        if isinstance(message, AIMessage) and message.text.strip():
            return None
        if isinstance(message, HumanMessage):
            answers.append(message)
    return (agreement, answers) if answers else None


def _find_question(state: StateView, agreement: Agreement) -> int | None:
    """Return the position of the message that ends with the question; None if it is gone or reads otherwise."""
    for position, message in enumerate(state.messages):
        if message.id == agreement.question_message_id:
            return position if message.text.endswith(agreement.question) else None
    return None


def _warn_of_lost_question(state: StateView, known_ids: Container[str]) -> None:
    """Warn whoever wires the graph if the record of the last question isn't stored until its answer."""
    last = next((message for message in reversed(state.messages) if isinstance(message, AIMessage)), None)
    question_id = read_note(last, QUESTION_ID).get(state.agent) if last else None
    if isinstance(question_id, str) and question_id not in known_ids:
        warnings.warn(
            f"the last message of {state.agent!r} asks for a yes, but the channel `agreements` does not know the "
            "question any more, so no answer to it counts. An agent that is a node of another graph has to keep its "
            "state between turns: compile it with checkpointer=True",
            stacklevel=2,
        )


# --- the answer


@dataclass(frozen=True)
class AgreementOutcome:
    """The outcome of the open question, once the customer has answered.

    - After a yes: the `call` to make now, the `update` of `agreements` that marks it as made, and the `insights` about
      it. If it can't run, or something went wrong since the yes: only `insights`, about calls that are declined, or
      that the customer is asked about again.
    - After anything else: the `pending` calls, by the ids that a prompt shows.
    - Without an open question: nothing.
    """

    call: ToolCall | None = None
    update: Mapping[str, Any] = field(default_factory=dict)
    insights: tuple[ToolVerdict, ...] = ()
    pending: Mapping[str, PendingCall] = field(default_factory=dict)

    def describe_pending(self) -> list[dict[str, Any]]:
        """Return the pending calls as a prompt shows them."""
        return [
            {"id": id, "tool": call.tool, "arguments": call.arguments} for id, call in self.pending.items()
        ]


def resolve_agreement(gate: Gate, agrees: Agrees | None) -> Generator[UserFunction, Any, AgreementOutcome]:
    """Resolve the open question by the customer's answer; yields the functions that are to be run.

    `agrees` decides what else is a yes than the list has.
    """
    open_agreement = find_answered_question(gate.state)
    if open_agreement is None:
        return AgreementOutcome()
    agreement, answers = open_agreement
    pending = [call for call in agreement.calls if call.tool_call_id is None and call.tool in gate.tools]

    answer_id = gate.conversation.turn_id
    answer_text = "\n".join(message.text for message in answers)
    # A message that was edited keeps its id, so the text is compared, too.
    was_agreed_to = (agreement.answer_message_id, agreement.answer_text) == (answer_id, answer_text)
    if not was_agreed_to:
        if gate.state.is_speculative:
            agrees = None  # a function of the user's is called once
        has_agreed = yield from _has_agreed(agreement, pending, answers, answer_text, agrees)
        if not has_agreed:
            ids = [f"C{number}" for number in range(1, len(pending) + 1)]
            return AgreementOutcome(pending=dict(zip(ids, pending, strict=True)))
    if not pending:
        return AgreementOutcome()

    failed_ids = {getattr(line.message, "tool_call_id", "") for line in gate.failed_results}
    has_failed = any(call.tool_call_id in failed_ids for call in agreement.calls)
    # One yes is for as many rounds as there were calls, so a turn ends whatever else goes wrong.
    if has_failed or count_tool_rounds(gate.state) >= len(agreement.calls):
        return AgreementOutcome(insights=tuple(gate.recheck_pending_calls(pending)))

    first_call, *other_calls = pending
    verdict = gate.check_agreed_call(first_call, gate.rules.find_objection(first_call.tool))
    if verdict[0].kind != "run":
        return AgreementOutcome(insights=(*verdict, *gate.recheck_pending_calls(other_calls)))
    tool_call = make_call(first_call.tool, first_call.arguments)
    made_call = first_call.model_copy(update={"tool_call_id": tool_call["id"]})
    calls = tuple(made_call if call is first_call else call for call in agreement.calls)
    fields = {"answer_message_id": answer_id, "answer_text": answer_text, "calls": calls}
    update = merge_agreements(gate.state, agreement.model_copy(update=fields))
    insight = verdict[0].model_copy(update={"rationale": "the customer agreed to it"})
    return AgreementOutcome(tool_call, update, (insight,))


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
            verdict = yield partial(agrees, answer_text, agreement.question)
        except Exception:
            return False
        if verdict is not None:
            return verdict is True
    # It reads its list from a file the first time, which must not block an event loop.
    is_listed: bool = yield partial(is_yes, answers, [call.tool for call in calls])
    return is_listed


def make_call(tool: str, arguments: dict[str, Any]) -> ToolCall:
    """Return a tool call with an id of its own."""
    return ToolCall(name=tool, args=dict(arguments), id=f"call_{uuid4().hex}", type="tool_call")


def merge_agreements(state: StateView, *agreements: Agreement) -> Update:
    """Return the update of `agreements` with these records, besides those of the same turns."""
    turns: set[str | None] = set()
    for agreement in agreements:
        turns |= {agreement.turn, agreement.answer_message_id}
    turns.discard(None)
    replaced_ids = {agreement.id for agreement in agreements}
    records = []
    for agreement in state.read_records("agreements", Agreement):
        is_current = not turns.isdisjoint({agreement.turn, agreement.answer_message_id})
        if is_current and agreement.id not in replaced_ids:
            records.append(agreement)
    return {"agreements": state.replace_records("agreements", [*records, *agreements])}
