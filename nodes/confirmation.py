"""Confirmation: calls that run only once the customer has agreed to exactly them.

1. A strategy leaves each such call as a tool insight of the kind `confirm`.
2. The node that sends the reply asks for confirmation (`ask_for_confirmation`): code writes the question below the
   reply, and one update holds the message and its record in the channel `agreements`.
3. The question stays open until an agent says something else (`find_open_agreement`).
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
from arq_graph.agent.state import Agreement, PendingCall, ToolInsight
from arq_graph.nodes.blueprint_node import UserFunction
from arq_graph.nodes.channels import StateView
from arq_graph.nodes.current_turn import count_tool_rounds
from arq_graph.nodes.events import ConfirmationAsked
from arq_graph.nodes.gate import NOT_AGREED, Gate
from arq_graph.nodes.messages import make_agent_message, read_note
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.yes import INVISIBLE, has_question_mark, is_yes

Agrees: TypeAlias = Callable[[str, str], "bool | Awaitable[bool | None] | None"]
"""Says whether a customer's message agrees to a question: a function of both, sync or async. None leaves it to the
list of yeses."""

ASKS = "asks_for_a_yes"
"""Key of a message's `response_metadata`: the id of the question that it ends with, by the agent's name."""

GO_AHEAD = "Reply yes to go ahead."

# What may hide or turn the words behind it, or be another sign when shown: HTML, its entities, code fences, controls.
_MARKUP = r"<(?=[A-Za-z/!?])|&(?=#?\w+;)|`(?=``)|~(?=~~)"
_HIDES = regex.compile(_MARKUP + r"|[\u202a-\u202e\u2066-\u2069]|(?!\s)\p{Cc}")
_UNSEEN = regex.compile(rf"{_MARKUP}|{INVISIBLE}|\u2800|(?! )\s")


def find_question_conflict(content: str, calls: Sequence[ToolInsight]) -> str | None:
    """What is wrong with a reply that asks something itself, or could hide code's question below it; None if nothing.

    Have it revised once; after that `ask_for_confirmation` sends the question alone.
    """
    if calls and has_question_mark(content):
        return "it asks something: code's own question stands below it, and a yes must not be one to anything else"
    if calls and (found := _HIDES.search(content)):
        return f"it holds {json.dumps(found[0])}, which could hide code's own question below it: write plain text"
    return None


def ask_for_confirmation(
    agent: Agent,
    state: StateView,
    text: str,
    calls: Sequence[ToolInsight],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> tuple[AIMessage, dict[str, Any], ConfirmationAsked | None]:
    """Put calls to the customer: the reply with code's question behind it, the update that belongs to it, the event.

    The message and the update must be written in one step: `{messages_key: [reply], **update}`. Where the text
    asks something itself or could hide the question, that goes alone. The event, if there is a question, is for behind
    the one of the reply. `calls` may be none; then the text is the whole of it.
    """
    reply = make_agent_message(agent.name, text, response_metadata=dict(metadata or {}))
    if not calls:
        return reply, {}, None
    question = format_question(agent, calls)
    above = "" if find_question_conflict(text, calls) else text.strip()
    record = Agreement(
        turn=calls[0].turn,
        id=str(uuid4()),
        question_message_id=str(reply.id),
        question=question,
        calls=tuple(
            PendingCall(tool=each.tool, arguments=each.arguments, granted_by=each.granted_by)
            for each in calls
        ),
    )
    asked = ConfirmationAsked(id=record.id, question=question, calls=record.calls)
    about = {**reply.response_metadata, ASKS: {state.agent: record.id}}
    content = f"{above}\n\n{question}" if above else question
    said = reply.model_copy(update={"content": content, "response_metadata": about})
    return said, update_agreements(state, record), asked


def update_agreements(state: StateView, *new: Agreement) -> dict[str, Any]:
    """The update of `agreements` with new records, beside those of this turn's other questions."""
    turns = {turn for each in new for turn in (each.turn, each.answer_message_id) if turn is not None}
    ids = {each.id for each in new}
    before = [each for each in state.read_records("agreements", Agreement) if each.id not in ids]
    kept = [each for each in before if {each.turn, each.answer_message_id} & turns]
    return {"agreements": state.replace_records("agreements", [*kept, *new])}


def format_question(agent: Agent, calls: Sequence[ToolInsight | PendingCall]) -> str:
    """Code's question about calls: each with its tool and every argument, then how to agree."""
    asked, replies = zip(*(_asked(agent, each.tool, each.arguments) for each in calls), strict=True)
    if len(asked) > 1:
        asked = tuple(f"{number}. {each}" for number, each in enumerate(asked, start=1))
    return "\n".join([*asked, *dict.fromkeys(replies)])


def format_example_question(agent: Agent, tool: str) -> str:
    """Code's question about a tool, with the arguments' names in the place of their values."""
    return " ".join(_asked(agent, tool, None))


def _asked(agent: Agent, name: str, arguments: Mapping[str, Any] | None) -> tuple[str, str]:
    tool, confirmation = ToolArguments(agent.toolbox[name]), agent.confirm.get(name)
    reply = (confirmation and confirmation.reply) or GO_AHEAD
    values = {each.name: f"‹{each.name}›" for each in tool.arguments}
    if arguments is not None:
        values = {each: _shown(arguments.get(each, tool.defaults.get(each))) for each in values}
    if confirmation is not None and confirmation.ask:
        return confirmation.ask.format_map(values), reply
    labelled = ", ".join(f"{each.replace('_', ' ')}: {value}" for each, value in values.items())
    return f"{tool.title} ({labelled})" if labelled else tool.title, reply


def _shown(value: Any) -> str:
    """A value as the customer reads it, uncut: texts in quotation marks, what hides or is not seen spelled out."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    text = json.dumps(value, ensure_ascii=False, default=str)
    spelled: str = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return spelled


@dataclass(frozen=True)
class AgreementOutcome:
    """What has come of the question that the customer was asked.

    After a yes: `call` with the update of `agreements` in which it is spent, and `insights`, what is kept about it; or
    `insights` about calls that were agreed to and are put again, or cannot run any more. Else the calls that are still
    `pending`, by the ids that a prompt shows.
    """

    call: ToolCall | None = None
    agreements: Mapping[str, Any] = field(default_factory=dict)
    insights: tuple[ToolInsight, ...] = ()
    pending: Mapping[str, PendingCall] = field(default_factory=dict)

    def ask_again(self, gate: Gate, wanted: Sequence[str]) -> list[ToolInsight]:
        """The waiting calls that are put again, as the strategy says that the customer still wants them."""
        return _put_again(gate, [call for id, call in self.pending.items() if id in wanted])

    def describe_pending(self) -> list[dict[str, Any]]:
        """The waiting calls as a prompt shows them."""
        return [
            {"id": id, "tool": each.tool, "arguments": each.arguments} for id, each in self.pending.items()
        ]


def resolve_agreement(
    gate: Gate, agrees: Agrees | None, objection: Callable[[str], Generator[UserFunction, Any, str]]
) -> Generator[UserFunction, Any, AgreementOutcome]:
    """See what has come of the question that waits; yields the functions that are to be run."""
    open_now = find_open_agreement(gate.state)
    if open_now is None:
        return AgreementOutcome()
    record, answers = open_now
    turn, said = gate.conversation.turn, "\n".join(each.text for each in answers)
    left = [call for call in record.calls if call.tool_call_id is None and call.tool in gate.tools]
    # A message that was edited keeps its id.
    if (record.answer_message_id, record.answer_text) != (turn, said):
        # Asked ahead, only what is plainly a yes is one; a function of the user's is called once.
        agreed = yield from _is_yes(record, left, answers, said, None if gate.state.is_ahead else agrees)
        if not agreed:
            return AgreementOutcome(pending={f"C{number}": call for number, call in enumerate(left, start=1)})
    if not left:
        return AgreementOutcome()
    failed = {getattr(line.message, "tool_call_id", "") for line in gate.failed_results}
    # One yes is for as many rounds as calls were put: whatever else goes wrong, a turn ends.
    is_spent = count_tool_rounds(gate.state) >= len(record.calls)
    if is_spent or any(call.tool_call_id in failed for call in record.calls):
        return AgreementOutcome(insights=tuple(_put_again(gate, left)))
    first, *others = left
    verdict = gate.check_agreed(first, (yield from objection(first.tool)))
    if verdict[0].kind != "run":
        return AgreementOutcome(insights=(*verdict, *_put_again(gate, others)))
    call = make_call(first.tool, first.arguments)
    spent = first.model_copy(update={"tool_call_id": call["id"]})
    calls = tuple(spent if each is first else each for each in record.calls)
    spending = record.model_copy(update={"answer_message_id": turn, "answer_text": said, "calls": calls})
    made = verdict[0].model_copy(update={"rationale": "the customer agreed to it"})
    return AgreementOutcome(call, update_agreements(gate.state, spending), (made,))


def make_call(tool: str, arguments: dict[str, Any]) -> ToolCall:
    """A call with an id of its own."""
    return ToolCall(name=tool, args=dict(arguments), id=f"call_{uuid4().hex}", type="tool_call")


def find_open_agreement(state: StateView) -> tuple[Agreement, list[BaseMessage]] | None:
    """The question that waits, with every message of the customer's since; None where none waits.

    It waits while the message that it ends is the agent's last one, and reads as it was sent.
    """
    records = state.read_records("agreements", Agreement)
    record = next((each for each in reversed(records) if each.by == "customer"), None)
    messages = state.messages
    at = next(
        (i for i, each in enumerate(messages) if record and each.id == record.question_message_id), None
    )
    if record is None or at is None or not messages[at].text.endswith(record.question):
        _warn_of_lost(state, {each.id for each in records})
        return None
    since = messages[at + 1 :]
    if any(isinstance(each, AIMessage) and each.text.strip() for each in since):
        return None
    answers: list[BaseMessage] = [each for each in since if isinstance(each, HumanMessage)]
    return (record, answers) if answers else None


def _warn_of_lost(state: StateView, known: Container[str]) -> None:
    """Tell whoever wires the graph that what a question was about is not kept until its answer."""
    last = next((each for each in reversed(state.messages) if isinstance(each, AIMessage)), None)
    asked = read_note(last, ASKS).get(state.agent) if last else None
    if isinstance(asked, str) and asked not in known:
        warnings.warn(
            f"the last message of {state.agent!r} asks for a yes, but the channel `agreements` does not know the "
            "question any more, so no answer to it counts. An agent that is a node of another graph has to keep its "
            "state between turns: compile it with checkpointer=True",
            stacklevel=2,
        )


def _is_yes(
    record: Agreement,
    calls: Sequence[PendingCall],
    answers: Sequence[BaseMessage],
    said: str,
    agrees: Agrees | None,
) -> Generator[UserFunction, Any, bool]:
    if not calls:
        return False
    if said.strip() == record.id:
        return True
    if agrees is not None:
        try:
            agreed = yield partial(agrees, said, record.question)
        except Exception:
            return False
        if agreed is not None:
            return agreed is True
    # Reads its list from a file at first.
    agreed_by_list: bool = yield partial(is_yes, answers, [call.tool for call in calls])
    return agreed_by_list


def _put_again(gate: Gate, calls: Sequence[PendingCall]) -> list[ToolInsight]:
    """What becomes of calls that wait: those that could run are put once more."""
    again = {"kind": "confirm", "problem": NOT_AGREED}
    return [
        each.model_copy(update=again) if each.kind == "run" else each
        for call in calls
        for each in gate.check_agreed(call)
    ]
