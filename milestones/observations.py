"""What was observed in a conversation: by milestone, at which events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arq_graph.milestones.milestone import Forbidden


@dataclass(frozen=True, slots=True)
class ForbiddenEvent:
    """Something happened that must not.

    Args:
        event: The event's number, from 1.
        rule: What is forbidden.
    """

    event: int
    rule: Forbidden


@dataclass(frozen=True, slots=True)
class Observations:
    """What code and judges saw.

    Args:
        events: The numbers of the events, from 1 and increasing, at which each milestone was observed.
        length: How many events there were.
        undecided: Milestones of which nothing says whether they were observed, in the graph's order.
        forbidden: The forbidden events, in order.
        unanswered: Calls, by event number, that have no result: nobody knows whether they succeeded.
    """

    events: Mapping[str, tuple[int, ...]]
    length: int
    undecided: tuple[str, ...] = ()
    forbidden: tuple[ForbiddenEvent, ...] = ()
    unanswered: tuple[int, ...] = ()
