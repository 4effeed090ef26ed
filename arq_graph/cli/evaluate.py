"""`arq-graph evaluate`: hold every conversation of a suite with every arm, and show how far each gets."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import typer

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.apps.arms import arms, known_arms
from arq_graph.cli.evaluation_table import show_comparisons
from arq_graph.cli.failures import WRONG_INPUT, leaving_on_ctrl_c, note, warn
from arq_graph.cli.figures import counted
from arq_graph.cli.progress import progress_bar
from arq_graph.cli.report_table import show_broken, show_report
from arq_graph.cli.screen import output
from arq_graph.cli.settings import OFFLINE, ModelChoice
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.evaluation.holding import Prices
from arq_graph.milestones.evaluation.results import Outcome, read_results
from arq_graph.milestones.evaluation.runner import Done, evaluate
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Planned, Suite
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.html import transcripts_shown, write_html
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.report import Report, write_report
from arq_graph.milestones.transcript import Transcript


@dataclass(frozen=True)
class WantedEvaluation:
    """What is tried on what, how often, and where it goes."""

    suite: Path
    arms: tuple[str, ...]
    model: ModelChoice
    runs: int = 1
    concurrency: int = 8
    user_model: ModelChoice | None = None
    judge: ModelChoice | None = None
    scenarios: tuple[str, ...] = ()
    max_calls: int | None = None
    max_cost: float | None = None
    prices: Prices = field(default_factory=dict)
    reject: bool = False
    results: Path | None = None
    resume: bool = False
    html: Path | None = None
    json: Path | None = None

    @property
    def kept(self) -> Path:
        """Where conversations are kept."""
        return self.results or self.suite.with_name(f"{self.suite.stem}.results.jsonl")

    @property
    def depends_on(self) -> dict[str, str]:
        """What results depend on beside the suite."""
        return {
            "the model": self.model.name,
            "the user's model": self.user_model.name if self.user_model else "none",
            "the judge": self.judge.name if self.judge else "none",
            "the operator": "reject" if self.reject else "approve",
        }


def evaluate_suite(wanted: WantedEvaluation) -> None:
    """Hold what is wanted, print the tables, and write the files."""
    _require_files(wanted)
    suite = chosen(Suite.from_yaml(wanted.suite, strict=False), wanted.scenarios)
    if not suite.scenarios:
        raise suite.broken[0].error
    tried = arms(list(wanted.arms), folder=wanted.suite.absolute().parent)
    tell_choice(wanted.model, wanted.arms)
    _tell_shared_tools(suite)
    total = len(suite.scenarios) * len(tried) * wanted.runs
    with quiet_callbacks(), leaving_on_ctrl_c(lambda: _tell_way_on(wanted)), shown(total) as done:
        try:
            result = evaluate(
                suite,
                tried,
                model=wanted.model.chat_model(),
                user_model=wanted.user_model.chat_model() if wanted.user_model else None,
                judge=LLMJudge(wanted.judge.chat_model()) if wanted.judge else None,
                runs=wanted.runs,
                concurrency=wanted.concurrency,
                results=wanted.kept,
                resume=wanted.resume,
                max_calls=wanted.max_calls,
                max_cost=wanted.max_cost,
                prices=wanted.prices,
                operator="reject" if wanted.reject else "approve",
                depends_on=wanted.depends_on,
                arms_depend_on=_own_arms(wanted.arms, wanted.suite.absolute().parent),
                done=done,
            )
        except ReasoningError as error:
            error.add_note(_way_on(wanted))
            raise
    _show(result, wanted)
    if wrong := went_wrong(result):
        note(f"Exit code {WRONG_INPUT}: {wrong}.")
        raise typer.Exit(WRONG_INPUT)


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


def went_wrong(result: Report) -> str:
    """How many scenarios and conversations something was wrong with, in words; empty where nothing was.

    What the run's ceiling cut off is not among them.
    """
    broken = result.failed
    unused = sum(one.run is None for one in broken)
    errors = sum(one.ended == "error" for one in result.conversations)
    said = (
        (unused, "scenario", "could not be used"),
        (len(broken) - unused, "conversation", "could not be held or measured"),
        (errors, "conversation", "ended in an error"),
    )
    return ", ".join(f"{counted(count, what)} {how}" for count, what, how in said if count)


def _show(result: Report, wanted: WantedEvaluation) -> None:
    show_broken(result.failed, "measured")
    if result.stopped:
        warn(_stopped(result.stopped, result, wanted))
    if result.conversations or result.stopped:
        show_report(result, output())
        show_comparisons(result, output())
    _write(result, wanted)
    if not result.conversations and not result.stopped:
        raise InputError("nothing could be measured")
    note(f"The conversations are in {wanted.kept}.")
    if not result.stopped and any(one.ended == "error" for one in result.broken):
        note(_way_on(wanted))


def _write(result: Report, wanted: WantedEvaluation) -> None:
    if wanted.json is not None:
        write_report(wanted.json, result)
        note(f"The report is in {wanted.json}.")
    if wanted.html is not None:
        write_html(wanted.html, result, _said(result, wanted), title="Evaluation")
        note(f"The page is in {wanted.html}.")


def _said(result: Report, wanted: WantedEvaluation) -> dict[int, Transcript]:
    places = {
        (
            result.conversations[index].arm,
            result.conversations[index].scenario,
            result.conversations[index].run,
        ): index
        for index in transcripts_shown(result)
    }
    return {
        places[key]: transcript
        for record, transcript in read_results(wanted.kept)
        if (key := (record.arm, record.scenario, record.run)) in places
    }


def _tell_shared_tools(suite: Suite) -> None:
    shared = [one.name for one in suite.scenarios if one.world is None and one.agent is not None]
    if shared:
        note(
            f"{counted(len(shared), 'scenario')} without a `world`: their conversations share the agent's own tools, "
            "and see what others have changed."
        )


def _tell_way_on(wanted: WantedEvaluation) -> None:
    note(f"Interrupted. {_way_on(wanted)}")


def _way_on(wanted: WantedEvaluation) -> str:
    return f"What ended is kept in {wanted.kept}: the same command with --resume goes on from there."


def _stopped(reason: str, result: Report, wanted: WantedEvaluation) -> str:
    """What a ceiling ended, and what it takes to go on: calls made before count, so the same ceiling is of no use."""
    missing = counted(result.missing, "conversation")
    ceiling = "--max-cost" if reason.startswith("max_cost") else "--max-calls"
    said = f"{reason}: {missing} of the run {'is' if result.missing == 1 else 'are'} missing below. "
    if not result.conversations:
        said += (
            "None ended, and those that were cut off begin anew: leave room for those under way, by a ceiling that is "
            "much higher, or by fewer at once (--concurrency 1). "
        )
    return (
        f"{said}What ended is kept in {wanted.kept}: the same command with --resume and a higher {ceiling} goes on "
        "from there."
    )


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


def _require_files(wanted: WantedEvaluation) -> None:
    """Refuse, before anything runs, what could not be written in the end."""
    outs = [out for out in (wanted.kept, wanted.json, wanted.html) if out is not None]
    for out in outs:
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise InputError(f"{out} cannot be written: its folder is missing, or it is a folder itself")
    files = [file.resolve() for file in (wanted.suite, *outs)]
    if len(set(files)) < len(files):
        raise InputError("the suite, the results, the page and the report must be four different files")


def chosen(suite: Suite, names: tuple[str, ...]) -> Suite:
    """The suite with the scenarios of these names alone; a name also stands for those of all its kinds."""
    if not names:
        return suite
    wanted = [one for name in names for one in of_name(suite, name)]
    distinct = tuple(dict.fromkeys(one.name for one in wanted))
    return suite.replace(scenarios=tuple(suite.scenario(name) for name in distinct), broken=())


def of_name(suite: Suite, name: str) -> list[Scenario]:
    """The scenario of a name, or those of all its kinds."""
    found = [one for one in suite.scenarios if one.name in (name, f"{name} ({one.user.kind})")]
    if not found:
        for broken in suite.broken:
            if broken.name == name:
                raise broken.error
        suite.scenario(name)
    return found


def read_prices(text: str | None) -> dict[str, tuple[float, float]]:
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
