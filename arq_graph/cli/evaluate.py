"""`arq-graph evaluate`: hold every conversation of a suite with every arm, and show how far each gets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from arq_graph.cli import options
from arq_graph.cli.evaluation import (
    Asked,
    ablated_in,
    conversing,
    names_in,
    of_categories,
    part_of,
    require_all_held,
    said_in,
    tell,
    tried_on,
    way_on_from,
)
from arq_graph.cli.screen import note
from arq_graph.cli.tables import write_outputs
from arq_graph.milestones.evaluation.runner import evaluate as evaluated
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.tables import tables_of


def evaluate(
    suite: options.SuiteFile,
    merge: Annotated[
        list[Path] | None,
        Argument(
            metavar="RESULTS…",
            help="Results of shards, or a folder of them: report them as one run, without running anything.",
        ),
    ] = None,
    arms: Annotated[
        str,
        Option(
            metavar="NAME,…",
            help="What to try: guided, arq, cot, direct, react, pre-act, respact, create_agent and others, or "
            "module:function, a function of (scenario, agent, model) that makes an app.",
        ),
    ] = "guided",
    only: options.Only = None,
    runs: options.Runs = None,
    concurrency: options.Concurrency = 8,
    workers: options.Workers = None,
    shard: options.Shard = "1/1",
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    user_model: options.UserModel = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    results: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Where conversations are saved. Default: SUITE.results.jsonl, or SUITE.I-of-N.results.jsonl.",
        ),
    ] = None,
    resume: options.Resume = False,
    record: Annotated[
        bool, Option("--record", help="Save every model answer there, too, for a `ReplayChatModel`.")
    ] = False,
    html: options.HtmlOut = None,
    json: options.ReportOut = None,
) -> None:
    """Try agents in conversations with simulated users, and measure how far each gets.

    Each conversation is saved as it ends, so --resume continues a run that was stopped or killed. Calls that wait for
    an operator are approved.

    The exit code is 1 if a conversation could not be run or ended in an error; the others are measured, and the report
    is written. It is 0 if a limit ended the run.
    """
    given = locals()
    asked = Asked.chosen(given)
    settings = asked.settings(given)
    kept = results or suite.with_name(f"{suite.stem}{part_of(shard)}.results.jsonl")
    (read,) = of_categories([Suite.from_yaml(suite)], only)
    _, *merge = options.require_usable([json, html] if merge else [kept, json, html], [suite, *(merge or ())])
    tried, apps = tried_on(read, names_in(arms), suite.absolute().parent, asked.models["model"])
    way_on = way_on_from(kept, merges=bool(merge))
    where = {"results": kept, "record": record, "merge": merge}
    with conversing(tried, apps, settings, way_on) as done:
        report = evaluated(tried, apps, **settings, **where, done=done)
    # Before anything is printed: whoever reads may have gone.
    files = merge or [kept]
    tables = list(tables_of(report, ablated=ablated_in(apps), timed=True))
    write_outputs(report, json, html, said_in(report, *files), tables, title="Evaluation")
    tell(report, tables, way_on, judged=judge is not None)
    note(f"The conversations are in {', '.join(map(str, files))}.")
    require_all_held([report], way_on, missing=bool(merge and report.missing))
