"""`arq-graph experiment`: arms on suites, and the papers' tables with the published figures beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as changed
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from rich.console import Console
from rich.padding import Padding
from typer import Argument, BadParameter, Option

from arq_graph.apps.ablations import ablation_of, ablations
from arq_graph.apps.arms import own_blueprint
from arq_graph.cli import evaluate as shared
from arq_graph.cli import options
from arq_graph.cli.screen import note, output, words
from arq_graph.cli.tables import columns, counted, show_broken, show_errors
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.arms import Arm
from arq_graph.milestones.evaluation.replay import ReplayChatModel
from arq_graph.milestones.evaluation.results import ASKED
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.experiments.experiment import (
    SUITES,
    aexperiment,
    file_name,
    suite_file,
    usual_arms,
    write_experiment,
)
from arq_graph.milestones.experiments.tables import Experiment
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.report import stand_in_notice

_OF_MODELS = (
    *("model", "model_arg", "user_model", "judge", "votes", "base_url", "max_calls", "max_cost", "prices"),
)


def experiment(
    suites: Annotated[
        list[str] | None,
        Argument(
            metavar="SUITE…",
            show_default="guidelines",
            help="One or more of guidelines, use-cases, household, shop and booking, or files of your own suites.",
        ),
    ] = None,
    arms: Annotated[
        str | None,
        Option(
            metavar="NAME,…",
            help="What to compare, as for `evaluate`. Default: the arms that the paper compares on such a suite.",
        ),
    ] = None,
    ablate: Annotated[
        list[str] | None,
        Option(
            metavar="STEP[:QUERY,…]",
            help="Try `arq` without each query of a step, or without those named. Steps: matcher, tools, message, "
            "planner, speaker.",
        ),
    ] = None,
    blueprint: Annotated[
        list[str] | None,
        Option(metavar="MODULE:CLASS", help="Try `arq` with your subclass of MessageBlueprint or Judgement."),
    ] = None,
    only: options.Only = None,
    runs: options.Runs = None,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    user_model: options.UserModel = None,
    judge: options.Judge = None,
    votes: Annotated[
        int | None, Option(min=1, show_default="1", help="How often to ask the judge about each criterion.")
    ] = None,
    base_url: options.BaseUrl = None,
    concurrency: options.Concurrency = 8,
    workers: options.Workers = None,
    shard: options.Shard = "1/1",
    merge: Annotated[
        bool, Option("--merge", help="Report the shards in the folder as one run, without running anything.")
    ] = False,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    record: Annotated[
        Path,
        Option(
            metavar="DIR",
            help="The folder for conversations with every model answer, figures and pages; made if missing.",
        ),
    ] = Path("experiment"),
    replay: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Ask no model: take all answers from the recording in this folder, and arms and runs, too, unless "
            "they are given.",
        ),
    ] = None,
    resume: options.Resume = False,
) -> None:
    """Compare arms (modes, strategies or apps) on suites of cases, beside the figures of the papers.

    Each conversation is saved as it ends, so --resume continues a run that was stopped or killed. Code decides what it
    can; --judge decides the rest, which stays undecided without a judge. The limits --max-calls and --max-cost hold for
    all suites together.

    The exit code is 1 if a conversation could not be run or ended in an error, and 0 if a limit ended the run.
    """
    given = locals()
    files = list(map(suite_file, suites or ["guidelines"]))
    read = [Suite.from_yaml(file) for file in files]
    file_of = {suite.name: file for suite, file in zip(read, files, strict=True)}
    if len(file_of) < len(files):
        raise InputError(
            "two of the suites have one name, and so one file of results: try one after the other"
        )
    asked = _replayed(replay, given) if replay else shared.Asked.chosen(given)
    trials = [_trial(file_of[one.name], one, asked, given) for one in shared.of_categories(read, only)]
    record.mkdir(parents=True, exist_ok=True)
    way_on = f"What ended is kept in {record}: the same command with --resume goes on from there."
    found = []
    for file, suite, apps, settings in trials:
        kept, merged = settings["results"], settings["merge"]
        others = [each.settings["results"] for each in trials if each.suite is not suite]
        settings["spent_in"] = [other for other in others if other.exists()]
        with shared.conversing(suite, apps, settings, way_on) as done:
            found.append(run_in_loop(aexperiment(file, suite, apps, **settings, done=done), "aexperiment"))
        _write(found[-1], record / file_name(suite.name), merged or [kept])
        _show(found[-1], output(), way_on, judged="judge" in settings)
    reports = [each.report for each in found]
    shared.require_all_held(reports, way_on, missing=merge and any(each.missing for each in reports))


class _Trial(NamedTuple):
    """A suite, what is tried on it, and the settings of `aexperiment`."""

    file: Path
    suite: Suite
    arms: Mapping[str, Arm]
    settings: dict[str, Any]


def _trial(file: Path, suite: Suite, asked: shared.Asked, given: Mapping[str, Any]) -> _Trial:
    # Beside a shipped suite nobody has modules of their own.
    folder = Path.cwd() if file.is_relative_to(SUITES) else file.absolute().parent
    own = given["blueprint"] or []
    for name in own:
        own_blueprint(name, folder)
    compared = [*chain.from_iterable(map(ablations, given["ablate"] or ())), *(["arq", *own] if own else [])]
    usual, runs, model = shared.names_in(usual_arms(file)), 1, asked.models["model"]
    if isinstance(model, ReplayChatModel):
        usual, runs, scenarios, votes = model.recorded(suite.name)
        asked = changed(asked, votes=votes)
        there = [one for one in suite.scenarios if one.name in scenarios]
        if left_out := len(suite.scenarios) - len(there):
            note(f"{counted(left_out, 'scenario')} of {suite.name} left out: not in the recording.")
            suite = suite.replace(scenarios=there)
    names = list(dict.fromkeys([*shared.names_in(given["arms"] or ""), *compared])) or usual
    suite, apps = shared.tried_on(suite, names, folder, model)
    record, name = given["record"], file_name(suite.name)
    merged = sorted(record.glob(f"{name}.*-of-*.results.jsonl")) if given["merge"] else []
    if given["merge"] and not merged:
        raise InputError(f"{record} holds no shards of {suite.name}: hold them with --shard 1/2, 2/2, …")
    settings = asked.settings(given) | {
        "runs": given["runs"] or runs,
        "results": record / f"{name}{shared.part_of(given['shard'])}.results.jsonl",
        "merge": merged,
        "ablated": {name: " and ".join(each.without) for name in apps if (each := ablation_of(name))},
    }
    return _Trial(file, suite, apps, settings)


def _replayed(folder: Path, given: Mapping[str, Any]) -> shared.Asked:
    if useless := [f"--{name.replace('_', '-')}" for name in _OF_MODELS if given[name]]:
        raise BadParameter(
            f"--replay asks no model: leave out {', '.join(useless)}, which would change nothing"
        )
    if folder.resolve() == given["record"].resolve():
        raise BadParameter(f"--replay reads {folder}, so --record has to name another folder")
    recorded = {role: ReplayChatModel(folder, role=role) for role in ASKED}
    return shared.Asked(
        {role: each for role, each in recorded.items() if each.model_name not in ("", "none")}, {}
    )


def _write(found: Experiment, place: Path, results: list[Path]) -> None:
    written, page = (place.with_name(f"{place.name}.{kind}") for kind in ("json", "html"))
    write_experiment(written, found)
    said = shared.said_in(found.report, *results)
    write_html(page, found.report, said, title=f"Experiment: {found.suite}", tables=found.tables)
    note(f"The figures are in {written}, and the page is {page}.")


def _show(found: Experiment, console: Console, way_on: str, *, judged: bool) -> None:
    report = found.report
    show_broken(report.failed, "measured")
    shared.tell_stopped(report, way_on)
    if notice := stand_in_notice(report.stand_ins):
        console.print(words(notice, "yellow"))
    console.print(words(f"{counted(len(report.conversations), 'conversation')} of {found.suite}", "bold"))
    for table in found.tables:
        console.print()
        console.print(columns(table.title, table.columns, ((row.name, row.cells) for row in table.rows)))
        for line in table.notes:
            console.print(Padding(words(line, "dim"), (0, 0, 0, 2)))
    show_errors(report, console)
    undecided = sum(one.goal_completed is None for one in report.conversations)
    if undecided:
        way = "" if judged else "; give --judge to have them decided"
        console.print(words(f"{counted(undecided, 'conversation')} undecided{way}.", "yellow"))
    if (agreement := report.summary.overall.agreement.mean) is not None:
        console.print(words(f"Judge: {agreement:.0%} of the votes agree with the verdict.", "dim"))
