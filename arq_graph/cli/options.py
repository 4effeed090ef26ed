"""Options that several commands share, and what each command does before it loads what it needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from arq_graph.cli.screen import diagnostics
from arq_graph.cli.settings import OFFLINE, ModelChoice, choose_model

Mode = Literal["arq", "cot", "direct"]

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
    Literal["tools", "pre-act", "react", "respact"],
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
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


@contextmanager
def loading() -> Iterator[None]:
    """Show that something is going on: the libraries underneath take a second to load."""
    console = diagnostics()
    with console.status("loading …") if console.is_terminal else nullcontext():
        yield


def choice_of(model: str | None, base_url: str | None) -> ModelChoice:
    """The model that the options and the environment name."""
    return choose_model(model, base_url, os.environ)


def choices_of(
    model: str | None, user_model: str | None, judge: str | None, base_url: str | None
) -> tuple[ModelChoice, ModelChoice | None, ModelChoice | None]:
    """The models of the arms, of the users and of the judge; the base URL is for those that take one."""
    arms = (model or os.environ.get("ARQ_GRAPH_MODEL") or "").strip()
    specs = (arms, *(each.strip() for each in (user_model, judge) if each))
    # Where no model takes an address it is given to all, so that it is refused.
    somebody_takes_it = any(spec != OFFLINE for spec in specs)

    def url_of(spec: str) -> str | None:
        return None if somebody_takes_it and spec.strip() == OFFLINE else base_url

    return (
        choice_of(model, url_of(arms)),
        choice_of(user_model, url_of(user_model)) if user_model else None,
        choice_of(judge, url_of(judge)) if judge else None,
    )
