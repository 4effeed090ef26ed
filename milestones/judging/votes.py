"""Votes of a model as judge: checking their evidence, and counting what most of them say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from arq_graph.errors import ReasoningError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judgement, Remark, select_milestones_to_judge
from arq_graph.milestones.matching import Observations
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.verdicts import Objection, Verdict, find_call, find_objection
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.blueprint import ARQ

MILESTONES_PER_CALL = 8
MAX_ERROR_LENGTH = 300

Batch = Sequence[Milestone]
VoteResult = Answer[Any] | ReasoningError
"""A model's answer about a batch of milestones, or the error for which it is missing."""


class CheckedVote(NamedTuple):
    """A vote on one milestone; if there is an objection to its evidence, it leaves the milestone undecided."""

    verdict: Verdict
    objection: Objection | None


@dataclass(frozen=True)
class VoteCounter:
    """Checks and counts the votes on one conversation; an answer has a field for each milestone, named by its id."""

    graph: MilestoneGraph
    transcript: Transcript
    observations: Observations

    @cached_property
    def ids(self) -> dict[str, str]:
        """An id for each milestone, by its name: `M1`, `M2`, … in the graph's order."""
        return {name: f"M{number}" for number, name in enumerate(self.graph, start=1)}

    @cached_property
    def batches(self) -> list[Batch]:
        """The milestones to judge, as many together as one question asks about."""
        milestones = select_milestones_to_judge(self.graph, self.observations)
        starts = range(0, len(milestones), MILESTONES_PER_CALL)
        return [milestones[start : start + MILESTONES_PER_CALL] for start in starts]

    def count(self, results: Sequence[VoteResult]) -> Judgement:
        """Return what more than half of the votes say on each milestone; all votes on a batch follow each other.

        Raises:
            ReasoningError: All votes on a batch failed; it is the error of the first.
        """
        judgement = Judgement()
        vote_count = len(results) // max(len(self.batches), 1)
        for number, batch in enumerate(self.batches):
            first = number * vote_count
            judgement += self._count_batch(batch, results[first : first + vote_count])
        return judgement

    def _count_batch(self, batch: Batch, results: Sequence[VoteResult]) -> Judgement:
        answers = [result.value for result in results if isinstance(result, Answer)]
        errors = [result for result in results if isinstance(result, ReasoningError)]
        if not answers:
            raise errors[0]
        judgement = Judgement()
        for milestone in batch:
            if errors:
                error = f"{type(errors[0]).__name__}: {str(errors[0])[:MAX_ERROR_LENGTH]}"
                text = f"{len(errors)} of {len(results)} votes are missing: {error}"
                judgement += Judgement(remarks=(Remark(milestone.name, text),))
            judgement += self._elect(milestone, [self._check_vote(milestone, answer) for answer in answers])
        if len(results) == 1:
            return replace(judgement, agreement={})
        return judgement

    def find_complaints(self, batch: Batch, answer: ARQ) -> list[Complaint]:
        """Return the complaints about an answer's evidence: a quote that isn't there, a step that doesn't exist."""
        complaints = []
        for milestone in batch:
            if objection := self._check_vote(milestone, answer).objection:
                place = f"{self.ids[milestone.name]}.{objection.part}"
                message = f"{objection.text}; correct it, or say null"
                complaints.append(Complaint(type(answer).__name__, place, message))
        return complaints

    def _check_vote(self, milestone: Milestone, answer: ARQ) -> CheckedVote:
        # Only response fields, because every mode has them.
        fields = getattr(answer, self.ids[milestone.name])
        event = None
        if milestone.type == "FC":
            event = self._find_judged_call(milestone, fields.achieved, fields.step)
        elif fields.achieved:
            event = fields.step
        verdict = Verdict(milestone.name, fields.achieved, event, fields.quote or "", fields.reason)
        objection = find_objection(self.graph, self.transcript, verdict, self._get_calls(milestone))
        if objection:
            verdict = replace(verdict, achieved=None, event=None)
        return CheckedVote(verdict, objection)

    def _find_judged_call(self, milestone: Milestone, achieved: bool | None, step: int | None) -> int | None:
        """Return the call that a vote is about; None for all calls."""
        calls = self._get_calls(milestone)
        if achieved and step is None:
            return calls[0]
        if achieved is None or step is None:
            return None
        call = find_call(self.transcript, step)
        if not achieved and calls == (call,):
            return None  # to deny the only call and to deny all calls is the same vote
        return call

    def _elect(self, milestone: Milestone, votes: Sequence[CheckedVote]) -> Judgement:
        verdicts = [vote.verdict for vote in votes]
        counts = Counter((verdict.achieved, verdict.event) for verdict in verdicts)
        ((winner, count),) = counts.most_common(1)
        agreement = {milestone.name: count / len(votes)}
        remarks = []
        prefix = "a vote is not counted" if len(votes) > 1 else "not counted"
        for objection in dict.fromkeys(vote.objection for vote in votes):
            if objection:
                remarks.append(Remark(milestone.name, f"{prefix}: {objection.text}"))
        if 2 * count <= len(votes):
            remarks.append(Remark(milestone.name, f"undecided: no majority among {len(votes)} votes"))
            return Judgement((Verdict(milestone.name, None),), agreement, tuple(remarks))
        verdict = next(verdict for verdict in verdicts if (verdict.achieved, verdict.event) == winner)
        winning_verdicts = [verdict]
        if verdict.achieved and verdict.event is not None:
            # The calls before the first genuine one are vetoed.
            for call in self._get_calls(milestone):
                if call < verdict.event:
                    winning_verdicts.append(replace(verdict, achieved=False, event=call))
        return Judgement(tuple(winning_verdicts), agreement, tuple(remarks))

    def _get_calls(self, milestone: Milestone) -> tuple[int, ...]:
        """Return the calls of an FC that code observed, by event number; empty for an NFC."""
        if milestone.type != "FC":
            return ()
        return self.observations.events.get(milestone.name, ())
