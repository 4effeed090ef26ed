"""`arq-graph score`: measure recorded conversations and report it."""

from __future__ import annotations

import typer

from arq_graph.cli.failures import NO_ANSWER, note, warn
from arq_graph.cli.figures import counted
from arq_graph.cli.report_table import show_report
from arq_graph.cli.score_graphs import Known, read_gold, read_graphs, read_known
from arq_graph.cli.score_running import opened_store, score_all
from arq_graph.cli.score_wanted import Wanted, require_files
from arq_graph.cli.screen import output
from arq_graph.errors import InputError
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.report import Report, write_report
from arq_graph.milestones.reports.scoring_run import ScoringRun, UnansweredConversation
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript

BROKEN_SHOWN = 5
UNDECIDED_SHOWN = 5


def score_files(wanted: Wanted) -> None:
    """Score what is wanted, print the table, and write the files.

    Args:
        wanted: What is scored, on what, and where it goes.

    Raises:
        ArqGraphError: Something about all of the conversations is wrong, or the judge's model is out of reach.
        Left: Ctrl-C; what was scored is kept.
        Exit: With 1 where nothing could be scored, with 3 where that is because the judge gave no answer.
    """
    require_files(wanted)
    known = read_known(wanted.agent, wanted.tools)
    graphs = (
        read_gold(wanted.gold == "ordered") if wanted.gold else read_graphs(wanted.milestones, known.tools)
    )
    store = opened_store(wanted, graphs, known)
    run = ScoringRun(
        wanted.read(),
        graphs,
        tools=known.tools,
        judge=_judge(wanted, known),
        concurrency=wanted.concurrency,
        store=store,
    )
    result = score_all(wanted, run, store)
    _show_broken(result.broken)
    unanswered = sum(isinstance(one, UnansweredConversation) for one in result.broken)
    if not result.conversations:
        _leave_empty_handed(result, unanswered, store, wanted.use_case)
    _write(wanted, result, run)
    # Before anything is printed: whoever reads may have gone, and the report is written.
    if store is not None and not unanswered:
        store.remove()
    _show(result, wanted)
    if store is not None and unanswered:
        warn(
            f"the judge gave no answer about {counted(unanswered, 'conversation')}; the same command asks again "
            f"about those alone, the others are kept in {store.file}"
        )


def _judge(wanted: Wanted, known: Known) -> LLMJudge | None:
    if wanted.judge is None:
        return None
    return LLMJudge(
        wanted.judge.chat_model(),
        tools=known.tools,
        votes=wanted.votes,
        veto=wanted.veto,
        instructions=known.instructions,
        date=wanted.date,
    )


def _show_broken(broken: tuple[BrokenConversation, ...]) -> None:
    for one in broken[:BROKEN_SHOWN]:
        warn(one.error)
    more = len(broken) - BROKEN_SHOWN
    if more > 0:
        warn(f"and {more:,} more that could not be scored; --json lists them all")


def _leave_empty_handed(
    result: Report, unanswered: int, store: RunStore | None, use_case: str | None
) -> None:
    if store is not None:
        store.remove()
    if unanswered:
        warn("nothing could be scored: the judge gave no answer")
        raise typer.Exit(NO_ANSWER)
    broken = f"{counted(len(result.broken), 'record')} broken" if result.broken else ""
    if use_case:
        also = f", and {broken}" if broken else ""
        raise InputError(f"nothing could be scored: no conversation is of the use case {use_case!r}{also}")
    raise InputError(
        f"nothing could be scored: {f'{broken}, and no other' if broken else 'there is no conversation'}"
    )


def _write(wanted: Wanted, result: Report, run: ScoringRun) -> None:
    if wanted.json is not None:
        write_report(wanted.json, result)
    if wanted.html is not None:
        from arq_graph.milestones.reports.html import write_html

        # Read a second time instead of held: memory stays bounded however many there are.
        said = (
            one.item
            for one in wanted.read()
            if isinstance(one.item, Transcript)
            and isinstance(run.outcomes.get(one.place), ConversationRecord)
        )
        write_html(wanted.html, result, said)


def _show(result: Report, wanted: Wanted) -> None:
    show_report(result, output())
    for what, file in (("report", wanted.json), ("page", wanted.html)):
        if file is not None:
            note(f"The {what} is in {file}.")
    _hint(result, wanted)


def _hint(result: Report, wanted: Wanted) -> None:
    undecided = dict.fromkeys(
        name
        for one in result.conversations
        if one.progress_range is not None and (one.goal_completed is None or one.progress_rate is None)
        for name in one.undecided
    )
    if not undecided or wanted.judge is not None:
        return
    names = list(undecided)
    listed = ", ".join(names[:UNDECIDED_SHOWN]) + (", …" if names[UNDECIDED_SHOWN:] else "")
    note(
        f"Nothing says whether these were observed: {listed}. Where that matters the figures are a range; "
        "--judge MODEL decides them, or a `check:` in the milestone file."
    )
