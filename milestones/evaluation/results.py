"""What became of each conversation, appended to a file as it ends, so that a killed run goes on where it was.

Each line is one conversation. `messages` makes it a transcript that `read_transcripts` reads and `arq-graph score`
scores again; `arq_graph` holds what it was measured as. A conversation that was not finished (a ceiling, a model out of
reach) has its messages under `unfinished`: it is held again, and what it cost counts all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.suite import Planned
from arq_graph.milestones.formats import read_transcripts
from arq_graph.milestones.reports.kept_lines import KeepsLines, KeptLines, changed
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.transcript import Transcript

VERSION = 1
_HEAD = b'{"arq_graph": '
_WRITTEN = ("content", "tool_calls", "invalid_tool_calls", "tool_call_id", "name", "status", "id")

Outcome = ConversationRecord | BrokenConversation


@dataclass(frozen=True)
class Held:
    """A conversation that ended.

    Args:
        outcome: What it was measured as, or why it was not.
        messages: What was said, as plain data.
        calls: Model calls, those of user and judge included.
        cost: What they cost, where prices are known.
        out_of_reach: Whether it was not measured because a model was out of reach.
    """

    outcome: Outcome
    messages: Sequence[Mapping[str, Any]]
    calls: int = 0
    cost: float = 0.0
    out_of_reach: bool = False


class EvaluationResults(KeepsLines):
    """The results of a run in a JSON Lines file; a context manager.

    Args:
        file: The file; None keeps them nowhere.
        depends_on: What the results of each scenario depend on, by its name.
        resume: Whether to go on with what is there; otherwise there must be nothing.

    Raises:
        InputError: There are results and they are not to be gone on with, they are of something else, or the file
            holds something else, or cannot be read or written.
    """

    def __init__(
        self, file: Path | None, depends_on: Mapping[str, Mapping[str, str]], *, resume: bool = False
    ) -> None:
        self.file = file
        self._depends_on = depends_on
        self._outcomes: dict[tuple[str, str, int], ConversationRecord] = {}
        self.calls = 0
        self.cost = 0.0
        self._lines = None if file is None else KeptLines(file, head=_HEAD)
        if self._lines is not None:
            if not self._lines.is_new:
                if not resume:
                    raise InputError(
                        f"{file} holds results already: go on with them by --resume (`resume=True`), name another "
                        "file, or move it away"
                    )
                for number, line in enumerate(self._lines.found(), start=1):
                    self._read(line, number)
            self._lines.open()

    def get(self, one: Planned) -> ConversationRecord | None:
        """What a conversation was measured as; None where it is still to be held."""
        return self._outcomes.get(one.key)

    def keep(self, one: Planned, held: Held) -> None:
        """Keep a conversation; it is on its way to the disk when this returns.

        Raises:
            InputError: It cannot be written.
        """
        outcome = held.outcome
        is_measured = isinstance(outcome, ConversationRecord)
        if isinstance(outcome, ConversationRecord):
            self._outcomes[one.key] = outcome
        if self._lines is None:
            return
        about = {
            "evaluation": VERSION,
            "arm": one.arm,
            "scenario": one.scenario.name,
            "run": one.run,
            "seed": one.seed,
            "of": dict(self._depends_on[one.scenario.name]),
            "calls": held.calls,
            "cost": held.cost,
            "record" if is_measured else "broken": outcome.model_dump(mode="json", exclude_defaults=True),
        }
        line: dict[str, Any] = {"arq_graph": about, "id": one.id}
        if isinstance(outcome, ConversationRecord):
            line |= {"task_id": outcome.task, "use_case": outcome.use_case}
        self._lines.append({**line, "messages" if is_measured else "unfinished": list(held.messages)})

    def _read(self, line: Mapping[str, Any], number: int) -> None:
        about = line.get("arq_graph")
        if not isinstance(about, Mapping) or about.get("evaluation") != VERSION:
            raise InputError(
                f"{self.file}:{number}: is no result of an evaluation by this version; name another file, or move it "
                "away"
            )
        scenario = about.get("scenario")
        now = self._depends_on.get(scenario) if isinstance(scenario, str) else None
        if now is not None and (others := changed(about.get("of") or {}, now)):
            raise InputError(
                f"{self.file}:{number}: {', '.join(others)} of scenario {scenario!r} changed since. Give what was "
                "given then to go on with it, or name another file"
            )
        # What cannot be read is held again: nothing counts twice.
        with suppress(KeyError, TypeError, ValueError, ValidationError):
            self.calls += int(about["calls"])
            self.cost += float(about["cost"])
            if now is not None and "record" in about:
                record = ConversationRecord.model_validate(about["record"])
                self._outcomes.setdefault((about["arm"], str(scenario), about["run"]), record)


def written(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Messages as plain data, without what transcripts do not read."""
    return [
        {"type": message.type, "content": message.content}
        | {
            name: value
            for name in _WRITTEN[1:]
            if (value := message.__dict__.get(name)) not in (None, "", [])
        }
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
