"""What is kept of each conversation, so that a run goes on after a kill, and so that it can be measured again.

Each entry of the store of runs is one conversation. `messages` makes it a transcript that `read_transcripts` reads and
`arq-graph score` scores again; `arq_graph` holds what it was measured as. One that was not finished (a limit, a model
out of reach) has its messages under `unfinished`: it is held again, and what it cost counts all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from arq_graph.milestones.evaluation.arms import describe_instructions
from arq_graph.milestones.evaluation.suite import PlannedConversation
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.tool_schemas import get_argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcript, read_transcripts

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

_WRITTEN = ("tool_calls", "invalid_tool_calls", "tool_call_id", "name", "status", "id")

Outcome = ConversationRecord | BrokenConversation

JUDGE_VOTES = "the judge's votes"
"""What a head may name beside those `MODEL_ROLES`: how often a judge was asked of each criterion, if more than once."""


class StoredConversation(BaseModel):
    """What an entry says beside the messages.

    Args:
        calls: Model calls that were made, and `cost` is what they cost.
        record: How far it got, if it is finished.
        broken: What was told in its place, if it could not be held or measured.
    """

    calls: int = 0
    cost: float = 0.0
    record: ConversationRecord | None = None
    broken: BrokenConversation | None = None


class ConversationResult(NamedTuple):
    """What became of a conversation, what was said in it, and what it used, its user and judge included.

    `is_unreached` says that a model was out of reach, and that nothing is said of the app.
    """

    outcome: Outcome
    calls: int
    cost: float
    messages: Sequence[Mapping[str, Any]] = ()
    is_unreached: bool = False


def entry_of(one: PlannedConversation, held: ConversationResult) -> dict[str, Any]:
    """A conversation as it is kept."""
    kept, outcome = StoredConversation(calls=held.calls, cost=held.cost), held.outcome
    if isinstance(outcome, ConversationRecord):
        kept.record = outcome
        about = _conversation(one, held.messages)
    else:
        kept.broken = outcome if outcome.ended != "limit" else None
        about = {"id": one.id, "unfinished": held.messages}
    return {"arq_graph": kept.model_dump(mode="json", exclude_defaults=True), **about}


def read_stored_conversation(entry: Mapping[str, Any]) -> StoredConversation | None:
    """What an entry says; None where it cannot be read, so that the conversation is held again."""
    try:
        return StoredConversation.model_validate(entry.get("arq_graph"))
    except ValidationError:
        return None


def read_results(file: str | Path) -> Iterator[tuple[ConversationRecord, Transcript]]:
    """The finished conversations of a file that `evaluate` wrote, one at a time; of one that was held twice, both."""
    for one in read_transcripts(file):
        if isinstance(one, Transcript) and (kept := read_stored_conversation(one.extra)) and kept.record:
            yield kept.record, one


def written(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Messages as plain data, without what transcripts do not read."""
    return [
        {"type": message.type, "content": message.content}
        | {name: value for name in _WRITTEN if (value := message.__dict__.get(name)) not in (None, "", [])}
        for message in messages
    ]


def transcript_of(
    one: PlannedConversation, messages: Sequence[Mapping[str, Any]], agent: Agent | None
) -> Transcript:
    """The conversation as it is measured: as it is written down, with what the agent was told and its tools."""
    transcript = read_transcript(_conversation(one, messages))
    if agent is None:
        return transcript
    return replace(
        transcript,
        instructions=transcript.instructions or describe_instructions(agent),
        tools=get_argument_schemas(list(agent.toolbox.values())),
    )


def _conversation(one: PlannedConversation, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    task = one.scenario.task or one.scenario.name
    told = {"id": one.id, "task_id": task, "use_case": one.scenario.use_case, "messages": messages}
    told |= {"agent": agent.name} if (agent := one.scenario.agent) else {}
    return told | ({"history": len(before)} if (before := one.scenario.messages_before) else {})
