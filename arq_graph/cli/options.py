"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arq_graph.apps.strategies import StrategyName
from arq_graph.reasoning.blueprint import Mode

AgentFile = Annotated[Path, typer.Argument(metavar="AGENT.yaml", help="The agent's file.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help="openai:gpt-4o, offline, … Else $ARQ_GRAPH_MODEL; without it and without a key, the offline model.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="An OpenAI-compatible endpoint. Else $ARQ_GRAPH_BASE_URL."),
]
ModeOption = Annotated[Mode, typer.Option("--mode", help="How much the model reasons before it answers.")]
Thread = Annotated[
    str | None,
    typer.Option("--thread", "-t", metavar="ID", help="Go on with this thread, or begin it. Else a new one."),
]
Database = Annotated[
    Path | None,
    typer.Option("--db", metavar="FILE", help="Where threads are kept. Else .arq_graph/threads.sqlite here."),
]
StrategyOption = Annotated[
    StrategyName,
    typer.Option(
        "--strategy",
        help="How the agent acts: all tools decided on at once, a plan, a step at a time, or thinking, speaking and "
        "acting in turns.",
    ),
]
Png = Annotated[
    Path | None, typer.Option("--png", metavar="FILE", help="Write a PNG instead; needs pygraphviz.")
]
MilestonesOption = Annotated[
    Path | None,
    typer.Option(
        "--milestones", metavar="FILE", help="Measure on this milestone file how far the conversation gets."
    ),
]
SuiteFile = Annotated[Path, typer.Argument(metavar="SUITE.yaml", help="The scenarios.")]
Judge = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Decides what code cannot: openai:gpt-4o, offline, … Else nobody."),
]
UserModel = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Who plays the user. Else an agenda, which needs no model."),
]
HtmlOut = Annotated[
    Path | None,
    typer.Option("--html", metavar="OUT", help="Write a page to look at; it needs no network."),
]
ReportOut = Annotated[
    Path | None,
    typer.Option("--json", metavar="OUT", help="Write the report for programs and `compare`."),
]
ToolsFile = Annotated[
    Path | None,
    typer.Option(
        "--tools",
        metavar="FILE",
        help="The tools as JSON: names, OpenAI tool definitions, or schemas by name.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]
