"""The record of how far the customer is in each journey, stored in the channel `journeys`."""

from __future__ import annotations

from typing import Any, Literal

from arq_graph.agent.record import Record, RecordPart


class StepProgress(RecordPart):
    """How far a step is; one that never opened has none.

    `reason` says in words why, `source` is the id of the message or of the conversation line that it rests on. `asks`
    says if the step asks the customer for something (None: not judged), `arguments` are those of the call that did the
    step, and `told_before` how many replies had followed it when it opened.
    """

    step: str
    state: Literal["open", "done", "skipped"]
    reason: str = ""
    source: str | None = None
    asks: bool | None = None
    arguments: dict[str, Any] | None = None
    told_before: int = 0


class JourneyState(RecordPart):
    """How far the customer is in a journey that has begun.

    It is `left` while the customer is busy with something else. `begun` counts how many times it has begun.
    """

    journey: str
    state: Literal["active", "left", "done", "given_up"]
    begun: int = 1
    steps: tuple[StepProgress, ...] = ()


class JourneyProgress(Record):
    """How far the customer is in the agent's journeys. It is kept across turns."""

    journeys: tuple[JourneyState, ...] = ()
