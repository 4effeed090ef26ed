"""Judges: whoever decides what code cannot, what one says of a conversation, and how one is asked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import Observations
from arq_graph.milestones.measure import reach
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.verdicts import Verdict


class Remark(NamedTuple):
    """What did not count, or is missing, of what was said on a milestone."""

    milestone: str
    text: str


@dataclass(frozen=True)
class Judgement:
    """The verdicts on one conversation; iterating over it gives them, and two can be added.

    Args:
        verdicts: What was said of each milestone; `achieved` is None where it stays undecided.
        agreement: By milestone, the share of the votes given that say what the verdict says (where no word
            has more than half of them, the share of the most frequent one), above 0 and up to 1; empty where
            one vote was asked for.
        remarks: What did not count, and which votes are missing.
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
        for milestone, text in self.remarks:
            reasons[milestone] = f"{reasons.get(milestone, '')} [{text}]".strip()
        return reasons

    def __add__(self, other: Judgement) -> Judgement:
        agreement = {**self.agreement, **other.agreement}
        return Judgement(self.verdicts + other.verdicts, agreement, self.remarks + other.remarks)


Judge: TypeAlias = Callable[
    [MilestoneGraph, Transcript, Observations], Iterable[Verdict] | Awaitable[Iterable[Verdict]]
]
"""A judge: any function of the graph, the conversation and what code observed in it; `ascore` takes async ones, too.

An `LLMJudge` is one. Of an object that has a coroutine method `ajudge`, `ascore` prefers that to calling it.
"""


class JudgeError(InputError):
    """What was given as a judge is none, or cannot be asked in this way: no conversation can be judged by it."""


def select_milestones_to_judge(graph: MilestoneGraph, observations: Observations) -> tuple[Milestone, ...]:
    """The milestones on which a judge's word can matter, in the graph's order. Cost O(E log V + observations).

    They are the NFCs that nothing decided and the FCs whose calls may be vetoed, as far as they could be
    reached at all: what is out of reach even if all that is undecided were observed changes no measure.
    """
    at_most = reach(graph, observations, optimistic=True)  # an FC is in it only where code saw a call
    return tuple(
        each
        for each in graph.milestones
        if each.name in at_most
        and ((each.type == "FC" and graph.vetoes) or each.name in observations.undecided)
    )


def ask_judge(
    judge: Judge, graph: MilestoneGraph, transcript: Transcript, observations: Observations
) -> Judgement:
    """A judge's word on one conversation; a `JudgeError` where it gives no verdicts, or only later."""
    return _judgement(judge, judge(graph, transcript, observations) if callable(judge) else judge)


async def aask_judge(
    judge: Judge, graph: MilestoneGraph, transcript: Transcript, observations: Observations
) -> Judgement:
    """A judge's word on one conversation; one that is not async runs in a thread."""
    import asyncio  # scoring without a judge does not need it

    said: Any = judge
    if ajudge := getattr(judge, "ajudge", None):
        said = ajudge(graph, transcript, observations)
    elif callable(judge):
        said = await asyncio.to_thread(judge, graph, transcript, observations)
    return _judgement(judge, await said if inspect.isawaitable(said) else said)


def _judgement(judge: object, said: Any) -> Judgement:
    if isinstance(said, Judgement):
        return said
    verdicts = tuple(said) if isinstance(said, Iterable) and not isinstance(said, str) else (said,)
    if all(isinstance(each, Verdict) for each in verdicts):
        return Judgement(verdicts)
    if inspect.iscoroutine(said):
        said.close()
    name = getattr(judge, "__qualname__", None) or type(judge).__name__
    raise JudgeError(
        f"{name} is no judge or gave no verdicts, but {verdicts!r:.80}: a judge is a function of (graph, transcript, "
        "observations) that gives an iterable of `Verdict`, be it an empty one; for an async judge use `ascore`"
    )
