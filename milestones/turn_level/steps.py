"""The steps of recorded conversations: each action of their agent, with the true history before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcripts
from arq_graph.milestones.turn_level.actions import Action
from arq_graph.reasoning.sections import clean, section

Dataset = str | Path | Transcript | Iterable[Transcript | BrokenRecord]


@dataclass(frozen=True)
class TurnStep:
    """One action of the agent, as ground truth: which step of its conversation it is and its first event, from 1."""

    conversation: str
    number: int
    event: int
    truth: Action
    transcript: Transcript

    @property
    def key(self) -> tuple[str, int]:
        """Conversation and number."""
        return self.conversation, self.number

    def history(self, *, instructions: bool = True) -> list[BaseMessage]:
        """What happened before the action, after the record's instructions, as messages that every provider takes.

        The calls of one message stay one message, each with an id of its own. Their results follow directly, wherever
        they were recorded; a call without one gets a result of the status `error` that says so. A result whose call
        was not recorded becomes a system message that holds it as data.
        """
        told = self.transcript.instructions if instructions else ""
        messages: list[BaseMessage] = [SystemMessage(told)] if told else []
        messages += messages_of(self.transcript.events[: self.event - 1])
        for number, message in enumerate(messages):
            message.id = f"recorded-{number}"
        return messages


def read_steps(dataset: Dataset, limit: int | None = None) -> tuple[list[TurnStep], list[BrokenConversation]]:
    """The first steps of recorded conversations, as many as `limit`, and the broken records that stand among them.

    Where two conversations have the same id, the second is called `ID (2)`, and so on.
    """
    steps: list[TurnStep] = []
    broken: list[BrokenConversation] = []
    records = read_transcripts(dataset) if isinstance(dataset, str | Path) else dataset
    ids: set[str] = set()
    for record in [records] if isinstance(records, Transcript) else records:
        if limit is not None and len(steps) >= limit:
            break
        if isinstance(record, BrokenRecord):
            broken.append(
                BrokenConversation(source=record.source, record=record.index, error=str(record.error))
            )
            continue
        known = clean(record.id)
        names = chain([known], (f"{known} ({number})" for number in count(2)))
        id = next(name for name in names if name not in ids)
        ids.add(id)
        steps += _steps_of(record, id)
    return steps[:limit], broken


def _steps_of(transcript: Transcript, conversation: str) -> Iterator[TurnStep]:
    """The steps of a conversation, in order. Pre-Act 3.2.1, Algorithm 1, and 4.2.

    Each message of the agent is a step: the tool calls in it, or else its final answer; a message with both is
    a tool call. No step is an action before the user has said anything, because nothing was asked for, nor a
    message with neither words nor calls.
    """
    was_asked, number = False, 0
    for first, events in _grouped(transcript.events):
        was_asked = was_asked or (isinstance(events[0], Message) and events[0].speaker == "user")
        truth = Action.of(_message(first, events))
        if was_asked and _is_agents(events[0]) and truth.kind != "nothing":
            number += 1
            yield TurnStep(conversation, number, first, truth, transcript)


def messages_of(events: Sequence[Event]) -> Iterator[BaseMessage]:
    """Events as messages that every provider takes; `TurnStep.history` says how."""
    results = {f"call_{event.call}": event for event in events if isinstance(event, Result)}
    for first, group in _grouped(events):
        event = group[0]
        if _is_agents(event):
            message = _message(first, group)
            if Action.of(message).kind != "nothing":
                yield message
            for call in (*message.tool_calls, *message.invalid_tool_calls):
                result = results.get(str(call["id"]))
                text = result.text if result else "no result was recorded"
                status = "success" if result and not result.failed else "error"
                yield ToolMessage(text, name=call["name"], tool_call_id=call["id"], status=status)
        elif isinstance(event, Message):
            yield HumanMessage(event.text) if event.speaker == "user" else SystemMessage(event.text)
        elif isinstance(event, Result) and event.call is None:
            held = {"tool": event.tool, "result": event.text}
            yield SystemMessage(section(held, "result_of_a_call_that_was_not_recorded"))


def _message(first: int, events: Sequence[Event]) -> AIMessage:
    message = AIMessage("\n".join(event.text for event in events if isinstance(event, Message)))
    for number, call in enumerate(events, start=first):
        if not isinstance(call, Call):
            continue
        about = {"name": call.tool, "id": f"call_{number}"}
        if call.malformed is None:
            message.tool_calls.append(tool_call(args=dict(call.arguments), **about))
        else:
            wrong = invalid_tool_call(args=call.malformed, error="no JSON object", **about)
            message.invalid_tool_calls.append(wrong)
    return message


def _is_agents(event: Event) -> bool:
    return isinstance(event, Call) or (isinstance(event, Message) and event.speaker == "agent")


def _grouped(events: Iterable[Event]) -> list[tuple[int, list[Event]]]:
    """The events message by message, each with the number of its first event, from 1.

    A message of the agent is what it says and the calls that follow directly with the same `step`; every other
    event stands alone.
    """
    groups: list[tuple[int, list[Event]]] = []
    for number, event in enumerate(events, start=1):
        last = groups[-1][1] if groups else []
        if isinstance(event, Call) and last and _is_agents(last[-1]) and event.step == last[-1].step:
            last.append(event)
        else:
            groups.append((number, [event]))
    return groups
