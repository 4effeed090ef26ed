"""How guidelines are grouped into batches, one model call each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from arq_graph.agent.spec import Guideline
from arq_graph.errors import InputError

BatchPolicy: TypeAlias = Callable[[int], int]
"""From the number of guidelines to judge to the size of a batch."""


def default_batch_size(guidelines: int) -> int:
    """5 guidelines a call up to 100 of them, then more, up to 10 a call from 200 on."""
    return min(10, max(5, -(-guidelines // 20)))


def as_policy(size: BatchPolicy | int) -> BatchPolicy:
    """A batch size as a policy: a number is the size whatever there is to judge.

    Raises:
        InputError: It is neither a function nor a number from 1 on.
    """
    if isinstance(size, int) and size >= 1:
        return lambda _: size
    if callable(size):
        return size
    raise InputError(
        f"batch_size is {size!r}: it must be a number from 1 on, or a function from the number of "
        "guidelines to one"
    )


def form_batches(guidelines: Sequence[Guideline], size: BatchPolicy) -> list[list[Guideline]]:
    """Group guidelines once, from the specification alone.

    Those that a tool's result may activate stand together, so that a second look asks no more batches than it
    has to; within a group the order of the specification is kept.
    """
    if not guidelines:
        return []
    per_batch = max(1, size(len(guidelines)))
    sensitive = [guideline for guideline in guidelines if guideline.sensitive_to_tools is not False]
    settled = [guideline for guideline in guidelines if guideline.sensitive_to_tools is False]
    return [
        group[start : start + per_batch]
        for group in (sensitive, settled)
        for start in range(0, len(group), per_batch)
    ]
