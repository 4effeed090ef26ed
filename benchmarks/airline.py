"""Compare goal completion with the recorded reward on tau-bench's airline runs, and sort the differences.

tau-bench (Yao et al., 2024) rewards a run if its database ends as the gold actions leave it and its agent said each of
the task's outputs. Goal completion asks for the gold calls themselves. So the two differ where a gold call that changes
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
"""The beginnings of the tools that change the airline's database; `are_writes_confirmed` checks them."""

Action = Mapping[str, Any]

Variant = Literal["ordered", "unordered", "writes", "only writes"]
VARIANTS: Mapping[Variant, str] = {
    "ordered": "all gold calls, in their order",
    "unordered": "all gold calls, in any order",
    "writes": "the gold writes, in any order",
    "only writes": "the gold writes, and no other write",
}

Reason = Literal["reads left out", "other form", "further write", "output not said", "cut off", "other"]
REASONS: Mapping[Reason, str] = {
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
        transcript: The messages, calls and results.
        actions: The gold actions.
        info: The record's own fields on the task and its reward.
    """

    transcript: Transcript
    actions: Sequence[Action]
    info: Mapping[str, Any]

    @property
    def is_rewarded(self) -> bool:
        """True if the record's reward is 1."""
        return bool(self.transcript.extra["reward"] == 1)

    @property
    def gold_writes(self) -> list[Action]:
        """The gold actions that change the database."""
        return [action for action in self.actions if is_write(action["name"])]

    @cached_property
    def successful_writes(self) -> list[Call]:
        """The calls that changed the database."""
        results: dict[int | None, Result] = {}
        for event in self.transcript.events:
            if isinstance(event, Result):
                results[event.call] = event
        calls: list[Call] = []
        for number, call in self.transcript.enumerate_calls():
            result = results.get(number)
            if is_write(call.tool) and result is not None and not re.search(FAILED, result.text):
                calls.append(call)
        return calls

    @cached_property
    def further_writes(self) -> list[Call]:
        """The calls that changed the database and are not in the gold list."""
        unmatched_actions = self.gold_writes
        further_calls: list[Call] = []
        for call in self.successful_writes:
            for action in unmatched_actions:
                if is_gold_call(action, call):
                    unmatched_actions.remove(action)
                    break
            else:
                further_calls.append(call)
        return further_calls

    @cached_property
    def unsaid_outputs(self) -> list[str]:
        """The task's outputs that the agent did not say; commas and case do not matter, as in tau-bench."""
        texts: list[str] = []
        for event in self.transcript.events:
            if isinstance(event, Message) and event.speaker == "agent":
                texts.append(event.text.lower().replace(",", ""))
        outputs: list[str] = self.info["task"].get("outputs") or []
        return [output for output in outputs if not _is_in_any(output.lower(), texts)]

    @cached_property
    def missing_actions(self) -> list[Action]:
        """The gold actions that were not made, in any order."""
        reached = self.score_variant("unordered").reached
        actions: list[Action] = []
        for milestone in self._make_graph("unordered").milestones:
            if milestone.type == "FC" and milestone.name not in reached:
                arguments: dict[str, Any] = {}
                for name, rule in milestone.arguments.items():
                    arguments[name] = rule.equals if isinstance(rule, Constraint) else rule
                actions.append({"name": milestone.tool_name, "kwargs": arguments})
        return actions

    def score_variant(self, variant: Variant) -> Score:
        """Return the run's score on a graph made of its gold actions."""
        if variant not in self._scores:
            self._scores[variant] = score(self._make_graph(variant), self.transcript)
        return self._scores[variant]

    def is_goal_completed(self, variant: Variant) -> bool | None:
        """Return goal completion; None if the gold list is empty."""
        is_completed = self.score_variant(variant).goal_completed
        if variant == "only writes":
            return is_completed is not False and not self.further_writes
        return is_completed

    @cached_property
    def _scores(self) -> dict[Variant, Score]:
        return {}

    def _make_graph(self, variant: Variant) -> MilestoneGraph:
        actions = self.actions if variant in ("ordered", "unordered") else self.gold_writes
        return MilestoneGraph.from_actions(actions, ordered=variant == "ordered", failed_if=FAILED)


def read_runs(file: Path) -> Iterator[Run | BrokenRecord]:
    """Yield the runs of a tau-bench result file.

    Raises:
        InputError: The file can't be read, or holds no tau-bench results with gold actions and rewards.
    """
    for index, transcript in enumerate(read_transcripts(file)):
        if isinstance(transcript, BrokenRecord):
            yield transcript
            continue
        info = transcript.extra.get("info")
        actions = transcript.extra.get("actions")
        if not isinstance(info, Mapping) or not isinstance(actions, list) or "reward" not in transcript.extra:
            raise InputError(
                f"{file}: record {index} isn't a tau-bench result: it has no gold actions or no reward"
            )
        yield Run(transcript, actions, info)


def explain_difference(run: Run, variant: Variant = "unordered") -> Reason | None:
    """Return why goal completion differs from the reward; None if it doesn't, or if one of them isn't known."""
    is_completed = run.is_goal_completed(variant)
    if is_completed is None or is_completed == run.is_rewarded:
        return None
    if is_completed:
        return _explain_missing_reward(run)
    return _explain_missed_goal(run)


def _explain_missing_reward(run: Run) -> Reason:
    if run.further_writes:
        return "further write"
    if not run.info.get("reward_info"):
        return "cut off"
    if run.unsaid_outputs:
        return "output not said"
    return "other"


def _explain_missed_goal(run: Run) -> Reason:
    if not run.missing_actions:
        return "other"
    missing_writes = [action for action in run.missing_actions if is_write(action["name"])]
    if not missing_writes:
        return "reads left out"
    for action in missing_writes:
        if not any(is_gold_call(action, call, loosely=True) for call in run.successful_writes):
            return "other"
    return "other form"


def count_left_out_tools(runs: Sequence[Run]) -> Counter[str]:
    """Count by tool the rewarded runs in which a call of it, which changes nothing, was left out."""
    run_counts: Counter[str] = Counter()
    for run in runs:
        if explain_difference(run) == "reads left out":
            run_counts.update({action["name"] for action in run.missing_actions})
    return run_counts


def are_writes_confirmed(runs: Sequence[Run]) -> bool | None:
    """Return whether `WRITES` fits the recorded hashes of the databases that the gold actions lead to.

    A gold list without writes leads to the unchanged database, and one with writes to another. None if the records
    don't hold both.
    """
    hashes_without_writes: set[str] = set()
    hashes_with_writes: set[str] = set()
    for run in runs:
        reward = (run.info.get("reward_info") or {}).get("info") or {}
        if "gt_data_hash" not in reward:
            continue
        hashes = hashes_with_writes if run.gold_writes else hashes_without_writes
        hashes.add(reward["gt_data_hash"])
    if not hashes_without_writes or not hashes_with_writes:
        return None
    return len(hashes_without_writes) == 1 and hashes_without_writes.isdisjoint(hashes_with_writes)


def is_write(tool: str) -> bool:
    """Return whether a tool changes the airline's database."""
    return tool.startswith(WRITES)


def is_gold_call(action: Action, call: Call, *, loosely: bool = False) -> bool:
    """Return whether a call is this gold action: the same tool and arguments.

    With `loosely`, keys in the arguments that the gold action doesn't have are ignored.
    """
    if action["name"] != call.tool:
        return False
    is_same = _covers if loosely else is_same_value
    return is_same(action["kwargs"], call.arguments)


def _covers(gold: Any, value: Any) -> bool:
    if isinstance(gold, Mapping) and isinstance(value, Mapping):
        return all(key in value and _covers(gold[key], value[key]) for key in gold)
    if isinstance(gold, list) and isinstance(value, list):
        return len(gold) == len(value) and all(map(_covers, gold, value))
    return is_same_value(gold, value)


def _is_in_any(phrase: str, texts: Sequence[str]) -> bool:
    return any(phrase in text for text in texts)
