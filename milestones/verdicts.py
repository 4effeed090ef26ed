"""What a judge may say of a milestone, and how much of it counts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.transcript import Call, Event, Transcript


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's word on one milestone (Pre-Act, Appendix H).

    For an NFC, `achieved=True` counts as an observation at `event` if the quote stands there, and as nothing
    otherwise; `achieved=False` decides that it was not observed. For an FC, `achieved=False` takes away the
    call at `event`, or every call if that is None; `achieved=True` grants nothing that code did not see.

    Args:
        milestone: Its name.
        achieved: The verdict; None: the judge cannot tell.
        event: The event's number, from 1.
        quote: The evidence, in the event's own words.
        reason: Why.
    """

    milestone: str
    achieved: bool | None
    event: int | None = None
    quote: str = ""
    reason: str = ""


def apply_verdicts(
    graph: MilestoneGraph, transcript: Transcript, verdicts: Iterable[Verdict], observed: dict[str, set[int]]
) -> set[str]:
    """Add and take away observations as the verdicts say; return the milestones that they decide.

    Args:
        graph: The milestones.
        transcript: What happened.
        verdicts: What the judges say.
        observed: The events at which code observed each milestone; changed in place.

    Raises:
        InputError: A verdict is about no milestone of the graph.
    """
    decided: set[str] = set()
    for verdict in verdicts:
        if verdict.milestone not in graph:
            raise InputError(
                f"a verdict is about {verdict.milestone!r}, which is no milestone of the graph; "
                f"its milestones are {', '.join(map(repr, list(graph)[:8]))}"
            )
        milestone = graph.milestone(verdict.milestone)
        seen = observed.setdefault(milestone.name, set())
        if milestone.type == "FC":
            if verdict.achieved is False:
                seen -= {verdict.event} if verdict.event is not None else set(seen)
        elif verdict.achieved is False:
            decided.add(milestone.name)
        elif (
            verdict.achieved
            and verdict.event is not None
            and is_quoted(verdict.quote, transcript, verdict.event)
        ):
            seen.add(verdict.event)
            decided.add(milestone.name)
    return decided


def is_quoted(quote: str, transcript: Transcript, event: int) -> bool:
    """Whether the quote stands in that event; case and white space do not matter. An empty one does not."""
    if not 1 <= event <= len(transcript) or not quote.strip():
        return False
    return _flat(quote) in _flat(words_of(transcript.event(event)))


def words_of(event: Event) -> str:
    """The event's own words: what was said or given back, or the call as `tool({arguments as JSON})`."""
    if isinstance(event, Call):
        return f"{event.tool}({json.dumps(event.arguments, ensure_ascii=False, default=str)})"
    return event.text


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())
