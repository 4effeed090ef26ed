"""`arq-graph score`: measure recorded conversations, keep what is measured as it comes, and report it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from typer import BadParameter, Exit, Option

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.cli import options
from arq_graph.cli.exit_codes import NO_ANSWER
from arq_graph.cli.input_files import check_output_files, find_readable_files, read_tools
from arq_graph.cli.model_choice import ModelChoice, choose_model
from arq_graph.cli.progress_display import resumable_progress_bar
from arq_graph.cli.screen import note, warn
from arq_graph.cli.tables import counted, incomplete, listed, show_broken, show_report, write_outputs
from arq_graph.cli.threads import ThreadNote, open_existing_threads
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.evaluation.arms import instructions_of
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.findings import check_milestones
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.graph_file import read_milestones
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.graph_choice import GraphSource
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.scoring_run import ScoringRun, UnansweredConversation, score_transcripts
from arq_graph.milestones.reports.tables import tables_of
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcript, read_transcripts
from arq_graph.models.offline.model import is_offline

_SQLITE = b"SQLite format 3\0"


def score(
    transcripts: options.Transcripts,
    milestones: Annotated[
        list[str],
        Option(
            "--milestones",
            metavar="[NAME=]FILE",
            help="The milestone file. Repeat it for several use cases: each is called NAME, else after its file.",
        ),
    ],
    agent: options.AgentOption = None,
    tools: options.Tools = None,
    judge: options.Judge = None,
    votes: options.Votes = 1,
    base_url: options.BaseUrl = None,
    concurrency: Annotated[
        int, Option(min=1, help="How many conversations to ask the judge about at once.")
    ] = 8,
    html: options.HtmlOut = None,
    json: options.ReportOut = None,
) -> None:
    """Measure how far recorded conversations got: goal completion and progress rate.

    With --json or --html, results are saved as they come, and the same command continues a run that was stopped. If a
    record cannot be scored, the others still are, and the exit code is 1.
    """
    known = read_tools(agent, tools)
    instructions = instructions_of(Agent.from_yaml(agent)) if agent else None
    files = find_readable_files(transcripts)
    check_output_files([json, html], transcripts)
    graphs = _read_graphs(milestones, known)
    choice = choose_model(judge, base_url) if judge else None
    asked = choice.chat_model() if choice else None
    decides = LLMJudge(asked, tools=known, votes=votes, instructions=instructions) if asked else None
    shaping = {
        "the transcripts": fingerprint(*files),
        "the agent's instructions": fingerprint(instructions),
        "the judge": choice.name if choice else "none",
        "its votes": str(votes),
        "arq_graph": version("arq_graph"),
    }
    out = json or html
    if choice and not out:
        note("If this run is stopped, nothing is saved; with --json FILE the same command would continue it.")
    read = partial(read_files, files)
    kept = out and out.with_name(f"{out.name}.partial.jsonl")
    run = score_transcripts(
        graphs, read(), tools=known, judge=decides, concurrency=concurrency, results=kept, depends_on=shaping
    )
    # Reading once more costs nothing beside a judge; without one it would take as long as scoring.
    total = sum(1 for _ in read()) if choice else None
    result = _scored(run, total)
    show_broken(result.broken, "scored")
    unanswered = sum(isinstance(one, UnansweredConversation) for one in result.broken)
    if not result.conversations:
        if run.store is not None:
            run.store.remove()
        if unanswered:
            warn("nothing could be scored: the judge gave no answer")
            raise Exit(NO_ANSWER)
        raise InputError("nothing could be scored")
    # Before anything is printed: whoever reads may have gone. What was said is read a second time instead of held:
    # memory stays bounded however many there are.
    numbered = enumerate(read())
    scored = (one for at, one in numbered if isinstance(run.outcomes.get(at), ConversationRecord))
    tables = list(tables_of(result))
    write_outputs(result, json, html, (one for one in scored if isinstance(one, Transcript)), tables)
    if run.store is not None and not unanswered:
        run.store.remove()
    show_report(result, tables)
    _say_undecided(result, choice, run.store, unanswered)
    if result.broken:
        raise incomplete()


def read_files(files: Sequence[Path]) -> Iterator[Transcript | BrokenRecord]:
    """The conversations of several files; one that cannot be read on, even in its middle, is a broken record."""
    for file in files:
        try:
            yield from _read_file(file)
        except InputError as error:
            yield BrokenRecord(None, error, str(file))


def _read_file(file: Path) -> Iterator[Transcript | BrokenRecord]:
    """The conversations of a file of transcripts, or of a file of threads: the newest thread first."""
    with file.open("rb") as stream:
        is_database = stream.read(len(_SQLITE)) == _SQLITE
    if not is_database:
        yield from read_transcripts(file)
        return
    with open_existing_threads(file) as threads:
        listed = [one.config["configurable"] for one in threads.list(None)]
        names = dict.fromkeys(one["thread_id"] for one in listed if not one["checkpoint_ns"])
        for index, name in enumerate(names):
            held = threads.get_tuple({"configurable": {"thread_id": name}})
            assert held is not None  # it was listed
            try:
                read = read_transcript(held.checkpoint["channel_values"].get("messages", ()), id=name)
                about = ThreadNote.load(name, threads)
                stand_ins = ("the agent's model",) if about and is_offline(about.model) else ()
                yield replace(read, stand_ins=stand_ins, source=str(file), record=index)
            except InputError as error:
                yield BrokenRecord(index, InputError(f"thread {name!r}: {error}"), str(file))


def _read_graphs(given: Sequence[str], tools: Any) -> GraphSource:
    graphs: dict[str, MilestoneGraph] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not equals or Path(text).exists():  # a file's own name may have the sign in it
            name, file = Path(text).stem, text
        if name in graphs:
            raise BadParameter(f"two milestone files are for the use case {name!r}: write one as NAME=FILE")
        graph = graphs[name] = read_milestones(file)
        graph.name = name
        if tools is not None and (wrong := check_milestones(graph, tools).errors):
            raise SpecError.from_problems([(each.line, each.message) for each in wrong], file=graph.file)
    is_for_all = len(given) == 1 and given[0] == file
    return graphs[name] if is_for_all else graphs


def _scored(run: ScoringRun, total: int | None) -> Report:
    store = run.store
    if store is not None and run.kept:
        note(f"Continuing: {store.file} holds {counted(len(run.kept), 'conversation')} of an earlier run.")
    way_on = f"What was scored is saved in {store.file}: the same command continues." if store else ""
    with resumable_progress_bar(way_on, "scoring", total, "broken") as advance:
        scoring = run.areport(done=lambda outcome: advance(isinstance(outcome, BrokenConversation)))
        return run_in_loop(scoring, "areport")


def _say_undecided(
    result: Report, judge: ModelChoice | None, store: RunStore | None, unanswered: int
) -> None:
    ranges = (one for one in result.conversations if one.progress_range and one.progress_rate is None)
    names = list(dict.fromkeys(name for one in ranges for name in one.undecided))
    if names and judge is None:
        note(
            f"Nothing decides whether these were observed: {listed(names)}. If that matters, the figures are a range; "
            "--judge MODEL or a `check:` in the milestone file decides them."
        )
    if store is not None and unanswered:
        warn(
            f"the judge gave no answer about {counted(unanswered, 'conversation')}; the same command asks again "
            f"only about those; the others are saved in {store.file}"
        )
