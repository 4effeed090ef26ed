"""Assert that a conversation of any agent reached a milestone, and say where it stopped if it didn't."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    graph: MilestoneGraph | str | Path, conversation: Any, *milestones: str, judge: Judge | None = None
) -> Score:
    """Assert that a conversation reached milestones, and that nothing forbidden happened in it; return its score.

    Args:
        graph: The milestones, or the path of their file.
        conversation: A `Chat`, a state, a `Transcript`, or messages in any format that `read_transcript` reads.
        *milestones: The names of those that must be reached; none: End.
        judge: Decides on milestones that code can't decide; one that stays undecided isn't reached.

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
    result = score(graph, conversation, judge=judge)
    note_measured([(result.goal_completed, result.progress_rate)])
    missed = [name for name in names if name not in result.reached]
    if missed or result.forbidden:
        raise AssertionError("\n  ".join(_describe_failure(graph, conversation, result, missed)))
    return result


def _describe_failure(
    graph: MilestoneGraph, transcript: Transcript, result: Score, missed: Sequence[str]
) -> Iterator[str]:
    progress = " to ".join(f"{end:.2f}" for end in sorted(set(result.progress_range or ())))
    problem = f"not reached: {', '.join(missed)}" if missed else "something forbidden happened"
    yield f"{problem} (progress {progress})"
    yield "path taken: " + " → ".join(f"{name} ({result.reached[name]})" for name in result.path_taken)
    before = set(missed)
    for name in missed:
        before |= nx.ancestors(graph, name)
    for name in result.frontier:
        if name in result.undecided and name in before:
            yield f"missing there: {name} (undecided: give judge=, or the milestone a check)"
        elif name in before:
            yield f"missing there: {name}"
    for event in result.forbidden:
        yield f"forbidden: event {event.event}, {event.rule}"
    for number in result.wasted_calls:
        needs = ", ".join(result.too_early.get(number, ()))
        reason = f"too early, before {needs}" if needs else "served no milestone"
        yield f"wasted: event {number}, {transcript.events[number - 1].text:.200} ({reason})"
