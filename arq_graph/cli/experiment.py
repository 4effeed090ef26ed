"""`arq-graph experiment`: arms on suites, and the papers' tables with the published figures beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as changed
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from typer import Argument, BadParameter, Option

from arq_graph.apps.ablations import ablations
from arq_graph.apps.arms import own_blueprint
from arq_graph.cli import evaluation, options
from arq_graph.cli.screen import note
from arq_graph.cli.tables import counted
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.arms import Arm
from arq_graph.milestones.evaluation.replay import ReplayChatModel
from arq_graph.milestones.evaluation.results import read_results
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.experiments.experiment import (
    SUITES,
    Experiment,
    aexperiment,
    file_name,
    suite_file,
    usual_arms,
    write_experiment,
)
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.store import ASKED

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
            file_okay=False,
            help="The folder for conversations with every model answer, figures and pages; made if missing.",
        ),
    ] = Path("experiment"),
    replay: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            file_okay=False,
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
    asked = _replayed(replay, given) if replay else evaluation.Asked.chosen(given)
    trials = [_trial(file_of[one.name], one, asked, given) for one in evaluation.of_categories(read, only)]
    record.mkdir(parents=True, exist_ok=True)
    way_on = evaluation.way_on_from(record, merges=merge)
    found = []
    for file, suite, apps, settings in trials:
        kept, merged = settings["results"], settings["merge"]
        others = [each.settings["results"] for each in trials if each.suite is not suite]
        settings["spent_in"] = [other for other in others if other.exists()]
        with evaluation.conversing(suite, apps, settings, way_on) as done:
            found.append(run_in_loop(aexperiment(file, suite, apps, **settings, done=done), "aexperiment"))
        _write(found[-1], record / file_name(suite.name), merged or [kept])
        report, tables, judged = found[-1].report, found[-1].tables, "judge" in settings
        evaluation.tell(report, tables, way_on, of=found[-1].suite, judged=judged)
    reports = [each.report for each in found]
    evaluation.require_all_held(reports, way_on, missing=merge and any(each.missing for each in reports))


class _Trial(NamedTuple):
    """A suite, what is tried on it, and the settings of `aexperiment`."""

    file: Path
    suite: Suite
    arms: Mapping[str, Arm]
    settings: dict[str, Any]


def _trial(file: Path, suite: Suite, asked: evaluation.Asked, given: Mapping[str, Any]) -> _Trial:
    # Beside a shipped suite nobody has modules of their own.
    folder = Path.cwd() if file.is_relative_to(SUITES) else file.absolute().parent
    own = given["blueprint"] or []
    for name in own:
        own_blueprint(name, folder)
    compared = [*chain.from_iterable(map(ablations, given["ablate"] or ())), *(["arq", *own] if own else [])]
    usual, runs, model = evaluation.names_in(usual_arms(file)), 1, asked.models["model"]
    is_part = bool(given["only"])
    record, name = given["record"], file_name(suite.name)
    merged = sorted(record.glob(f"{name}.*-of-*.results.jsonl")) if given["merge"] else []
    if merged:
        held = [one for one, _ in chain.from_iterable(map(read_results, merged))]
        usual = list(dict.fromkeys(one.arm for one in held if one.arm)) or usual
        runs = max((one.run or 1 for one in held), default=1)
    elif given["merge"]:
        raise InputError(f"{record} holds no shards of {suite.name}: run them with --shard 1/2, 2/2, …")
    if isinstance(model, ReplayChatModel):
        usual, runs, scenarios, votes = model.recorded(suite.name)
        asked = changed(asked, votes=votes)
        there = [one for one in suite.scenarios if one.name in scenarios]
        if left_out := len(suite.scenarios) - len(there):
            note(f"{counted(left_out, 'scenario')} of {suite.name} left out: not in the recording.")
            suite, is_part = suite.replace(scenarios=there), True
    names = list(dict.fromkeys([*evaluation.names_in(given["arms"] or ""), *compared])) or usual
    suite, apps = evaluation.tried_on(suite, names, folder, model)
    settings = asked.settings(given) | {
        "runs": given["runs"] or runs,
        "results": record / f"{name}{evaluation.part_of(given['shard'])}.results.jsonl",
        "merge": merged,
        "ablated": evaluation.ablated_in(apps),
        "is_part": is_part,
    }
    return _Trial(file, suite, apps, settings)


def _replayed(folder: Path, given: Mapping[str, Any]) -> evaluation.Asked:
    if useless := [f"--{name.replace('_', '-')}" for name in _OF_MODELS if given[name]]:
        raise BadParameter(
            f"--replay asks no model: leave out {', '.join(useless)}, which would change nothing"
        )
    if folder.resolve() == given["record"].resolve():
        raise BadParameter(f"--replay reads {folder}, so --record has to name another folder")
    recorded = {role: ReplayChatModel(folder, role=role) for role in ASKED}
    return evaluation.Asked(
        {role: each for role, each in recorded.items() if each.model_name not in ("", "none")}, {}
    )


def _write(found: Experiment, place: Path, results: list[Path]) -> None:
    written, page = (place.with_name(f"{place.name}.{kind}") for kind in ("json", "html"))
    write_experiment(written, found)
    said = evaluation.said_in(found.report, *results)
    write_html(page, found.report, said, title=f"Experiment: {found.suite}", tables=found.tables)
    note(f"The figures are in {written}, and the page is {page}.")
