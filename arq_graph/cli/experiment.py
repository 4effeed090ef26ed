"""`arq-graph experiment`: arms on suites, and the papers' tables with the published figures beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from typer import Argument, BadParameter, Option

from arq_graph.cli import options
from arq_graph.cli.evaluation_results import (
    format_resume_hint,
    make_exception_tables,
    read_reported_transcripts,
    require_complete,
    show_conversations,
    show_evaluation,
)
from arq_graph.cli.evaluation_setup import (
    EvaluationModels,
    choose_evaluation_models,
    describe_ablations,
    filter_scenarios,
    parse_prices,
    prepare_arms,
    refuse_arms_as_files,
)
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
from arq_graph.milestones.evaluation.arms import Arm
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.recording import RecordingChatModel, read_recording
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.store import MODEL_ROLES
from arq_graph.milestones.transcript import Transcript


def experiment(
    suites: Annotated[
        list[str] | None,
        Argument(
            metavar="SUITE",
            show_default="guidelines",
            help="One or more of guidelines, use-cases, household, shop and booking, or files of your own suites.",
        ),
    ] = None,
    arms: options.ArmNames = None,
    ablate: Annotated[
        list[str] | None,
        Option(
            "--ablate",
            metavar="STEP[:QUERY,…]",
            help="Compare `arq` with variants that lack one query of a step, or one of those named. Steps: matcher, "
            "tools, message, planner, speaker.",
        ),
    ] = None,
    blueprint: Annotated[
        list[str] | None,
        Option(
            "--blueprint",
            metavar="MODULE:CLASS",
            help="Compare `arq` with your own MessageBlueprint or Judgement.",
        ),
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
    record: Annotated[
        Path,
        Option(
            "--record",
            metavar="DIR",
            file_okay=False,
            help="The folder for conversations with every model answer, figures and pages.",
        ),
    ] = Path("experiment"),
    replay: Annotated[
        Path | None,
        Option(
            "--replay",
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
        asking_options = {
            "--model": model,
            "--model-arg": model_arg,
            "--user-model": user_model,
            "--judge": judge,
            "--base-url": base_url,
            "--max-calls": max_calls,
            "--max-cost": max_cost,
            "--prices": prices,
        }
        _check_replay(replay, record, asking_options)
    _check_ablations(ablate or [])
    _check_blueprints(blueprint or [])
    token_prices = parse_prices(prices, max_cost)
    refuse_arms_as_files(suites or [])
    whole_suites = _read_suites(suites or ["guidelines"])
    arm_names = _list_arms(arms or [], ablate or [], blueprint or [])
    chosen_suites = filter_scenarios([whole_suite.suite for whole_suite in whole_suites.values()], only or [])
    if replay:
        models = {suite.name: _load_replay_models(replay, suite, votes) for suite in chosen_suites}
    else:
        shared_models = choose_evaluation_models(model, model_arg, user_model, judge, votes, base_url)
        models = {suite.name: shared_models for suite in chosen_suites}
    trials = []
    for suite in chosen_suites:
        whole_suite = whole_suites[suite.name]
        trial = _prepare_trial(suite, whole_suite, arm_names, blueprint or [], models[suite.name], record)
        trials.append(trial)
    record.mkdir(parents=True, exist_ok=True)
    resume_hint = format_resume_hint(record)
    reports = []
    for trial in trials:
        other_results = [other.results for other in trials if other is not trial]
        report = _run_trial(
            trial,
            resume_hint,
            runs=runs,
            concurrency=concurrency,
            workers=workers,
            resume=resume,
            max_calls=max_calls,
            max_cost=max_cost,
            prices=token_prices,
            spent_in=[file for file in other_results if file.exists()],
        )
        reports.append(report)
    require_complete(reports, resume_hint)


@dataclass(frozen=True)
class _Trial:
    """The arms that are tried on one suite.

    Attributes:
        file: The suite's file.
        suite: The scenarios that all arms can play.
        arms: The arms.
        models: The models.
        is_part: Whether scenarios are left out with which the published figures were measured.
        folder: The folder for everything that is written.
    """

    file: Path
    suite: Suite
    arms: dict[str, Arm]
    models: EvaluationModels
    is_part: bool
    folder: Path

    @property
    def results(self) -> Path:
        """The file of conversations."""
        return self.folder / f"{make_file_name(self.suite.name)}.results.jsonl"


def _check_replay(replay: Path, record: Path, asking_options: Mapping[str, object]) -> None:
    useless = [name for name, value in asking_options.items() if value]
    if useless:
        raise BadParameter(
            f"--replay asks no model: leave out {', '.join(useless)}, which would change nothing"
        )
    if replay.resolve() == record.resolve():
        raise BadParameter(f"--replay reads {replay}, so --record has to name another folder")


def _check_ablations(ablations: Sequence[str]) -> None:
    for ablation in ablations:
        if ablation.rstrip(",").endswith(":"):
            raise BadParameter(f"--ablate {ablation}: write queries after the colon, or leave out the colon")


def _check_blueprints(blueprints: Sequence[str]) -> None:
    for name in blueprints:
        module, colon, class_name = name.partition(":")
        if not (module and colon and class_name):
            raise BadParameter(f"--blueprint {name}: it must be written MODULE:CLASS")


class _WholeSuite(NamedTuple):
    """A suite before scenarios are left out, and its file."""

    suite: Suite
    file: Path


def _read_suites(names: Sequence[str]) -> dict[str, _WholeSuite]:
    """Return the suites by their names."""
    suites: dict[str, _WholeSuite] = {}
    for file in dict.fromkeys(map(find_suite_file, names)):
        suite = Suite.from_yaml(file)
        if suite.name in suites:
            raise InputError(
                "two suites have the same name, and so one results file: run one after the other"
            )
        suites[suite.name] = _WholeSuite(suite, file)
    return suites


def _list_arms(arms: Sequence[str], ablations: Sequence[str], blueprints: Sequence[str]) -> list[str]:
    """Return the arms that the options name, each once; none if no option names one."""
    names = list(arms)
    for ablation in ablations:
        names += list_ablations(ablation)
    if blueprints:
        names += ["arq", *blueprints]
    return list(dict.fromkeys(names))


def _module_folder(suite_file: Path) -> Path:
    """Return the folder of the user's own modules: beside a suite of their own, else the current one."""
    is_shipped = suite_file.is_relative_to(SUITES)
    return Path.cwd() if is_shipped else suite_file.absolute().parent


def _prepare_trial(
    suite: Suite,
    whole_suite: _WholeSuite,
    arm_names: list[str],
    blueprints: Sequence[str],
    models: EvaluationModels,
    folder: Path,
) -> _Trial:
    module_folder = _module_folder(whole_suite.file)
    for name in blueprints:
        load_blueprint(name, module_folder)
    names = arm_names or choose_default_arms(whole_suite.file)
    suite, arms = prepare_arms(suite, names, module_folder, models.agent_model)
    kinds = {"helpful"} | {scenario.kind for scenario in suite.scenarios}
    published_scenarios = [scenario for scenario in whole_suite.suite.scenarios if scenario.kind in kinds]
    is_part = len(suite.scenarios) < len(published_scenarios)
    return _Trial(whole_suite.file, suite, arms, models, is_part, folder)


def _run_trial(trial: _Trial, resume_hint: str, *, runs: int, **settings: Any) -> Report:
    """Run the conversations of a suite, write the figures and the page, and print the report."""
    models = _record_models(trial)
    with show_conversations(trial.suite, trial.arms, runs, resume_hint) as on_conversation:
        running = arun_experiment(
            trial.file,
            trial.suite,
            trial.arms,
            results=trial.results,
            ablated=describe_ablations(trial.arms),
            is_part=trial.is_part,
            **models.settings,
            runs=runs,
            **settings,
            on_conversation=on_conversation,
        )
        result = run_in_loop(running, "arun_experiment")
    report = result.report
    tables = [*result.tables, *make_exception_tables(report, trial.results)]
    figures = trial.folder / f"{make_file_name(trial.suite.name)}.json"
    write_experiment(figures, result, tables)
    note(f"The figures are in {figures}.")
    transcripts = _add_model_answers(read_reported_transcripts(report, trial.results), trial)
    page = figures.with_suffix(".html")
    write_outputs(report, None, page, transcripts, tables, title=f"Experiment: {result.suite}")
    show_evaluation(report, tables, resume_hint, suite=result.suite, has_judge=models.has_judge)
    return report


def _recording_file(folder: Path, suite: Suite, role: str) -> Path:
    return folder / f"{make_file_name(suite.name)}.{role}.recording.jsonl"


def _load_replay_models(folder: Path, suite: Suite, votes: int) -> EvaluationModels:
    """Return the models that answer from a recording of the suite."""
    models: dict[str, RecordingChatModel] = {}
    for role in MODEL_ROLES:
        file = _recording_file(folder, suite, role)
        if file.exists():
            models[role] = RecordingChatModel(file)
    if not models:
        raise InputError(f"{folder} holds no recording of the suite {suite.name!r}")
    names = {role: model.model_name for role, model in models.items()}
    return EvaluationModels(models, names, votes)


def _record_models(trial: _Trial) -> EvaluationModels:
    """Return the trial's models, which record their answers from now on."""
    models = {}
    for role, model in trial.models.by_role.items():
        models[role] = RecordingChatModel(_recording_file(trial.folder, trial.suite, role), model)
    return replace(trial.models, by_role=models)


def _add_model_answers(transcripts: Iterable[Transcript], trial: _Trial) -> Iterator[Transcript]:
    """Yield the transcripts, each with what the models answered in it."""
    recordings = []
    for role in MODEL_ROLES:
        file = _recording_file(trial.folder, trial.suite, role)
        if file.exists():
            recordings.append(read_recording(file))
    for transcript in transcripts:
        answers = []
        for recording in recordings:
            for record in recording.get(f"{trial.suite.name} / {transcript.id}", ()):
                answers.append({"module": record.module, "answer": record.answer["data"]})
        yield replace(transcript, extra={**transcript.extra, "model_answers": answers})
