"""Votes: what each says once code has looked at its evidence, and what most of them say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from arq_graph.errors import ReasoningError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judgement, Remark
from arq_graph.milestones.matching import Observations
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.verdicts import Verdict, find_call, find_objection
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.blueprint import ARQ

Vote = Answer[Any] | ReasoningError
Ballot = tuple[Verdict, str]
"""One vote on one milestone: undecided where its evidence does not hold, and beside it the objection that says so."""


def milestone_ids(graph: MilestoneGraph) -> dict[str, str]:
    """An id for each milestone, by its name: `M1`, `M2`, … in the graph's order, whatever is asked of them."""
    return {milestone.name: f"M{number}" for number, milestone in enumerate(graph.milestones, start=1)}


@dataclass(frozen=True)
class Hearing:
    """One conversation before a model as judge; its votes are held against what happened."""

    graph: MilestoneGraph
    transcript: Transcript
    observations: Observations

    def judgement(self, batch: Sequence[Milestone], votes: Sequence[Vote]) -> Judgement:
        """What more than half of the votes on some milestones say; if all failed, the first error is raised."""
        given = [vote for vote in votes if isinstance(vote, Answer)]
        failed = [vote for vote in votes if isinstance(vote, ReasoningError)]
        if not given:
            raise failed[0]
        said = Judgement()
        for milestone in batch:
            if failed:
                why = f"{type(failed[0]).__name__}: {str(failed[0])[:300]}"
                missing = Remark(milestone.name, f"{len(failed)} of {len(votes)} votes are missing: {why}")
                said += Judgement(remarks=(missing,))
            said += self._elected(milestone, [self._ballot(milestone, vote.value) for vote in given])
        return said if len(votes) > 1 else replace(said, agreement={})

    def complaints(self, batch: Sequence[Milestone], answer: ARQ) -> list[Complaint]:
        """What code has against the evidence in an answer: a quote that is not there, a step that is none."""
        found = []
        for milestone in batch:
            if why := self._ballot(milestone, answer)[1]:
                place = f"{milestone_ids(self.graph)[milestone.name]}.{'quote' if 'quote' in why else 'step'}"
                found.append(Complaint(type(answer).__name__, place, f"{why}; correct it, or say null"))
        return found

    def _ballot(self, milestone: Milestone, answer: ARQ) -> Ballot:
        # Only response fields, because every mode has them.
        word = getattr(answer, milestone_ids(self.graph)[milestone.name])
        event = (
            self._call(milestone, word) if milestone.type == "FC" else word.step if word.achieved else None
        )
        vote = Verdict(milestone.name, word.achieved, event, word.quote or "", word.reason)
        why = find_objection(self.graph, self.transcript, vote, self._calls(vote.milestone))
        return (replace(vote, achieved=None, event=None) if why else vote), why

    def _call(self, milestone: Milestone, word: Any) -> int | None:
        calls = self._calls(milestone.name)
        event = None if word.step is None else find_call(self.transcript, word.step)
        if word.achieved:
            return calls[0] if event is None else event
        return None if word.achieved is None or (event,) == calls else event

    def _elected(self, milestone: Milestone, ballots: Sequence[Ballot]) -> Judgement:
        words = Counter((verdict.achieved, verdict.event) for verdict, _ in ballots)
        ((word, count),) = words.most_common(1)
        agreement = {milestone.name: count / len(ballots)}
        remarks = [
            Remark(milestone.name, f"{'a vote is ' if len(ballots) > 1 else ''}not counted: {why}")
            for why in dict.fromkeys(why for _, why in ballots if why)
        ]
        if 2 * count <= len(ballots):
            remarks.append(Remark(milestone.name, f"undecided: no majority among {len(ballots)} votes"))
            return Judgement((Verdict(milestone.name, None),), agreement, tuple(remarks))
        verdict = next(each for each, _ in ballots if (each.achieved, each.event) == word)
        # Naming a later call as the first genuine one takes away those before it.
        first = (verdict.event or 0) if verdict.achieved else 0
        earlier = [call for call in self._calls(milestone.name) if call < first]
        vetoes = [replace(verdict, achieved=False, event=call) for call in earlier]
        return Judgement((verdict, *vetoes), agreement, tuple(remarks))

    def _calls(self, milestone: str) -> tuple[int, ...]:
        is_call = self.graph.milestone(milestone).type == "FC"
        return self.observations.events.get(milestone, ()) if is_call else ()
