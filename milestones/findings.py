"""Checking a milestone graph: errors, with which nothing can be measured on it, and doubts, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import networkx as nx

from arq_graph.agent.spec_errors import Place
from arq_graph.errors import SpecError, suggestion
from arq_graph.milestones.attainable import find_attainable, find_reachable_before_end_states
from arq_graph.milestones.cycles import (
    describe_blocked_cycle,
    describe_open_cycle,
    find_blocked_cycles,
    find_circular_names,
    find_open_cycles,
)
from arq_graph.milestones.fixpoints import NEVER, IndexedGraph
from arq_graph.milestones.graph import MilestoneGraph, iterate_constraints
from arq_graph.milestones.milestone import END, START, Forbidden, Milestone, PatternCheck
from arq_graph.milestones.references import split_reference
from arq_graph.milestones.tool_schemas import Schema, Schemas, get_argument_schemas, get_tool_name

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or doubtful, and what to do; with the milestone it is about and its line from 1, if any.

    `error`: nothing can be measured on the graph; `warning`: it may not mean what it says.
    """

    severity: Severity
    message: str
    milestone: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{self.severity}: {place}{self.message}"


class Findings(tuple[Finding, ...]):
    """The findings about a graph, in the order of the file."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that must be mended before anything can be measured."""
        return tuple(finding for finding in self if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that deserve a look."""
        return tuple(finding for finding in self if finding.severity == "warning")


def check_milestones(graph: MilestoneGraph, tools: Any = None) -> Findings:
    """Return everything that is wrong with a milestone graph, and everything that is doubtful. Cost O(E log V).

    `tools` are the agent's: names, LangChain tools or OpenAI tool definitions; None: not compared.
    """
    findings = _find_errors(graph)
    if not findings:
        findings.extend(_find_impossible_rules(graph))
    findings.extend(_find_doubts(graph))
    if tools is None:
        findings.extend(_find_unknown_results(graph))
    else:
        schemas: dict[str, Schema] = {get_tool_name(tool): {} for tool in tools}
        schemas |= get_argument_schemas(tools)
        findings.extend(_compare_with_tools(graph, schemas))
    return Findings(sorted(findings, key=_get_line))


def require_measurable(graph: MilestoneGraph) -> IndexedGraph:
    """Return the graph with its milestones numbered, or raise a `SpecError` if nothing can be measured on the graph."""
    return graph.compute_once(_index_measurable)


def _index_measurable(graph: MilestoneGraph) -> IndexedGraph:
    errors = sorted(_find_errors(graph), key=_get_line)
    if errors:
        message = errors[0].message
        if len(errors) > 1:
            message += f" (and {len(errors) - 1} more: `check_milestones` lists them)"
        raise SpecError(message, file=graph.file, line=errors[0].line)
    return graph.compute_once(IndexedGraph)


def _get_line(finding: Finding) -> int:
    return finding.line or 0


def _find_errors(graph: MilestoneGraph) -> list[Finding]:
    errors = [*_find_wrong_milestones(graph), *_find_wrong_rules(graph)]
    if not errors:
        indexed = graph.compute_once(IndexedGraph)
        if indexed.depths[indexed.end] == NEVER:
            needed = nx.ancestors(graph, END) | {END}
            cycle = next(names for names in find_blocked_cycles(graph) if needed.issuperset(names))
            message = f"End cannot be reached, since there is a cycle: {describe_blocked_cycle(cycle)}"
            errors.append(_make_finding("error", graph.get_milestone(END), message))
    return errors


def _find_wrong_milestones(graph: MilestoneGraph) -> Iterator[Finding]:
    for name in (START, END):
        if name not in graph:
            yield Finding("error", f"there is no milestone named {name!r}{suggestion(name, graph)}")
    for milestone in graph.milestones:
        name = milestone.name
        for dependency in milestone.dependencies:
            if dependency not in graph:
                message = f"{name!r} depends on {dependency!r}, which isn't a milestone"
                yield _make_finding("error", milestone, message + suggestion(dependency, graph))
        if name == START and milestone.dependencies:
            message = "Start depends on other milestones; it is reached before anything happens"
            yield _make_finding("error", milestone, message)
        if name in (START, END) and (milestone.type == "FC" or milestone.check or milestone.state):
            message = (
                "is never observed by itself: make it an NFC, and put its check in a milestone before it"
            )
            yield _make_finding("error", milestone, f"{name} {message}")


def _find_wrong_rules(graph: MilestoneGraph) -> Iterator[Finding]:
    for rule in graph.forbidden:
        if rule.before == START:
            yield Finding("error", "`forbidden`: nothing happens before Start", line=rule.line)
        elif rule.before is not None and rule.before not in graph:
            message = f"`forbidden`: `before` names {rule.before!r}, which isn't a milestone"
            yield Finding("error", message + suggestion(rule.before, graph), line=rule.line)
    yield from _find_wrong_references(graph)


def _find_wrong_references(graph: MilestoneGraph) -> Iterator[Finding]:
    calls = [milestone.name for milestone in graph.milestones if milestone.type == "FC"]
    references: list[tuple[str, str]] = []
    for rule, constraint in iterate_constraints(graph):
        reference = constraint.equals_argument_of
        if reference is None:
            continue
        targets = [name for name, path in split_reference(reference, calls) if path]
        if not targets:
            message = f"`equals_argument_of: {reference}` isn't MILESTONE.argument of an FC"
            yield Finding("error", message + suggestion(reference.rpartition(".")[0], calls), line=rule.line)
        if isinstance(rule, Milestone):
            references.extend((rule.name, target) for target in targets)
    if not references:
        return
    for names in find_circular_names(nx.DiGraph(references)):
        message = f"{names[0]!r} can never be observed: its arguments refer to an earlier call of its own"
        yield _make_finding("error", graph.get_milestone(names[0]), message)


def _find_doubts(graph: MilestoneGraph) -> Iterator[Finding]:
    if graph.is_unreviewed:
        yield Finding(
            "warning",
            f"generated by {graph.generated_by}, and nobody has reviewed it, so what is measured on it is doubtful: "
            "review it, then write `reviewed: {by: …, date: …}` into the file",
        )
    for milestone in graph.milestones:
        states = [
            name for name in milestone.dependencies if name in graph and graph.get_milestone(name).state
        ]
        if states and not milestone.is_derived:
            message = f"{milestone.name!r} can't follow {states[0]!r}, which is seen after the last event"
            yield _make_finding("warning", milestone, message)
    if START in graph and END in graph:
        yield from _find_cycles_and_dead_ends(graph)
        if graph.compute_once(IndexedGraph).end_needs_nothing:
            message = "End needs nothing to happen: neither goal nor progress is measured"
            yield _make_finding("warning", graph.get_milestone(END), message)


def _find_impossible_rules(graph: MilestoneGraph) -> Iterator[Finding]:
    rules = [rule for rule in graph.forbidden if rule.before is not None]
    if not rules:
        return
    attainable = find_attainable(graph)
    reachable_before_end_states = find_reachable_before_end_states(graph)
    for rule in rules:
        before = rule.before
        event = _describe_forbidden_event(rule)
        if before not in reachable_before_end_states:
            message = f"{before!r} is reached after the last event, so {event} forbidden: leave out `before`"
        elif before not in attainable:
            message = f"{before!r} can't be reached without a forbidden call, so {event} forbidden"
        elif before == END:
            message = (
                f"{event} forbidden before End, on the whole way: name the milestone that has to come first"
            )
        else:
            continue
        yield Finding("warning", f"`forbidden`: {message}", line=rule.line)


def _describe_forbidden_event(rule: Forbidden) -> str:
    if rule.tool is None:
        return "such words are"
    allows_some_calls = bool(rule.arguments or rule.unless) or rule.failed == "ignore"
    calls = "every such call" if allows_some_calls else "every call"
    return f"{calls} of {rule.tool!r} is"


def _find_unknown_results(graph: MilestoneGraph) -> Iterator[Finding]:
    """Find references to results of tools that nothing else in the file names."""
    tools: dict[str, None] = {}
    for milestone in graph.milestones:
        if milestone.type == "FC":
            tools[milestone.tool_name] = None
        if isinstance(milestone.check, PatternCheck) and milestone.check.tool is not None:
            tools[milestone.check.tool] = None
    for rule in graph.forbidden:
        if rule.tool is not None:
            tools[rule.tool] = None
    for milestone_or_rule, constraint in iterate_constraints(graph):
        reference = constraint.equals_result_of
        if reference is not None and not any(split_reference(reference, tools)):
            message = f"`equals_result_of: {reference}` begins with no tool that the file names elsewhere"
            hint = suggestion(reference.partition(".")[0], tools)
            yield Finding("warning", message + hint, line=milestone_or_rule.line)


def _find_cycles_and_dead_ends(graph: MilestoneGraph) -> Iterator[Finding]:
    explained: set[str] = {END}  # an error says why End can't be reached
    for names in find_blocked_cycles(graph):
        explained.update(names)
        message = f"a cycle: {describe_blocked_cycle(names)}"
        yield _make_finding("warning", graph.get_milestone(names[0]), message)
    for names in find_open_cycles(graph):
        message = f"a cycle: {describe_open_cycle(graph, names)}"
        yield _make_finding("warning", graph.get_milestone(names[0]), message)
    indexed = graph.compute_once(IndexedGraph)
    leads_to_end = nx.ancestors(graph, END) | {END}
    for milestone, depth in zip(graph.milestones, indexed.depths, strict=True):
        name = milestone.name
        if depth == NEVER:
            if name not in explained:
                yield _make_finding("warning", milestone, f"{name!r} can never be reached")
        elif name not in leads_to_end:
            yield _make_finding("warning", milestone, f"End cannot be reached from {name!r}: a dead end")


def _compare_with_tools(graph: MilestoneGraph, schemas: Schemas) -> Iterator[Finding]:
    for milestone in graph.milestones:
        if isinstance(milestone.check, PatternCheck) and milestone.check.tool is not None:
            for _, message in find_tool_mismatches(schemas, milestone.check.tool, ()):
                yield _make_finding("error", milestone, f"`check`: {message}")
        if milestone.type != "FC" or milestone.by == "user":
            continue
        for place, message in find_tool_mismatches(schemas, milestone.tool_name, milestone.arguments):
            is_explained = place or "?" in message
            if not is_explained:
                message += "; if the tool has another name, write `tool:`"
            yield _make_finding("error", milestone, message)
    for rule in graph.forbidden:
        if rule.tool is None:
            continue
        argument_names = dict.fromkeys(rule.arguments)
        for exception in rule.unless:
            argument_names |= dict.fromkeys(exception)
        for place, message in find_tool_mismatches(schemas, rule.tool, argument_names):
            # A tool that isn't there can't be called: that is only a doubt.
            yield Finding("error" if place else "warning", f"`forbidden`: {message}", line=rule.line)

    for milestone_or_rule, constraint in iterate_constraints(graph):
        reference = constraint.equals_result_of
        if reference is not None and not any(split_reference(reference, schemas)):
            message = f"`equals_result_of: {reference}` begins with none of the agent's tools"
            message += suggestion(reference.partition(".")[0], schemas)
            yield Finding("error", message, line=milestone_or_rule.line)


def find_tool_mismatches(
    schemas: Schemas | None, tool: str, argument_names: Iterable[str]
) -> Iterator[tuple[Place, str]]:
    """Yield where a described call doesn't fit the agent's tools, and why: a tool or an argument that isn't there.

    `schemas` are those of each tool's arguments; None: any tool and any argument may be there.
    """
    if schemas is None:
        return
    if tool not in schemas:
        yield (), f"the agent has no tool {tool!r}{suggestion(tool, schemas)}"
        return
    schema = schemas[tool]
    properties: Any = schema.get("properties")
    if properties is None or schema.get("additionalProperties"):
        return
    for name in argument_names:
        if name not in properties:
            hint = suggestion(name, properties) or f"; it takes {', '.join(properties) or 'none'}"
            yield ("arguments", name), f"the tool {tool!r} has no argument {name!r}{hint}"


def _make_finding(severity: Severity, milestone: Milestone, message: str) -> Finding:
    return Finding(severity, message, milestone.name, milestone.line)
