"""The steps of recorded conversations: each action of their agent, with the true history before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcripts
from arq_graph.milestones.turn_level.actions import Action, grouped, is_agents
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
        messages += _messages(self.transcript.events[: self.event - 1])
        for number, message in enumerate(messages):
            message.id = f"recorded-{number}"
        return messages


@dataclass
class DatasetSteps:
    """The steps of a dataset, one at a time; a broken record is noted in `broken` and does not stop the rest.

    Where two conversations have the same id, the second is called `ID (2)`, and so on.

    Args:
        dataset: A file that `read_transcripts` reads, a transcript, or transcripts.
        limit: How many steps at most, from the first; None: all.
    """

    dataset: Dataset
    limit: int | None = None
    broken: list[BrokenConversation] = field(default_factory=list)

    def __iter__(self) -> Iterator[TurnStep]:
        return islice(self._steps(), self.limit)

    def _steps(self) -> Iterator[TurnStep]:
        self.broken.clear()
        source, records = None, self.dataset
        if isinstance(records, str | Path):
            source, records = str(records), read_transcripts(records)
        ids: set[str] = set()
        for record in [records] if isinstance(records, Transcript) else records:
            if isinstance(record, BrokenRecord):
                broken = BrokenConversation(source=source, record=record.index, error=str(record.error))
                self.broken.append(broken)
                continue
            known = clean(record.id)
            names = chain([known], (f"{known} ({number})" for number in count(2)))
            id = next(name for name in names if name not in ids)
            ids.add(id)
            yield from _steps_of(record, id)


def _steps_of(transcript: Transcript, conversation: str) -> Iterator[TurnStep]:
    """The steps of a conversation, in order. Pre-Act 3.2.1, Algorithm 1, and 4.2.

    Each message of the agent is a step: the tool calls in it, or else its final answer; a message with both is
    a tool call. No step is an action before the user has said anything, because nothing was asked for, nor a
    message with neither words nor calls.
    """
    was_asked, number = False, 0
    for first, events in grouped(transcript.events):
        was_asked = was_asked or (isinstance(events[0], Message) and events[0].speaker == "user")
        if was_asked and is_agents(events[0]) and (truth := Action.of(events)).kind != "nothing":
            number += 1
            yield TurnStep(conversation, number, first, truth, transcript)


def _messages(events: Iterable[Event]) -> Iterator[BaseMessage]:
    events = list(events)
    results = defaultdict(list)
    for event in events:
        if isinstance(event, Result):
            results[event.call].append(event)
    for first, group in grouped(events):
        event = group[0]
        if is_agents(event):
            yield from _action(first, group, results)
        elif isinstance(event, Message):
            yield HumanMessage(event.text) if event.speaker == "user" else SystemMessage(event.text)
        elif isinstance(event, Result) and event.call is None:
            held = {"tool": event.tool, "result": event.text}
            yield SystemMessage(section(held, "result_of_a_call_that_was_not_recorded"))


def _action(
    first: int, events: Iterable[Event], results: defaultdict[int | None, list[Result]]
) -> Iterator[BaseMessage]:
    message, answers = AIMessage(Action.of(events).answer), []
    for number, call in enumerate(events, start=first):
        if not isinstance(call, Call):
            continue
        id, given = f"call_{number}", results[number]
        if call.malformed is None:
            message.tool_calls.append(tool_call(name=call.tool, args=dict(call.arguments), id=id))
        else:
            message.invalid_tool_calls.append(
                invalid_tool_call(name=call.tool, args=call.malformed, id=id, error="no JSON object")
            )
        text = "\n".join(result.text for result in given) if given else "no result was recorded"
        failed = not given or any(result.failed for result in given)
        status = "error" if failed else "success"
        answers.append(ToolMessage(text, name=call.tool, tool_call_id=id, status=status))
    if message.text.strip() or answers:
        yield from (message, *answers)
