"""`arq-graph score`: measure recorded conversations, keep what is measured as it comes, and report it."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import typer

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.cli.failures import NO_ANSWER, leaving_on_ctrl_c, note, warn
from arq_graph.cli.figures import counted
from arq_graph.cli.progress import progress_bar
from arq_graph.cli.report_table import show_broken, show_report
from arq_graph.cli.screen import output
from arq_graph.cli.settings import OFFLINE, ModelChoice
from arq_graph.cli.threads import existing_threads, when
from arq_graph.cli.tools_file import read_tools
from arq_graph.errors import ArqGraphError, InputError, SpecError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.graph_choice import GraphSource, fingerprint_of_graphs, gold_graph
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.report import Report, write_report
from arq_graph.milestones.reports.scoring_run import ScoringRun, UnansweredConversation
from arq_graph.milestones.reports.sources import Located, read_files
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import FORMATS, BrokenRecord, read_transcripts
from arq_graph.milestones.transcripts.threads import read_threads
from arq_graph.nodes.spec_sections import condition_text

_UNDECIDED_SHOWN = 5
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Wanted:
    """What is to be scored, on what, and where it goes."""

    files: tuple[Path, ...]
    milestones: tuple[str, ...] = ()
    gold: Literal["ordered", "unordered"] | None = None
    agent: Path | None = None
    tools: Path | None = None
    judge: ModelChoice | None = None
    votes: int = 1
    veto: bool = True
    date: datetime.date | None = None
    concurrency: int = 8
    format: str | None = None
    use_case: str | None = None
    limit: int | None = None
    html: Path | None = None
    json: Path | None = None
    fresh: bool = False

    @property
    def kept(self) -> Path | None:
        """Where results are kept as they come; None: nowhere."""
        out = self.json or self.html
        if out is None or (out.exists() and not out.is_file()):
            return None  # a pipe or a device has nothing beside it
        return out.with_name(f"{out.name}.partial.jsonl")

    def read(self) -> Iterator[Located]:
        """The conversations, from the beginning."""
        return read_files(
            self.files, format=self.format, use_case=self.use_case, limit=self.limit, read=_read_file
        )


@dataclass(frozen=True)
class _Known:
    """What is known of the agent that was recorded: its tools and what it was told; None: what each record says."""

    tools: Any = None
    instructions: str | None = None


def score_files(wanted: Wanted) -> None:
    """Score what is wanted, print the table, and write the files."""
    _require_files(wanted)
    known = _known(wanted)
    if wanted.gold:
        graphs: GraphSource = partial(gold_graph, ordered=wanted.gold == "ordered")
    else:
        graphs = _read_graphs(wanted.milestones, known.tools)
    store = _opened_store(wanted, graphs, known)
    run = ScoringRun(
        wanted.read(),
        graphs,
        tools=known.tools,
        judge=_judge(wanted, known),
        concurrency=wanted.concurrency,
        store=store,
    )
    result = _score_all(wanted, run, store)
    show_broken(result.broken, "scored")
    unanswered = sum(isinstance(one, UnansweredConversation) for one in result.broken)
    if not result.conversations:
        _leave_empty_handed(result, unanswered, store, wanted.use_case)
    _write(wanted, result, run)
    # Before anything is printed: whoever reads may have gone, and the report is written.
    if store is not None and not unanswered:
        store.remove()
    show_report(result, output())
    for what, file in (("report", wanted.json), ("page", wanted.html)):
        if file is not None:
            note(f"The {what} is in {file}.")
    _hint_at_judge(result, wanted)
    if store is not None and unanswered:
        warn(
            f"the judge gave no answer about {counted(unanswered, 'conversation')}; the same command asks again "
            f"about those alone, the others are kept in {store.file}"
        )


def _read_file(file: Path, *, format: str | None) -> Iterator[Transcript | BrokenRecord]:
    """The conversations of a file of transcripts, or of one in which `chat` and `run` keep their threads."""
    with file.open("rb") as stream:
        is_database = stream.read(len(_SQLITE)) == _SQLITE
    if not is_database:
        yield from read_transcripts(file, format=format)
        return
    with existing_threads(file) as threads:
        yield from read_threads(threads.checkpointer)


def _require_files(wanted: Wanted) -> None:
    """Refuse, before anything runs, what could not be read or written in the end."""
    if wanted.format not in (None, *FORMATS):
        raise InputError(f"the format {wanted.format!r} is not known; known are {', '.join(FORMATS)}")
    for file in wanted.files:
        if file.is_dir():
            raise InputError(f"{file} is a folder; name the files in it")
        if not file.exists():
            raise InputError(f"{file} cannot be read: there is no such file")
    outs = [out for out in (wanted.json, wanted.html) if out is not None]
    for out in outs:
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise InputError(f"{out} cannot be written: its folder is missing, or it is a folder itself")
        if any(file.resolve() == out.resolve() for file in wanted.files):
            raise InputError(f"{out} is one of the files that are read; write to another")
    if len({out.resolve() for out in outs}) < len(outs):
        raise InputError(f"{outs[0]} cannot be both the page and the report")


def _known(wanted: Wanted) -> _Known:
    if wanted.agent is None:
        return _Known(read_tools(None, wanted.tools))
    read = Agent.from_yaml(wanted.agent)
    rules = [f"- {when(condition_text(rule))}: {rule.action}" for rule in read.guidelines if rule.action]
    return _Known(list(read.toolbox.values()), "\n".join([read.profile.strip(), "", *rules]).strip())


def _read_graphs(given: Sequence[str], tools: Any) -> GraphSource:
    """The graphs of `--milestones`, `FILE` or `NAME=FILE` each; what is doubtful about them is shown."""
    graphs: dict[str, MilestoneGraph] = {}
    named = False
    for text in given:
        name, file = _named(text)
        named = named or name is not None
        graph = _checked(MilestoneGraph.from_yaml(file, check=False), tools)
        use_case = name if name is not None else file.stem
        if use_case in graphs:
            raise InputError(f"two milestone files are for the use case {use_case!r}; name one NAME=FILE")
        graphs[use_case] = graph
    return graphs if named or len(graphs) > 1 else next(iter(graphs.values()))


def _named(text: str) -> tuple[str | None, Path]:
    name, equals, file = text.partition("=")
    # A file's own name may have the sign in it.
    if not equals or not name or not file or Path(text).exists():
        return None, Path(text)
    return name, Path(file)


def _checked(graph: MilestoneGraph, tools: Any) -> MilestoneGraph:
    findings = graph.check(tools)
    if findings.errors:
        first, *others = findings.errors
        error = SpecError(first.message, file=graph.file, line=first.line)
        for other in others:
            error.add_note(f"{graph.file}: {other}")
        raise error
    # That nobody has reviewed the graph stands in the report, beside the figures.
    for warning in findings.warnings:
        if not warning.is_about_review:
            place = f"{graph.file}:{warning.line}" if warning.line else graph.file
            warn(f"{place}: {warning.message}")
    return graph


def _judge(wanted: Wanted, known: _Known) -> LLMJudge | None:
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


def _opened_store(wanted: Wanted, graphs: GraphSource, known: _Known) -> RunStore | None:
    """Where results are kept as they come; None where no file is written beside which they could be."""
    if wanted.kept is None:
        if wanted.judge is not None:
            note("Nothing is kept of a run that is stopped; with --json FILE it can be gone on with.")
        return None
    told = f", told {wanted.date}" if wanted.date else ""
    shaping = {
        "the transcripts": fingerprint(*wanted.files),
        "their format": wanted.format or "recognised",
        "the milestones": f"gold, {wanted.gold}" if wanted.gold else fingerprint_of_graphs(graphs),
        "the tools": fingerprint(known.tools),
        "the agent's instructions": fingerprint(known.instructions),
        "the judge": wanted.judge.name if wanted.judge else "none",
        "its settings": f"{wanted.votes} votes, {'veto' if wanted.veto else 'no veto'}{told}",
        "arq_graph": _version(),
    }
    return RunStore(wanted.kept, "score", shaping, fresh=wanted.fresh, instead="give --fresh to begin again")


def _score_all(wanted: Wanted, run: ScoringRun, store: RunStore | None) -> Report:
    """Score all conversations but those that an earlier run has scored."""
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
        progress_bar("scoring", _total(wanted), failing="broken") as advance,
    ):

        def done(outcome: Any) -> None:
            advance(isinstance(outcome, BrokenConversation))

        if wanted.judge is not None and wanted.concurrency > 1:
            return asyncio.run(run.areport(done=done, stand_ins=stand_ins))
        return run.report(done=done, stand_ins=stand_ins)


@contextmanager
def _told_the_way_on(run: ScoringRun, store: RunStore | None) -> Iterator[None]:
    try:
        yield
    except ArqGraphError as error:
        if store is not None and run.kept:
            error.add_note(_way_on(run, store))
        raise


def _way_on(run: ScoringRun, store: RunStore) -> str:
    scored = counted(len(run.kept), "conversation")
    return f"{scored} scored so far, kept in {store.file}: the same command goes on from there."


def _total(wanted: Wanted) -> int | None:
    # Reading once more costs nothing beside a judge; without one it would take as long as scoring.
    return None if wanted.judge is None else sum(1 for _ in wanted.read())


def _version() -> str:
    try:
        return version("arq_graph")
    except PackageNotFoundError:
        return "unknown"


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
        # Read a second time instead of held: memory stays bounded however many there are.
        said = (
            one.item
            for one in wanted.read()
            if isinstance(one.item, Transcript)
            and isinstance(run.outcomes.get(one.place), ConversationRecord)
        )
        write_html(wanted.html, result, said)


def _hint_at_judge(result: Report, wanted: Wanted) -> None:
    undecided = dict.fromkeys(
        name
        for one in result.conversations
        if one.progress_range is not None and (one.goal_completed is None or one.progress_rate is None)
        for name in one.undecided
    )
    if not undecided or wanted.judge is not None:
        return
    names = list(undecided)
    listed = ", ".join(names[:_UNDECIDED_SHOWN]) + (", …" if names[_UNDECIDED_SHOWN:] else "")
    note(
        f"Nothing says whether these were observed: {listed}. Where that matters the figures are a range; "
        "--judge MODEL decides them, or a `check:` in the milestone file."
    )
