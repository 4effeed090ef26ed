"""`arq-graph evaluate`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arq_graph.cli.failures import reported
from arq_graph.cli.options import (
    BaseUrl,
    Debug,
    HtmlOut,
    Judge,
    Model,
    ReportOut,
    SuiteFile,
    UserModel,
    choices_of,
    loading,
)


def evaluate(
    suite: SuiteFile,
    arms: Annotated[
        str,
        typer.Option(
            metavar="NAME,…",
            help="What is tried: guided, guided:cot, guided:direct, react, pre-act, respact, create_agent, or "
            "module:function, a function of (scenario, agent, model) that makes an app.",
        ),
    ] = "guided",
    runs: Annotated[int, typer.Option(min=1, help="How often each scenario is run with each arm.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="How many conversations at once.")] = 8,
    model: Model = None,
    user_model: UserModel = None,
    judge: Judge = None,
    base_url: BaseUrl = None,
    scenario: Annotated[
        list[str] | None, typer.Option("--scenario", metavar="NAME", help="These scenarios alone.")
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop once so many model calls are made, users and judge and earlier parts included. Turns under way "
            "are finished, so that some more may be made.",
        ),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Stop once they cost so much; needs --prices.")
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL=IN/OUT,…", help="What a million tokens cost, read and written: gpt-4o=2.5/10."
        ),
    ] = None,
    reject: Annotated[
        bool, typer.Option("--reject", help="Calls that wait for an operator are rejected. Else approved.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where each conversation is kept. Else SUITE.results.jsonl."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what that file holds; nothing is held twice.")
    ] = False,
    html: HtmlOut = None,
    json: ReportOut = None,
    debug: Debug = False,
) -> None:
    """Try agents in conversations with simulated users, and measure how far each gets.

    Each conversation is kept as it ends: a run that was stopped, or killed, goes on with --resume.

    The exit code is 1 where a scenario could not be used, or a conversation could not be held or ended in an error;
    the others are measured, and the report is written. It is 0 where a ceiling ended the run.
    """
    with reported(debug):
        choice, users, judges = choices_of(model, user_model, judge, base_url)
        with loading():
            from arq_graph.cli.evaluate import WantedEvaluation, evaluate_suite, read_prices
        evaluate_suite(
            WantedEvaluation(
                suite,
                tuple(name.strip() for name in arms.split(",") if name.strip()),
                choice,
                runs=runs,
                concurrency=concurrency,
                user_model=users,
                judge=judges,
                scenarios=tuple(scenario or ()),
                max_calls=max_calls,
                max_cost=max_cost,
                prices=read_prices(prices),
                reject=reject,
                results=results,
                resume=resume,
                html=html,
                json=json,
            )
        )
