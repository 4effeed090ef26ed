"""The steps of recorded conversations: each action of their agent, with the true history before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    """One action of the agent, as ground truth, with its number in the conversation and its first event, from 1."""

    conversation: str
    number: int
    event: int
    truth: Action
    transcript: Transcript

    @property
    def key(self) -> tuple[str, int]:
        """Conversation and number."""
        return self.conversation, self.number

    def build_history(self, *, with_instructions: bool = True) -> list[BaseMessage]:
        """Return the history before the action, after the record's instructions, in a form that every provider takes.

        The calls of one message stay one message, each with an id of its own. Their results follow directly, wherever
        they were recorded; a call without one gets a result of the status `error` that says so. A result whose call
        was not recorded becomes a system message that holds it as data.
        """
        messages: list[BaseMessage] = []
        if with_instructions and self.transcript.instructions:
            messages.append(SystemMessage(self.transcript.instructions))
        messages.extend(convert_events_to_messages(self.transcript.events[: self.event - 1]))
        for number, message in enumerate(messages):
            message.id = f"recorded-{number}"
        return messages


def read_records(dataset: Dataset) -> Iterable[Transcript | BrokenRecord]:
    """Return the conversations of a file, or those that are there already."""
    if isinstance(dataset, str | Path):
        return read_transcripts(dataset)
    if isinstance(dataset, Transcript):
        return [dataset]
    return dataset


def read_steps(dataset: Dataset, limit: int | None = None) -> tuple[list[TurnStep], list[BrokenConversation]]:
    """Return the first `limit` steps of recorded conversations, and the broken records among them.

    If two conversations have the same id, the second is called `ID (2)`, and so on.
    """
    steps: list[TurnStep] = []
    broken: list[BrokenConversation] = []
    ids: set[str] = set()
    for record in read_records(dataset):
        if limit is not None and len(steps) >= limit:
            break
        if isinstance(record, BrokenRecord):
            error = str(record.error)
            broken.append(BrokenConversation(source=record.source, record=record.index, error=error))
            continue
        conversation_id, number = clean(record.id), 1
        while conversation_id in ids:
            number += 1
            conversation_id = f"{clean(record.id)} ({number})"
        ids.add(conversation_id)
        steps.extend(_iterate_steps(record, conversation_id))
    return steps[:limit], broken


def _iterate_steps(transcript: Transcript, conversation: str) -> Iterator[TurnStep]:
    """Yield the steps of a conversation, in order. Pre-Act 3.2.1, Algorithm 1, and 4.2.

    Each message of the agent is a step: the tool calls in it, or else its final answer; a message with both is
    a tool call. An action before the user has said anything is not a step, because nothing was asked for, nor is a
    message with neither words nor calls.
    """
    has_user_spoken, number = False, 0
    for first, events in _group_by_message(transcript.events):
        if isinstance(events[0], Message) and events[0].speaker == "user":
            has_user_spoken = True
        truth = Action.from_output(_make_message(first, events))
        if has_user_spoken and _is_by_agent(events[0]) and truth.kind != "nothing":
            number += 1
            yield TurnStep(conversation, number, first, truth, transcript)


def convert_events_to_messages(events: Sequence[Event]) -> Iterator[BaseMessage]:
    """Yield events as messages that every provider takes; see `TurnStep.build_history`."""
    results = {event.call: event for event in events if isinstance(event, Result)}
    for first, group in _group_by_message(events):
        event = group[0]
        if _is_by_agent(event):
            message = _make_message(first, group)
            if Action.from_output(message).kind != "nothing":
                yield message
            for number, call in enumerate(group, start=first):
                if isinstance(call, Call):
                    yield _make_tool_message(call.tool, f"call_{number}", results.get(number))
        elif isinstance(event, Message) and event.speaker == "user":
            yield HumanMessage(event.text)
        elif isinstance(event, Message):
            yield SystemMessage(event.text)
        # The calls of a user's own tools, and their results, are seen by the user alone.
        elif isinstance(event, Result) and event.call is None:
            unpaired_result = {"tool": event.tool, "result": event.text}
            yield SystemMessage(section(unpaired_result, "result_of_a_call_that_was_not_recorded"))


def _make_tool_message(tool: str, call_id: str, result: Result | None) -> ToolMessage:
    if result is None:
        return ToolMessage("no result was recorded", name=tool, tool_call_id=call_id, status="error")
    status = "error" if result.failed else "success"
    return ToolMessage(result.text, name=tool, tool_call_id=call_id, status=status)


def _make_message(first: int, events: Sequence[Event]) -> AIMessage:
    message = AIMessage("\n".join(event.text for event in events if isinstance(event, Message)))
    for number, call in enumerate(events, start=first):
        if not isinstance(call, Call):
            continue
        call_id = f"call_{number}"
        if call.malformed is None:
            valid = tool_call(name=call.tool, args=dict(call.arguments), id=call_id)
            message.tool_calls.append(valid)
        else:
            error = "no JSON object"
            invalid = invalid_tool_call(name=call.tool, args=call.malformed, id=call_id, error=error)
            message.invalid_tool_calls.append(invalid)
    return message


def _is_by_agent(event: Event) -> bool:
    if isinstance(event, Call):
        return event.by == "agent"
    return isinstance(event, Message) and event.speaker == "agent"


def _group_by_message(events: Iterable[Event]) -> list[tuple[int, list[Event]]]:
    """Return the events message by message, each with the number of its first event, from 1.

    A message of the agent is its text and the calls that follow directly with the same `step`; every other event
    stands alone.
    """
    groups: list[tuple[int, list[Event]]] = []
    for number, event in enumerate(events, start=1):
        if groups and isinstance(event, Call) and event.by == "agent":
            last_group = groups[-1][1]
            if _is_by_agent(last_group[-1]) and event.step == last_group[-1].step:
                last_group.append(event)
                continue
        groups.append((number, [event]))
    return groups
