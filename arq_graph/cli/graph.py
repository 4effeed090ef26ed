"""`arq-graph graph` and `milestones draw`: graphs as Mermaid, or as PNG by Graphviz.

Nothing is sent to a web service, which is what LangChain's own way to a PNG would do.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from arq_graph.agent.spec import Agent
from arq_graph.apps.guided import create_guided_agent
from arq_graph.cli.failures import note, warn
from arq_graph.cli.options import AgentFile, Png
from arq_graph.errors import InputError
from arq_graph.milestones.authoring.mermaid import label_of, mermaid
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START, Milestone
from arq_graph.models.scripted import ScriptedChatModel


def graph(agent: AgentFile, png: Png = None) -> None:
    """Print the agent's graph as Mermaid."""
    app = create_guided_agent(ScriptedChatModel([]), Agent.from_yaml(agent))  # drawing asks no model
    drawn = app.get_graph()
    _draw(drawn.draw_mermaid(), png, lambda picture: drawn.draw_png(str(picture)))


def draw_milestones(file: Path, png: Path | None) -> None:
    """Print a milestone graph as Mermaid, or write it as PNG; one with errors is drawn as far as it goes."""
    milestones = MilestoneGraph.from_yaml(file, check=False)
    for finding in milestones.check().errors:
        warn(str(finding))
    _draw(mermaid(milestones), png, lambda picture: _with_graphviz(milestones, picture))


def _draw(text: str, png: Path | None, with_graphviz: Callable[[Path], None]) -> None:
    if png is None:
        print(text, end="")
        return
    if not png.parent.is_dir():
        raise InputError(f"there is no folder {png.parent} to write {png.name} to")
    if not importlib.util.find_spec("pygraphviz"):
        raise InputError(
            "a PNG needs Graphviz and `pip install pygraphviz`. Without --png the graph is printed as Mermaid, which "
            "GitHub and https://mermaid.live show as a picture"
        )
    try:
        with_graphviz(png)
    except (OSError, ValueError) as error:
        raise InputError(f"{png} cannot be written: {error}") from error
    note(f"written to {png}")


def _with_graphviz(milestones: MilestoneGraph, file: Path) -> None:
    pygraphviz: Any = importlib.import_module("pygraphviz")
    drawing = pygraphviz.AGraph(directed=True)
    numbers = {name: number for number, name in enumerate(milestones)}
    for milestone in milestones.milestones:
        drawing.add_node(numbers[milestone.name], label=_graphviz_label(milestone), **_look(milestone))
    for before, after in milestones.edges:
        several = milestones.in_degree(after) > 1 and milestones.nodes[after]["requires"] == "any"
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
