"""`arq-graph milestones …`: making, checking and drawing milestone files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.cli.failures import WRONG_INPUT, ReportedCommand, note, warn
from arq_graph.cli.figures import counted
from arq_graph.cli.files import read_text, read_tools, require_writable
from arq_graph.cli.graph import draw_milestones
from arq_graph.cli.options import BaseUrl, Model, ModeOption, Png, ToolsFile
from arq_graph.cli.progress import Progress
from arq_graph.cli.screen import command, labelled, output, words
from arq_graph.cli.settings import OFFLINE, choose_model
from arq_graph.errors import InputError
from arq_graph.milestones.authoring.author import LONGEST_WORKFLOW, author_milestones
from arq_graph.milestones.findings import Finding
from arq_graph.milestones.graph import MilestoneGraph

_MOST_BYTES = 4 * LONGEST_WORKFLOW + 4


milestones = typer.Typer(
    name="milestones",
    help="Milestone files: what a conversation has to reach, to measure how far it got.",
    no_args_is_help=True,
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The milestone file.")]
_AgentOption = Annotated[
    Path | None, typer.Option("--agent", metavar="AGENT.yaml", help="The agent whose tools they are.")
]


@milestones.command(cls=ReportedCommand)
def check(file: _File, agent: _AgentOption = None, tools: ToolsFile = None) -> None:
    """Say what is wrong with a milestone file and what is doubtful, each with its line.

    Exit code 1 where something is wrong. With --agent or --tools every FC must be one of the tools.
    """
    known = read_tools(agent, tools)
    graph = MilestoneGraph.from_yaml(file, check=False)
    found = graph.check(known)
    console = output()
    console.print(_summary(graph))
    _show("Errors", "bold red", found.errors, console)
    _show("Warnings", "yellow", found.warnings, console)
    console.print()
    if found.errors:
        console.print(words(f"{file} cannot be measured on.", "red"))
        raise typer.Exit(WRONG_INPUT)
    compared = "" if known is None else "; its tools are the agent's"
    console.print(words(f"{file} can be measured on{compared}.", "green"))


@milestones.command(cls=ReportedCommand)
def draw(file: _File, png: Png = None) -> None:
    """Print a milestone graph as Mermaid."""
    draw_milestones(file, png)


@milestones.command(cls=ReportedCommand)
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
    agent: _AgentOption = None,
    tools: ToolsFile = None,
    model: Model = None,
    base_url: BaseUrl = None,
    mode: ModeOption = "arq",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Have a model make a milestone file of a workflow and the agent's tools.

    The file says that nobody has reviewed it, and so does what is measured on it, until you write who did.
    """
    known = read_tools(agent, tools)
    if known is None:
        raise typer.BadParameter("name the tools: --agent AGENT.yaml or --tools FILE")
    choice = choose_model(model, base_url)
    _require_new(out, force=force)
    text = read_text(workflow, "workflow", _MOST_BYTES)
    if choice.notice:
        note(choice.notice)
    with Progress().shown(f"asking {choice.name} for the milestones"):
        graph = author_milestones(text, known, choice.spec, base_url=choice.base_url, mode=mode)
    _require_new(out, force=force)  # it may have come into being meanwhile
    try:
        write_atomically(out.resolve(), graph.to_yaml().encode())
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror or error}") from error
    console = output()
    console.print(_summary(graph))
    _show("Warnings", "yellow", graph.check(known).warnings, console)
    console.print()
    if choice.spec == OFFLINE:
        warn("the offline model only puts the tools in the order in which the workflow mentions them")
    console.print(words(f"Written to {out}. What it measures is doubtful until somebody has reviewed it:"))
    console.print(words("read it, look at it with"))
    console.print(command("arq-graph", "milestones", "draw", out), soft_wrap=True)
    console.print(words("and then write `reviewed: {by: your name, date: today's date}` at its top."))


def _summary(graph: MilestoneGraph) -> Text:
    """What a graph holds, in a line or two."""
    kinds = Counter(milestone.type for milestone in graph.milestones)
    judged = sum(milestone.is_decided_by_judge for milestone in graph.milestones)
    parts = [
        f"{len(graph.milestones)} milestones: {kinds['FC']} FC, {kinds['NFC']} NFC"
        + (f", {counted(kinds['Aggregator'], 'join')}" if kinds["Aggregator"] else ""),
        f"{judged} decided by a judge",
    ]
    if graph.forbidden:
        parts.append(counted(len(graph.forbidden), "forbidden event"))
    made = f"generated by {graph.generated_by}, " if graph.generated_by else ""
    parts.append(f"{made}{graph.reviewed or 'nobody has reviewed it'}")
    return words(" · ".join(parts))


def _show(title: str, style: str, found: Iterable[Finding], console: Console) -> None:
    rows = [(f"line {each.line}" if each.line else "", "dim", [words(each.message)]) for each in found]
    if rows:
        console.print()
        console.print(words(f"{title} ({len(rows)})", style))
        console.print(labelled(rows))


def _require_new(path: Path, *, force: bool) -> None:
    require_writable([path], [])
    if path.exists() and not force:
        raise InputError(f"{path} is there already; --force replaces it, or name another file")
