"""What became of each conversation, appended to a file as it ends, so that a killed run goes on where it was.

Each line is one conversation. `messages` makes it a transcript that `read_transcripts` reads and `arq-graph score`
scores again; `arq_graph` holds what it was measured as. A conversation that was not finished (a ceiling, a model out of
reach) has its messages under `unfinished`: it is held again, and what it cost counts all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.suite import Planned
from arq_graph.milestones.reports.kept_lines import KeepsLines, KeptLines, changed
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcripts

VERSION = 1
_ARM = "the code of the arm"
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
        of_arms: A digest of what an arm is made of, by its name, where that is known.
        is_of_suite: Whether a name is that of a scenario of the suite, even of one that is not run now.
        resume: Whether to go on with what is there; otherwise there must be nothing.

    Raises:
        InputError: There are results and they are not to be gone on with, they are of something else, or the file
            holds something else, or cannot be read or written.
    """

    def __init__(
        self,
        file: Path | None,
        depends_on: Mapping[str, Mapping[str, str]],
        *,
        of_arms: Mapping[str, str] | None = None,
        is_of_suite: Callable[[str], bool] = lambda _: False,
        resume: bool = False,
    ) -> None:
        self.file = file
        self._depends_on = depends_on
        self._of_arms = dict(of_arms or {})
        self._is_of_suite = is_of_suite
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
                lines = enumerate(self._lines.found(), start=1)
                belong = [self._read(line, number) for number, line in lines]
                if not any(belong):
                    raise InputError(
                        f"{file} holds the results of another suite: it has {len(belong):,} "
                        f"line{'' if len(belong) == 1 else 's'}, and none is of a scenario of this one. Name another "
                        "file for the results, or move this one away"
                    )
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
            "of": self._now(one.arm, one.scenario.name),
            "calls": held.calls,
            "cost": held.cost,
            "record" if is_measured else "broken": outcome.model_dump(mode="json", exclude_defaults=True),
        }
        line: dict[str, Any] = {"arq_graph": about, "id": one.id}
        if isinstance(outcome, ConversationRecord):
            line |= {"task_id": outcome.task, "use_case": outcome.use_case}
        self._lines.append({**line, "messages" if is_measured else "unfinished": list(held.messages)})

    def _now(self, arm: str, scenario: str) -> dict[str, str]:
        of_arm = {_ARM: self._of_arms[arm]} if arm in self._of_arms else {}
        return {**self._depends_on[scenario], **of_arm}

    def _read(self, line: Mapping[str, Any], number: int) -> bool:
        """Take over what a line holds; whether it is of the suite."""
        about = line.get("arq_graph")
        if not isinstance(about, Mapping) or about.get("evaluation") != VERSION:
            raise InputError(
                f"{self.file}:{number}: is no result of an evaluation by this version; name another file, or move it "
                "away"
            )
        scenario, arm = str(about.get("scenario")), str(about.get("arm"))
        is_run = scenario in self._depends_on
        if not is_run and not self._is_of_suite(scenario):
            return False
        if is_run:
            self._require_same(about, arm, scenario, number)
        # What cannot be read is held again: nothing counts twice.
        with suppress(KeyError, TypeError, ValueError, ValidationError):
            self.calls += int(about["calls"])
            self.cost += float(about["cost"])
            if is_run and "record" in about:
                record = ConversationRecord.model_validate(about["record"])
                self._outcomes.setdefault((about["arm"], scenario, about["run"]), record)
        return True

    def _require_same(self, about: Mapping[str, Any], arm: str, scenario: str, number: int) -> None:
        before = dict(about.get("of") or {})
        if arm not in self._of_arms:
            before.pop(_ARM, None)  # it is not tried now, or nobody can say whether it is the same
        if others := changed(before, self._now(arm, scenario)):
            told = [f"{_ARM} {arm!r}" if other == _ARM else other for other in others]
            raise InputError(
                f"{self.file}:{number}: {', '.join(told)} of scenario {scenario!r} changed since. Give what was "
                "given then to go on with it, or name another file"
            )


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
