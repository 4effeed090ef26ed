"""`arq-graph merge`: the results files of an evaluation's shards, put into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from arq_graph.cli import WRONG_INPUT, options
from arq_graph.cli.screen import note, warn
from arq_graph.cli.tables import counted, listed
from arq_graph.milestones.evaluation.results import merge as merged


def merge(
    shards: Annotated[list[Path], Argument(metavar="SHARD…", help="What `evaluate --shard` wrote.")],
    results: Annotated[Path, Option(metavar="FILE", help="The file that they are put into.")],
) -> None:
    """Put the results files of an evaluation's shards into one.

    They must be of one run: the same suite, agent, arms and models. What was held twice is taken once. The exit code is
    1 where a shard is missing; what is there is in the file all the same.
    """
    options.require_usable([results], shards)
    found = merged(shards, results)
    if found.twice:
        twice = counted(len(found.twice), "conversation")
        note(f"{twice} held twice, of which the first is kept: {listed(found.twice)}.")
    note(
        f"{counted(found.conversations, 'conversation')} in {results}. `evaluate` with --results {results} --resume, "
        "and otherwise as the shards were run, but without --shard, reports them, and holds what is missing."
    )
    if found.missing:
        warn(f"{counted(len(found.missing), 'shard')} missing: {listed(found.missing)}.")
        raise Exit(WRONG_INPUT)
