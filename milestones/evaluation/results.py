"""What became of each conversation: how it is kept, so that a run goes on after a kill, and the report of them all.

Each entry of the store of runs is one conversation. `messages` makes it a transcript that `read_transcripts` reads and
`arq-graph score` scores again; `arq_graph` holds what it was measured as. A conversation that was not finished (a
ceiling, a model out of reach) has its messages under `unfinished`: it is held again, and what it cost counts all the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from arq_graph.milestones.evaluation.suite import Planned
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcripts
from arq_graph.reasoning.usage import UsageTracker

_WRITTEN = ("tool_calls", "invalid_tool_calls", "tool_call_id", "name", "status", "id")

Outcome = ConversationRecord | BrokenConversation


@dataclass(frozen=True)
class Held:
    """A conversation that ended.

    Attributes:
        outcome: What it was measured as, or why it was not.
        messages: What was said, as plain data.
        used: Model calls, those of user and judge included; `cost` is what they cost, where prices are known.
        out_of_reach: Whether it was not measured because a model was out of reach.
    """

    outcome: Outcome
    messages: Sequence[Mapping[str, Any]] = ()
    used: UsageTracker = field(default_factory=UsageTracker)
    cost: float = 0.0
    out_of_reach: bool = False


class Kept(BaseModel):
    """What an entry says beside the messages: one of `record` and `broken`, and what the conversation cost."""

    arm: str
    scenario: str
    run: int
    seed: int
    calls: int = 0
    cost: float = 0.0
    record: ConversationRecord | None = None
    broken: BrokenConversation | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from every other one of its suite; see `Planned.key`."""
        return self.arm, self.scenario, self.run


def entry_of(one: Planned, held: Held) -> dict[str, Any]:
    """A conversation as it is kept."""
    outcome = held.outcome
    is_measured = isinstance(outcome, ConversationRecord)
    kept = Kept(
        arm=one.arm,
        scenario=one.scenario.name,
        run=one.run,
        seed=one.seed,
        calls=held.used.calls,
        cost=held.cost,
        **{"record" if is_measured else "broken": outcome},
    )
    entry = {"arq_graph": kept.model_dump(mode="json", exclude_defaults=True), "id": one.id}
    if isinstance(outcome, ConversationRecord):
        return entry | {"task_id": outcome.task, "use_case": outcome.use_case, "messages": held.messages}
    return entry | {"unfinished": held.messages}


def kept_in(entry: Mapping[str, Any]) -> Kept | None:
    """What an entry says; None where it cannot be read, so that the conversation is held again."""
    try:
        return Kept.model_validate(entry.get("arq_graph"))
    except ValidationError:
        return None


def written(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Messages as plain data, without what transcripts do not read."""
    return [
        {"type": message.type, "content": message.content}
        | {name: value for name in _WRITTEN if (value := message.__dict__.get(name)) not in (None, "", [])}
        for message in messages
    ]


def read_results(file: str | Path) -> Iterator[tuple[ConversationRecord, Transcript]]:
    """The finished conversations of a file that `evaluate` wrote, each once, one at a time."""
    seen = set()
    for one in read_transcripts(file):
        kept = kept_in(one.extra) if isinstance(one, Transcript) else None
        if isinstance(one, Transcript) and kept and kept.record and kept.key not in seen:
            seen.add(kept.key)
            yield kept.record, one
