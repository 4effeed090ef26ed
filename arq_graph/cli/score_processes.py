"""Score large files in several processes: each reads all records, and scores its share of the conversations."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from itertools import count, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from arq_graph.cli import reduce_garbage_collection
from arq_graph.cli.input_files import iterate_conversations
from arq_graph.errors import InputError, describe_error
from arq_graph.milestones.reports.graph_registry import GraphSource, get_graphs_by_name
from arq_graph.milestones.reports.scoring_run import NumberedOutcomes, ScoringRun, score_transcripts
from arq_graph.milestones.scoring import has_functions
from arq_graph.milestones.tool_schemas import get_argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord

MIN_BYTES = 16 * 2**20
"""Smaller files are scored in one process, in less time than others take to start."""
MAX_PROCESSES = 8
_BATCH_SIZE = 100


def choose_process_count(files: Sequence[Path], graphs: GraphSource) -> int:
    """Return one process for small files, and where a graph names functions; otherwise one for each core."""
    size = sum(file.stat().st_size for file in files)
    if size < MIN_BYTES or callable(graphs) or any(map(has_functions, get_graphs_by_name(graphs).values())):
        return 1
    return min(os.cpu_count() or 1, MAX_PROCESSES)


def score_in_processes(
    run: ScoringRun, files: Sequence[Path], graphs: GraphSource, tools: Any, process_count: int
) -> Iterator[NumberedOutcomes]:
    """Yield the outcomes of all conversations of a run as they come from the processes.

    Raises:
        InputError: One of the processes failed or ended early.
    """
    if tools is not None:
        tools = get_argument_schemas(tools)  # LangChain's tools can't be pickled
    context = get_context("spawn")  # a fork would have the threads of this process
    processes = {}
    try:
        for share in range(process_count):
            receiver, sender = context.Pipe(duplex=False)
            arguments = (sender, files, graphs, tools, share, process_count)
            process = context.Process(target=_score_share, args=arguments, daemon=True)
            process.start()
            sender.close()
            processes[receiver] = process
        unfinished: list[Any] = list(processes)
        while unfinished:
            for ready in wait(unfinished):
                outcomes, stand_ins, is_last = _receive(ready)
                run.stand_ins |= stand_ins
                yield outcomes
                if is_last:
                    unfinished.remove(ready)
    finally:
        for process in processes.values():
            process.terminate()
            process.join()


def _receive(receiver: Any) -> tuple[NumberedOutcomes, set[str], bool]:
    try:
        message = receiver.recv()
    except EOFError:
        raise InputError(
            "a process that scored conversations died, perhaps for want of memory: with `--processes 1`, this one "
            "scores them all"
        ) from None
    if isinstance(message, str):
        raise InputError(message)
    outcomes, stand_ins, is_last = message
    return outcomes, stand_ins, is_last


def _score_share(
    sender: Connection, files: Sequence[Path], graphs: GraphSource, tools: Any, share: int, process_count: int
) -> None:
    """Score every conversation whose number leaves the remainder `share`; an error is sent as a text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and closes the pipe
    reduce_garbage_collection()
    try:
        _send_outcomes(sender, files, graphs, tools, share, process_count)
    except Exception as error:
        sender.send(describe_error(error))


def _send_outcomes(
    sender: Connection, files: Sequence[Path], graphs: GraphSource, tools: Any, share: int, process_count: int
) -> None:
    run = score_transcripts(graphs, _read_share(files, share, process_count), tools=tools)
    run.numbers = count(share, process_count)

    def send(is_last: bool) -> None:
        sender.send((run.outcomes, run.stand_ins, is_last))
        run.outcomes.clear()

    def send_full_batch(_: object) -> None:
        if len(run.outcomes) == _BATCH_SIZE:
            send(is_last=False)

    run.report(on_outcome=send_full_batch)
    send(is_last=True)


def _read_share(files: Sequence[Path], share: int, process_count: int) -> Iterator[Transcript | BrokenRecord]:
    for read in islice(iterate_conversations(files), share, None, process_count):
        yield read()
