"""`arq-graph evaluate`: run every conversation of a suite with every arm, and show how far each gets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from arq_graph.cli import evaluation, options
from arq_graph.cli.input_files import check_output_files, find_readable_files
from arq_graph.cli.report_view import write_outputs
from arq_graph.cli.screen import note
from arq_graph.milestones.evaluation.runner import evaluate as evaluated
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.tables import tables_of


def evaluate(
    suite: options.SuiteFile,
    arms: options.ArmNames = None,
    only: options.Only = None,
    runs: options.Runs = None,
    concurrency: options.Concurrency = 8,
    workers: options.Workers = None,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    user_model: options.UserModel = None,
    judge: options.Judge = None,
    votes: options.Votes = 1,
    base_url: options.BaseUrl = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    results: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Where conversations are saved. Default: SUITE.results.jsonl.",
        ),
    ] = None,
    resume: options.Resume = False,
    html: options.HtmlOut = None,
    json: options.ReportOut = None,
) -> None:
    """Try agents in conversations with simulated users, and measure how far each gets.

    Each conversation is saved as it ends, so --resume continues a run that was stopped or killed. Calls that wait for
    an operator are approved.

    The exit code is 1 if a conversation could not be run or ended in an error; the others are measured, and the report
    is written. It is 0 if a limit ended the run.
    """
    asked = evaluation.asked_of(model, model_arg, user_model, judge, votes, base_url)
    how: dict[str, Any] = {"concurrency": concurrency, "workers": workers, "resume": resume}
    how |= {"max_calls": max_calls, "max_cost": max_cost, "prices": evaluation.read_prices(prices, max_cost)}
    kept = results or suite.with_name(f"{suite.stem}.results.jsonl")
    (read,) = evaluation.narrowed([Suite.from_yaml(suite)], only or ())
    find_readable_files([suite])
    check_output_files([kept, json, html], [suite])
    tried, apps = evaluation.tried_on(read, arms or ["guided"], suite.absolute().parent, asked["model"])
    way_on = evaluation.way_on_from(kept)
    how |= {"runs": runs or 1, "results": kept}
    with evaluation.conversing(tried, apps, how, way_on) as on_conversation:
        report = evaluated(
            tried, apps, **evaluation.judged(asked, votes), **how, on_conversation=on_conversation
        )
    # Before anything is printed: whoever reads may have gone.
    tables = list(tables_of(report, ablated=evaluation.ablated_in(apps), timed=True))
    tables += evaluation.exceptions_of_tools(report, kept)
    write_outputs(report, json, html, evaluation.said_in(report, kept), tables, title="Evaluation")
    evaluation.show(report, tables, way_on, judged=judge is not None)
    note(f"The conversations are in {kept}.")
    evaluation.require_all_run([report], way_on)
