"""The rules of a milestone graph, sorted by the events to which they apply."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from arq_graph.agent.modules import load_object
from arq_graph.agent.patterns import Pattern
from arq_graph.errors import SpecError
from arq_graph.milestones.graph import MilestoneGraph, iterate_constraints
from arq_graph.milestones.milestone import Forbidden, Milestone, PatternCheck
from arq_graph.milestones.references import split_reference
from arq_graph.milestones.transcript import Event, Transcript

StateCheck = Callable[[Transcript], bool | None]
"""Called once, with the whole conversation; None: it can't tell."""

EventCheck = Callable[[Event, Sequence[Event]], bool]
"""Called at every event, with all events before it; must depend on nothing else."""


class ObservationRules:
    """The rules of a graph, sorted by the events to which they apply.

    Attributes:
        milestones_by_tool: FCs, by the tool that is called.
        forbidden_by_tool: Rules that forbid calls, by the tool.
        tools: The tools that FCs or rules name.
        patterns_by_speaker: Milestones and rules with their patterns, by the speaker (`user`, `agent` or `tool`) whose
            words are searched.
        patterns_by_tool: Milestones with their patterns, by the tool whose results alone are searched.
        result_references: The references that `equals_result_of` gives.
        has_references: True if an argument has to equal a result or an argument of an earlier call.
        functions: NFCs with the functions that check them at every event.
        states: NFCs with the functions that check them after the conversation.
        undecided: Names of the NFCs that only a judge can decide, or the agent's records.
        milestones_by_step: Milestones by the step of a journey that they stand for.
    """

    def __init__(self, graph: MilestoneGraph) -> None:
        self.milestones_by_tool: dict[str, list[Milestone]] = defaultdict(list)
        self.forbidden_by_tool: dict[str, list[Forbidden]] = defaultdict(list)
        self.patterns_by_speaker: dict[str, list[tuple[Milestone | Forbidden, Pattern]]] = defaultdict(list)
        self.patterns_by_tool: dict[str, list[tuple[Milestone | Forbidden, Pattern]]] = defaultdict(list)
        self.functions: list[tuple[Milestone, EventCheck]] = []
        self.states: list[tuple[Milestone, StateCheck]] = []
        self.undecided: list[str] = []
        self.milestones_by_step: dict[str, list[Milestone]] = defaultdict(list)
        for rule in graph.forbidden:
            if rule.tool is not None:
                self.forbidden_by_tool[rule.tool].append(rule)
            elif rule.pattern is not None:
                self._add_pattern(rule, rule.pattern, rule.said_by)
        for milestone in graph.milestones:
            if not milestone.is_derived:
                self._add_milestone(graph, milestone)
        self.tools = self.milestones_by_tool.keys() | self.forbidden_by_tool.keys()
        self.result_references: set[str] = set()
        self.has_references = False
        for _, constraint in iterate_constraints(graph):
            self.has_references |= constraint.reference is not None
            if constraint.equals_result_of is not None:
                self.result_references.add(constraint.equals_result_of)

    def refers_to_result_of(self, tool: str) -> bool:
        """Return whether an argument has to equal a value in this tool's results."""
        return any(next(split_reference(reference, [tool]), None) for reference in self.result_references)

    def _add_milestone(self, graph: MilestoneGraph, milestone: Milestone) -> None:
        if milestone.step is not None:
            self.milestones_by_step[milestone.step].append(milestone)
        if milestone.type == "FC":
            self.milestones_by_tool[milestone.tool_name].append(milestone)
        elif milestone.state is not None:
            function = _load_function("state", milestone.state, file=graph.file, line=milestone.line)
            self.states.append((milestone, function))
        elif milestone.check is None:
            self.undecided.append(milestone.name)
        elif isinstance(milestone.check, PatternCheck):
            check = milestone.check
            if check.tool is not None:
                self.patterns_by_tool[check.tool].append((milestone, check.pattern))
            else:
                self._add_pattern(milestone, check.pattern, check.said_by)
        else:
            function = _load_function("check", milestone.check, file=graph.file, line=milestone.line)
            self.functions.append((milestone, function))

    def _add_pattern(self, rule: Milestone | Forbidden, pattern: Pattern, said_by: str | None) -> None:
        # Messages of the system are never searched.
        for speaker in ("user", "agent", "tool"):
            if said_by in (None, speaker):
                self.patterns_by_speaker[speaker].append((rule, pattern))


def load_rules(graph: MilestoneGraph) -> ObservationRules:
    """Return the rules of a graph, with their functions loaded.

    Raises:
        SpecError: A function can't be loaded; file and line are named.
    """
    return graph.compute_once(ObservationRules)


def _load_function(key: str, name: str, *, file: str | None, line: int | None) -> Callable[..., Any]:
    """Import the function that a key names; a module beside the file is preferred to an installed one."""
    try:
        function = load_object(name, Path(file).resolve().parent if file else None)
    except SpecError as error:
        raise SpecError(f"`{key}` {error}", file=file, line=line) from error.__cause__
    if not callable(function):
        raise SpecError(f"`{key}` names {name!r}, which isn't a function", file=file, line=line)
    if iscoroutinefunction(function):
        message = f"`{key}` names {name!r}, which is async, but isn't awaited: write it with `def`"
        raise SpecError(message, file=file, line=line)
    return function
