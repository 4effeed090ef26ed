"""`arq-graph milestones draw`: a milestone graph as Mermaid or as a picture."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from arq_graph.cli.failures import warn
from arq_graph.cli.png import draw
from arq_graph.milestones.authoring.mermaid import label_of, mermaid
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START, Milestone


def draw_milestones(file: Path, png: Path | None) -> None:
    """Print a milestone graph as Mermaid, or write it as PNG.

    Args:
        file: The milestone file; one with errors is drawn as far as it goes.
        png: Where to write the PNG.

    Raises:
        SpecError: The file cannot be read.
        InputError: The picture cannot be drawn with what is installed, or not written there.
    """
    graph = MilestoneGraph.from_yaml(file, check=False)
    for finding in graph.check().errors:
        warn(str(finding))
    draw(mermaid(graph), png, lambda picture: _with_graphviz(graph, picture))


def _with_graphviz(graph: MilestoneGraph, file: Path) -> None:
    pygraphviz: Any = importlib.import_module("pygraphviz")
    drawing = pygraphviz.AGraph(directed=True)
    numbers = {name: number for number, name in enumerate(graph)}
    for milestone in graph.milestones:
        drawing.add_node(numbers[milestone.name], label=_graphviz_label(milestone), **_look(milestone))
    for before, after in graph.edges:
        several = graph.in_degree(after) > 1 and graph.nodes[after]["requires"] == "any"
        drawing.add_edge(numbers[before], numbers[after], style="dashed" if several else "solid")
    drawing.draw(str(file), format="png", prog="dot")


def _graphviz_label(milestone: Milestone) -> str:
    # Graphviz reads \N as the node's name, and a text in angle brackets as HTML.
    label = label_of(milestone).replace("\\", "\\\\")
    return f" {label}" if label.startswith("<") else label


def _look(milestone: Milestone) -> dict[str, str]:
    if milestone.name in (START, END):
        return {"shape": "circle"}
    if milestone.type == "Aggregator":
        return {"shape": "hexagon"}
    return {"shape": "box"} if milestone.type == "FC" else {"shape": "box", "style": "rounded"}
