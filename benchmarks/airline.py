"""tau-bench's airline runs: goal completion on the gold actions, where it differs from the recorded reward, and why.

tau-bench (Yao et al., 2024) rewards a run whose database ends as the gold actions leave it, and whose agent said each
of the task's outputs. Goal completion asks for the gold calls themselves. So they differ where a gold call that changes
nothing was left out, where the same write was asked for in another form, where a further write was made, and where an
output was not said. Code sorts each difference into one of these; what fits none is "other".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from arq_graph.errors import InputError
from arq_graph.milestones import (
    BrokenRecord,
    Call,
    Message,
    MilestoneGraph,
    Result,
    Score,
    Transcript,
    read_transcripts,
    score,
)
from arq_graph.milestones.constraints import Constraint
from arq_graph.milestones.values import is_same_value

FAILED = "(?i)^error"
WRITES = ("book_", "cancel_", "update_", "send_")
"""How the names of the tools begin that change the airline's database; `writes_are_confirmed` checks it."""

Variant = Literal["ordered", "unordered", "writes", "only writes"]
VARIANTS: Mapping[Variant, str] = {
    "ordered": "all gold calls, in their order",
    "unordered": "all gold calls, in any order",
    "writes": "the gold writes, in any order",
    "only writes": "the gold writes, and no other write",
}

Why = Literal["reads left out", "other form", "further write", "output not said", "cut off", "other"]
REASONS: Mapping[Why, str] = {
    "reads left out": "rewarded, goal missed: every gold call that is missing changes nothing",
    "other form": "rewarded, goal missed: a gold write was made with further keys in its arguments",
    "further write": "goal reached, not rewarded: a write was made that is not in the gold list",
    "output not said": "goal reached, not rewarded: the agent did not say an output that the task asks for",
    "cut off": "goal reached, not rewarded: the run was cut off, and no reward was computed",
    "other": "none of these",
}


@dataclass(frozen=True)
class Run:
    """One recorded run of a task.

    Args:
        transcript: What happened.
        actions: The gold actions.
        info: What the record says of the task and of its reward.
    """

    transcript: Transcript
    actions: Sequence[Mapping[str, Any]]
    info: Mapping[str, Any]

    @property
    def is_rewarded(self) -> bool:
        """Whether the record's reward is 1."""
        return bool(self.transcript.extra["reward"] == 1)

    @property
    def gold_writes(self) -> list[Mapping[str, Any]]:
        """The gold actions that change the database."""
        return [action for action in self.actions if action["name"].startswith(WRITES)]

    @cached_property
    def successful_writes(self) -> list[Call]:
        """The calls that changed the database."""
        answers = {event.call: event for event in self.transcript.events if isinstance(event, Result)}
        return [
            call
            for number, call in self.transcript.enumerate_calls()
            if call.tool.startswith(WRITES)
            and number in answers
            and not re.search(FAILED, answers[number].text)
        ]

    @cached_property
    def further_writes(self) -> list[Call]:
        """The calls that changed the database and are not in the gold list."""
        left = self.gold_writes
        further: list[Call] = []
        for call in self.successful_writes:
            gold = next((one for one in left if is_same(one, call)), None)
            if gold is None:
                further.append(call)
            else:
                left.remove(gold)
        return further

    @cached_property
    def unsaid_outputs(self) -> list[str]:
        """The task's outputs that the agent did not say; commas and case do not matter, as in tau-bench."""
        said = [
            event.text.lower().replace(",", "")
            for event in self.transcript.events
            if isinstance(event, Message) and event.speaker == "agent"
        ]
        outputs = self.info["task"].get("outputs") or ()
        return [output for output in outputs if not any(output.lower() in text for text in said)]

    def scored(self, variant: Variant) -> Score:
        """The run, measured on a graph made of its gold actions."""
        if variant not in self._scores:
            graph = MilestoneGraph.from_actions(
                self.actions if variant in ("ordered", "unordered") else self.gold_writes,
                ordered=variant == "ordered",
                failed_if=FAILED,
            )
            self._scores[variant] = score(graph, self.transcript)
        return self._scores[variant]

    @cached_property
    def _scores(self) -> dict[Variant, Score]:
        return {}

    def goal_completed(self, variant: Variant) -> bool | None:
        """Goal completion; None where the gold list is empty."""
        completed = self.scored(variant).goal_completed
        if variant == "only writes":
            return completed is not False and not self.further_writes
        return completed

    @cached_property
    def missing(self) -> list[Mapping[str, Any]]:
        """The gold actions that were not made, in any order."""
        reached = self.scored("unordered").reached
        graph = MilestoneGraph.from_actions(self.actions, ordered=False, failed_if=FAILED)
        return [
            {"name": one.tool_name, "kwargs": {name: _value(rule) for name, rule in one.arguments.items()}}
            for one in graph.milestones
            if one.type == "FC" and one.name not in reached
        ]


def read_runs(file: Path) -> Iterator[Run | BrokenRecord]:
    """The runs of a tau-bench result file.

    Raises:
        InputError: The file cannot be read, or holds no tau-bench results with gold actions and rewards.
    """
    for index, transcript in enumerate(read_transcripts(file)):
        if isinstance(transcript, BrokenRecord):
            yield transcript
            continue
        info = transcript.extra.get("info")
        actions = transcript.extra.get("actions")
        if not isinstance(info, Mapping) or not isinstance(actions, list) or "reward" not in transcript.extra:
            raise InputError(
                f"{file}: record {index} is no tau-bench result: it has no gold actions or no reward"
            )
        yield Run(transcript, actions, info)


def why(run: Run, variant: Variant = "unordered") -> Why | None:
    """Why goal completion differs from the reward; None where it does not, or where one of them is not known."""
    completed = run.goal_completed(variant)
    if completed is None or completed == run.is_rewarded:
        return None
    if completed:
        if run.further_writes:
            return "further write"
        if not run.info.get("reward_info"):
            return "cut off"
        return "output not said" if run.unsaid_outputs else "other"
    writes = [action for action in run.missing if action["name"].startswith(WRITES)]
    if not writes:
        return "reads left out" if run.missing else "other"
    if all(any(is_same(action, call, loosely=True) for call in run.successful_writes) for action in writes):
        return "other form"
    return "other"


def tools_left_out(runs: Sequence[Run]) -> Counter[str]:
    """Of which tools the calls are that were left out without loss: in how many runs, by tool."""
    found: Counter[str] = Counter()
    for run in runs:
        if why(run) == "reads left out":
            found.update({action["name"] for action in run.missing})
    return found


def writes_are_confirmed(runs: Sequence[Run]) -> bool | None:
    """Whether `WRITES` fits what is recorded of the databases that the gold actions lead to.

    A gold list without writes leads to the database as it was, and one with writes to another. None where the
    records do not tell.
    """
    without: set[str] = set()
    with_: set[str] = set()
    for run in runs:
        reward = (run.info.get("reward_info") or {}).get("info") or {}
        if "gt_data_hash" in reward:
            (with_ if run.gold_writes else without).add(reward["gt_data_hash"])
    return len(without) == 1 and not without & with_ if without and with_ else None


def is_same(action: Mapping[str, Any], call: Call, *, loosely: bool = False) -> bool:
    """Whether a call is a gold action: same tool, same arguments; loosely: apart from keys that gold has not."""
    return action["name"] == call.tool and (
        _covers(action["kwargs"], call.arguments)
        if loosely
        else is_same_value(action["kwargs"], call.arguments)
    )


def _covers(gold: Any, value: Any) -> bool:
    if isinstance(gold, Mapping) and isinstance(value, Mapping):
        return all(key in value and _covers(gold[key], value[key]) for key in gold)
    if isinstance(gold, list) and isinstance(value, list):
        return len(gold) == len(value) and all(map(_covers, gold, value))
    return is_same_value(gold, value)


def _value(rule: Any) -> Any:
    return rule.equals if isinstance(rule, Constraint) else rule
