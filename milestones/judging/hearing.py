"""One conversation before a model as judge: what it is asked, and what its answers come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from arq_graph.errors import BlueprintError, ReasoningError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.ballots import Ballot, Election, ballot, elect
from arq_graph.milestones.judging.judgement import Judgement, Remark, total_of
from arq_graph.milestones.judging.shown import milestone_ids
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.observations import Observations
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.verdicts import Verdict
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.blueprint import ARQ

OnFailure = Literal["raise", "undecided"]
Answers = Sequence[Answer[Any] | ReasoningError]


@dataclass(frozen=True)
class Hearing:
    """What the votes on one conversation are held against.

    Args:
        graph: The milestones.
        transcript: What happened.
        observations: What code observed.
        batches: The milestones that are asked about together.
        on_failure: What becomes of a batch of which no vote was given.
        remarks: What is to be said whatever the votes are.
    """

    graph: MilestoneGraph
    transcript: Transcript
    observations: Observations
    batches: tuple[tuple[Milestone, ...], ...]
    on_failure: OnFailure
    remarks: tuple[Remark, ...] = ()

    def judgement(self, answers: Sequence[Answers]) -> Judgement:
        """What the answers come to.

        Args:
            answers: For each batch its votes, or the errors that they ended with.

        Raises:
            ReasoningError: All votes on a batch failed, and `on_failure` is "raise".
        """
        verdicts: list[Verdict] = []
        agreement: dict[str, float] = {}
        remarks = [*self.remarks]
        for batch, votes in zip(self.batches, answers, strict=True):
            given = [vote for vote in votes if isinstance(vote, Answer)]
            failed = [vote for vote in votes if isinstance(vote, ReasoningError)]
            if failed and not given and self.on_failure == "raise":
                raise failed[0]
            for milestone in batch:
                if failed:
                    remarks.append(_missing(milestone, failed, len(votes)))
                if not given:
                    verdicts.append(Verdict(milestone.name, None))
                    continue
                election = self._election(milestone, given)
                verdicts.extend(election.verdicts)
                if len(votes) > 1:  # one vote agrees with itself
                    agreement[milestone.name] = election.agreement
                remarks.extend(election.remarks)
        all_votes = [*chain.from_iterable(answers)]
        return Judgement(
            tuple(verdicts),
            agreement,
            tuple(remarks),
            sum(_calls(vote) for vote in all_votes),
            total_of(*chain.from_iterable(_usages(vote) for vote in all_votes)),
        )

    def complaints(self, batch: Sequence[Milestone], answer: ARQ) -> list[Complaint]:
        """What code has against the evidence in an answer: a quote that is not there, a step that is none."""
        ids = milestone_ids(self.graph)
        found = []
        for milestone in batch:
            if why := self._ballot(milestone, answer).objection:
                field = "quote" if "quote" in why else "step"
                place = f"{ids[milestone.name]}.{field}"
                found.append(Complaint(type(answer).__name__, place, f"{why}; correct it, or say null"))
        return found

    def _election(self, milestone: Milestone, given: Sequence[Answer[Any]]) -> Election:
        ballots = [self._ballot(milestone, answer.value) for answer in given]
        return elect(milestone, ballots, self._calls_of(milestone))

    def _ballot(self, milestone: Milestone, answer: ARQ) -> Ballot:
        # Response fields only: every mode has them.
        judgement = getattr(answer, milestone_ids(self.graph)[milestone.name])
        said = Verdict(
            milestone.name, judgement.achieved, judgement.step, judgement.quote or "", judgement.reason
        )
        return ballot(self.graph, self.transcript, milestone, said, self._calls_of(milestone))

    def _calls_of(self, milestone: Milestone) -> tuple[int, ...]:
        return self.observations.events.get(milestone.name, ()) if milestone.type == "FC" else ()


def _missing(milestone: Milestone, failed: Sequence[ReasoningError], votes: int) -> Remark:
    which = "the answer is" if votes == 1 else f"{len(failed)} of {votes} votes are"
    return Remark(f"{which} missing: {type(failed[0]).__name__}: {str(failed[0])[:300]}", milestone.name)


def _calls(vote: Answer[Any] | ReasoningError) -> int:
    if isinstance(vote, Answer | BlueprintError):
        return len(vote.attempts)
    return 1  # at least: what a refused or lost call cost is not known here


def _usages(vote: Answer[Any] | ReasoningError) -> list[Any]:
    if isinstance(vote, Answer | BlueprintError):
        return [attempt.usage for attempt in vote.attempts]
    return []
