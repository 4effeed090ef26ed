"""`arq-graph milestones …`: making, checking and drawing milestone files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arq_graph.cli.failures import reported
from arq_graph.cli.options import BaseUrl, Debug, Model, ModeOption, Png, ToolsFile, choice_of, loading

milestones = typer.Typer(
    name="milestones",
    help="Milestone files: what a conversation has to reach, to measure how far it got.",
    no_args_is_help=True,
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The milestone file.")]
_Agent = Annotated[
    Path | None, typer.Option("--agent", metavar="AGENT.yaml", help="The agent whose tools they are.")
]


@milestones.command()
def check(file: _File, agent: _Agent = None, tools: ToolsFile = None, debug: Debug = False) -> None:
    """Say what is wrong with a milestone file and what is doubtful, each with its line.

    Exit code 1 where something is wrong. With --agent or --tools every FC must be one of the tools.
    """
    _at_most_one(agent, tools)
    with reported(debug):
        with loading():
            from arq_graph.cli.milestones import check_milestones
            from arq_graph.cli.tools_file import read_tools
        check_milestones(file, read_tools(agent, tools))


@milestones.command()
def draw(
    file: _File,
    png: Png = None,
    debug: Debug = False,
) -> None:
    """Print a milestone graph as Mermaid."""
    with reported(debug):
        with loading():
            from arq_graph.cli.picture import draw_milestones
        draw_milestones(file, png)


@milestones.command()
def author(
    workflow: Annotated[
        Path,
        typer.Option(
            "--workflow",
            "-w",
            metavar="FILE",
            help="What the agent is to do, in words. - reads standard input.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The milestone file to make.")],
    agent: _Agent = None,
    tools: ToolsFile = None,
    model: Model = None,
    base_url: BaseUrl = None,
    mode: ModeOption = "arq",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    debug: Debug = False,
) -> None:
    """Have a model make a milestone file of a workflow and the agent's tools.

    The file says that nobody has reviewed it, and so does what is measured on it, until you write who did.
    """
    _at_most_one(agent, tools)
    if agent is None and tools is None:
        raise typer.BadParameter("name the tools: --agent AGENT.yaml or --tools FILE")
    with reported(debug):
        choice = choice_of(model, base_url)
        with loading():
            from arq_graph.cli.milestones import author_file
            from arq_graph.cli.tools_file import read_tools
        author_file(workflow, read_tools(agent, tools), choice, out, mode=mode, force=force)


def _at_most_one(agent: Path | None, tools: Path | None) -> None:
    if agent is not None and tools is not None:
        raise typer.BadParameter("--agent and --tools name the tools twice: give one of them")
