"""The results of conversations, and the entries of the results file that holds them.

Each entry is one conversation. Its `messages` make it a transcript, which `read_transcripts` reads and `arq-graph
score` scores again; `arq_graph` holds its record, calls and cost. The messages of a conversation that the run's budget
or an unreachable model cut off are under `unfinished`: it is run again when the run is resumed, but its calls and its
cost count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from arq_graph.agent.journey_progress import DONE_STEPS
from arq_graph.milestones.evaluation.suite import PlannedConversation
from arq_graph.milestones.reports.records import ConversationRecord, ReportedConversation
from arq_graph.milestones.tool_schemas import get_argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcripts
from arq_graph.milestones.transcripts.messages import parse_messages
from arq_graph.milestones.turn_note import TURN_NOTES

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

_MESSAGE_FIELDS = ("role", "tool_calls", "invalid_tool_calls", "tool_call_id", "name", "status", "id")


class StoredConversation(BaseModel):
    """The calls, the cost and the record that an entry stores under `arq_graph`.

    Args:
        calls: The number of model calls.
        cost: The cost of these calls.
        record: The record of the conversation, if it was finished.
    """

    calls: int = 0
    cost: float = 0.0
    record: ConversationRecord | None = None


@dataclass(frozen=True)
class ConversationResult:
    """The result of a planned conversation.

    Args:
        conversation: Its record, or why it couldn't be run or measured.
        messages: Its messages, as `dump_messages` returns them.
        calls: The number of model calls, including those of the user and the judge.
        cost: The cost of these calls.
        is_model_unreachable: Whether a model was unreachable, so that the conversation says nothing about the app.
    """

    conversation: ReportedConversation
    messages: Sequence[Mapping[str, Any]] = ()
    calls: int = 0
    cost: float = 0.0
    is_model_unreachable: bool = False


def make_entry(planned: PlannedConversation, result: ConversationResult) -> dict[str, Any]:
    """Return the entry of a results file for a conversation."""
    stored = StoredConversation(calls=result.calls, cost=result.cost)
    if isinstance(result.conversation, ConversationRecord):
        stored.record = result.conversation
        description = _describe_conversation(planned) | {"messages": result.messages}
    else:
        description = {"id": planned.id, "unfinished": result.messages}
    return {"arq_graph": stored.model_dump(mode="json", exclude_defaults=True)} | description


def parse_stored_conversation(entry: Mapping[str, Any]) -> StoredConversation | None:
    """Return what an entry stores under `arq_graph`; None if it is unreadable (the conversation is then run again)."""
    try:
        return StoredConversation.model_validate(entry.get("arq_graph"))
    except ValidationError:
        return None


def parse_stored_conversations(entries: Iterable[Mapping[str, Any]]) -> Iterator[StoredConversation]:
    """Yield what entries store under `arq_graph`; unreadable entries and headers are left out."""
    for entry in entries:
        stored = parse_stored_conversation(entry)
        if stored is not None:
            yield stored


def read_results(file: str | Path) -> Iterator[tuple[ConversationRecord, Transcript]]:
    """Yield the finished conversations of a results file, read lazily; a conversation that was run twice, twice."""
    for transcript in read_transcripts(file):
        if not isinstance(transcript, Transcript):
            continue
        stored = parse_stored_conversation(transcript.extra)
        if stored and stored.record:
            yield stored.record, transcript


def dump_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages as plain data, with the fields that transcripts read."""
    dumped = []
    for message in messages:
        data: dict[str, Any] = {"type": message.type, "content": message.content}
        for name in _MESSAGE_FIELDS:
            value = getattr(message, name, None)
            if value not in (None, "", []):
                data[name] = value
        metadata = message.response_metadata
        notes = {name: metadata[name] for name in (DONE_STEPS, TURN_NOTES) if name in metadata}
        if notes:
            data["response_metadata"] = notes
        dumped.append(data)
    return dumped


def build_transcript(
    planned: PlannedConversation, messages: Sequence[BaseMessage], agent: Agent | None, world: Any = None
) -> Transcript:
    """Return the transcript that is measured: what `read_transcripts` would return, with the tools and the world."""
    scenario = planned.scenario
    history_events, _ = parse_messages(messages[: len(scenario.history_messages)])
    events, instructions = parse_messages(messages)
    tools: Mapping[str, Mapping[str, Any]] = {}
    if agent is not None:
        instructions = instructions or agent.describe_instructions()
        tools = get_argument_schemas(list(agent.toolbox.values()))
    return Transcript(
        tuple(events),
        id=planned.id,
        task=scenario.task or scenario.name,
        use_case=scenario.use_case,
        instructions=instructions,
        tools=tools,
        extra=_describe_conversation(planned),
        history_length=len(history_events),
        world=world,
    )


def _describe_conversation(planned: PlannedConversation) -> dict[str, Any]:
    """Return the fields of an entry that say which conversation it is."""
    scenario = planned.scenario
    fields: dict[str, Any] = {
        "id": planned.id,
        "task_id": scenario.task or scenario.name,
        "use_case": scenario.use_case,
    }
    if scenario.agent is not None:
        fields["agent"] = scenario.agent.name
    if scenario.history_messages:
        fields["history"] = len(scenario.history_messages)
    return fields
