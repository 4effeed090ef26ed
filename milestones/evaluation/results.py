"""What became of each conversation: how it is kept, so that a run goes on after a kill, and the report of them all.

Each entry of the store of runs is one conversation. `messages` makes it a transcript that `read_transcripts` reads and
`arq-graph score` scores again; `arq_graph` holds what it was measured as. A conversation that was not finished (a
ceiling, a model out of reach) has its messages under `unfinished`: it is held again, and what it cost counts all the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from arq_graph.milestones.evaluation.suite import Planned
from arq_graph.milestones.reports.comparison import compare, corrected
from arq_graph.milestones.reports.figures import ArmComparison
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord, GraphRecord
from arq_graph.milestones.reports.report import Report, ReportSummary
from arq_graph.milestones.reports.summary import report, summarize
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


def evaluation_report(
    records: Iterable[ConversationRecord],
    broken: Iterable[BrokenConversation] = (),
    graphs: Mapping[str, GraphRecord] | None = None,
    *,
    missing: int = 0,
    stopped: str | None = None,
    stand_ins: Sequence[str] = (),
) -> Report:
    """A report that tells arms and kinds of users apart; see `Report` for what it holds.

    Two arms are compared over the runs of scenarios that both have: those alone are pairs. Cost: one comparison
    (`compare`) for each two arms.
    """
    conversations = tuple(records)
    whole = report(conversations, broken, graphs, stand_ins=stand_ins)
    arms = _grouped(conversations, "arm")
    users = _grouped(conversations, "user")
    summary = whole.summary.model_copy(
        update={
            "arms": {name: summarize(group) for name, group in arms.items()},
            "users": {name: summarize(group) for name, group in users.items()},
            "arms_by_user": {
                name: {kind: summarize(cell) for kind, cell in _grouped(group, "user").items()}
                for name, group in arms.items()
            },
            "comparisons": _comparisons(arms),
        }
    )
    return whole.model_copy(update={"summary": summary, "missing": missing, "stopped": stopped})


def _grouped(records: Sequence[ConversationRecord], what: str) -> dict[str, list[ConversationRecord]]:
    groups: dict[str, list[ConversationRecord]] = {}
    for record in records:
        name = getattr(record, what)
        if name is not None:
            groups.setdefault(name, []).append(record)
    return groups


def _comparisons(arms: Mapping[str, Sequence[ConversationRecord]]) -> tuple[ArmComparison, ...]:
    compared = {
        f"{number}": (a, b, compare(*_paired(arms[a], arms[b])))
        for number, (a, b) in enumerate(combinations(arms, 2))
    }
    overall = corrected({number: each.overall for number, (_, _, each) in compared.items()})
    return tuple(
        ArmComparison(a=a, b=b, comparison=each.model_copy(update={"overall": overall[number]}))
        for number, (a, b, each) in compared.items()
    )


def _paired(a: Sequence[ConversationRecord], b: Sequence[ConversationRecord]) -> tuple[Report, Report]:
    """The runs that both have, in one order: the nth of a scenario is then the same run in both."""
    of_a, of_b = ({(one.scenario, one.run): one for one in group} for group in (a, b))
    both = sorted((key for key in of_a if key in of_b), key=str)
    return _alone([of_a[key] for key in both]), _alone([of_b[key] for key in both])


def _alone(records: Sequence[ConversationRecord]) -> Report:
    return Report(conversations=tuple(records), summary=ReportSummary(overall=summarize(()), use_cases={}))
