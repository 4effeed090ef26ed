"""What a judge says of a conversation: its verdicts, how sure they are, and what code did not let count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from arq_graph.milestones.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a reader of the verdicts should know: a quote that was not found, a vote that is missing.

    Args:
        text: What it is.
        milestone: The milestone that it is about; None: all of them.
    """

    text: str
    milestone: str | None = None

    def __str__(self) -> str:
        return self.text if self.milestone is None else f"{self.milestone}: {self.text}"


@dataclass(frozen=True)
class Judgement:
    """The verdicts on one conversation; iterating over it gives them, and two can be added.

    Args:
        verdicts: What was said of each milestone; `achieved` is None where it stays undecided.
        agreement: By milestone, the share of the votes given that say what the verdict says (where no word
            has more than half of them, the share of the most frequent one), above 0 and up to 1; empty where
            one vote was asked for.
        remarks: What did not count, what is missing, what the judge was not shown.
    """

    verdicts: tuple[Verdict, ...] = ()
    agreement: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    @property
    def reasons(self) -> dict[str, str]:
        """Why, by milestone: the judge's reason, and in brackets what was not let count."""
        reasons: dict[str, str] = {}
        for verdict in self.verdicts:
            if verdict.reason.strip():
                reasons.setdefault(verdict.milestone, verdict.reason.strip())
        for remark in self.remarks:
            if remark.milestone is not None:
                reasons[remark.milestone] = f"{reasons.get(remark.milestone, '')} [{remark.text}]".strip()
        return reasons

    def __add__(self, other: Judgement) -> Judgement:
        agreement = {**self.agreement, **other.agreement}
        return Judgement(self.verdicts + other.verdicts, agreement, self.remarks + other.remarks)
