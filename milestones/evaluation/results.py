"""What became of each conversation, kept in the one store of runs, so that a run goes on after a kill.

Each entry is one conversation. `messages` makes it a transcript that `read_transcripts` reads and `arq-graph score`
scores again; `arq_graph` holds what it was measured as. A conversation that was not finished (a ceiling, a model out of
reach) has its messages under `unfinished`: it is held again, and what it cost counts all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from arq_graph.milestones.evaluation.suite import Planned
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcripts
from arq_graph.reasoning.usage import UsageTracker

_WRITTEN = ("tool_calls", "invalid_tool_calls", "tool_call_id", "name", "status", "id")

Outcome = ConversationRecord | BrokenConversation


@dataclass(frozen=True)
class Held:
    """A conversation that ended.

    Args:
        outcome: What it was measured as, or why it was not.
        messages: What was said, as plain data.
        used: Model calls, those of user and judge included.
        cost: What they cost, where prices are known.
        out_of_reach: Whether it was not measured because a model was out of reach.
    """

    outcome: Outcome
    messages: Sequence[Mapping[str, Any]] = ()
    used: UsageTracker = field(default_factory=UsageTracker)
    cost: float = 0.0
    out_of_reach: bool = False


class EvaluationResults:
    """The results of a run, in a file or in memory alone; a context manager.

    Args:
        file: The file; None keeps them nowhere.
        of: A fingerprint of each thing that every conversation depends on, by a name that a message can show.
        parts: The same for single scenarios and arms.
        resume: Whether to go on with what is there; otherwise there must be nothing.

    Attributes:
        calls: Model calls of the earlier run; `cost`: what they cost.

    Raises:
        InputError: There are results and they are not to be gone on with, something that shapes them changed, or the
            file holds something else or cannot be used.
    """

    def __init__(
        self,
        file: str | Path | None,
        of: Mapping[str, str],
        parts: Mapping[str, str],
        *,
        resume: bool = False,
    ) -> None:
        self._store = None if file is None else RunStore(file, "evaluation", of, parts=parts, resume=resume)
        self._outcomes: dict[tuple[Any, ...], ConversationRecord] = {}
        self.calls = 0
        self.cost = 0.0
        for entry in self._store.entries() if self._store is not None else ():
            self._take(entry)

    def __enter__(self) -> Self:
        if self._store is not None:
            self._store.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()

    def get(self, one: Planned) -> ConversationRecord | None:
        """What a conversation was measured as; None where it is still to be held."""
        return self._outcomes.get(one.key)

    def keep(self, one: Planned, held: Held) -> None:
        """Keep a conversation; a kill does not lose it once this returns.

        Raises:
            InputError: It cannot be written.
        """
        if self._store is None:
            return
        outcome = held.outcome
        is_measured = isinstance(outcome, ConversationRecord)
        about = {
            "arm": one.arm,
            "scenario": one.scenario.name,
            "run": one.run,
            "seed": one.seed,
            "calls": held.used.calls,
            "cost": held.cost,
            "record" if is_measured else "broken": outcome.model_dump(mode="json", exclude_defaults=True),
        }
        task = (
            {"task_id": outcome.task, "use_case": outcome.use_case}
            if isinstance(outcome, ConversationRecord)
            else {}
        )
        messages = {"messages" if is_measured else "unfinished": list(held.messages)}
        self._store.append({"arq_graph": about, "id": one.id, **task, **messages})

    def _take(self, entry: Mapping[str, Any]) -> None:
        about: Any = entry.get("arq_graph")
        # What cannot be read is held again: nothing counts twice.
        with suppress(KeyError, TypeError, ValueError, ValidationError):
            self.calls += int(about["calls"])
            self.cost += float(about["cost"])
            if "record" in about:
                key = (about["arm"], about["scenario"], about["run"])
                self._outcomes.setdefault(key, ConversationRecord.model_validate(about["record"]))


def written(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Messages as plain data, without what transcripts do not read."""
    return [
        {"type": message.type, "content": message.content}
        | {name: value for name in _WRITTEN if (value := message.__dict__.get(name)) not in (None, "", [])}
        for message in messages
    ]


def read_results(file: str | Path) -> Iterator[tuple[ConversationRecord, Transcript]]:
    """The finished conversations of a file of results, each once, one at a time.

    Args:
        file: The file that `evaluate` wrote.

    Raises:
        InputError: The file cannot be read.
    """
    seen: set[tuple[Any, ...]] = set()
    for one in read_transcripts(file):
        about = one.extra.get("arq_graph") if isinstance(one, Transcript) else None
        if not isinstance(about, Mapping) or "record" not in about:
            continue
        key = (about.get("arm"), about.get("scenario"), about.get("run"))
        if key not in seen and isinstance(one, Transcript):
            seen.add(key)
            yield ConversationRecord.model_validate(about["record"]), one
