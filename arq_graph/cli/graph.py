"""`arq-graph graph`: the compiled graph as a picture."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from arq_graph.agent.spec import Agent
from arq_graph.apps.guided import create_guided_agent
from arq_graph.cli.failures import note
from arq_graph.cli.png import check_folder, draw_with_mermaid, mermaid_program
from arq_graph.errors import InputError
from arq_graph.models.scripted import ScriptedChatModel

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Graph


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
    if png is None:
        print(graph.draw_mermaid(), end="")
    else:
        _write_png(graph, png)
        note(f"written to {png}")


def _write_png(graph: Graph, file: Path) -> None:
    """Draw without the network: LangChain's own way would send the graph to a web service."""
    check_folder(file)
    mermaid = mermaid_program()
    if importlib.util.find_spec("pygraphviz"):
        try:
            graph.draw_png(str(file))
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be written: {error}") from error
    elif mermaid:
        draw_with_mermaid(mermaid, graph.draw_mermaid(), file)
    else:
        raise InputError(
            "a PNG needs one of two programs: `pip install pygraphviz`, or Mermaid's own, `npm install -g "
            "@mermaid-js/mermaid-cli`. Without --png the graph is printed as Mermaid, which GitHub and "
            "https://mermaid.live show as a picture"
        )
