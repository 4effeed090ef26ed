"""Assert that a conversation of any agent reached a milestone, and say where it stopped if it didn't."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx

from arq_graph.errors import InputError, suggestion
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.graph_file import read_milestones
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.milestone import END
from arq_graph.milestones.scoring import Score, score
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcript
from arq_graph.testing.plugin import note_measured


def assert_reached(
    graph: MilestoneGraph | str | Path,
    conversation: Any,
    *milestones: str,
    tools: Any = None,
    judge: Judge | None = None,
) -> Score:
    """Assert that a conversation reached milestones, and that nothing forbidden happened in it; return its score.

    Args:
        graph: The milestones, or the path of their file.
        conversation: The messages, in any format that `read_transcript` reads, a state that has them, a `Chat`, or a
            `Transcript`.
        *milestones: The names of those that must be reached; none: End.
        tools: The agent's tools, for their schemas; see `score`.
        judge: Decides on milestones that code can't decide. One that stays undecided isn't reached.

    Raises:
        AssertionError: One was not reached, or something forbidden happened. The message says how far the
            conversation got, what was missing there, and which calls served nothing.
        InputError: The graph has no such milestone, or the conversation can't be read.
    """
    __tracebackhide__ = True
    if not isinstance(graph, MilestoneGraph):
        graph = read_milestones(graph)
    names = milestones or (END,)
    for name in names:
        if name not in graph:
            raise InputError(f"there is no milestone {name!r}{suggestion(name, graph)}")
    if not isinstance(conversation, Transcript):
        conversation = read_transcript(getattr(conversation, "messages", conversation))
    result = score(graph, conversation, tools=tools, judge=judge)
    note_measured([(result.goal_completed, result.progress_rate)])
    missed = [name for name in names if name not in result.reached]
    if missed or result.forbidden:
        raise AssertionError("\n  ".join(_describe_failure(graph, conversation, result, missed)))
    return result


def _describe_failure(
    graph: MilestoneGraph, transcript: Transcript, result: Score, missed: list[str]
) -> Iterator[str]:
    low, high = result.progress_range or (0.0, 0.0)
    progress = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    problem = "something forbidden happened"
    if missed:
        problem = f"not reached: {', '.join(missed)}"
    yield f"{problem} (progress {progress})"
    path = [f"{name} (event {result.reached[name]})" for name in result.path_taken[1:]]
    yield f"path taken: {' → '.join(['Start', *path])}"
    before: set[str] = set(missed)
    for name in missed:
        before |= nx.ancestors(graph, name)
    missing = [name for name in result.frontier if name in before]
    for name in missing:
        note = " (undecided: give judge=, or the milestone a check)" if name in result.undecided else ""
        yield f"missing there: {name}{note}"
    for name, events in result.observations.events.items():
        if name not in result.reached:
            yield f"too early: {name} (event {events[0]}), before what it depends on"
    for forbidden in result.forbidden:
        yield f"forbidden: event {forbidden.event}, {forbidden.rule}"
    for number in result.wasted_calls:
        yield f"wasted call: event {number}, {transcript.events[number - 1].text:.200}"
