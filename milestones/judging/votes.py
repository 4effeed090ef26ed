"""Votes: what each says once code has looked at its evidence, and what most of them say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arq_graph.errors import ReasoningError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.judgement import Judgement, Remark
from arq_graph.milestones.judging.shown import milestone_ids
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.observations import Observations
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.verdicts import Verdict, called_at, objection
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.blueprint import ARQ

Vote = Answer[Any] | ReasoningError


@dataclass(frozen=True)
class Ballot:
    """One vote on one milestone: undecided where its evidence does not hold, with the objection that says so."""

    verdict: Verdict
    objection: str = ""

    @property
    def word(self) -> tuple[bool | None, int | None]:
        """What votes are counted by: the verdict and its step."""
        return self.verdict.achieved, self.verdict.event


@dataclass(frozen=True)
class Hearing:
    """One conversation before a model as judge; its votes are held against what happened."""

    graph: MilestoneGraph
    transcript: Transcript
    observations: Observations

    def judgement(self, batch: Sequence[Milestone], votes: Sequence[Vote]) -> Judgement:
        """What more than half of the votes on some milestones say; those that failed are missing.

        Raises:
            ReasoningError: All votes failed.
        """
        given = [vote for vote in votes if isinstance(vote, Answer)]
        failed = [vote for vote in votes if isinstance(vote, ReasoningError)]
        if not given:
            raise failed[0]
        said = Judgement()
        for milestone in batch:
            if failed:
                why = f"{type(failed[0]).__name__}: {str(failed[0])[:300]}"
                missing = Remark(f"{len(failed)} of {len(votes)} votes are missing: {why}", milestone.name)
                said += Judgement(remarks=(missing,))
            said += self._elected(milestone, [self._ballot(milestone, vote.value) for vote in given])
        return said if len(votes) > 1 else replace(said, agreement={})

    def complaints(self, batch: Sequence[Milestone], answer: ARQ) -> list[Complaint]:
        """What code has against the evidence in an answer: a quote that is not there, a step that is none."""
        found = []
        for milestone in batch:
            if why := self._ballot(milestone, answer).objection:
                place = f"{milestone_ids(self.graph)[milestone.name]}.{'quote' if 'quote' in why else 'step'}"
                found.append(Complaint(type(answer).__name__, place, f"{why}; correct it, or say null"))
        return found

    def _ballot(self, milestone: Milestone, answer: ARQ) -> Ballot:
        # Response fields only: every mode has them.
        word = getattr(answer, milestone_ids(self.graph)[milestone.name])
        said = Verdict(milestone.name, word.achieved, word.step, word.quote or "", word.reason)
        said = self._call_read(said) if milestone.type == "FC" else said
        if not said.achieved and milestone.type != "FC":
            said = replace(said, event=None)
        why = ""
        for quote in _readings(said.quote):
            vote = replace(said, quote=quote)
            if not (why := self._objection(vote)):
                return Ballot(vote)
        return Ballot(replace(said, achieved=None, event=None), why)

    def _call_read(self, said: Verdict) -> Verdict:
        """A vote on calls in one form: a step that is a result means its call."""
        calls = self._calls(said)
        event = None if said.event is None else called_at(self.transcript, said.event)
        if said.achieved and event is None:
            event = calls[0]
        if said.achieved is None or (said.achieved is False and [event] == [*calls]):
            event = None
        return replace(said, event=event)

    def _objection(self, vote: Verdict) -> str:
        # To say that a later call is the first genuine one is to veto those before it.
        votes = (vote, *self._vetoes(vote))
        objections = (objection(self.graph, self.transcript, each, self._calls(vote)) for each in votes)
        return next(filter(None, objections), "")

    def _elected(self, milestone: Milestone, ballots: Sequence[Ballot]) -> Judgement:
        words = Counter(each.word for each in ballots)
        ((word, count),) = words.most_common(1)
        agreement = {milestone.name: count / len(ballots)}
        remarks = [
            Remark(f"{'a vote is ' if len(ballots) > 1 else ''}not counted: {why}", milestone.name)
            for why in dict.fromkeys(each.objection for each in ballots if each.objection)
        ]
        if 2 * count <= len(ballots):
            told = ", ".join(f"{votes} × {_told(*each)}" for each, votes in words.items())
            remarks.append(Remark(f"undecided: no majority among {told}", milestone.name))
            return Judgement((Verdict(milestone.name, None),), agreement, tuple(remarks))
        verdict = next(each.verdict for each in ballots if each.word == word)
        return Judgement((verdict, *self._vetoes(verdict)), agreement, tuple(remarks))

    def _vetoes(self, verdict: Verdict) -> list[Verdict]:
        """The calls that a verdict takes away by naming a later one as the first genuine one."""
        if not verdict.achieved or verdict.event is None:
            return []
        calls = [call for call in self._calls(verdict) if call < verdict.event]
        return [replace(verdict, achieved=False, event=call) for call in calls]

    def _calls(self, verdict: Verdict) -> tuple[int, ...]:
        is_call = self.graph.milestone(verdict.milestone).type == "FC"
        return self.observations.events.get(verdict.milestone, ()) if is_call else ()


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


def _told(achieved: bool | None, event: int | None) -> str:
    said = {True: "achieved", False: "not achieved", None: "cannot tell"}[achieved]
    return said if event is None else f"{said} (step {event})"
