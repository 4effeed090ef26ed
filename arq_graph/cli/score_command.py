"""`arq-graph score`: its options."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from arq_graph.cli.failures import reported
from arq_graph.cli.options import BaseUrl, Debug, HtmlOut, Judge, ReportOut, choice_of, loading

Gold = Literal["ordered", "unordered"]


def score(
    transcripts: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRANSCRIPTS",
            help="Recorded conversations of any agent: OpenAI chat or LangChain messages, tau-bench results, …, as "
            "JSON or JSON Lines; or a file of threads.",
        ),
    ],
    milestones: Annotated[
        list[str] | None,
        typer.Option(
            "--milestones",
            metavar="[NAME=]FILE",
            help="The milestone file. Several: one for each use case, named NAME or as the file is.",
        ),
    ] = None,
    gold: Annotated[
        Gold | None,
        typer.Option("--gold", help="Instead: the gold actions that each record holds, as tau-bench's do."),
    ] = None,
    agent: Annotated[
        Path | None,
        typer.Option(metavar="AGENT.yaml", help="The agent, for its tools' schemas and its instructions."),
    ] = None,
    tools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The tools alone: OpenAI tool definitions as JSON.")
    ] = None,
    judge: Judge = None,
    votes: Annotated[
        int, typer.Option(min=1, help="How often the judge is asked; the majority decides.")
    ] = 1,
    no_veto: Annotated[
        bool, typer.Option("--no-veto", help="The judge may not take away a call that code counts.")
    ] = False,
    date: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="YYYY-MM-DD",
            help="The day of the conversations, for the judge. Without it the judge is told no date.",
        ),
    ] = None,
    base_url: BaseUrl = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="How many conversations the judge is asked about at once.")
    ] = 8,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help="The format. Else each record is recognised by itself.")
    ] = None,
    use_case: Annotated[
        str | None, typer.Option(metavar="NAME", help="Conversations of this use case alone.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many conversations at most.")] = None,
    html: HtmlOut = None,
    json: ReportOut = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin again where an earlier run was not finished.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Measure how far recorded conversations got: goal completion and progress rate.

    With --json or --html, results are kept as they come: the same command goes on with a run that was stopped.
    """
    _require_usage(milestones, gold, judge, votes != 1 or no_veto or date is not None, agent, tools)
    with reported(debug):
        choice = choice_of(judge, base_url) if judge else None
        with loading():
            from arq_graph.cli.score import Wanted, score_files
        score_files(
            Wanted(
                tuple(transcripts),
                tuple(milestones or ()),
                gold,
                agent=agent,
                tools=tools,
                judge=choice,
                votes=votes,
                veto=not no_veto,
                date=date.date() if date else None,
                concurrency=concurrency,
                format=format,
                use_case=use_case,
                limit=limit,
                html=html,
                json=json,
                fresh=fresh,
            )
        )


def _require_usage(
    milestones: list[str] | None,
    gold: Gold | None,
    judge: str | None,
    sets_judge: bool,
    agent: Path | None,
    tools: Path | None,
) -> None:
    if bool(milestones) == bool(gold):
        raise typer.BadParameter(
            "say what to measure on: --milestones FILE, or --gold ordered|unordered (one of them)"
        )
    if judge is None and sets_judge:
        raise typer.BadParameter("--votes, --no-veto and --date are for a judge: name one with --judge")
    if agent is not None and tools is not None:
        raise typer.BadParameter("the tools come from --agent or from --tools, not from both")
