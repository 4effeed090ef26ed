"""Votes: what each says once code has looked at its evidence, and what most of them say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.judgement import Remark
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.verdicts import Verdict, called_at, objection


@dataclass(frozen=True)
class Ballot:
    """One vote on one milestone, as far as it counts.

    Args:
        verdict: The vote; undecided where its evidence does not hold.
        objection: Why it does not count; empty if it does.
    """

    verdict: Verdict
    objection: str = ""

    @property
    def word(self) -> tuple[bool | None, int | None]:
        """What votes are counted by: the verdict and its step."""
        return self.verdict.achieved, self.verdict.event


@dataclass(frozen=True)
class Election:
    """What the votes on one milestone come to.

    Args:
        verdicts: Those that follow: of an FC also a veto of each call before the first genuine one.
        agreement: The share of the votes that say the same, above 0 and up to 1.
        remarks: Votes that did not count, and a lack of a majority.
    """

    verdicts: tuple[Verdict, ...]
    agreement: float
    remarks: tuple[Remark, ...]


def ballot(
    graph: MilestoneGraph, transcript: Transcript, milestone: Milestone, said: Verdict, calls: Sequence[int]
) -> Ballot:
    """A vote, held against the conversation.

    Args:
        graph: The milestones.
        transcript: What happened.
        milestone: The milestone that it is about.
        said: The vote as the model gave it.
        calls: For an FC, its calls that code saw to be genuine, in order.
    """
    read = _call_read(transcript, said, calls) if milestone.type == "FC" else _state_read(said)
    why = ""
    for quote in _readings(said.quote):
        vote = replace(read, quote=quote)
        why = _why_not(graph, transcript, vote, calls)
        if not why:
            return Ballot(vote)
    return Ballot(replace(read, achieved=None, event=None, quote=said.quote), why)


def elect(milestone: Milestone, ballots: Sequence[Ballot], calls: Sequence[int]) -> Election:
    """What more than half of the votes say; undecided where no word has more than half.

    Args:
        milestone: The milestone that they are about.
        ballots: The votes that were given; at least one.
        calls: For an FC, its calls that code saw to be genuine, in order.
    """
    ((word, count),) = Counter(each.word for each in ballots).most_common(1)
    remarks = [
        Remark(f"{'a vote is ' if len(ballots) > 1 else ''}not counted: {why}", milestone.name)
        for why in dict.fromkeys(each.objection for each in ballots if each.objection)
    ]
    if 2 * count <= len(ballots):
        remarks.append(Remark(f"undecided: no majority among {_told(ballots)}", milestone.name))
        return Election((Verdict(milestone.name, None),), count / len(ballots), tuple(remarks))
    verdict = next(each.verdict for each in ballots if each.word == word)
    is_call = verdict.achieved and milestone.type == "FC"
    vetoes = _vetoes(verdict, calls) if is_call else ()
    return Election((verdict, *vetoes), count / len(ballots), tuple(remarks))


def _state_read(said: Verdict) -> Verdict:
    return said if said.achieved else replace(said, event=None)


def _call_read(transcript: Transcript, said: Verdict, calls: Sequence[int]) -> Verdict:
    """A vote on calls in one form: a step that is a result means its call."""
    if said.achieved is None:
        return replace(said, event=None)
    event = None if said.event is None else called_at(transcript, said.event)
    if said.achieved and event is None:
        event = calls[0]
    if said.achieved is False and [event] == [*calls]:
        event = None
    return replace(said, event=event)


def _why_not(graph: MilestoneGraph, transcript: Transcript, vote: Verdict, calls: Collection[int]) -> str:
    why = objection(graph, transcript, vote, calls)
    if why or not vote.achieved or graph.milestone(vote.milestone).type != "FC":
        return why
    # To say that a later call is the first genuine one is to veto those before it.
    return next(
        (found for veto in _vetoes(vote, calls) if (found := objection(graph, transcript, veto, calls))), ""
    )


def _vetoes(verdict: Verdict, calls: Collection[int]) -> Iterator[Verdict]:
    for call in calls:
        if verdict.event is not None and call < verdict.event:
            yield replace(verdict, achieved=False, event=call)


def _readings(quote: str) -> Iterator[str]:
    """A quote as it is, without quotation marks around it, and with what JSON escapes read."""
    yield quote
    bare = quote.strip().strip("\"'“”‘’«»").strip()
    if bare != quote:
        yield bare
    if "\\" in bare:
        try:
            yield str(json.loads(f'"{bare}"'))
        except ValueError:
            return


def _told(ballots: Sequence[Ballot]) -> str:
    words = Counter(each.word for each in ballots)
    return ", ".join(f"{count} × {_word(*word)}" for word, count in words.items())


def _word(achieved: bool | None, event: int | None) -> str:
    said = {True: "achieved", False: "not achieved", None: "cannot tell"}[achieved]
    return said if event is None else f"{said} (step {event})"
