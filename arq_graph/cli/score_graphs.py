"""What conversations are measured on: milestone files, the agent's tools, and what makes two runs the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from arq_graph.agent.spec import Agent
from arq_graph.cli.failures import warn
from arq_graph.cli.threads import when
from arq_graph.cli.tool_definitions import read_tools
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.reports.graph_choice import GraphSource, gold_graph
from arq_graph.nodes.spec_sections import condition_text


@dataclass(frozen=True)
class Known:
    """What is known of the agent that was recorded.

    Args:
        tools: Its tools, as `argument_schemas` takes them; None: those that each transcript brings.
        instructions: What it was told; None: what each transcript says.
    """

    tools: Any = None
    instructions: str | None = None


def read_known(agent: Path | None, tools: Path | None) -> Known:
    """The agent's tools, from its file or from a file of definitions, and its instructions.

    Raises:
        SpecError: A file is wrong or cannot be read.
    """
    if agent is None:
        return Known(read_tools(None, tools))
    read = Agent.from_yaml(agent)
    rules = [f"- {when(condition_text(rule))}: {rule.action}" for rule in read.guidelines]
    return Known(list(read.toolbox.values()), "\n".join([read.profile.strip(), "", *rules]).strip())


def read_graphs(given: Sequence[str], tools: Any) -> GraphSource:
    """The graphs of `--milestones`; what is doubtful about them is shown.

    Args:
        given: `FILE` or `NAME=FILE`, each once.
        tools: The agent's tools, which the graphs are compared with.

    Raises:
        SpecError: A file cannot be read, or a graph cannot be measured on.
        InputError: Two graphs are for one use case.
    """
    graphs: dict[str, MilestoneGraph] = {}
    named = False
    for text in given:
        name, file = _named(text)
        named = named or name is not None
        graph = _checked(MilestoneGraph.from_yaml(file, check=False), tools)
        use_case = name if name is not None else file.stem
        if use_case in graphs:
            raise InputError(f"two milestone files are for the use case {use_case!r}; name one NAME=FILE")
        graphs[use_case] = graph
    return graphs if named or len(graphs) > 1 else next(iter(graphs.values()))


def read_gold(ordered: bool) -> GraphSource:
    """Graphs of the gold actions that the records hold."""
    return partial(gold_graph, ordered=ordered)


def _named(text: str) -> tuple[str | None, Path]:
    name, equals, file = text.partition("=")
    # A file's own name may have the sign in it.
    if not equals or not name or not file or Path(text).exists():
        return None, Path(text)
    return name, Path(file)


def _checked(graph: MilestoneGraph, tools: Any) -> MilestoneGraph:
    findings = graph.check(tools)
    if findings.errors:
        first, *others = findings.errors
        error = SpecError(first.message, file=graph.file, line=first.line)
        for other in others:
            error.add_note(f"{graph.file}: {other}")
        raise error
    # That nobody has reviewed the graph stands in the report, beside the figures.
    for warning in findings.warnings:
        if not warning.is_about_review:
            place = f"{graph.file}:{warning.line}" if warning.line else graph.file
            warn(f"{place}: {warning.message}")
    return graph
