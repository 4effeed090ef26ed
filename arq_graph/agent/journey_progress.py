"""The record of how far the customer is in each journey, stored in the channel `journeys`."""

from __future__ import annotations

from typing import Any, Literal

from arq_graph.agent.record import Record, RecordPart

DONE_STEPS = "done_steps"
"""Key of the `response_metadata` of an agent's messages: the steps of journeys that were done, by the agent's name.

The step that a message tells is among them, and so are journeys that were done. `arq_graph.milestones` reads it.
"""


class StepProgress(RecordPart):
    """How far a step is; one that never could open has none.

    A step that is open again is `waiting` until the steps before it are done again. `reason` says in words why it is so
    far, and `source` is the id of the message, or of the line of the conversation, that it rests on. `asks` says if the
    step asks the customer for something (None: it wasn't judged). `arguments` are those of the call that did the step.
    `told_before` is how many replies had followed the step when it opened. `was_done` says if it was done at any time,
    also before it was open again.
    """

    step: str
    state: Literal["waiting", "open", "done", "skipped"]
    reason: str = ""
    source: str | None = None
    asks: bool | None = None
    arguments: dict[str, Any] | None = None
    told_before: int = 0
    was_done: bool = False


class JourneyState(RecordPart):
    """How far the customer is in a journey that has begun.

    It is `left` while the customer is busy with something else. It has begun `times_begun` times, last in the turn
    `began_in`.
    """

    journey: str
    state: Literal["active", "left", "done", "given_up"]
    times_begun: int = 1
    began_in: str = ""
    steps: tuple[StepProgress, ...] = ()


class JourneyProgress(Record):
    """How far the customer is in the agent's journeys; it is kept across turns."""

    journeys: tuple[JourneyState, ...] = ()
