"""`arq-graph experiment`: arms on suites, and the papers' tables with the published figures beside them."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from arq_graph.cli import evaluation, options
from arq_graph.cli.screen import note
from arq_graph.cli.tables import counted, write_outputs
from arq_graph.errors import InputError
from arq_graph.experiments.ablations import ablations
from arq_graph.experiments.arms import own_blueprint
from arq_graph.experiments.experiment import (
    SUITES,
    aexperiment,
    file_name,
    suite_file,
    usual_arms,
    write_experiment,
)
from arq_graph.milestones.evaluation.replay import ReplayChatModel
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.store import ASKED


def experiment(
    suites: Annotated[
        list[str] | None,
        Argument(
            metavar="SUITE…",
            show_default="guidelines",
            help="One or more of guidelines, use-cases, household, shop and booking, or files of your own suites.",
        ),
    ] = None,
    arms: options.ArmNames = None,
    ablate: Annotated[
        list[str] | None,
        Option(
            metavar="STEP[:QUERY,…]",
            help="Compare `arq` with variants that lack one query of a step, or one of those named. Steps: matcher, "
            "tools, message, planner, speaker.",
        ),
    ] = None,
    blueprint: Annotated[
        list[str] | None,
        Option(metavar="MODULE:CLASS", help="Compare `arq` with your own MessageBlueprint or Judgement."),
    ] = None,
    only: options.Only = None,
    runs: options.Runs = None,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    user_model: options.UserModel = None,
    judge: options.Judge = None,
    votes: options.Votes = 1,
    base_url: options.BaseUrl = None,
    concurrency: options.Concurrency = 8,
    workers: options.Workers = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    record: Annotated[
        Path,
        Option(
            metavar="DIR",
            file_okay=False,
            help="The folder for conversations with every model answer, figures and pages.",
        ),
    ] = Path("experiment"),
    replay: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            file_okay=False,
            help="Ask no model: take all answers from the recording in this folder; also the arms and runs, unless you "
            "give them.",
        ),
    ] = None,
    resume: options.Resume = False,
) -> None:
    """Compare arms (modes, strategies or apps) on suites of scenarios, beside the figures of the papers.

    Each conversation is saved as it ends, so --resume continues a run that was stopped or killed. Code decides what it
    can; --judge decides the rest, which stays undecided without a judge. The limits --max-calls and --max-cost apply to
    all suites together.

    The exit code is 1 if a conversation could not be run or ended in an error, and 0 if a limit ended the run.
    """
    if replay:
        asking: dict[str, object] = {"--model": model, "--model-arg": model_arg, "--user-model": user_model}
        asking |= {"--judge": judge, "--votes": votes > 1, "--base-url": base_url}
        asking |= {"--max-calls": max_calls, "--max-cost": max_cost, "--prices": prices}
        evaluation.refuse_useless("--replay asks no model", asking)
        if replay.resolve() == record.resolve():
            raise BadParameter(f"--replay reads {replay}, so --record has to name another folder")
    for each in ablate or ():
        if each.rstrip(",").endswith(":"):
            raise BadParameter(f"--ablate {each}: write queries after the colon, or leave out the colon")
    if wrong := [each for each in blueprint or () if not all(each.partition(":"))]:
        raise BadParameter(f"--blueprint {wrong[0]}: it must be written MODULE:CLASS")
    how: dict[str, Any] = {"concurrency": concurrency, "workers": workers, "resume": resume}
    how |= {"max_calls": max_calls, "max_cost": max_cost, "prices": evaluation.read_prices(prices, max_cost)}
    evaluation.refuse_arms(suites or ())
    read = {file: Suite.from_yaml(file) for file in map(suite_file, suites or ["guidelines"])}
    file_of = {suite.name: file for file, suite in read.items()}
    if len(file_of) < len(read):
        raise InputError("two suites have the same name, and so one results file: run one after the other")
    compared = [*(arms or ()), *chain.from_iterable(map(ablations, ablate or ()))]
    compared += ["arq", *blueprint] if blueprint else []
    chosen = (model, model_arg, user_model, judge, votes, base_url)
    asked = _recorded(replay) if replay else evaluation.asked_of(*chosen)
    trials: list[dict[str, Any]] = []
    for suite in evaluation.narrowed([*read.values()], only or ()):
        name = file_name(suite.name)
        trial = _trial(file_of[suite.name], suite, compared, blueprint or [], asked, votes) | how
        trial |= {"results": record / f"{name}.results.jsonl"}
        kinds = {"helpful"} | {one.kind for one in trial["suite"].scenarios}
        whole = sum(one.kind in kinds for one in read[trial["file"]].scenarios)
        is_part = len(trial["suite"].scenarios) < whole
        trials.append(trial | {"runs": runs or trial["runs"], "is_part": is_part})
    record.mkdir(parents=True, exist_ok=True)
    way_on = evaluation.way_on_from(record)
    reports = []
    for trial in trials:
        others = (other["results"] for other in trials if other is not trial)
        trial["spent_in"] = [other for other in others if other.exists()]
        with evaluation.conversing(trial["suite"], trial["arms"], trial, way_on) as done:
            found = run_in_loop(aexperiment(**trial, done=done), "aexperiment")
        tables = [*found.tables, *evaluation.exceptions_of_tools(found.report, trial["results"])]
        written, page = (record / f"{file_name(trial['suite'].name)}.{kind}" for kind in ("json", "html"))
        write_experiment(written, found, tables)
        note(f"The figures are in {written}.")
        said = evaluation.said_in(found.report, trial["results"])
        write_outputs(found.report, None, page, said, tables, title=f"Experiment: {found.suite}")
        evaluation.show(found.report, tables, way_on, of=found.suite, judged="judge" in asked)
        reports.append(found.report)
    evaluation.require_all_run(reports, way_on)


def _recorded(folder: Path) -> dict[str, Any]:
    models = {role: ReplayChatModel(folder, role=role) for role in ASKED}
    used = {
        role: each for role, each in models.items() if role == "model" or each.model_name not in ("", "none")
    }
    return used | {"depends_on": {}}


def _trial(
    file: Path, suite: Suite, names: list[str], own: list[str], asked: dict[str, Any], votes: int
) -> dict[str, Any]:
    """What is tried on a suite, as arguments of `aexperiment`."""
    # Beside a shipped suite nobody has modules of their own.
    folder = Path.cwd() if file.is_relative_to(SUITES) else file.absolute().parent
    for name in own:
        own_blueprint(name, folder)
    usual, runs = usual_arms(file).split(","), 1
    if isinstance(model := asked["model"], ReplayChatModel):
        usual, runs, scenarios, votes = model.recorded(suite.name)
        there = [one for one in suite.scenarios if one.name in scenarios]
        if left_out := len(suite.scenarios) - len(there):
            note(f"{counted(left_out, 'scenario')} of {suite.name} left out: not in the recording.")
            if not there:
                raise InputError(f"the recording has no scenario of {suite.name} that --only leaves")
            suite = suite.replace(scenarios=there)
    suite, apps = evaluation.tried_on(suite, list(dict.fromkeys(names)) or usual, folder, model)
    about = {"ablated": evaluation.ablated_in(apps), "runs": runs}
    return {"file": file, "suite": suite, "arms": apps, **about, **evaluation.judged(asked, votes)}
