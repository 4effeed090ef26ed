"""`arq-graph experiment`: arms on a suite, and the papers' tables with the published figures beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Self

from langchain_core.language_models import BaseChatModel
from rich.console import Console
from rich.padding import Padding
from typer import Argument, Option

from arq_graph.apps.ablations import ablation_of, ablations
from arq_graph.apps.arms import arms as arms_named
from arq_graph.apps.arms import matches_guidelines
from arq_graph.cli import options
from arq_graph.cli.evaluate import conversing, require_all_held, said_in, tell_doubts, tell_stopped
from arq_graph.cli.screen import note, output, words
from arq_graph.cli.tables import columns, counted, show_broken
from arq_graph.milestones.evaluation.replay import ReplayChatModel
from arq_graph.milestones.evaluation.results import ASKED
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
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.report import stand_in_notice


def experiment(
    suite: Annotated[
        str,
        Argument(
            metavar="SUITE",
            help="guidelines, use-cases, household, shop, booking, or a suite's file of your own.",
        ),
    ] = "guidelines",
    arms: Annotated[
        str | None,
        Option(
            metavar="NAME,…",
            help="What is tried, as for `evaluate`. Else the arms that the paper compares on such a suite.",
        ),
    ] = None,
    ablate: Annotated[
        list[str] | None,
        Option(
            metavar="STEP[:QUERY,…]",
            help="Try `arq` without each query of a step, or those named: matcher, tools, message, planner, speaker.",
        ),
    ] = None,
    blueprint: Annotated[
        list[str] | None,
        Option(
            metavar="MODULE:CLASS", help="Try `arq` with your subclass of MessageBlueprint or of Judgement."
        ),
    ] = None,
    runs: options.Runs = 1,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    user_model: options.UserModel = None,
    judge: options.Judge = None,
    votes: Annotated[int, Option(min=1, help="How often the judge is asked about each criterion.")] = 1,
    base_url: options.BaseUrl = None,
    concurrency: options.Concurrency = 8,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    prices: options.Prices = None,
    record: Annotated[
        Path,
        Option(
            metavar="DIR",
            help="Where conversations with every model answer, figures and page are kept; made if missing.",
        ),
    ] = Path("experiment"),
    replay: Annotated[
        Path | None,
        Option(metavar="DIR", help="Ask no model: all answers come from what was recorded in this folder."),
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Go on with what that folder holds; nothing is held twice.")
    ] = False,
) -> None:
    """Try arms on a suite, and set their figures beside those of the papers.

    Each conversation is kept as it ends: a run that was stopped, or killed, goes on with --resume. What code can
    decide, code decides; the rest is left to --judge, and without one it stays undecided.

    The exit code is 1 where a conversation could not be held or ended in an error. It is 0 where a ceiling ended the
    run.
    """
    file = suite_file(suite)
    if replay is not None:
        asked = _Asked.replayed(replay)
    else:
        choices = {
            "model": options.choose_model(model, base_url, model_arg),
            "user_model": options.choose_if_named(user_model, base_url),
            "judge": options.choose_if_named(judge, base_url),
        }
        asked = _Asked.chosen(choices)
    compared = [*(ablations(each) for each in ablate or ()), *([["arq", *blueprint]] if blueprint else ())]
    usual = "" if compared else usual_arms(file)
    names = [name.strip() for name in (usual if arms is None else arms).split(",") if name.strip()]
    names = list(dict.fromkeys([*names, *chain.from_iterable(compared)]))
    lacking = {name: each for name in names if (each := ablation_of(name))}
    # Beside a shipped suite nobody has modules of their own.
    apps = arms_named(names, folder=Path.cwd() if file.is_relative_to(SUITES) else file.absolute().parent)
    tried = Suite.from_yaml(file)
    if deaf := [name for name in names if not matches_guidelines(name)]:
        answered = [one for one in tried.scenarios if not one.matches_only]
        if left_out := len(tried.scenarios) - len(answered):
            note(
                f"{counted(left_out, 'scenario')} left out: {deaf[0]} cannot say which guidelines are active."
            )
            tried = tried.replace(scenarios=answered)
    tell_doubts(asked.models["model"], names, tried.scenarios)
    record.mkdir(parents=True, exist_ok=True)
    name = file_name(tried.name)
    kept = record / f"{name}.results.jsonl"
    way_on = f"What ended is kept in {record}: the same command with --resume goes on from there."
    count = sum(1 for _ in tried.planned(list(apps), runs))
    with conversing(count, way_on) as done:
        found = run_in_loop(
            aexperiment(
                file,
                tried,
                apps,
                model=asked.models["model"],
                ablated={name: " and ".join(each.without) for name, each in lacking.items()},
                user_model=asked.models.get("user_model"),
                judge=LLMJudge(asked.models["judge"], votes=votes) if "judge" in asked.models else None,
                runs=runs,
                concurrency=concurrency,
                results=kept,
                resume=resume,
                max_calls=max_calls,
                max_cost=max_cost,
                prices=options.read_prices(prices),
                depends_on=asked.names,
                done=done,
            ),
            "aexperiment",
        )
    written, page = record / f"{name}.json", record / f"{name}.html"
    write_experiment(written, found)
    write_html(
        page,
        found.report,
        said_in(found.report, kept),
        title=f"Experiment: {tried.name}",
        tables=found.tables,
    )
    _show(found, output(), way_on, judged="judge" in asked.models)
    note(f"The figures are in {written}, and the page is {page}.")
    require_all_held(found.report, count, way_on)


@dataclass(frozen=True)
class _Asked:
    """The models that are asked, and their names, as the results depend on them."""

    models: Mapping[str, BaseChatModel]
    names: Mapping[str, str]

    @classmethod
    def chosen(cls, choices: Mapping[str, options.ModelChoice | None]) -> Self:
        given = {role: each for role, each in choices.items() if each}
        names = {ASKED[role]: each.name for role, each in given.items()}
        return cls({role: each.chat_model() for role, each in given.items()}, names)

    @classmethod
    def replayed(cls, folder: Path) -> Self:
        recorded = {role: ReplayChatModel(folder, role=role) for role in ASKED}
        return cls({role: each for role, each in recorded.items() if each.model_name not in ("", "none")}, {})


def _show(found: Experiment, console: Console, way_on: str, *, judged: bool) -> None:
    report = found.report
    show_broken(report.failed, "measured")
    tell_stopped(report, way_on)
    if notice := stand_in_notice(report.stand_ins):
        console.print(words(notice, "yellow"))
    console.print(words(f"{counted(len(report.conversations), 'conversation')} of {found.suite}", "bold"))
    for table in found.tables:
        console.print()
        console.print(columns(table.title, table.columns, ((row.name, row.cells) for row in table.rows)))
        for line in table.notes:
            console.print(Padding(words(line, "dim"), (0, 0, 0, 2)))
    undecided = sum(one.goal_completed is None for one in report.conversations)
    if undecided:
        way = "" if judged else "; give --judge to have them decided"
        console.print(words(f"{counted(undecided, 'conversation')} undecided{way}.", "yellow"))
    if (agreement := report.summary.overall.agreement.mean) is not None:
        console.print(words(f"Judge: {agreement:.0%} of the votes agree with the verdict.", "dim"))
