"""How guidelines are grouped into batches, one model call each, and which of a batch are judged in a look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from arq_graph.agent.spec import Guideline
from arq_graph.agent.state import GuidelineMatch
from arq_graph.errors import InputError
from arq_graph.reasoning.blueprint import ARQ

BatchPolicy: TypeAlias = Callable[[int], int]
"""From the number of guidelines to judge to the size of a batch."""


@dataclass(frozen=True)
class Batch:
    """Guidelines that are judged in one call; formed once, so that its head and schema never change."""

    guidelines: tuple[Guideline, ...]
    blueprint: type[ARQ]
    head: str
    name: str

    def still_open(self, matches: Mapping[str, GuidelineMatch], holds: Mapping[str, bool]) -> list[str]:
        """Ids of the guidelines that are judged now: all at first, then what a tool's result could change."""
        return [
            guideline.id
            for guideline in self.guidelines
            if holds.get(guideline.id) is not False and _is_open(guideline, matches.get(guideline.id))
        ]


def _is_open(guideline: Guideline, match: GuidelineMatch | None) -> bool:
    if match is None or match.matched or match.active:
        return match is None
    if guideline.sensitive_to_tools is None:
        return not match.settled
    return guideline.sensitive_to_tools


def default_batch_size(guidelines: int) -> int:
    """5 guidelines a call up to 100 of them, then more, up to 10 a call from 200 on."""
    return min(10, max(5, -(-guidelines // 20)))


def form_batches(guidelines: Sequence[Guideline], size: BatchPolicy | int) -> list[list[Guideline]]:
    """Group guidelines once, from the specification alone.

    Those that a tool's result may activate stand together, so that a second look asks no more batches than it
    has to; within a group the order of the specification is kept.
    """
    if not (callable(size) or (isinstance(size, int) and size >= 1)):
        raise InputError(
            f"batch_size is {size!r}: it must be a number from 1 on, or a function from the number of "
            "guidelines to one"
        )
    if not guidelines:
        return []
    per_batch = max(1, size(len(guidelines)) if callable(size) else size)
    sensitive = [guideline for guideline in guidelines if guideline.sensitive_to_tools is not False]
    settled = [guideline for guideline in guidelines if guideline.sensitive_to_tools is False]
    return [
        group[start : start + per_batch]
        for group in (sensitive, settled)
        for start in range(0, len(group), per_batch)
    ]
