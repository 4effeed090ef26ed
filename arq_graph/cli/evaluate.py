"""`arq-graph evaluate`: run every conversation of a suite with every arm, and show how far each gets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import BadParameter

from arq_graph.cli import evaluation, options
from arq_graph.cli.input_files import check_output_files
from arq_graph.cli.report_view import write_outputs
from arq_graph.cli.screen import note
from arq_graph.cli.thresholds import require_thresholds
from arq_graph.milestones.evaluation.evaluate import evaluate as evaluate_suite
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.tables import build_tables
from arq_graph.milestones.store import discard_run
from arq_graph.testing.junit import write_junit


def evaluate(
    suite: options.SuiteFile,
    arms: options.ArmNames = None,
    only: options.Only = None,
    runs: options.Runs = 1,
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
        options.declare_file("--results", "Where conversations are saved. Default: SUITE.results.jsonl."),
    ] = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    html: options.HtmlOut = None,
    json: options.ReportOut = None,
    csv: options.CsvOut = None,
    junit: options.JunitOut = None,
    min_success: options.MinSuccess = None,
    max_broken: options.MaxBroken = None,
    verbose: options.Verbose = False,
) -> None:
    """Try agents in conversations with simulated users, and measure how far each gets.

    Each conversation is saved as it ends, so --resume continues a run that was stopped or killed. Calls that wait for
    an operator are approved.

    The exit code is 1 if a conversation could not be run or ended in an error; the others are measured, and the report
    is written. It is 5 if a threshold of --min-success or --max-broken was missed, and 0 if a limit ended the run.
    """
    if resume and overwrite:
        raise BadParameter("--resume continues the results that --overwrite deletes: give one of them")
    models = evaluation.choose_models(model, model_arg, user_model, judge, votes, base_url)
    token_prices = evaluation.parse_prices(prices, max_cost)
    chosen_suite = evaluation.filter_scenarios({suite: Suite.from_yaml(suite)}, only or [])[suite]
    results = results or suite.with_name(f"{suite.stem}.results.jsonl")
    check_output_files([results, json, html, csv, junit], [suite])
    folder = suite.absolute().parent
    chosen_suite, loaded_arms = evaluation.prepare_arms(
        chosen_suite, arms or ["guided"], folder, models.by_role["model"]
    )
    resume_hint = evaluation.format_resume_hint(results)
    if overwrite:
        discard_run(results)
    with evaluation.show_conversations(chosen_suite, loaded_arms, runs, resume_hint) as on_conversation:
        report = evaluate_suite(
            chosen_suite,
            loaded_arms,
            **models.settings,
            runs=runs,
            concurrency=concurrency,
            workers=workers,
            max_calls=max_calls,
            max_cost=max_cost,
            prices=token_prices,
            results=results,
            resume=resume,
            on_conversation=on_conversation,
        )
    # The outputs are written before anything is printed, because printing fails if nobody reads it.
    tables = build_tables(report, ablated=evaluation.describe_ablations(loaded_arms), timed=True)
    tables += evaluation.make_exception_tables(report, results)
    transcripts = evaluation.read_reported_transcripts(report, results)
    write_outputs(report, json, html, transcripts, tables, csv=csv, title="Evaluation")
    if junit is not None:
        write_junit(junit, report, chosen_suite.name)
    evaluation.show_evaluation(report, tables, resume_hint, is_verbose=verbose, has_judge=models.has_judge)
    note(f"The conversations are in {results}.")
    if any(record.guidelines for record in report.conversations):
        note(f"See why an agent said what it said: arq-graph explain {results} --conversation ID --turn N")
    evaluation.require_complete([report], resume_hint)
    require_thresholds([report], min_success, max_broken)
