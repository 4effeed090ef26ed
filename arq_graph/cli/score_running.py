"""A run over many conversations that can be stopped: what is scored is kept as it comes, and not scored again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from arq_graph.cli.failures import note
from arq_graph.cli.figures import counted
from arq_graph.cli.leaving import leaving_on_ctrl_c
from arq_graph.cli.score_graphs import Known
from arq_graph.cli.score_progress import lines_of, shown_progress
from arq_graph.cli.score_wanted import Wanted
from arq_graph.cli.settings import OFFLINE
from arq_graph.errors import ArqGraphError
from arq_graph.milestones.fingerprint import fingerprint
from arq_graph.milestones.reports.graph_choice import GraphSource, fingerprint_of_graphs
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.scoring_run import ScoringRun
from arq_graph.milestones.store import RunStore


def opened_store(wanted: Wanted, graphs: GraphSource, known: Known) -> RunStore | None:
    """Where results are kept as they come; None where no file is written beside which they could be.

    Args:
        wanted: What is scored.
        graphs: What it is measured on.
        known: What is known of the agent.

    Raises:
        InputError: The file holds the results of another run, or cannot be used.
    """
    if wanted.kept is None:
        if wanted.judge is not None:
            note("Nothing is kept of a run that is stopped; with --json FILE it can be gone on with.")
        return None
    return RunStore(
        wanted.kept,
        "score",
        {
            "the transcripts": fingerprint(*wanted.files),
            "their format": wanted.format or "recognised",
            "the milestones": f"gold, {wanted.gold}" if wanted.gold else fingerprint_of_graphs(graphs),
            "the tools": fingerprint(known.tools),
            "the agent's instructions": fingerprint(known.instructions),
            "the judge": wanted.judge.name if wanted.judge else "none",
            "its settings": wanted.judge_settings,
            "arq_graph": _version(),
        },
        fresh=wanted.fresh,
        instead="give --fresh to begin again",
    )


def score_all(wanted: Wanted, run: ScoringRun, store: RunStore | None) -> Report:
    """What became of all conversations; those that were scored before are not scored again.

    Args:
        wanted: What is scored.
        run: Scores it.
        store: Where results are kept as they come.

    Raises:
        Left: Ctrl-C; what was scored is kept.
        ReasoningError: The judge's model is out of reach.
    """
    if kept := len(run.kept):
        note(f"Going on: {wanted.kept} holds {counted(kept, 'conversation')} of an earlier run.")

    def announce() -> None:
        if store is None:
            note("Interrupted; nothing is kept. With --json FILE a run can be gone on with.")
        else:
            note(f"Interrupted. {_way_on(run, store)}")

    stand_ins = ("the judge",) if wanted.judge is not None and wanted.judge.spec == OFFLINE else ()
    with (
        _told_the_way_on(run, store),
        leaving_on_ctrl_c(announce),
        shown_progress(_total(wanted)) as progress,
    ):
        if wanted.judge is not None and wanted.concurrency > 1:
            return asyncio.run(run.areport(done=progress.done, stand_ins=stand_ins))
        return run.report(done=progress.done, stand_ins=stand_ins)


@contextmanager
def _told_the_way_on(run: ScoringRun, store: RunStore | None) -> Iterator[None]:
    try:
        yield
    except ArqGraphError as error:
        if store is not None and run.kept:
            error.add_note(_way_on(run, store))
        raise


def _total(wanted: Wanted) -> int | None:
    if wanted.judge is not None:
        # Reading once more costs nothing beside a judge.
        return sum(1 for _ in wanted.read())
    lines = None if wanted.use_case is not None else lines_of(wanted.files)
    return lines if lines is None or wanted.limit is None else min(lines, wanted.limit)


def _way_on(run: ScoringRun, store: RunStore) -> str:
    scored = counted(len(run.kept), "conversation")
    return f"{scored} scored so far, kept in {store.file}: the same command goes on from there."


def _version() -> str:
    try:
        return version("arq_graph")
    except PackageNotFoundError:
        return "unknown"
