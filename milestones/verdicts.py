"""What a judge may say of a milestone, and how much of it counts: what it quotes has to stand in the conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from unicodedata import normalize

import regex  # type: ignore[import-untyped]
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import Observations
from arq_graph.milestones.transcript import Result, Transcript

SHORTEST_QUOTE = 6
"""Letters and digits that a quote has at least, unless it is all that the event says.

In a script without upper and lower case each counts double: there a few of them are a word.
"""

_WORD = r"[\p{Lu}\p{Ll}\p{Lt}\p{Nd}]"
_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Verdict:
    """A judge's word on one milestone (Pre-Act, Appendix H).

    For an NFC, `achieved=True` counts as an observation at `event` if the quote stands there, and as nothing
    otherwise; `achieved=False` decides that it was not observed. For an FC, `achieved=False` takes away the
    call at `event`, or every call if that is None; `achieved=True` grants nothing that code did not see. What
    code decides by itself, an NFC with a `check:` or a join, no verdict changes.

    Args:
        milestone: Its name.
        achieved: The verdict; None: the judge cannot tell.
        event: The event's number, from 1; for an FC the call's, or that of its result.
        quote: The evidence, in the event's own words: whole words, and not too few.
        reason: Why.

    Raises:
        ValidationError: A field is of another type: a judge may be anyone's function, and `"no"` is true to Python.
    """

    milestone: str
    achieved: bool | None
    event: int | None = None
    quote: str = ""
    reason: str = ""


def objection(graph: MilestoneGraph, transcript: Transcript, verdict: Verdict, calls: Collection[int]) -> str:
    """Why a verdict does not count; empty if it does, or if it says nothing."""
    if verdict.milestone not in graph:
        raise InputError(
            f"a verdict is about {verdict.milestone!r}, which is no milestone of the graph; "
            f"its milestones are {', '.join(map(repr, list(graph)[:8]))}"
        )
    milestone = graph.milestone(verdict.milestone)
    if verdict.achieved is None:
        return ""
    if milestone.is_derived:
        return "it follows from its dependencies: no judge decides it"
    if milestone.type == "FC":
        return _objection_to_call(transcript, verdict, calls)
    if milestone.check is not None:
        return "its `check:` decides it: no judge does"
    if verdict.achieved is False:
        return ""
    if verdict.event is None:
        return "no step is named"
    if not 1 <= verdict.event <= len(transcript):
        return f"there is no step {verdict.event}: the conversation has {len(transcript)}"
    if verdict.event <= transcript.history:
        return f"step {verdict.event} came before the part that is judged"
    text = transcript.events[verdict.event - 1].text
    if not is_in(verdict.quote, text):
        return f"the quote is not in step {verdict.event}: {_shown(verdict.quote)}"
    # A few letters stand in almost any text.
    if _size(verdict.quote) < SHORTEST_QUOTE and _bare(verdict.quote) != _bare(text):
        return f"the quote is too little to show anything: {_shown(verdict.quote)}"
    return ""


def _objection_to_call(transcript: Transcript, verdict: Verdict, calls: Collection[int]) -> str:
    if not calls:
        return "code saw no genuine call of it: a judge grants none" if verdict.achieved else ""
    if verdict.event is not None and called_at(transcript, verdict.event) not in calls:
        return f"step {verdict.event} is no call of it that counts"
    # What speaks against a call may stand anywhere: in the request, in an earlier result, in the reply.
    if (
        verdict.achieved is False
        and verdict.quote.strip()
        and not any(is_in(verdict.quote, event.text) for event in transcript.events)
    ):
        return f"the quote is nowhere in the conversation: {_shown(verdict.quote)}"
    return ""


def apply_verdicts(
    graph: MilestoneGraph, transcript: Transcript, observations: Observations, verdicts: Iterable[Verdict]
) -> tuple[Observations, list[tuple[Verdict, str]]]:
    """The observations with what the verdicts add and take away, and each verdict that does not count, with why.

    Where several verdicts are about one NFC, each that finds it achieved counts, and those that deny it do not.
    Of several on one call, a veto counts. The order does not matter, and to say a thing twice does no harm.
    """
    seen = {name: set(numbers) for name, numbers in observations.events.items()}
    decided: set[str] = set()
    objections: list[tuple[Verdict, str]] = []
    for verdict in verdicts:
        # As code saw the calls: a veto before this verdict does not make one of them one that code did not see.
        if why := objection(graph, transcript, verdict, observations.events.get(verdict.milestone, ())):
            objections.append((verdict, why))
        elif verdict.achieved is None:
            pass
        elif graph.milestone(verdict.milestone).type == "NFC":
            decided.add(verdict.milestone)
            if verdict.achieved and verdict.event is not None:
                seen.setdefault(verdict.milestone, set()).add(verdict.event)
        elif verdict.achieved is False and verdict.milestone in seen:
            vetoed = (
                seen[verdict.milestone] if verdict.event is None else {called_at(transcript, verdict.event)}
            )
            seen[verdict.milestone] = seen[verdict.milestone] - vetoed
    undecided = tuple(name for name in observations.undecided if name not in decided)
    events = {name: tuple(sorted(numbers)) for name, numbers in seen.items() if numbers}
    return replace(observations, events=events, undecided=undecided), objections


def called_at(transcript: Transcript, event: int) -> int:
    """The call's number where the event is a result that answers it; else the event's own."""
    if 1 <= event <= len(transcript):
        happened = transcript.events[event - 1]
        if isinstance(happened, Result) and happened.call is not None:
            return happened.call
    return event


def _shown(quote: str) -> str:
    flat = " ".join(quote.split())
    return repr(flat if len(flat) <= 120 else f"{flat[:120]}…")


def is_in(quote: str, text: str) -> bool:
    """Whether a quote stands in a text, in whole words; an empty one does not.

    Case, white space, the kind of quotation marks and those around the quote do not matter.
    """
    sought = _flat(quote).strip("\"' ") or _flat(quote)
    # Scripts without case do not show where words end.
    before = rf"(?<!{_WORD})" if regex.match(_WORD, sought) else ""
    after = rf"(?!{_WORD})" if regex.search(rf"{_WORD}$", sought) else ""
    return bool(sought) and bool(regex.search(before + regex.escape(sought) + after, _flat(text)))


def _flat(text: str) -> str:
    return " ".join(normalize("NFKC", text).translate(_STRAIGHT).casefold().split())


def _size(quote: str) -> int:
    return sum(1 if regex.match(_WORD, one) else 2 for one in _flat(quote) if one.isalnum())


def _bare(text: str) -> str:
    flat = _flat(text)
    return "".join(filter(str.isalnum, flat)) or flat
