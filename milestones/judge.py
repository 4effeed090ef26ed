"""Judges decide what code cannot: what a judge is, what it returns, and how one is called."""

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
    """A note on a milestone: a part of its judgement did not count, or is missing."""

    milestone: str
    text: str


@dataclass(frozen=True)
class Judgement:
    """The verdicts on one conversation; iterating over it yields them, and two can be added.

    Args:
        verdicts: The verdicts on milestones; `achieved` is None if a milestone stays undecided.
        agreement: By milestone, the share of the votes given that agree with the verdict (if there is no majority,
            the share of the most frequent vote), above 0 and up to 1; empty if one vote was asked for.
        remarks: What did not count, and which votes are missing.
    """

    verdicts: tuple[Verdict, ...] = ()
    agreement: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    @property
    def reasons(self) -> dict[str, str]:
        """The judge's reason by milestone, followed by the remarks in brackets."""
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
"""A function of the graph, the conversation and what code observed in it that returns verdicts.

It may be async if it is called through `ascore`. An `LLMJudge` is one. If an object has a coroutine method `ajudge`,
`ascore` prefers that to calling the object.
"""


class JudgeError(InputError):
    """The judge isn't one, or can't be called in this way: it can't judge any conversation."""


def select_milestones_to_judge(graph: MilestoneGraph, observations: Observations) -> tuple[Milestone, ...]:
    """Return the milestones on which a verdict can matter, in the graph's order. Cost O(E log V + observations).

    They are the undecided NFCs and the FCs whose calls may be vetoed, unless they could not be reached even if all
    undecided milestones were observed: those change no measure.
    """
    # An FC is reachable only if code saw a call of it.
    reachable = reach(graph, observations, optimistic=True)
    milestones = []
    for milestone in graph.milestones:
        may_be_vetoed = milestone.type == "FC" and graph.vetoes
        is_undecided = milestone.is_decided_by_judge and milestone.name in observations.undecided
        is_in_question = may_be_vetoed or is_undecided
        if is_in_question and milestone.name in reachable:
            milestones.append(milestone)
    return tuple(milestones)


def require_judge(judge: object) -> None:
    """Raise JudgeError unless a judge can be called, by itself or by its `ajudge`."""
    if not callable(judge) and not callable(getattr(judge, "ajudge", None)):
        raise JudgeError(f"judge is a {type(judge).__name__}: pass an LLMJudge, or a function")


def call_judge(
    judge: Judge, graph: MilestoneGraph, transcript: Transcript, observations: Observations
) -> Judgement:
    """Call a judge that isn't async.

    Raises:
        JudgeError: The judge isn't one, is async, or returned something other than verdicts.
    """
    if not callable(judge):
        raise _make_judge_error(judge, judge)
    answer = judge(graph, transcript, observations)
    return _parse_judgement(judge, answer)


async def acall_judge(
    judge: Judge, graph: MilestoneGraph, transcript: Transcript, observations: Observations
) -> Judgement:
    """Call a judge without blocking; one that isn't async runs in a thread.

    Raises:
        JudgeError: The judge isn't one, or returned something other than verdicts.
    """
    import asyncio  # scoring without a judge does not need it

    answer: Any
    if ajudge := getattr(judge, "ajudge", None):
        answer = ajudge(graph, transcript, observations)
    elif callable(judge):
        answer = await asyncio.to_thread(judge, graph, transcript, observations)
    else:
        raise _make_judge_error(judge, judge)
    if inspect.isawaitable(answer):
        answer = await answer
    return _parse_judgement(judge, answer)


def _parse_judgement(judge: object, answer: Any) -> Judgement:
    if isinstance(answer, Judgement):
        return answer
    if isinstance(answer, Iterable) and not isinstance(answer, str):
        verdicts = tuple(answer)
        if all(isinstance(verdict, Verdict) for verdict in verdicts):
            return Judgement(verdicts)
        raise _make_judge_error(judge, verdicts)
    if isinstance(answer, Verdict):
        return Judgement((answer,))
    if inspect.iscoroutine(answer):
        answer.close()  # else Python warns that it was never awaited
    raise _make_judge_error(judge, answer)


def _make_judge_error(judge: object, answer: Any) -> JudgeError:
    name = getattr(judge, "__qualname__", None) or type(judge).__name__
    return JudgeError(
        f"{name} isn't a judge or gave no verdicts, but {answer!r:.80}: a judge is a function of (graph, transcript, "
        "observations) that returns an iterable of `Verdict`, which may be empty; for an async judge use `ascore`"
    )
