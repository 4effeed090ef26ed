"""`arq-graph evaluate`: hold every conversation of a suite with every arm, and show how far each gets."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.apps.arms import arms as arms_named
from arq_graph.apps.arms import known_arms
from arq_graph.cli.failures import WRONG_INPUT, leaving_on_ctrl_c, note, warn
from arq_graph.cli.figures import counted
from arq_graph.cli.files import require_writable
from arq_graph.cli.options import BaseUrl, HtmlOut, Judge, Model, ReportOut, SuiteFile, UserModel
from arq_graph.cli.progress import progress_bar
from arq_graph.cli.screen import output
from arq_graph.cli.settings import OFFLINE, ModelChoice, choose_models
from arq_graph.cli.tables import show_broken, show_report
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.evaluation.results import Outcome, read_results
from arq_graph.milestones.evaluation.runner import Done
from arq_graph.milestones.evaluation.runner import evaluate as evaluated
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Planned, Suite
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.html import transcripts_shown, write_html
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.report import Report, write_report
from arq_graph.milestones.transcript import Transcript


def evaluate(
    suite: SuiteFile,
    arms: Annotated[
        str,
        typer.Option(
            metavar="NAME,…",
            help="What is tried: guided, guided:cot, guided:direct, react, pre-act, respact, create_agent, or "
            "module:function, a function of (scenario, agent, model) that makes an app.",
        ),
    ] = "guided",
    runs: Annotated[int, typer.Option(min=1, help="How often each scenario is run with each arm.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="How many conversations at once.")] = 8,
    model: Model = None,
    user_model: UserModel = None,
    judge: Judge = None,
    base_url: BaseUrl = None,
    scenario: Annotated[
        list[str] | None, typer.Option("--scenario", metavar="NAME", help="These scenarios alone.")
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop once so many model calls are made, users and judge and earlier parts included. Turns under way "
            "are finished, so that some more may be made.",
        ),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Stop once they cost so much; needs --prices.")
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL=IN/OUT,…", help="What a million tokens cost, read and written: gpt-4o=2.5/10."
        ),
    ] = None,
    reject: Annotated[
        bool, typer.Option("--reject", help="Calls that wait for an operator are rejected. Else approved.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where each conversation is kept. Else SUITE.results.jsonl."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what that file holds; nothing is held twice.")
    ] = False,
    html: HtmlOut = None,
    json: ReportOut = None,
) -> None:
    """Try agents in conversations with simulated users, and measure how far each gets.

    Each conversation is kept as it ends: a run that was stopped, or killed, goes on with --resume.

    The exit code is 1 where a scenario could not be used, or a conversation could not be held or ended in an error;
    the others are measured, and the report is written. It is 0 where a ceiling ended the run.
    """
    choice, users, decides = choose_models(model, user_model, judge, base_url)
    kept = results or suite.with_name(f"{suite.stem}.results.jsonl")
    require_writable([kept, json, html], [suite])
    tried = Suite.from_yaml(suite, strict=False)
    if scenario:
        tried = chosen(tried, scenario)
    if not tried.scenarios:
        raise tried.broken[0].error
    folder = suite.absolute().parent
    names = [name.strip() for name in arms.split(",") if name.strip()]
    apps = arms_named(names, folder=folder)
    tell_choice(choice, names)
    _tell_shared_tools(tried)
    operator = "reject" if reject else "approve"
    way_on = f"What ended is kept in {kept}: the same command with --resume goes on from there."
    with (
        quiet_callbacks(),
        leaving_on_ctrl_c(lambda: note(f"Interrupted. {way_on}")),
        shown(len(tried.scenarios) * len(apps) * runs) as done,
    ):
        try:
            report = evaluated(
                tried,
                apps,
                model=choice.chat_model(),
                user_model=users.chat_model() if users else None,
                judge=LLMJudge(decides.chat_model()) if decides else None,
                runs=runs,
                concurrency=concurrency,
                results=kept,
                resume=resume,
                max_calls=max_calls,
                max_cost=max_cost,
                prices=_read_prices(prices),
                operator=operator,
                depends_on={
                    "the model": choice.name,
                    "the user's model": users.name if users else "none",
                    "the judge": decides.name if decides else "none",
                    "the operator": operator,
                },
                arms_depend_on=_own_arms(names, folder),
                done=done,
            )
        except ReasoningError as error:
            error.add_note(way_on)
            raise
    show_broken(report.failed, "measured")
    if report.stopped:
        warn(_stopped(report.stopped, report, kept))
    if report.conversations or report.stopped:
        show_report(report, output())
    if json is not None:
        write_report(json, report)
        note(f"The report is in {json}.")
    if html is not None:
        write_html(html, report, said_in(report, kept), title="Evaluation")
        note(f"The page is in {html}.")
    if not report.conversations and not report.stopped:
        raise InputError("nothing could be measured")
    note(f"The conversations are in {kept}.")
    if not report.stopped and any(one.ended == "error" for one in report.broken):
        note(way_on)
    if wrong := _went_wrong(report):
        note(f"Exit code {WRONG_INPUT}: {wrong}.")
        raise typer.Exit(WRONG_INPUT)


def said_in(report: Report, results: Path) -> list[Transcript | None]:
    """What was said in the conversations that a page shows, in the order of the report."""
    shown = {report.conversations[index].id for index in transcripts_shown(report)}
    said = {record.id: transcript for record, transcript in read_results(results) if record.id in shown}
    return [said.get(record.id) for record in report.conversations]


def _own_arms(names: Sequence[str], folder: Path) -> dict[str, str]:
    """The files beside the suite that arms of one's own stand in: an app that a module holds has no source itself."""
    found = {}
    for name in names:
        module, colon, _ = name.partition(":")
        place = folder.joinpath(*module.split("."))
        for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if colon and name not in known_arms() and file.is_file():
                found[name] = fingerprint(file)
    return found


def _went_wrong(result: Report) -> str:
    """How many scenarios and conversations something was wrong with; what a ceiling cut off is not among them."""
    broken = result.failed
    unused = sum(one.run is None for one in broken)
    errors = sum(one.ended == "error" for one in result.conversations)
    said = (
        (unused, "scenario", "could not be used"),
        (len(broken) - unused, "conversation", "could not be held or measured"),
        (errors, "conversation", "ended in an error"),
    )
    return ", ".join(f"{counted(count, what)} {how}" for count, what, how in said if count)


def _tell_shared_tools(suite: Suite) -> None:
    shared = [one.name for one in suite.scenarios if one.world is None and one.agent is not None]
    if shared:
        note(
            f"{counted(len(shared), 'scenario')} without a `world`: their conversations share the agent's own tools, "
            "and see what others have changed."
        )


def _stopped(reason: str, report: Report, kept: Path) -> str:
    """What a ceiling ended, and what it takes to go on: calls made before count, so the same ceiling is of no use."""
    missing = counted(report.missing, "conversation")
    said = f"{reason}: {missing} of the run {'is' if report.missing == 1 else 'are'} missing below. "
    if not report.conversations:
        said += (
            "None ended, and those that were cut off begin anew: leave room for those under way, by a ceiling that is "
            "much higher, or by fewer at once (--concurrency 1). "
        )
    ceiling = "--max-cost" if reason.startswith("max_cost") else "--max-calls"
    way_on = f"the same command with --resume and a higher {ceiling} goes on from there."
    return f"{said}What ended is kept in {kept}: {way_on}"


@contextmanager
def quiet_callbacks() -> Iterator[None]:
    """Keep LangChain from logging that a conversation's limit of calls was reached: the report says so."""
    log = logging.getLogger("langchain_core.callbacks.manager")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def shown(total: int) -> Iterator[Done]:
    """Show progress inside the block; nothing where no terminal is."""
    with progress_bar("conversing", total, failing="went wrong") as advance:

        def done(_: Planned, outcome: Outcome) -> None:
            advance(isinstance(outcome, BrokenConversation) or outcome.ended == "error")

        yield done


def chosen(suite: Suite, names: Sequence[str]) -> Suite:
    """The suite with the scenarios of these names alone; a name also stands for those of all its kinds."""
    wanted = {one.name: one for name in names for one in of_name(suite, name)}
    return suite.replace(scenarios=tuple(wanted.values()), broken=())


def of_name(suite: Suite, name: str) -> list[Scenario]:
    """The scenario of a name, or those of all its kinds."""
    found = [one for one in suite.scenarios if one.name in (name, f"{name} ({one.user.kind})")]
    if not found:
        for broken in suite.broken:
            if broken.name == name:
                raise broken.error
        suite.scenario(name)
    return found


def _read_prices(text: str | None) -> dict[str, tuple[float, float]]:
    """The prices of `--prices`."""
    prices: dict[str, tuple[float, float]] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        model, equals, costs = part.strip().rpartition("=")
        try:
            read, written = (float(each) for each in costs.split("/"))
        except ValueError:
            equals = ""
        if not equals or not model:
            raise InputError(
                f"--prices: {part.strip()!r} must be written MODEL=IN/OUT, such as gpt-4o=2.5/10"
            )
        prices[model] = (read, written)
    return prices


def tell_choice(choice: ModelChoice, arms: Sequence[str]) -> None:
    """Say what should be known about the choice of the model for these arms."""
    if choice.notice:
        note(choice.notice)
    if choice.spec == OFFLINE and "create_agent" in arms:
        note("The offline model never calls a tool that is bound to it: the arm create_agent can only talk.")
