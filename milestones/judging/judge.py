"""Judges: whoever decides what code cannot, and how one is asked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias, runtime_checkable

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.judgement import Judgement
from arq_graph.milestones.measure import reach
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.observations import Observations
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.verdicts import Verdict

Judge: TypeAlias = Callable[[MilestoneGraph, Transcript, Observations], Iterable[Verdict]]
"""A judge: any function of the graph, the conversation and what code observed in it. An `LLMJudge` is one."""

AsyncFunction: TypeAlias = Callable[[MilestoneGraph, Transcript, Observations], Awaitable[Iterable[Verdict]]]


@runtime_checkable
class AsyncJudge(Protocol):
    """A judge with a coroutine method `ajudge`; `ascore` prefers it to calling the judge."""

    async def ajudge(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations, /
    ) -> Iterable[Verdict]:
        """Give the verdicts on one conversation."""
        ...


AnyJudge: TypeAlias = Judge | AsyncFunction | AsyncJudge
"""What `ascore` takes: a judge, a coroutine function, or an object with `ajudge`."""


class JudgeError(InputError):
    """What was given as a judge is none, or cannot be asked in this way: no conversation can be judged by it."""


def in_question(
    graph: MilestoneGraph, observations: Observations, *, veto: bool = True
) -> tuple[Milestone, ...]:
    """The milestones on which a judge's word can matter, in the graph's order. Cost O(E log V + observations).

    They are the NFCs that nothing decided and the FCs whose calls may be vetoed, as far as they could be
    reached at all: what is out of reach even if all that is undecided were observed changes no measure.

    Args:
        graph: The milestones.
        observations: What was observed so far.
        veto: Whether calls may be vetoed.

    Raises:
        SpecError: The graph cannot be measured on.
    """
    if not observations.undecided and not veto:
        return ()
    at_most = reach(graph, observations, optimistic=True)  # an FC is in it only where code saw a call
    return tuple(
        each
        for each in graph.milestones
        if each.name in at_most
        and not each.is_derived
        and (each.name in observations.undecided or (veto and each.type == "FC"))
    )


def ask_judge(
    judge: Judge, graph: MilestoneGraph, transcript: Transcript, observations: Observations
) -> Judgement:
    """A judge's word on one conversation.

    Raises:
        JudgeError: The judge is async, or gives no verdicts.
    """
    said: Any = judge(graph, transcript, observations) if callable(judge) else judge
    if inspect.isawaitable(said) or isinstance(said, AsyncJudge):
        if inspect.iscoroutine(said):
            said.close()
        raise JudgeError(f"{_named(judge)} is an async judge: use `ascore`, or give one that can be called")
    return _judgement(judge, said)


async def aask_judge(
    judge: AnyJudge, graph: MilestoneGraph, transcript: Transcript, observations: Observations
) -> Judgement:
    """A judge's word on one conversation; one that is not async runs in a thread.

    Raises:
        JudgeError: The judge gives no verdicts.
    """
    import asyncio  # scoring without a judge does not need it

    said: Any = judge
    if isinstance(judge, AsyncJudge):
        said = await judge.ajudge(graph, transcript, observations)
    elif callable(judge):
        said = await asyncio.to_thread(judge, graph, transcript, observations)
    return _judgement(judge, await said if inspect.isawaitable(said) else said)


def _judgement(judge: object, said: Any) -> Judgement:
    if isinstance(said, Judgement):
        return said
    if isinstance(said, Iterable) and not isinstance(said, str | bytes):
        verdicts = tuple(said)
        wrong = next((each for each in verdicts if not isinstance(each, Verdict)), None)
        if wrong is None:
            return Judgement(verdicts)
        said = wrong
    raise JudgeError(
        f"{_named(judge)} is no judge or gave no verdicts, but {type(said).__name__}: a judge is a function of "
        "(graph, transcript, observations) that gives an iterable of `Verdict`, an empty one if it has none"
    )


def _named(judge: object) -> str:
    return str(getattr(judge, "__qualname__", None) or type(judge).__name__)
