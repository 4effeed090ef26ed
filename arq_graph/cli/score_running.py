"""A run over many conversations that can be stopped: what is scored is kept as it comes, and not scored again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from arq_graph.cli.failures import note
from arq_graph.cli.figures import counted
from arq_graph.cli.leaving import leaving_on_ctrl_c
from arq_graph.cli.score_graphs import Known, fingerprint_of_graphs
from arq_graph.cli.score_progress import ScoreProgress, lines_of, shown_progress
from arq_graph.cli.score_wanted import Wanted
from arq_graph.errors import ArqGraphError
from arq_graph.milestones.fingerprint import fingerprint
from arq_graph.milestones.reports.running import ConversationScorer, Outcome, in_parallel
from arq_graph.milestones.reports.running_files import Located
from arq_graph.milestones.reports.running_graphs import GraphSource
from arq_graph.milestones.reports.running_results import KeptResults, Place


@contextmanager
def kept_results(wanted: Wanted, graphs: GraphSource, known: Known) -> Iterator[KeptResults | None]:
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
        yield None
        return
    results = KeptResults(
        wanted.kept,
        {
            "the transcripts": fingerprint(*wanted.files),
            "their format": wanted.format or "recognised",
            "the milestones": f"gold, {wanted.gold}" if wanted.gold else fingerprint_of_graphs(graphs),
            "the tools": fingerprint(known.tools),
            "the agent's instructions": fingerprint(known.instructions),
            "the judge": _judge(wanted),
            "its settings": wanted.judge_settings,
            "arq_graph": _version(),
        },
        sources={number: str(file) for number, file in enumerate(wanted.files)},
        fresh=wanted.fresh,
    )
    with results:
        if len(results):
            note(f"Going on: {results.file} holds {counted(len(results), 'conversation')} of an earlier run.")
        try:
            yield results
        except ArqGraphError as error:
            if len(results) and results.file.exists():
                error.add_note(_way_on(results))
            raise


def score_all(wanted: Wanted, scorer: ConversationScorer, kept: KeptResults | None) -> dict[Place, Outcome]:
    """What became of each conversation, by its place; those that were scored before are not scored again.

    Args:
        wanted: What is scored.
        scorer: Scores it.
        kept: Where results are kept as they come.

    Raises:
        Left: Ctrl-C; what was scored is kept.
        ReasoningError: The judge's model is out of reach.
    """
    outcomes: dict[Place, Outcome] = {}

    def take(one: Located, outcome: Outcome, progress: ScoreProgress) -> None:
        outcomes[one.place] = outcome
        progress.done(outcome)

    def still_to_do(progress: ScoreProgress) -> Iterator[Located]:
        for one in wanted.read():
            before = kept.get(one) if kept is not None else None
            if before is None:
                yield one
            else:
                scorer.pass_over(one)
                take(one, before, progress)

    def keep(one: Located, outcome: Outcome, progress: ScoreProgress) -> None:
        if kept is not None:
            kept.keep(one, outcome)
        take(one, outcome, progress)

    async def ask(progress: ScoreProgress) -> None:
        async for one, outcome in in_parallel(scorer, still_to_do(progress), wanted.concurrency):
            keep(one, outcome, progress)

    def announce() -> None:
        if kept is None:
            note("Interrupted; nothing is kept. With --json FILE a run can be gone on with.")
        else:
            note(f"Interrupted. {_way_on(kept)}")

    with leaving_on_ctrl_c(announce), shown_progress(_total(wanted)) as progress:
        if wanted.judge is not None and wanted.concurrency > 1:
            asyncio.run(ask(progress))
        else:
            for one in still_to_do(progress):
                keep(one, scorer.score(one), progress)
    return outcomes


def _total(wanted: Wanted) -> int | None:
    if wanted.judge is not None:
        # Reading once more costs nothing beside a judge.
        return sum(1 for _ in wanted.read())
    lines = None if wanted.use_case is not None else lines_of(wanted.files)
    return lines if lines is None or wanted.limit is None else min(lines, wanted.limit)


def _way_on(kept: KeptResults) -> str:
    scored = counted(len(kept), "conversation")
    return f"{scored} scored so far, kept in {kept.file}: the same command goes on from there."


def _judge(wanted: Wanted) -> str:
    if wanted.judge is None:
        return "none"
    return f"{wanted.judge.spec} at {wanted.judge.base_url}" if wanted.judge.base_url else wanted.judge.spec


def _version() -> str:
    try:
        return version("arq_graph")
    except PackageNotFoundError:
        return "unknown"
