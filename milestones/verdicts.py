"""Verdicts of a judge on milestones; one counts only if the quote that supports it is in the conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Literal, NamedTuple
from unicodedata import normalize

import regex  # type: ignore[import-untyped]
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import Observations
from arq_graph.milestones.transcript import Result, Transcript

MIN_QUOTE_LENGTH = 6
"""The least number of letters and digits in a quote, unless it is the whole text of the event.

In a script without upper and lower case each counts double: there a few of them are a word.
"""

MAX_QUOTE_SHOWN = 120
MAX_NAMES_SHOWN = 8

_WORD = r"[\p{Lu}\p{Ll}\p{Lt}\p{Nd}]"
_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Verdict:
    """A judge's verdict on one milestone (Pre-Act, Appendix H).

    For an NFC, `achieved=True` counts as an observation at `event` if the quote is in it, and as nothing
    otherwise; `achieved=False` decides that it was not observed. For an FC, `achieved=False` takes away the
    call at `event`, or every call if that is None; `achieved=True` grants nothing that code did not see. A
    verdict never changes what code decides by itself: an NFC with a `check:`, or a join.

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


class Objection(NamedTuple):
    """The reason why a verdict doesn't count, and the part of its evidence that is wrong."""

    part: Literal["step", "quote"]
    text: str


def find_objection(
    graph: MilestoneGraph, transcript: Transcript, verdict: Verdict, calls: Collection[int]
) -> Objection | None:
    """Return why a verdict doesn't count; None if it does, or if it decides nothing.

    `calls` are, for an FC, the event numbers of its calls that code observed.

    Raises:
        InputError: The verdict is about a milestone that isn't in the graph.
    """
    if verdict.milestone not in graph:
        raise InputError(
            f"a verdict is about {verdict.milestone!r}, which isn't a milestone of the graph; "
            f"its milestones are {', '.join(map(repr, list(graph)[:MAX_NAMES_SHOWN]))}"
        )
    milestone = graph.get_milestone(verdict.milestone)
    if verdict.achieved is None:
        return None
    if milestone.is_derived:
        return Objection("step", "it follows from its dependencies: no judge decides it")
    if milestone.type == "FC":
        return _find_objection_to_call(transcript, verdict, calls)
    if not milestone.is_decided_by_judge:
        key = "check" if milestone.state is None else "state"
        return Objection("step", f"its `{key}:` decides it: no judge does")
    if verdict.achieved is False:
        return None
    return _find_objection_to_evidence(transcript, verdict)


def _find_objection_to_evidence(transcript: Transcript, verdict: Verdict) -> Objection | None:
    if verdict.event is None:
        return Objection("step", "no step is named")
    if not 1 <= verdict.event <= len(transcript):
        return Objection("step", f"there is no step {verdict.event}: the conversation has {len(transcript)}")
    if verdict.event <= transcript.history_length:
        return Objection("step", f"step {verdict.event} came before the part that is judged")
    text = transcript.events[verdict.event - 1].text
    if not contains_quote(text, verdict.quote):
        return Objection("quote", f"the quote is not in step {verdict.event}: {_abbreviate(verdict.quote)}")
    # A few letters stand in almost any text.
    if _is_short(verdict.quote) and _keep_letters(verdict.quote) != _keep_letters(text):
        return Objection("quote", f"the quote is too little to show anything: {_abbreviate(verdict.quote)}")
    return None


def _find_objection_to_call(
    transcript: Transcript, verdict: Verdict, calls: Collection[int]
) -> Objection | None:
    if not calls and not verdict.achieved:
        return None
    if not calls:
        return Objection("step", "code saw no genuine call of it: a judge grants none")
    if verdict.event is not None and find_call(transcript, verdict.event) not in calls:
        return Objection("step", f"step {verdict.event} is no call of it that counts")
    if verdict.achieved or not verdict.quote.strip():
        return None
    # Evidence against a call may be anywhere: in the request, in an earlier result, in the reply.
    if any(contains_quote(event.text, verdict.quote) for event in transcript.events):
        return None
    return Objection("quote", f"the quote is nowhere in the conversation: {_abbreviate(verdict.quote)}")


def apply_verdicts(
    graph: MilestoneGraph, transcript: Transcript, observations: Observations, verdicts: Iterable[Verdict]
) -> tuple[Observations, list[tuple[Verdict, str]]]:
    """Return the observations with what the verdicts change, and each verdict that doesn't count, with the reason.

    Where several verdicts are about one NFC, each that finds it achieved counts, and those that deny it do not.
    Of several on one call, a veto counts. The order does not matter, and repeating a verdict changes nothing.
    """
    verdicts = tuple(verdicts)
    if not verdicts:
        return observations, []
    observed = {name: set(numbers) for name, numbers in observations.events.items()}
    decided: set[str] = set()
    objections: list[tuple[Verdict, str]] = []
    for verdict in verdicts:
        name = verdict.milestone
        # The calls as code saw them: a veto before this verdict doesn't make them calls that code did not see.
        if objection := find_objection(graph, transcript, verdict, observations.events.get(name, ())):
            objections.append((verdict, objection.text))
        elif verdict.achieved is None:
            continue
        elif graph.get_milestone(name).type == "NFC" and name not in observations.undecided:
            objections.append((verdict, "the agent's records decide it"))
        elif graph.get_milestone(name).type == "NFC":
            decided.add(name)
            if verdict.achieved and verdict.event is not None:
                observed.setdefault(name, set()).add(verdict.event)
        elif verdict.achieved is False and name in observed:
            if verdict.event is None:
                observed[name].clear()
            else:
                observed[name].discard(find_call(transcript, verdict.event))
    undecided = tuple(name for name in observations.undecided if name not in decided)
    events = {name: tuple(sorted(numbers)) for name, numbers in observed.items() if numbers}
    return replace(observations, events=events, undecided=undecided), objections


def find_call(transcript: Transcript, event_number: int) -> int:
    """Return the number of the call that this event answers if it is a result; else the event's own number."""
    if 1 <= event_number <= len(transcript):
        event = transcript.events[event_number - 1]
        if isinstance(event, Result) and event.call is not None:
            return event.call
    return event_number


def contains_quote(text: str, quote: str) -> bool:
    """Return whether a quote is in a text, in whole words; an empty one isn't.

    Case, white space, the kind of quotation marks and those around the quote do not matter.
    """
    normalized = _normalize(quote)
    words = normalized.strip("\"' ") or normalized
    if not words:
        return False
    pattern = regex.escape(words)
    # Scripts without case do not show where words end.
    if regex.match(_WORD, words):
        pattern = rf"(?<!{_WORD}){pattern}"
    if regex.search(rf"{_WORD}$", words):
        pattern = rf"{pattern}(?!{_WORD})"
    return bool(regex.search(pattern, _normalize(text)))


def _normalize(text: str) -> str:
    return " ".join(normalize("NFKC", text).translate(_STRAIGHT).casefold().split())


def _is_short(quote: str) -> bool:
    letters = "".join(filter(str.isalnum, _normalize(quote)))
    letters_with_case = regex.findall(_WORD, letters)
    return 2 * len(letters) - len(letters_with_case) < MIN_QUOTE_LENGTH


def _keep_letters(text: str) -> str:
    normalized = _normalize(text)
    return "".join(filter(str.isalnum, normalized)) or normalized


def _abbreviate(quote: str) -> str:
    line = " ".join(quote.split())
    if len(line) > MAX_QUOTE_SHOWN:
        line = f"{line[:MAX_QUOTE_SHOWN]}…"
    return repr(line)
