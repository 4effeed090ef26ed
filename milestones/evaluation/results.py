"""The results of conversations, and the file that holds them, from which a run is resumed and scored again.

Each entry of the file is one conversation. Its `messages` make it a transcript, which `read_transcripts` reads and
`arq-graph score` scores again; `arq_graph` holds its measure. If a limit or a model out of reach cut it off, its
messages are under `unfinished`: it is run again, and what it cost counts nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from arq_graph.milestones.evaluation.suite import PlannedConversation
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.tool_schemas import get_argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcript, read_transcripts

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

_MESSAGE_FIELDS = ("tool_calls", "invalid_tool_calls", "tool_call_id", "name", "status", "id")

Outcome = ConversationRecord | BrokenConversation

JUDGE_VOTES = "the judge's votes"
"""The name, in the header of a results file, for the number of votes for each criterion, if it is more than one."""


class StoredConversation(BaseModel):
    """The part of an entry that isn't messages.

    Args:
        calls: The number of model calls.
        cost: The cost of these calls.
        record: The measure of the conversation, if it was finished.
    """

    calls: int = 0
    cost: float = 0.0
    record: ConversationRecord | None = None


@dataclass(frozen=True)
class ConversationResult:
    """The result of a planned conversation.

    Args:
        outcome: Its measure, or why it couldn't be run or measured.
        messages: Its messages, as `dump_messages` returns them.
        calls: The number of model calls, those of the user and the judge included.
        cost: The cost of these calls.
        is_model_unreachable: Whether a model was out of reach, so that the outcome says nothing about the app.
    """

    outcome: Outcome
    messages: Sequence[Mapping[str, Any]] = ()
    calls: int = 0
    cost: float = 0.0
    is_model_unreachable: bool = False


def make_entry(planned: PlannedConversation, result: ConversationResult) -> dict[str, Any]:
    """Return the entry of a results file for a conversation."""
    stored = StoredConversation(calls=result.calls, cost=result.cost)
    if isinstance(result.outcome, ConversationRecord):
        stored.record = result.outcome
        conversation = _dump_conversation(planned, result.messages)
    else:
        conversation = {"id": planned.id, "unfinished": result.messages}
    return {"arq_graph": stored.model_dump(mode="json", exclude_defaults=True), **conversation}


def read_stored_conversation(entry: Mapping[str, Any]) -> StoredConversation | None:
    """Return the measure in an entry; None if it can't be read, so that the conversation is run again."""
    try:
        return StoredConversation.model_validate(entry.get("arq_graph"))
    except ValidationError:
        return None


def read_results(file: str | Path) -> Iterator[tuple[ConversationRecord, Transcript]]:
    """Yield the finished conversations of a results file, read lazily. One that was run twice comes twice."""
    for transcript in read_transcripts(file):
        if not isinstance(transcript, Transcript):
            continue
        stored = read_stored_conversation(transcript.extra)
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
        dumped.append(data)
    return dumped


def build_transcript(
    planned: PlannedConversation, messages: Sequence[Mapping[str, Any]], agent: Agent | None
) -> Transcript:
    """Return the transcript that is measured, with the agent's instructions and tools."""
    transcript = read_transcript(_dump_conversation(planned, messages))
    if agent is None:
        return transcript
    return replace(
        transcript,
        instructions=transcript.instructions or agent.describe_instructions(),
        tools=get_argument_schemas(list(agent.toolbox.values())),
    )


def _dump_conversation(planned: PlannedConversation, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    scenario = planned.scenario
    conversation: dict[str, Any] = {
        "id": planned.id,
        "task_id": scenario.task or scenario.name,
        "use_case": scenario.use_case,
        "messages": messages,
    }
    if scenario.agent is not None:
        conversation["agent"] = scenario.agent.name
    if scenario.history_messages:
        conversation["history"] = len(scenario.history_messages)
    return conversation
