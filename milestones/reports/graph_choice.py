"""Which milestone graph each conversation is measured on: one for all, one a use case, or one of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.findings import require_sound
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import Observer, load_check
from arq_graph.milestones.reports.records import GraphRecord, graph_record
from arq_graph.milestones.transcript import Transcript

GraphSource = MilestoneGraph | Mapping[str, MilestoneGraph] | Callable[[Transcript], MilestoneGraph]
"""One graph for all conversations, one for each use case by its name, or a function that gives each its own."""

FAILED_IN_TAU_BENCH = "(?i)^error"
_NAMES_SHOWN = 8


def gold_graph(
    transcript: Transcript, ordered: bool = False, *, failed_if: str | None = FAILED_IN_TAU_BENCH
) -> MilestoneGraph:
    """The graph of the gold actions that the record itself holds, as those of tau-bench do; named by the task.

    Args:
        transcript: What was recorded; its gold actions stand in `extra["actions"]`.
        ordered: Each action must come after the one before it; otherwise in any order.
        failed_if: A result in which this pattern occurs is a failed call; tau-bench's begin with `Error`.

    Raises:
        InputError: The record holds no list of gold actions.
        SpecError: An action has no name, or its arguments are no mapping.
    """
    actions = transcript.extra.get("actions")
    if not isinstance(actions, list) or not all(isinstance(action, Mapping) for action in actions):
        raise InputError(
            "the record holds no list of gold actions; those of tau-bench do: give a milestone file instead"
        )
    graph = MilestoneGraph.from_actions(actions, ordered=ordered, failed_if=failed_if)
    graph.name = f"task {transcript.task}" if transcript.task is not None else transcript.id
    return graph


def fingerprint_of_graphs(source: GraphSource) -> str:
    """A fingerprint of the graphs and of the functions that they name, or of the function that makes them."""
    if callable(source):
        return fingerprint(source)
    graphs = {"": source} if isinstance(source, MilestoneGraph) else source
    return fingerprint(*((name, graph.file, *_content(graph)) for name, graph in graphs.items()))


class GraphChoice:
    """Chooses the graph of each conversation, and knows by what name a report has it.

    A graph for all is named after its file; those of use cases after the use case; one that a function gives has its
    own `name`, or that of its file, of the task or of the conversation. Two graphs that differ never share a name.

    Args:
        source: The graph or graphs.

    Attributes:
        used: The graphs that conversations were measured on, by name.

    Raises:
        SpecError: A graph cannot be measured on, or there is none.
    """

    def __init__(self, source: GraphSource) -> None:
        self._source = source
        self._names: dict[tuple[str, str], str] = {}
        self.used: dict[str, GraphRecord] = {}
        given: Mapping[str, MilestoneGraph] = {}
        if isinstance(source, MilestoneGraph):
            given = {_own_name(source) or "milestones": source}
            self.used = {name: graph_record(graph) for name, graph in given.items()}
        elif isinstance(source, Mapping):
            given = source
            if not given:
                raise SpecError("no milestone graph is given; give one for each use case")
        for graph in given.values():
            require_sound(graph)
            Observer(graph)  # loads the functions that its checks name

    def of(self, transcript: Transcript) -> tuple[str, MilestoneGraph]:
        """The graph of a conversation, and its name.

        Raises:
            InputError: There is none for its use case.
            SpecError: Its own graph cannot be measured on.
        """
        if isinstance(self._source, MilestoneGraph):
            return next(iter(self.used)), self._source
        if isinstance(self._source, Mapping):
            name = transcript.use_case
            graph = self._source.get(name) if name is not None else None
            if name is None or graph is None:
                raise InputError(_no_graph(name, list(self._source)))
            if name not in self.used:
                self.used[name] = graph_record(graph)
            return name, graph
        graph = self._source(transcript)
        return self._named(graph, transcript), graph

    def _named(self, graph: MilestoneGraph, transcript: Transcript) -> str:
        wanted = _own_name(graph) or transcript.task or transcript.id or "milestones"
        key = wanted, fingerprint(_content(graph))
        if key not in self._names:
            name, again = wanted, 1
            while name in self.used:
                again += 1
                name = f"{wanted} ({again})"
            self._names[key] = name
            self.used[name] = graph_record(graph)
        return self._names[key]


def _own_name(graph: MilestoneGraph) -> str:
    return str(graph.name) or (Path(graph.file).stem if graph.file else "")


def _content(graph: MilestoneGraph) -> list[str]:
    """What a graph says, and what the functions that it names look like."""
    functions = [
        load_check(one.check, file=graph.file, line=one.line)
        for one in graph.milestones
        if isinstance(one.check, str)
    ]
    said = repr((graph.milestones, graph.failed_if, graph.grounded, graph.forbidden))
    return [said, *(fingerprint(function) for function in functions)]


def _no_graph(use_case: str | None, known: list[str]) -> str:
    listed = ", ".join(map(repr, known[:_NAMES_SHOWN])) + (", …" if known[_NAMES_SHOWN:] else "")
    if use_case is None:
        return f"it names no use case (`use_case`), and each graph is for one: {listed}"
    return f"there is no milestone graph for its use case {use_case!r}; there are graphs for {listed}"
