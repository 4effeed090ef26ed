"""`arq-graph graph`: the compiled graph as a picture."""

from __future__ import annotations

from pathlib import Path

from arq_graph.agent.spec import Agent
from arq_graph.apps.guided import create_guided_agent
from arq_graph.cli.png import draw
from arq_graph.models.scripted import ScriptedChatModel


def draw_graph(file: Path, png: Path | None) -> None:
    """Print the graph as Mermaid, or write it as PNG.

    Args:
        file: The agent's YAML file.
        png: Where to write the PNG.

    Raises:
        InputError: The picture cannot be drawn with what is installed, or not written there.
    """
    app = create_guided_agent(ScriptedChatModel([]), Agent.from_yaml(file))  # drawing asks no model
    graph = app.get_graph()
    # LangChain's own way to a PNG without Graphviz would send the graph to a web service.
    draw(graph.draw_mermaid(), png, lambda picture: graph.draw_png(str(picture)))
