"""What a judge may say of a milestone, and how much of it counts: what it quotes has to stand in the conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from unicodedata import normalize

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.transcript import Result, Transcript

SHORTEST_QUOTE = 6
"""Letters and digits that a quote has at least, unless it is all that the event says.

In a script without upper and lower case each counts double: there a few of them are a word.
"""

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
        quote: The evidence, in the event's own words; see `is_quoted`.
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
    if not verdict.quote.strip():
        return f"nothing is quoted from step {verdict.event}"
    if is_quoted(verdict.quote, transcript, verdict.event):
        return ""
    if is_in(verdict.quote, transcript.event(verdict.event).text):
        return f"the quote is too little to show anything: {_shown(verdict.quote)}"
    return f"the quote is not in step {verdict.event}: {_shown(verdict.quote)}"


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
    graph: MilestoneGraph,
    transcript: Transcript,
    verdicts: Iterable[Verdict],
    observed: dict[str, set[int]],
    objections: list[tuple[Verdict, str]] | None = None,
) -> set[str]:
    """Add and take away observations as the verdicts say; return the milestones that they decide.

    Where several verdicts are about one NFC, each that finds it achieved counts, and those that deny it do not.
    Of several on one call, a veto counts. The order does not matter, and to say a thing twice does no harm.
    `observed` is changed in place; `objections` gets each verdict that does not count, and why.
    """
    decided: set[str] = set()
    calls: dict[str, set[int]] = {}
    found = [] if objections is None else objections
    for verdict in verdicts:
        seen = observed.setdefault(verdict.milestone, set())
        # As code saw them: a veto before this verdict does not make a call one that code did not see.
        if why := objection(graph, transcript, verdict, calls.setdefault(verdict.milestone, {*seen})):
            found.append((verdict, why))
            continue
        if verdict.achieved is None:
            continue
        if graph.milestone(verdict.milestone).type == "FC":
            if verdict.achieved is False:
                seen -= set(seen) if verdict.event is None else {called_at(transcript, verdict.event)}
        else:
            decided.add(verdict.milestone)
            if verdict.achieved and verdict.event is not None:
                seen.add(verdict.event)
    return decided


def called_at(transcript: Transcript, event: int) -> int:
    """The call's number where the event is a result that answers it; else the event's own."""
    if 1 <= event <= len(transcript):
        happened = transcript.event(event)
        if isinstance(happened, Result) and happened.call is not None:
            return happened.call
    return event


def _shown(quote: str) -> str:
    flat = " ".join(quote.split())
    return repr(flat if len(flat) <= 120 else f"{flat[:120]}…")


def is_quoted(quote: str, transcript: Transcript, event: int) -> bool:
    """Whether a quote is evidence from that event: it stands there, in whole words, and is not too short.

    Case, white space and the kind of quotation marks do not matter. A few letters stand in almost any text,
    so a quote needs `SHORTEST_QUOTE` of them, or has to be all that the event says.
    """
    if not 1 <= event <= len(transcript):
        return False
    text = transcript.event(event).text
    if not is_in(quote, text):
        return False
    return _size(quote) >= SHORTEST_QUOTE or _bare(quote) == _bare(text)


def is_in(quote: str, text: str) -> bool:
    """Whether a quote stands in a text, in whole words; an empty one does not."""
    sought, flat = _flat(quote), _flat(text)
    return bool(sought) and any(
        not _is_within_word(flat, start) and not _is_within_word(flat, start + len(sought))
        for start in _places(sought, flat)
    )


def _flat(text: str) -> str:
    return " ".join(normalize("NFKC", text).translate(_STRAIGHT).casefold().split())


def _places(sought: str, text: str) -> Iterator[int]:
    start = text.find(sought)
    while start >= 0:
        yield start
        start = text.find(sought, start + 1)


def _is_within_word(text: str, place: int) -> bool:
    """Whether the text before and after a place is one word; scripts without case do not show where words end."""
    return 0 < place < len(text) and _shows_words(text[place - 1]) and _shows_words(text[place])


def _shows_words(character: str) -> bool:
    return character.isdigit() or character.lower() != character.upper()


def _size(quote: str) -> int:
    return sum((1 if _shows_words(one) else 2) for one in _flat(quote) if one.isalnum())


def _bare(text: str) -> str:
    flat = _flat(text)
    return "".join(one for one in flat if one.isalnum()) or flat
