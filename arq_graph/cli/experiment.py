"""`arq-graph experiment`: arms on suites, and the papers' tables with the published figures beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Context, Option

from arq_graph.cli import evaluation, options
from arq_graph.cli.input_files import check_output_files
from arq_graph.cli.report_view import write_outputs
from arq_graph.cli.screen import note
from arq_graph.cli.thresholds import require_thresholds
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
from arq_graph.milestones.evaluation.arms import Arm
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.recording import RecordingChatModel, ReplayChatModel, read_recording
from arq_graph.milestones.recording_scope import join_names
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.rows import write_csv
from arq_graph.milestones.transcript import MODEL_ROLES, Transcript

_ASKING = ("model", "model_arg", "user_model", "judge", "base_url", "max_calls", "max_cost", "prices")
"""The parameters that say which models are asked, and how often."""
_BLUEPRINT_HELP = "Compare `arq` with your own MessageBlueprint or Judgement."
_RECORD_HELP = "The folder for conversations, model answers, figures and pages. Default: experiment."


def experiment(
    ctx: Context,
    suites: Annotated[
        list[str] | None,
        Argument(
            metavar="SUITE",
            help="guidelines (the default), use-cases, household, shop, booking, or files of your own suites.",
        ),
    ] = None,
    arms: options.ArmNames = None,
    ablate: Annotated[
        list[str] | None,
        Option(
            "--ablate",
            metavar="STEP[:QUERY,…]",
            help="Compare `arq` with variants without one query of the matcher, tools, message, planner or speaker.",
        ),
    ] = None,
    blueprint: Annotated[
        list[str] | None, Option("--blueprint", metavar="MODULE:CLASS", help=_BLUEPRINT_HELP)
    ] = None,
    only: options.Only = None,
    runs: options.Runs = 1,
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
    record: Annotated[Path, Option("--record", metavar="DIR", file_okay=False, help=_RECORD_HELP)] = Path(
        "experiment"
    ),
    replay: Annotated[
        Path | None,
        Option(
            "--replay",
            metavar="DIR",
            file_okay=False,
            help="Ask no model: take all answers from this folder. Give the same --arms, --runs and --votes.",
        ),
    ] = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    min_success: options.MinSuccess = None,
    max_broken: options.MaxBroken = None,
    csv: options.CsvOut = None,
    verbose: options.Verbose = False,
) -> None:
    """Compare arms (modes, strategies or apps) on suites of scenarios, beside the figures of the papers.

    Each conversation is saved as it ends, so --resume continues a run that was stopped or killed. Code decides what it
    can; --judge decides the rest, which stays undecided without a judge. The limits --max-calls and --max-cost apply to
    all suites together.

    The exit code is 1 if a conversation could not be run or ended in an error, 5 if a threshold of --min-success or
    --max-broken was missed, and 0 if a limit ended the run.
    """
    if resume and overwrite:
        raise BadParameter("--resume continues the results that --overwrite deletes: give one of them")
    if replay:
        _check_replay(replay, record, ctx.params)
    settings: dict[str, Any] = {
        "runs": runs,
        "concurrency": concurrency,
        "workers": workers,
        "resume": resume,
        "max_calls": max_calls,
        "max_cost": max_cost,
        "prices": evaluation.parse_prices(prices, max_cost),
    }
    whole_suites = _read_suites(suites or ["guidelines"])
    arm_names = list(arms or [])
    for ablation in ablate or []:
        arm_names += list_ablations(ablation)
    if blueprint:
        arm_names.append("arq")
        arm_names += blueprint
    chosen_suites = evaluation.filter_scenarios(whole_suites, only or [])
    if not replay:
        models = evaluation.choose_models(model, model_arg, user_model, judge, votes, base_url)
    trials = []
    for file, suite in chosen_suites.items():
        if replay:
            models = _load_replay_models(replay, suite, votes)
        is_shipped = file.is_relative_to(SUITES)
        module_folder = Path.cwd() if is_shipped else file.absolute().parent
        for name in blueprint or []:
            load_blueprint(name, module_folder)
        names = list(dict.fromkeys(arm_names or choose_default_arms(file)))
        suite, loaded_arms = evaluation.prepare_arms(suite, names, module_folder, models.by_role["model"])
        is_part = _lacks_published_scenarios(suite, whole_suites[file])
        trials.append(_Trial(file, suite, loaded_arms, models, is_part, record))
    check_output_files([csv], list(chosen_suites))
    record.mkdir(parents=True, exist_ok=True)
    resume_hint = evaluation.format_resume_hint(record)
    reports = []
    rows = []
    for trial in trials:
        spent_in = [other.results for other in trials if other is not trial and other.results.exists()]
        report = _run_trial(trial, resume_hint, verbose or bool(ablate), spent_in=spent_in, **settings)
        reports.append(report)
        rows += [{"suite": trial.suite.name, **row} for row in report.to_rows()]
    if csv is not None:
        write_csv(csv, rows)
        note(f"The rows are in {csv}.")
    evaluation.require_complete(reports, resume_hint)
    require_thresholds(reports, min_success, max_broken)


@dataclass(frozen=True)
class _Trial:
    """The arms that are tried on one suite, of which `suite` has the scenarios that all arms can play.

    `is_part` says that scenarios are left out with which the published figures were measured. Everything is written
    into `folder`.
    """

    file: Path
    suite: Suite
    arms: dict[str, Arm]
    models: evaluation.EvaluationModels
    is_part: bool
    folder: Path

    @property
    def results(self) -> Path:
        """The file of conversations."""
        return self.folder / f"{make_file_name(self.suite.name)}.results.jsonl"


def _check_replay(replay: Path, record: Path, params: Mapping[str, object]) -> None:
    useless = ", ".join(f"--{name.replace('_', '-')}" for name in _ASKING if params[name])
    if useless:
        raise BadParameter(f"--replay asks no model: leave out {useless}, which would change nothing")
    if replay.resolve() == record.resolve():
        raise BadParameter(f"--replay reads {replay}, so --record has to name another folder")


def _read_suites(names: Sequence[str]) -> dict[Path, Suite]:
    suites: dict[Path, Suite] = {}
    for name in names:
        file = find_suite_file(name)
        suites[file] = Suite.from_yaml(file)
    if len({make_file_name(suite.name) for suite in suites.values()}) < len(suites):
        raise InputError(
            "two suites have the same name, or nearly, and so one results file: run one after the other"
        )
    return suites


def _lacks_published_scenarios(suite: Suite, whole_suite: Suite) -> bool:
    kinds = {"helpful"} | {scenario.user_kind for scenario in suite.scenarios}
    published_count = sum(scenario.user_kind in kinds for scenario in whole_suite.scenarios)
    return len(suite.scenarios) < published_count


def _run_trial(trial: _Trial, resume_hint: str, is_verbose: bool, *, runs: int, **settings: Any) -> Report:
    """Run the conversations of a suite, write the figures and the page, and print the report."""
    models = _record_models(trial)
    with evaluation.show_conversations(trial.suite, trial.arms, runs, resume_hint) as on_conversation:
        running = arun_experiment(
            trial.file,
            trial.suite,
            trial.arms,
            results=trial.results,
            ablated=evaluation.describe_ablations(trial.arms),
            is_part=trial.is_part,
            **models.settings,
            runs=runs,
            **settings,
            on_conversation=on_conversation,
        )
        result = run_in_loop(running, "arun_experiment")
    report = result.report
    tables = list(result.tables) + evaluation.make_exception_tables(report, trial.results)
    figures = trial.folder / f"{make_file_name(trial.suite.name)}.json"
    write_experiment(figures, result, tables)
    note(f"The figures are in {figures}.")
    transcripts = _add_model_answers(report, trial)
    page = figures.with_suffix(".html")
    write_outputs(report, None, page, transcripts, tables, title=f"Experiment: {result.suite}")
    evaluation.show_evaluation(
        report,
        tables,
        resume_hint,
        is_verbose=is_verbose,
        suite=result.suite,
        has_judge=models.has_judge,
    )
    return report


def _recording_file(folder: Path, suite: Suite, role: str) -> Path:
    return folder / f"{make_file_name(suite.name)}.{role}.recording.jsonl"


def _find_recordings(folder: Path, suite: Suite) -> dict[str, Path]:
    """Return the files of recordings by the role of their model."""
    files = {role: _recording_file(folder, suite, role) for role in MODEL_ROLES}
    return {role: file for role, file in files.items() if file.exists()}


def _load_replay_models(folder: Path, suite: Suite, votes: int) -> evaluation.EvaluationModels:
    """Return the models that answer from a recording of the suite."""
    recordings = _find_recordings(folder, suite)
    models = {role: ReplayChatModel(file) for role, file in recordings.items()}
    if not models:
        raise InputError(f"{folder} holds no recording of the suite {suite.name!r}")
    names = {role: model.model_name for role, model in models.items()}
    return evaluation.EvaluationModels(models, names, votes)


def _record_models(trial: _Trial) -> evaluation.EvaluationModels:
    """Return the trial's models, which record their answers from now on."""
    models = {}
    for role, model in trial.models.by_role.items():
        models[role] = RecordingChatModel(_recording_file(trial.folder, trial.suite, role), model)
    return replace(trial.models, by_role=models)


def _add_model_answers(report: Report, trial: _Trial) -> Iterator[Transcript]:
    """Yield the transcripts of a report, each with what the models answered in it."""
    recordings = [read_recording(file) for file in _find_recordings(trial.folder, trial.suite).values()]
    records = {record.id: record for record in report.conversations}
    for transcript in evaluation.read_reported_transcripts(report, trial.results):
        record = records[transcript.id]
        scope = join_names(trial.suite.name, str(record.scenario), str(record.arm), str(record.run))
        answers = []
        for recording in recordings:
            for exchange in recording.get(scope, ()):
                answers.append({"module": exchange.module, "answer": exchange.answer["data"]})
        yield replace(transcript, extra=dict(transcript.extra, model_answers=answers))
