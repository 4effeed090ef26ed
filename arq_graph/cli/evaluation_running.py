"""`arq-graph evaluate`: hold every conversation, and show how far each arm gets."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from arq_graph.apps.arms import arms
from arq_graph.cli.arm_digests import digests_of_arms
from arq_graph.cli.evaluation_table import show_comparisons
from arq_graph.cli.evaluation_wanted import WantedEvaluation, chosen, require_files, tell_choice
from arq_graph.cli.failures import WRONG_INPUT, note, warn
from arq_graph.cli.figures import counted
from arq_graph.cli.leaving import leaving_on_ctrl_c
from arq_graph.cli.progress_bar import progress_bar
from arq_graph.cli.report_table import show_report
from arq_graph.cli.screen import output
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.evaluation.results import Outcome, read_results
from arq_graph.milestones.evaluation.runner import Done, evaluate
from arq_graph.milestones.evaluation.suite import Planned, Suite
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.report import Report, write_report
from arq_graph.milestones.transcript import Transcript

BROKEN_SHOWN = 5


def evaluate_suite(wanted: WantedEvaluation) -> None:
    """Hold what is wanted, print the tables, and write the files.

    Args:
        wanted: What is tried on what, and where it goes.

    Raises:
        ArqGraphError: Something about all of the conversations is wrong, or models are out of reach.
        Left: Ctrl-C; what ended is kept.
        Exit: With 1 where something went wrong in single conversations or scenarios; the report is written then.
    """
    require_files(wanted)
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
                arms_depend_on=digests_of_arms(wanted.arms, wanted.suite.absolute().parent),
                done=done,
            )
        except ReasoningError as error:
            error.add_note(_way_on(wanted))
            raise
    _show(result, wanted)
    if wrong := went_wrong(result):
        note(f"Exit code {WRONG_INPUT}: {wrong}.")
        raise typer.Exit(WRONG_INPUT)


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
    broken = result.failed
    for one in broken[:BROKEN_SHOWN]:
        warn(one.error)
    if len(broken) > BROKEN_SHOWN:
        warn(f"and {len(broken) - BROKEN_SHOWN:,} more that could not be measured; --json lists them all")
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
        from arq_graph.milestones.reports.html import write_html

        write_html(wanted.html, result, _said(result, wanted), title="Evaluation")
        note(f"The page is in {wanted.html}.")


def _said(result: Report, wanted: WantedEvaluation) -> dict[int, Transcript]:
    from arq_graph.milestones.reports.html import transcripts_shown

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
    """Show progress inside the block; nothing where no terminal is.

    Args:
        total: How many conversations there are.
    """
    with progress_bar("conversing", total, failing="went wrong") as advance:

        def done(_: Planned, outcome: Outcome) -> None:
            advance(isinstance(outcome, BrokenConversation) or outcome.ended == "error")

        yield done
