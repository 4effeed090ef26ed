"""`arq-graph experiment`: arms on suites, and the papers' tables with the published figures beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from typer import Argument, BadParameter, Option

from arq_graph.cli import evaluation, options
from arq_graph.cli.report_view import write_outputs
from arq_graph.cli.screen import note
from arq_graph.errors import InputError
from arq_graph.experiments.ablations import list_ablations
from arq_graph.experiments.arms import load_blueprint
from arq_graph.experiments.experiment import (
    SUITES,
    arun_experiment,
    choose_default_arms,
    find_suite_file,
    make_file_name,
    write_experiment,
)
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.recording import RecordingChatModel, read_recording
from arq_graph.milestones.store import MODEL_ROLES
from arq_graph.milestones.transcript import Transcript


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
            help="Ask no model: take all answers from the recording in this folder. Give the same --arms, --runs and "
            "--votes.",
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
        asking |= {"--judge": judge, "--base-url": base_url}
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
    read = {file: Suite.from_yaml(file) for file in map(find_suite_file, suites or ["guidelines"])}
    file_of = {suite.name: file for file, suite in read.items()}
    if len(file_of) < len(read):
        raise InputError("two suites have the same name, and so one results file: run one after the other")
    compared = [*(arms or ()), *chain.from_iterable(map(list_ablations, ablate or ()))]
    compared += ["arq", *blueprint] if blueprint else []
    asked: dict[str, Any] = {}
    if replay is None:
        asked = evaluation.asked_of(model, model_arg, user_model, judge, votes, base_url)
    trials: list[dict[str, Any]] = []
    for suite in evaluation.narrowed([*read.values()], only or ()):
        name = make_file_name(suite.name)
        models = _replayed_models(replay, suite) if replay else asked
        trial = _trial(file_of[suite.name], suite, compared, blueprint or [], models["model"]) | how
        trial |= {"results": record / f"{name}.results.jsonl"}
        kinds = {"helpful"} | {one.kind for one in trial["suite"].scenarios}
        whole = sum(one.kind in kinds for one in read[trial["file"]].scenarios)
        is_part = len(trial["suite"].scenarios) < whole
        trials.append(trial | models | {"runs": runs or 1, "is_part": is_part})
    record.mkdir(parents=True, exist_ok=True)
    way_on = evaluation.way_on_from(record)
    reports = []
    for trial in trials:
        others = (other["results"] for other in trials if other is not trial)
        trial["spent_in"] = [other for other in others if other.exists()]
        recording = _recording_models(trial, record)
        with evaluation.conversing(trial["suite"], trial["arms"], trial, way_on) as on_conversation:
            trying = arun_experiment(**evaluation.judged(recording, votes), on_conversation=on_conversation)
            found = run_in_loop(trying, "arun_experiment")
        tables = [*found.tables, *evaluation.exceptions_of_tools(found.report, trial["results"])]
        written, page = (
            record / f"{make_file_name(trial['suite'].name)}.{kind}" for kind in ("json", "html")
        )
        write_experiment(written, found, tables)
        note(f"The figures are in {written}.")
        said = evaluation.said_in(found.report, trial["results"])
        said = _with_model_answers(said, record, trial["suite"])
        write_outputs(found.report, None, page, said, tables, title=f"Experiment: {found.suite}")
        evaluation.show(found.report, tables, way_on, of=found.suite, judged="judge" in trial)
        reports.append(found.report)
    evaluation.require_all_run(reports, way_on)


def _recording_file(folder: Path, suite: Suite, role: str) -> Path:
    return folder / f"{make_file_name(suite.name)}.{role}.recording.jsonl"


def _replayed_models(folder: Path, suite: Suite) -> dict[str, Any]:
    """Return the models that answer from a recording of the suite, by their roles."""
    models: dict[str, RecordingChatModel] = {}
    for role in MODEL_ROLES:
        file = _recording_file(folder, suite, role)
        if file.exists():
            models[role] = RecordingChatModel(file)
    if not models:
        raise InputError(f"{folder} holds no recording of the suite {suite.name!r}")
    names = {MODEL_ROLES[role]: model.model_name for role, model in models.items()}
    return {**models, "depends_on": names}


def _recording_models(trial: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the same trial with models that record their answers."""
    recording = dict(trial)
    for role in MODEL_ROLES:
        if role in trial:
            file = _recording_file(folder, trial["suite"], role)
            recording[role] = RecordingChatModel(file, trial[role])
    return recording


def _with_model_answers(
    transcripts: Iterable[Transcript], folder: Path, suite: Suite
) -> Iterator[Transcript]:
    """Yield the transcripts, each with what the models answered in it."""
    files = [_recording_file(folder, suite, role) for role in MODEL_ROLES]
    recordings = [read_recording(file) for file in files if file.exists()]
    for transcript in transcripts:
        answers: list[dict[str, Any]] = []
        for recording in recordings:
            recorded = recording.get(f"{suite.name} / {transcript.id}", ())
            answers.extend({"module": answer.module, "answer": answer.answer["data"]} for answer in recorded)
        yield replace(transcript, extra={**transcript.extra, "model_answers": answers})


def _trial(
    file: Path, suite: Suite, names: list[str], own: list[str], model: BaseChatModel
) -> dict[str, Any]:
    """What is tried on a suite, as arguments of `arun_experiment`."""
    # Beside a shipped suite nobody has modules of their own.
    folder = Path.cwd() if file.is_relative_to(SUITES) else file.absolute().parent
    for name in own:
        load_blueprint(name, folder)
    tried_arms = list(dict.fromkeys(names)) or choose_default_arms(file)
    suite, apps = evaluation.tried_on(suite, tried_arms, folder, model)
    return {"file": file, "suite": suite, "arms": apps, "ablated": evaluation.ablated_in(apps)}
