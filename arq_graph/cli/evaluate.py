"""`arq-graph evaluate`: hold every conversation of a suite with every arm, and show how far each gets."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated

from langchain_core.language_models import BaseChatModel
from typer import Argument, BadParameter, Exit, Option

from arq_graph.apps.arms import arms as arms_named
from arq_graph.cli import WRONG_INPUT, options
from arq_graph.cli.progress import leaving_on_ctrl_c, progress_bar
from arq_graph.cli.screen import note, output, warn
from arq_graph.cli.tables import counted, show_broken, show_report, write_outputs
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.evaluation.holding import Done
from arq_graph.milestones.evaluation.results import read_results
from arq_graph.milestones.evaluation.runner import evaluate as evaluated
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Suite, read_shard
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.html import transcripts_shown
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.transcript import Transcript
from arq_graph.models.offline.model import is_stand_in


def evaluate(
    suite: options.SuiteFile,
    merge: Annotated[
        list[Path] | None,
        Argument(metavar="RESULTS…", help="Results of shards: report them as one run, and hold nothing."),
    ] = None,
    arms: Annotated[
        str,
        Option(
            metavar="NAME,…",
            help="What is tried: guided, arq, cot, direct, react, pre-act, respact, create_agent and others, or "
            "module:function, a function of (scenario, agent, model) that makes an app.",
        ),
    ] = "guided",
    runs: options.Runs = 1,
    concurrency: options.Concurrency = 8,
    workers: Annotated[
        int | None, Option(min=1, help="Hold them in so many processes; each takes a core. Else in this one.")
    ] = None,
    shard: Annotated[
        str,
        Option(
            metavar="I/N",
            help="Hold the I-th of N parts, with an N-th of the ceilings. Give all results files to report them.",
        ),
    ] = "1/1",
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
            help="Where each conversation is kept. Else SUITE.results.jsonl, or SUITE.I-of-N.results.jsonl.",
        ),
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Go on with what that file holds; nothing is held twice.")
    ] = False,
    record: Annotated[
        bool, Option("--record", help="Keep there every model answer, too, for a `ReplayChatModel`.")
    ] = False,
    html: options.HtmlOut = None,
    json: options.ReportOut = None,
) -> None:
    """Try agents in conversations with simulated users, and measure how far each gets.

    Each conversation is kept as it ends: a run that was stopped, or killed, goes on with --resume. Calls that wait for
    an operator are approved.

    The exit code is 1 where a conversation could not be held or ended in an error; the others are measured, and the
    report is written. It is 0 where a ceiling ended the run.
    """
    choice = options.choose_model(model, base_url, model_arg)
    users, decides = (options.choose_if_named(each, base_url) for each in (user_model, judge))
    asked_of = {"the agent's model": choice, "the users' model": users, "the judge": decides}
    try:
        number, shards = read_shard(shard)
    except ValueError as error:
        raise BadParameter(f"--shard {error}") from None
    part = f".{number}-of-{shards}" if shards > 1 else ""
    kept = results or suite.with_name(f"{suite.stem}{part}.results.jsonl")
    options.require_usable([json, html] if merge else [kept, json, html], [suite, *(merge or ())])
    tried = Suite.from_yaml(suite)
    names = [name.strip() for name in arms.split(",") if name.strip()]
    apps = arms_named(names, folder=suite.absolute().parent)
    model_asked = choice.chat_model()
    tell_doubts(model_asked, names, tried.scenarios)
    way_on = f"What ended is kept in {kept}: the same command with --resume goes on from there."
    count = sum(1 for _ in tried.planned(list(apps), runs, shard))
    with conversing(count, way_on) as done:
        report = evaluated(
            tried,
            apps,
            model=model_asked,
            user_model=users.chat_model() if users else None,
            judge=LLMJudge(decides.chat_model()) if decides else None,
            runs=runs,
            concurrency=concurrency,
            results=kept,
            resume=resume,
            record=record,
            max_calls=max_calls,
            max_cost=max_cost,
            prices=options.read_prices(prices),
            workers=workers,
            shard=shard,
            merge=merge or (),
            depends_on={what: each.name for what, each in asked_of.items() if each},
            done=done,
        )
    # Before anything is printed: whoever reads may have gone.
    files = merge or [kept]
    write_outputs(report, json, html, said_in(report, *files) if html else (), title="Evaluation")
    if merge and report.missing:
        way_on = "The same with --shard and --resume, for each part that is not done, goes on."
    _tell(report, files, way_on)
    require_all_held(report, count, way_on, missing=bool(merge and report.missing))


@contextmanager
def conversing(count: int, way_on: str) -> Iterator[Done]:
    """Inside the block so many conversations are held: progress is shown, and whatever ends it tells the way on."""
    with (
        leaving_on_ctrl_c(lambda: note(f"Interrupted. {way_on}".strip())),
        progress_bar("conversing", count, "went wrong") as advance,
    ):
        try:
            yield lambda _, outcome: advance(outcome.error is not None)
        except ReasoningError as error:
            if way_on:
                error.add_note(way_on)
            raise


def require_all_held(report: Report, count: int, way_on: str, *, missing: bool = False) -> None:
    """Leave with the exit code that says so where not everything could be held."""
    if not report.conversations and not report.stopped and count:
        raise InputError("nothing could be measured")
    if report.failed or any(one.error for one in report.conversations) or missing:
        note(f"Exit code {WRONG_INPUT}, because not everything could be held to its end. {way_on}")
        raise Exit(WRONG_INPUT)


def tell_doubts(model: BaseChatModel, arms: Sequence[str], scenarios: Sequence[Scenario]) -> None:
    """Say what should be known about the choice of the model and the arms, and about tools without a world."""
    # LangChain would log that a conversation's limit of calls was reached; the report says so.
    logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)
    if is_stand_in(model) and "create_agent" in arms:
        note("The offline model never calls a tool that is bound to it: the arm create_agent can only talk.")
    if shared := sum(bool(one.user and one.agent) and one.world is None for one in scenarios):
        note(
            f"{counted(shared, 'scenario')} without a `world`: their conversations share the agent's own tools, and "
            "see what others have changed."
        )


def said_in(report: Report, *results: Path) -> list[Transcript | None]:
    """What was said in the conversations that a page shows, in the order of the report."""
    shown = {report.conversations[index].id for index in transcripts_shown(report)}
    said: dict[str, Transcript] = {}
    for record, transcript in chain.from_iterable(map(read_results, results)):
        if record.id in shown:
            said.setdefault(record.id, transcript)  # of one that was held twice, the first counts
    return [said.get(record.id) for record in report.conversations]


def tell_stopped(report: Report, way_on: str) -> None:
    """Say which ceiling ended a run, and how it goes on."""
    if report.stopped:
        # Calls that were made before count, so the same ceiling is of no use.
        if (name := report.stopped.partition(":")[0]) in ("max_cost", "max_calls"):
            way_on = way_on.replace("--resume", f"--resume and a higher --{name.replace('_', '-')}")
        missing = counted(report.missing, "conversation")
        warn(f"{report.stopped}: {missing} of the run missing below. {way_on}")


def _tell(report: Report, files: Sequence[Path], way_on: str) -> None:
    show_broken(report.failed, "measured")
    tell_stopped(report, way_on)
    show_report(report, output())
    note(f"The conversations are in {', '.join(map(str, files))}.")
