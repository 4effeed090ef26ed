"""Confirmation: code asks the customer to agree to calls, in a question below the reply.

A strategy records each such call as a verdict of the kind `confirm`. The node that sends the reply makes it with
`make_reply`, which writes the question. One update contains the message and, in the channel `agreements`, the record of
the question. `nodes/agreement.py` reads the answer.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import regex  # type: ignore[import-untyped]
from langchain_core.messages import AIMessage
from langgraph.config import get_config

from arq_graph.agent.braces import fill_fields
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall, ToolVerdict
from arq_graph.agent.tools import get_argument_schema
from arq_graph.nodes.events import ConfirmationAsked
from arq_graph.nodes.journey_run import note_done_steps
from arq_graph.nodes.messages import make_agent_message
from arq_graph.nodes.node import Update
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.yes import has_question_mark
from arq_graph.reasoning.sections import INVISIBLE, name_in_words, split_words

_CHECKPOINTER = "__pregel_checkpointer"  # LangGraph's key for it in a run's config

QUESTION_ID = "asks_for_a_yes"
"""Key of a message's `response_metadata`: the id of the question at its end, by the agent's name."""

HOW_TO_AGREE = "Reply yes to go ahead."
EXPECTED_ANSWER = (
    "I can't tell whether your last answer is a yes to exactly this. If it is, reply with just the word yes; to change "
    "something, write what; to leave it, write no."
)
NOT_GIVEN = "not given"
MAX_SAME_QUESTIONS = 2
"""How often in a row a question is asked in the same words; after that the reply says what answer is expected."""

# Characters and markup that can hide or reorder the text after them, or that are shown as another character: HTML, its
# entities, code fences, controls.
_MARKUP = r"<(?=[A-Za-z/!?])|&(?=#?\w+;)|`(?=``)|~(?=~~)"
_HIDING = regex.compile(_MARKUP + r"|[\u202a-\u202e\u2066-\u2069]|(?!\s)\p{Cc}")
_PLAIN_NAME = regex.compile(r"[\p{L}\p{M}\p{N}_.-]+")
_UNREADABLE = regex.compile(rf"{_MARKUP}|{INVISIBLE}|\u2800|(?! )\s")


@dataclass(frozen=True)
class Reply:
    """A reply to the customer, which may end with a confirmation question.

    Args:
        message: The reply.
        update: The update of `agreements` that records the question. Write it in the same step as the message.
        event: The event about the question. Emit it after that about the reply.
        has_text: True if the message has the text that was given. It is left out above a question if it asks something
            itself, or could hide the question.
    """

    message: AIMessage
    update: Update = field(default_factory=dict)
    event: ConfirmationAsked | None = None
    has_text: bool = True


def has_no_checkpointer() -> bool:
    """Return True if this runs in a graph without a checkpointer; outside a graph, the caller stores the state."""
    return _get_configurable().get(_CHECKPOINTER, True) is None


def is_forgetful_subgraph() -> bool:
    """Return True if this runs in a subgraph that starts each turn with an empty state.

    The namespace of such a subgraph has the id of the task that runs it. With `checkpointer=True` it has only the name
    of the node.
    """
    outer_namespace, _, _ = _get_configurable().get("checkpoint_ns", "").rpartition("|")
    return ":" in outer_namespace


def warn_of_unstored_questions(agent: Agent) -> None:
    """Warn the developer that confirmation questions aren't stored, so that no answer to them can count."""
    tools = ", ".join(sorted(agent.get_confirmed_tools("customer")))
    warnings.warn(
        f"agent {agent.name!r} asks the customer before it calls {tools or 'a tool'}, but nothing keeps its state "
        "until the answer, so it would ask for ever. Compile the graph with a checkpointer and run each conversation "
        "under a thread_id of its own; a graph inside another one, as a node or a tool, with checkpointer=True. The "
        "messages alone are not enough: a caller without a checkpointer has to send the channel `agreements` back, too",
        stacklevel=1,  # one place, so that Python warns once and not in every turn
    )


def _get_configurable() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable", {})
    except RuntimeError:  # outside a graph
        return {}


def make_reply(
    agent: Agent,
    state: StateView,
    text: str,
    to_confirm: Sequence[ToolVerdict],
    *,
    followed: Container[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Reply:
    """Make a reply with a text and, if there are calls `to_confirm`, the confirmation question about them below it.

    `find_preamble_problem` says which texts are left out above the question. `followed` are the ids of the guidelines
    that the text follows. The message notes which steps of journeys are done with it.
    """
    has_text = find_preamble_problem(text, to_confirm) is None
    notes = dict(metadata or {}) | note_done_steps(agent, state, followed if has_text else ())
    message = make_agent_message(agent.name, text, response_metadata=notes)
    if not to_confirm:
        return Reply(message)
    if has_no_checkpointer() and not state.is_speculative:
        warn_of_unstored_questions(agent)
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
        times_asked=_count_earlier_questions(state, pending_calls),
    )
    paragraphs: list[str] = []
    if has_text and text.strip():
        paragraphs.append(text.strip())
    if agreement.times_asked > MAX_SAME_QUESTIONS:
        paragraphs.append(_find_expected_answer(agent, pending_calls))
    paragraphs.append(question)
    message.content = "\n\n".join(paragraphs)
    message.response_metadata[QUESTION_ID] = {state.agent_name: agreement.id}
    event = ConfirmationAsked(id=agreement.id, question=question, calls=agreement.calls)
    return Reply(message, write_agreements(state, agreement), event, has_text)


def _count_earlier_questions(state: StateView, calls: Sequence[PendingCall]) -> int:
    """Return how often in a row the customer is asked about these calls, including the next question."""
    agreements = state.read_records("agreements", Agreement)
    if not agreements or agreements[-1].answer_message_id or agreements[-1].by != "customer":
        return 1
    asked_calls = [(call.tool, call.arguments) for call in agreements[-1].calls]
    is_same = asked_calls == [(call.tool, call.arguments) for call in calls]
    return agreements[-1].times_asked + 1 if is_same else 1


def _find_expected_answer(agent: Agent, calls: Sequence[PendingCall]) -> str:
    """Return the text that says which answer is expected: the designer's, or the default."""
    for call in calls:
        confirmation = agent.confirm.get(call.tool)
        if confirmation and confirmation.unclear:
            return confirmation.unclear
    return EXPECTED_ANSWER


def find_preamble_problem(text: str, to_confirm: Sequence[ToolVerdict]) -> str | None:
    """Return why a text must not precede the confirmation question about calls; None if it may.

    Have the model revise such a text once. If it is still refused then, `make_reply` sends the question alone.
    """
    if not to_confirm:
        return None
    if has_question_mark(text):
        return "it asks a question, but the confirmation question follows below, and a yes must answer only that one"
    if hiding := find_hiding(text):
        return (
            f"it holds {json.dumps(hiding)}, which could hide code's own question below it: write plain text"
        )
    return None


def find_hiding(text: str) -> str | None:
    """Return what could hide or reorder the text after it, or is shown as something else; None if nothing does."""
    hiding = _HIDING.search(text)
    return hiding[0] if hiding else None


def format_question(agent: Agent, calls: Sequence[ToolVerdict | PendingCall]) -> str:
    """Return the confirmation question about calls: each with its tool and every argument, then how to agree."""
    lines: list[str] = []
    ways_to_agree: dict[str, None] = {}  # in order, each once
    for number, call in enumerate(calls, start=1):
        line, how_to_agree = _format_call(agent, call.tool, call.arguments)
        if len(calls) > 1:
            line = f"{number}. {line}"
        lines.append(line)
        ways_to_agree[how_to_agree] = None
    lines.extend(ways_to_agree)
    return "\n".join(lines)


def format_example_question(agent: Agent, tool: str) -> str:
    """Return the confirmation question about a tool, with the arguments' names in place of their values."""
    return " ".join(_format_call(agent, tool, None))


def _format_call(agent: Agent, name: str, arguments: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return a call as the customer reads it, and how to agree to it."""
    base_tool = agent.toolbox[name]
    values: dict[str, str] = {}
    for argument in get_argument_schema(base_tool)["properties"]:
        if arguments is None:
            values[argument] = f"‹{argument}›"
        elif argument in arguments:
            values[argument] = _format_value(arguments[argument])
        else:
            values[argument] = NOT_GIVEN
    confirmation = agent.confirm.get(name)
    how_to_agree = (confirmation and confirmation.reply) or HOW_TO_AGREE
    if confirmation and confirmation.ask:
        return fill_fields(confirmation.ask, values), how_to_agree
    text = name_in_words(name).capitalize()
    title = (base_tool.metadata or {}).get("title")
    if title and split_words(str(title)) != split_words(text):
        text += f" {_format_value(str(title))}"  # the server chose it, so it never replaces the name
    labelled_values: list[str] = []
    for argument, value in values.items():
        labelled_values.append(f"{_format_label(argument)}: {value}")
    if labelled_values:
        text += f" ({', '.join(labelled_values)})"
    return text, how_to_agree


def _format_label(name: str) -> str:
    """Return an argument's name as the customer reads it: in words or, if it has other characters, as a value."""
    return name_in_words(name) if _PLAIN_NAME.fullmatch(name) else _format_value(name)


def _format_value(value: Any) -> str:
    """Return a value in full as the customer reads it: a text in quotation marks, unreadable characters escaped."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    text = json.dumps(value, ensure_ascii=False, default=str)
    escaped: str = _UNREADABLE.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
    return escaped


def write_agreements(state: StateView, *agreements: Agreement) -> Update:
    """Return the update that writes these records, each in place of its earlier version.

    Of the other records, those that were agreed to in this turn are kept, since their calls may not have run yet, and
    the last question to the customer, which may still be open.
    """
    written_ids = {agreement.id for agreement in agreements}
    others: list[Agreement] = []
    for agreement in state.read_records("agreements", Agreement):
        if agreement.id not in written_ids:
            others.append(agreement)
    question_ids = [agreement.id for agreement in [*others, *agreements] if agreement.by == "customer"]
    records: list[Agreement] = []
    for agreement in others:
        if agreement.answer_message_id == state.turn_id or agreement.id in question_ids[-1:]:
            records.append(agreement)
    records.extend(agreements)
    return {"agreements": state.build_channel_value("agreements", records)}
