"""`arq-graph milestones check`: what is wrong with a milestone file, and what is doubtful."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from arq_graph.cli.failures import WRONG_INPUT
from arq_graph.cli.screen import labelled, output, words
from arq_graph.milestones.findings import Finding
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.yaml_file import read_yaml


def check_milestones(file: Path, tools: Any) -> None:
    """Print what a milestone file holds, its errors and its warnings.

    Args:
        file: The milestone file.
        tools: The agent's tools; None: not compared.

    Raises:
        SpecError: The file cannot be read.
        Exit: With 1 where it has errors.
    """
    graph = read_yaml(file)
    found = graph.check(tools)
    console = output()
    console.print(summary(graph))
    show_findings("Errors", "bold red", found.errors, console)
    show_findings("Warnings", "yellow", found.warnings, console)
    console.print()
    if found.errors:
        console.print(words(f"{file} cannot be measured on.", "red"))
        raise typer.Exit(WRONG_INPUT)
    compared = "" if tools is None else "; its tools are the agent's"
    console.print(words(f"{file} can be measured on{compared}.", "green"))


def summary(graph: MilestoneGraph) -> Text:
    """What a graph holds, in a line or two."""
    kinds = Counter(milestone.type for milestone in graph.milestones)
    judged = sum(milestone.is_decided_by_judge for milestone in graph.milestones)
    parts = [
        f"{len(graph.milestones)} milestones: {kinds['FC']} FC, {kinds['NFC']} NFC"
        + (f", {_counted(kinds['Aggregator'], 'join')}" if kinds["Aggregator"] else ""),
        f"{judged} decided by a judge",
    ]
    if graph.forbidden:
        parts.append(_counted(len(graph.forbidden), "forbidden event"))
    if graph.review is not None:
        parts.append(str(graph.review))
    return words(" · ".join(parts))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def show_findings(title: str, style: str, found: Iterable[Finding], console: Console) -> None:
    """Print findings under a title, each beside its line; nothing where there are none.

    Args:
        title: The title.
        style: How the title looks.
        found: The findings.
        console: Where to print them.
    """
    rows = [(f"line {each.line}" if each.line else "", "dim", [words(each.message)]) for each in found]
    if rows:
        console.print()
        console.print(words(f"{title} ({len(rows)})", style))
        console.print(labelled(rows))
