"""`arq-graph milestones …`: making, checking and drawing milestone files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.text import Text
from typer import Argument, BadParameter, Exit, Option, Typer

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.cli import options
from arq_graph.cli.exit_codes import WRONG_INPUT
from arq_graph.cli.input_files import check_output_files, read_text, read_tools
from arq_graph.cli.model_choice import OFFLINE, choose_model
from arq_graph.cli.progress_display import StepDisplay
from arq_graph.cli.screen import heading, label_grid, safe_text, show_command, stdout_console, warn
from arq_graph.cli.tables import counted
from arq_graph.errors import InputError
from arq_graph.milestones.authoring.author import author_milestones
from arq_graph.milestones.findings import Finding, check_milestones
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.graph_file import dump_milestones, read_milestones
from arq_graph.milestones.milestone import END, START, Milestone

milestones = Typer(
    name="milestones",
    help="Check, draw or draft milestone files, which say what a conversation has to reach.",
    no_args_is_help=True,
)

_SPECIAL = re.compile(r"[^\w ,'/]|_(?=_)")
_LONGEST_LABEL = 200
_BRACKETS = {"FC": ("[", "]"), "NFC": ("(", ")"), "Aggregator": ("{{", "}}")}

_LEGEND = (
    "%% [box]: a tool's call; (rounded): a state; {{hexagon}}: a join; ((circle)): Start and End\n"
    "%% solid arrow: needed; dashed arrow: one of several alternatives"
)

_File = Annotated[Path, Argument(metavar="FILE", help="The milestone file.")]


@milestones.command()
def check(file: _File, agent: options.AgentOption = None, tools: options.Tools = None) -> None:
    """Say what is wrong with a milestone file and what is doubtful, each with its line.

    The exit code is 1 if something is wrong. With --agent or --tools, every FC must be one of the tools.
    """
    known = read_tools(agent, tools)
    graph = read_milestones(file, check=False)
    found = check_milestones(graph, known)
    console = stdout_console()
    console.print(_summary(graph))
    _show("Errors", "bold red", found.errors, console)
    _show("Warnings", "yellow", found.warnings, console)
    console.print()
    if found.errors:
        console.print(safe_text(f"{file} cannot be used to measure.", "red"))
        raise Exit(WRONG_INPUT)
    compared = "" if known is None else "; its tools are the agent's"
    console.print(safe_text(f"{file} can be used to measure{compared}.", "green"))


@milestones.command()
def draw(file: _File) -> None:
    """Print a milestone graph as Mermaid; a graph with errors is drawn as far as possible."""
    graph = read_milestones(file, check=False)
    for finding in check_milestones(graph).errors:
        warn(str(finding))
    print(_mermaid(graph), end="")


@milestones.command()
def author(
    workflow: Annotated[
        Path,
        Option(
            "--workflow",
            "-w",
            metavar="FILE",
            help="What the agent should do, in words. Write - to read standard input.",
        ),
    ],
    out: Annotated[Path, Option("--out", "-o", metavar="FILE", help="The milestone file to write.")],
    agent: options.AgentOption = None,
    tools: options.Tools = None,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
) -> None:
    """Let a model draft a milestone file from a workflow and the agent's tools; the offline model cannot.

    The file says that nobody has reviewed it, and reports that use it say so too, until you write who did.
    """
    known = read_tools(agent, tools)
    if known is None:
        raise BadParameter("name the tools: --agent AGENT.yaml or --tools FILE")
    choice = choose_model(model, base_url, model_arg)
    check_output_files([out])
    if out.exists():
        raise InputError(f"{out} is there already: name another file, or move this one away")
    text = read_text(workflow, "workflow")
    if choice.spec == OFFLINE:
        raise InputError("the offline model cannot draft milestones: name another model with --model")
    asked = choice.chat_model()
    with StepDisplay().show(f"asking {choice.name} for the milestones"):
        graph = author_milestones(text, known, asked)
    write_atomically(out, dump_milestones(graph))
    console = stdout_console()
    console.print(_summary(graph))
    _show("Warnings", "yellow", check_milestones(graph, known).warnings, console)
    console.print()
    console.print(
        safe_text(f"Written to {out}. What it measures is doubtful until somebody has reviewed it:")
    )
    console.print(safe_text("read it, look at it with"))
    show_command(console, "arq-graph", "milestones", "draw", out)
    console.print(safe_text("and then write `reviewed: {by: your name, date: today's date}` at its top."))


def _summary(graph: MilestoneGraph) -> Text:
    kinds = Counter(milestone.type for milestone in graph.milestones)
    joins = f", {counted(kinds['Aggregator'], 'join')}" if kinds["Aggregator"] else ""
    parts = [
        f"{len(graph.milestones)} milestones: {kinds['FC']} FC, {kinds['NFC']} NFC{joins}",
        f"{sum(milestone.is_decided_by_judge for milestone in graph.milestones)} decided by a judge",
    ]
    if graph.forbidden:
        parts.append(counted(len(graph.forbidden), "forbidden event"))
    made = f"generated by {graph.generated_by}, " if graph.generated_by else ""
    parts.append(f"{made}{graph.reviewed or 'nobody has reviewed it'}")
    return safe_text(" · ".join(parts))


def _show(title: str, style: str, found: Iterable[Finding], console: Console) -> None:
    rows = [(f"line {each.line}" if each.line else "", "dim", [safe_text(each.message)]) for each in found]
    if rows:
        console.print(heading(f"{title} ({len(rows)})", style))
        console.print(label_grid(rows))


def _mermaid(graph: MilestoneGraph) -> str:
    numbers = {name: number for number, name in enumerate(graph)}
    lines = ["flowchart TD", *_LEGEND.splitlines()]
    lines += [f"  m{numbers[each.name]}{_shape(each)}" for each in graph.milestones]
    for name in graph:
        before = list(graph.predecessors(name))
        is_alternative = len(before) > 1 and graph.milestone(name).requires == "any"
        arrow = "-.->" if is_alternative else "-->"
        lines += [f"  m{numbers[dependency]} {arrow} m{numbers[name]}" for dependency in before]
    return "\n".join(lines) + "\n"


def _shape(milestone: Milestone) -> str:
    shown = milestone.name if milestone.tool is None else f"{milestone.name} ({milestone.tool})"
    label = f'"{_escaped(" ".join(shown.split())[:_LONGEST_LABEL])}"'
    before, after = ("((", "))") if milestone.name in (START, END) else _BRACKETS[milestone.type]
    return f"{before}{label}{after}"


def _escaped(label: str) -> str:
    # Mermaid writes a character by its number: #34; is a quote. A list's "1." or "-" is no plain text to it.
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", label)
