"""What is wrong with a milestone graph, and what is doubtful, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx

from arq_graph.agent.spelling import suggestion
from arq_graph.errors import SpecError
from arq_graph.milestones.constraints import Equals, meant_as_rule
from arq_graph.milestones.fixpoints import depths, end_is_given
from arq_graph.milestones.milestone import END, START, Milestone
from arq_graph.milestones.structure import NEVER, Structure
from arq_graph.milestones.tool_schemas import tool_name

if TYPE_CHECKING:
    from arq_graph.milestones.graph import MilestoneGraph

MOST_NAMES_SHOWN = 8
MOST_NAMES_COMPARED = 1_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or doubtful.

    Args:
        severity: `error`: the graph cannot be measured on; `warning`: it can, but may not mean what it says.
        message: What it is, and what to do.
        milestone: The milestone it is about, if it is about one.
        line: Its line in the file, from 1, if the graph came from a file.
        is_about_review: Whether it says that nobody has looked the graph over.
    """

    severity: Literal["error", "warning"]
    message: str
    milestone: str | None = None
    line: int | None = None
    is_about_review: bool = False

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{self.severity}: {place}{self.message}"


@dataclass(frozen=True, slots=True)
class Findings:
    """What `check` found, in the order of the file.

    Args:
        errors: What has to change before anything can be measured.
        warnings: What deserves a look.
    """

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return bool(self.errors or self.warnings)

    def __iter__(self) -> Iterator[Finding]:
        yield from self.errors
        yield from self.warnings


def check(graph: MilestoneGraph, tools: Any = None) -> Findings:
    """Everything that is wrong or doubtful. Cost O(E log V).

    Args:
        graph: The graph.
        tools: The agent's tools: names, LangChain tools or OpenAI tool definitions; None: not compared.
    """
    found = [*_broken(graph), *_doubtful(graph), *_about_review(graph)]
    if tools is not None:
        found += _unknown_tools(graph, [tool_name(tool) for tool in tools])
    found.sort(key=lambda finding: finding.line or 0)
    return Findings(
        tuple(finding for finding in found if finding.severity == "error"),
        tuple(finding for finding in found if finding.severity == "warning"),
    )


def require_sound(graph: MilestoneGraph) -> None:
    """Refuse a graph on which nothing can be measured.

    Raises:
        SpecError: It has an error; the first is named, with its line.
    """
    errors = sorted(_broken(graph), key=lambda finding: finding.line or 0)
    if errors:
        more = f" (and {len(errors) - 1} more: `check()` lists them)" if len(errors) > 1 else ""
        raise SpecError(errors[0].message + more, file=graph.file, line=errors[0].line)


def _broken(graph: MilestoneGraph) -> Iterator[Finding]:
    for end in (START, END):
        if end not in graph:
            near = next((name for name in graph if name.strip().lower() == end.lower()), None)
            hint = f"; {near!r} is there: write it {end!r}" if near else f"; add a milestone named {end!r}"
            yield Finding("error", f"there is no milestone named {end!r}{hint}")
    for milestone in graph.milestones:
        for dependency in milestone.dependencies:
            if dependency not in graph:
                yield _error(
                    milestone,
                    f"{milestone.name!r} depends on {dependency!r}, which is no milestone"
                    + _near(dependency, graph),
                )
        if milestone.name in (START, END):
            yield from _broken_end(milestone)
    if START not in graph or END not in graph:
        return
    structure = Structure.of(graph)
    if depths(structure)[structure.end] == NEVER:
        yield _error(
            graph.milestone(END),
            "End cannot be reached: not even if every milestone is observed all the time; "
            "look for a cycle or a missing milestone on each way to it",
        )


def _broken_end(milestone: Milestone) -> Iterator[Finding]:
    if milestone.name == START and milestone.dependencies:
        yield _error(milestone, "Start depends on other milestones; it is reached before anything happens")
    if milestone.type == "FC":
        yield _error(milestone, f"{milestone.name} must be an NFC; a tool's call is a milestone before it")
    if milestone.check is not None:
        yield _error(
            milestone, f"{milestone.name} is never observed by itself; put its check in a milestone before it"
        )


def _doubtful(graph: MilestoneGraph) -> Iterator[Finding]:
    for milestone in graph.milestones:
        if len(set(milestone.dependencies)) < len(milestone.dependencies):
            yield _warning(milestone, f"{milestone.name!r} lists a dependency twice; it counts once")
        for argument, rule in milestone.arguments.items():
            if isinstance(rule, Equals) and (meant := meant_as_rule(rule.equals)):
                yield _warning(
                    milestone,
                    f"`{argument}` of {milestone.name!r} must be exactly {rule.equals}: for a rule, write `{meant}`",
                )
        if milestone.type == "Aggregator" and not milestone.dependencies:
            yield _warning(milestone, f"the join {milestone.name!r} joins nothing: it is reached at Start")
    for members in nx.strongly_connected_components(graph):
        names = [name for name in members if len(members) > 1 or graph.has_edge(name, name)]
        if names:
            names.sort(key=lambda name: graph.milestone(name).line or 0)
            listed = ", ".join(map(repr, names[:MOST_NAMES_SHOWN])) + (
                ", …" if names[MOST_NAMES_SHOWN:] else ""
            )
            yield _warning(
                graph.milestone(names[0]),
                f"a cycle: {listed} depend on each other; it is entered only from outside it",
            )
    if START not in graph or END not in graph:
        return
    structure = Structure.of(graph)
    leads_to_end = nx.ancestors(graph, END) | {END}
    for milestone, depth in zip(graph.milestones, depths(structure), strict=True):
        if depth == NEVER and milestone.name != END:
            yield _warning(milestone, f"{milestone.name!r} can never be reached")
        elif milestone.name not in leads_to_end:
            yield _warning(milestone, f"End cannot be reached from {milestone.name!r}: a dead end")
    if end_is_given(structure):
        yield _warning(
            graph.milestone(END), "End needs nothing to happen: neither goal nor progress is measured"
        )


def _about_review(graph: MilestoneGraph) -> Iterator[Finding]:
    if graph.is_unreviewed:
        yield Finding(
            "warning",
            f"generated by {graph.generated_by}, and nobody has reviewed it, so what is measured on it is doubtful: "
            "look it over, then write `reviewed: {by: …, date: …}` into the file",
            is_about_review=True,
        )


def _unknown_tools(graph: MilestoneGraph, names: list[str]) -> Iterator[Finding]:
    known = set(names)
    for milestone in graph.milestones:
        if (
            milestone.type == "FC"
            and milestone.name not in (START, END)
            and milestone.called_tool not in known
        ):
            yield _error(
                milestone,
                f"{milestone.called_tool!r} is no tool of the agent"
                + (_near(milestone.called_tool, names) or "; if the tool has another name, write `tool:`"),
            )
    for rule in graph.forbidden:
        if rule.tool is not None and rule.tool not in known:
            yield Finding(
                "warning",
                f"the forbidden {rule.tool!r} is no tool of the agent{_near(rule.tool, names)}",
                line=rule.line,
            )


def _near(name: str, known: Iterable[str]) -> str:
    return suggestion(name, islice(known, MOST_NAMES_COMPARED))


def _error(milestone: Milestone, message: str) -> Finding:
    return Finding("error", message, milestone.name, milestone.line)


def _warning(milestone: Milestone, message: str) -> Finding:
    return Finding("warning", message, milestone.name, milestone.line)
