"""`arq-graph milestones …`: draft, check and draw milestone files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Exit, Option, Typer

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.cli import options
from arq_graph.cli.command import CommandGroup, register_command
from arq_graph.cli.exit_codes import WRONG_INPUT
from arq_graph.cli.input_files import check_output_files, read_journey_graph, read_text, read_tools
from arq_graph.cli.mermaid import make_label
from arq_graph.cli.model_choice import OFFLINE, choose_model
from arq_graph.cli.progress_display import StepDisplay
from arq_graph.cli.report_view import format_count
from arq_graph.cli.screen import label_grid, show, show_command, show_heading, warn
from arq_graph.errors import InputError
from arq_graph.milestones.authoring.author import author_milestones
from arq_graph.milestones.findings import Finding, check_milestones
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.graph_file import dump_milestones, read_milestones
from arq_graph.milestones.milestone import END, START, Milestone

_BRACKETS = {"FC": ("[", "]"), "NFC": ("(", ")"), "Aggregator": ("{{", "}}")}

_LEGEND = (
    "%% [box]: a tool's call; (rounded): a state; {{hexagon}}: a join; ((circle)): Start and End\n"
    "%% solid arrow: needed; dashed arrow: one of several alternatives"
)

_WORKFLOW_HELP = "The agent's task, in words. Write - to read standard input."
_File = Annotated[
    Path, Argument(metavar="FILE", help="The milestone file; with --journey, the agent's file.")
]


def check(
    file: _File,
    agent: options.AgentOption = None,
    tools: options.Tools = None,
    journey: options.Journey = None,
) -> None:
    """Say what is wrong with a milestone file and what is doubtful, each with its line.

    The exit code is 1 if something is wrong. With --agent or --tools, every FC must be one of the tools.
    """
    known_tools = read_tools(agent, tools)
    graph = _read_graph(file, journey)
    findings = check_milestones(graph, known_tools)
    show(_summarize(graph))
    _show_findings("Errors", "bold red", findings.errors)
    _show_findings("Warnings", "yellow", findings.warnings)
    show("")
    if findings.errors:
        show(f"{file} cannot be used to measure.", style="red")
        raise Exit(WRONG_INPUT)
    remark = "" if known_tools is None else "; its tools are the agent's"
    show(f"{file} can be used to measure{remark}.", style="green")
    functions = sum(milestone.names_function for milestone in graph.milestones)
    if functions:
        show(
            f"{format_count(functions, 'function')} not looked up: only measuring imports them.", style="dim"
        )


def draw(file: _File, journey: options.Journey = None) -> None:
    """Print a milestone graph as Mermaid; a graph with errors is drawn as far as possible."""
    graph = _read_graph(file, journey)
    for finding in check_milestones(graph).errors:
        warn(str(finding))
    print(_draw_mermaid(graph), end="")


def author(
    workflow: Annotated[Path, Option("--workflow", "-w", metavar="FILE", help=_WORKFLOW_HELP)],
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
    known_tools = read_tools(agent, tools)
    if known_tools is None:
        raise BadParameter("name the tools: --agent AGENT.yaml or --tools FILE")
    model_choice = choose_model(model, base_url, model_arg)
    check_output_files([out])
    if out.exists():
        raise InputError(f"{out} is there already: name another file, or move this one away")
    text = read_text(workflow, "workflow")
    if model_choice.spec == OFFLINE:
        raise InputError("the offline model cannot draft milestones: name another model with --model")
    with StepDisplay().show(f"asking {model_choice.name} for the milestones"):
        graph = author_milestones(text, known_tools, model_choice.chat_model())
    write_atomically(out, dump_milestones(graph))
    show(_summarize(graph))
    _show_findings("Warnings", "yellow", check_milestones(graph, known_tools).warnings)
    show("", f"Written to {out}. What it measures is doubtful until somebody has reviewed it:")
    show("read it, look at it with")
    show_command(["arq-graph", "milestones", "draw", out])
    show("and then write `reviewed: {by: your name, date: today's date}` at its top.")


milestones = Typer(
    name="milestones",
    cls=CommandGroup,
    help="Check, draw or draft milestone files, which say what a conversation has to reach.",
    no_args_is_help=True,
)
register_command(milestones, "check", check)
register_command(milestones, "draw", draw)
register_command(milestones, "author", author)


def _read_graph(file: Path, journey: str | None) -> MilestoneGraph:
    if journey is None:
        return read_milestones(file, check=False)
    return read_journey_graph(file, journey)


def _summarize(graph: MilestoneGraph) -> str:
    kinds = Counter(milestone.type for milestone in graph.milestones)
    counts = f"{len(graph.milestones)} milestones: {kinds['FC']} FC, {kinds['NFC']} NFC"
    if kinds["Aggregator"]:
        counts += f", {format_count(kinds['Aggregator'], 'join')}"
    optional_count = sum(milestone.optional for milestone in graph.milestones)
    if optional_count:
        counts += f" ({optional_count} optional)"
    judged_count = sum(milestone.is_decided_by_judge for milestone in graph.milestones)
    noted_count = sum(
        milestone.is_decided_by_judge and milestone.step is not None for milestone in graph.milestones
    )
    parts = [counts]
    if noted_count:
        parts.append(f"{noted_count} decided by the agent's notes, or else by a judge")
    if judged_count > noted_count or not noted_count:
        parts.append(f"{judged_count - noted_count} decided by a judge")
    if graph.forbidden:
        parts.append(format_count(len(graph.forbidden), "forbidden event"))
    if graph.generated_by:
        parts.append(f"generated by {graph.generated_by}, {graph.reviewed or 'nobody has reviewed it'}")
    elif graph.reviewed:
        parts.append(str(graph.reviewed))
    return " · ".join(parts)


def _show_findings(title: str, style: str, findings: Iterable[Finding]) -> None:
    rows = []
    for finding in findings:
        line = f"line {finding.line}" if finding.line else ""
        rows.append((line, "dim", [finding.message]))
    if rows:
        show_heading(f"{title} ({len(rows)})", style)
        show(label_grid(rows))


def _draw_mermaid(graph: MilestoneGraph) -> str:
    node_ids = {name: f"m{number}" for number, name in enumerate(graph)}
    lines = ["flowchart TD", _LEGEND]
    for milestone in graph.milestones:
        lines.append(f"  {node_ids[milestone.name]}{_draw_node(milestone)}")
    for name in graph:
        predecessors = list(graph.predecessors(name))
        is_alternative = len(predecessors) > 1 and graph.get_milestone(name).requires == "any"
        arrow = "-.->" if is_alternative else "-->"
        for predecessor in predecessors:
            lines.append(f"  {node_ids[predecessor]} {arrow} {node_ids[name]}")
    return "\n".join(lines) + "\n"


def _draw_node(milestone: Milestone) -> str:
    text = milestone.name if milestone.tool is None else f"{milestone.name} ({milestone.tool})"
    if milestone.optional:
        text += ", optional"
    opening, closing = _BRACKETS[milestone.type]
    if milestone.name in (START, END):
        opening, closing = "((", "))"
    return f'{opening}"{make_label(text)}"{closing}'
