"""`arq-graph score`: measure recorded conversations, keep what is measured as it comes, and report it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.cli.failures import NO_ANSWER, leaving_on_ctrl_c, note, warn
from arq_graph.cli.figures import counted
from arq_graph.cli.files import read_tools, require_writable
from arq_graph.cli.options import BaseUrl, HtmlOut, Judge, ReportOut
from arq_graph.cli.progress import progress_bar
from arq_graph.cli.screen import output
from arq_graph.cli.settings import OFFLINE, choose_model, installed_version
from arq_graph.cli.tables import show_broken, show_report
from arq_graph.cli.threads import existing_threads, when
from arq_graph.errors import ArqGraphError, InputError, SpecError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.graph_choice import GraphSource, fingerprint_of_graphs, gold_graph
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.report import Report, write_report
from arq_graph.milestones.reports.scoring_run import ScoringRun, UnansweredConversation
from arq_graph.milestones.reports.sources import read_files
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcripts
from arq_graph.milestones.transcripts.threads import read_threads
from arq_graph.nodes.spec_sections import condition_text

_UNDECIDED_SHOWN = 5
_SQLITE = b"SQLite format 3\0"


def score(
    transcripts: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRANSCRIPTS",
            help="Recorded conversations of any agent: OpenAI chat or LangChain messages, tau-bench results, …, as "
            "JSON or JSON Lines; or a file of threads.",
        ),
    ],
    milestones: Annotated[
        list[str] | None,
        typer.Option(
            "--milestones",
            metavar="[NAME=]FILE",
            help="The milestone file. Several: one for each use case, named NAME or as the file is.",
        ),
    ] = None,
    gold: Annotated[
        Literal["ordered", "unordered"] | None,
        typer.Option("--gold", help="Instead: the gold actions that each record holds, as tau-bench's do."),
    ] = None,
    agent: Annotated[
        Path | None,
        typer.Option(metavar="AGENT.yaml", help="The agent, for its tools' schemas and its instructions."),
    ] = None,
    tools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The tools alone: OpenAI tool definitions as JSON.")
    ] = None,
    judge: Judge = None,
    votes: Annotated[
        int, typer.Option(min=1, help="How often the judge is asked; the majority decides.")
    ] = 1,
    no_veto: Annotated[
        bool, typer.Option("--no-veto", help="The judge may not take away a call that code counts.")
    ] = False,
    date: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="YYYY-MM-DD",
            help="The day of the conversations, for the judge. Without it the judge is told no date.",
        ),
    ] = None,
    base_url: BaseUrl = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="How many conversations the judge is asked about at once.")
    ] = 8,
    use_case: Annotated[
        str | None, typer.Option(metavar="NAME", help="Conversations of this use case alone.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many conversations at most.")] = None,
    html: HtmlOut = None,
    json: ReportOut = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin again where an earlier run was not finished.")
    ] = False,
) -> None:
    """Measure how far recorded conversations got: goal completion and progress rate.

    With --json or --html, results are kept as they come: the same command goes on with a run that was stopped.
    """
    if bool(milestones) == bool(gold):
        raise typer.BadParameter(
            "say what to measure on: --milestones FILE, or --gold ordered|unordered (one of them)"
        )
    if judge is None and (votes != 1 or no_veto or date is not None):
        raise typer.BadParameter("--votes, --no-veto and --date are for a judge: name one with --judge")
    known = read_tools(agent, tools)
    instructions = _instructions(agent)
    for file in transcripts:
        if not file.exists() or file.is_dir():
            raise InputError(
                f"{file} cannot be read: it {'is a folder' if file.is_dir() else 'does not exist'}"
            )
    require_writable([json, html], transcripts)
    if gold:
        graphs: GraphSource = partial(gold_graph, ordered=gold == "ordered")
    else:
        graphs = _read_graphs(milestones or (), known)
    choice = choose_model(judge, base_url) if judge else None
    day = date.date() if date else None
    store = None
    if kept := _kept(json or html):
        shaping = {
            "the transcripts": fingerprint(*transcripts),
            "the milestones": f"gold, {gold}" if gold else fingerprint_of_graphs(graphs),
            "the tools": fingerprint(known),
            "the agent's instructions": fingerprint(instructions),
            "the judge": choice.name if choice else "none",
            "its settings": f"{votes} votes, {'no veto' if no_veto else 'veto'}"
            + (f", told {day}" if day else ""),
            "arq_graph": installed_version(),
        }
        store = RunStore(kept, "score", shaping, fresh=fresh, instead="give --fresh to begin again")
    elif choice is not None:
        note("Nothing is kept of a run that is stopped; with --json FILE it can be gone on with.")
    read = partial(read_files, transcripts, use_case=use_case, limit=limit, read=_read_file)
    decides = None
    if choice is not None:
        decides = LLMJudge(
            choice.chat_model(),
            tools=known,
            votes=votes,
            veto=not no_veto,
            instructions=instructions,
            date=day,
        )
    run = ScoringRun(read(), graphs, tools=known, judge=decides, concurrency=concurrency, store=store)
    # Reading once more costs nothing beside a judge; without one it would take as long as scoring.
    total = None if choice is None else sum(1 for _ in read())
    stand_ins = ("the judge",) if choice is not None and choice.spec == OFFLINE else ()
    result = _scored(run, store, total, at_once=choice is not None and concurrency > 1, stand_ins=stand_ins)
    show_broken(result.broken, "scored")
    unanswered = sum(isinstance(one, UnansweredConversation) for one in result.broken)
    if not result.conversations:
        _leave_empty_handed(result, unanswered, store, use_case)
    if json is not None:
        write_report(json, result)
    if html is not None:
        # Read a second time instead of held: memory stays bounded however many there are.
        scored = (one.item for one in read() if isinstance(run.outcomes.get(one.place), ConversationRecord))
        write_html(html, result, (item for item in scored if isinstance(item, Transcript)))
    # Before anything is printed: whoever reads may have gone, and the report is written.
    if store is not None and not unanswered:
        store.remove()
    show_report(result, output())
    for what, out in (("report", json), ("page", html)):
        if out is not None:
            note(f"The {what} is in {out}.")
    if choice is None:
        _hint_at_judge(result)
    if store is not None and unanswered:
        warn(
            f"the judge gave no answer about {counted(unanswered, 'conversation')}; the same command asks again "
            f"about those alone, the others are kept in {store.file}"
        )


def _kept(out: Path | None) -> Path | None:
    """Where results are kept as they come; None where no file is written beside which they could be."""
    if out is None or (out.exists() and not out.is_file()):
        return None  # a pipe or a device has nothing beside it
    return out.with_name(f"{out.name}.partial.jsonl")


def _instructions(file: Path | None) -> str | None:
    """What the agent that was recorded was told; None: what each record says."""
    if file is None:
        return None
    agent = Agent.from_yaml(file)
    rules = [f"- {when(condition_text(rule))}: {rule.action}" for rule in agent.guidelines if rule.action]
    return "\n".join([agent.profile.strip(), "", *rules]).strip()


def _read_file(file: Path) -> Iterator[Transcript | BrokenRecord]:
    """The conversations of a file of transcripts, or of one in which `chat` and `run` keep their threads."""
    with file.open("rb") as stream:
        is_database = stream.read(len(_SQLITE)) == _SQLITE
    if not is_database:
        yield from read_transcripts(file)
        return
    with existing_threads(file) as threads:
        yield from read_threads(threads.checkpointer)


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


def _scored(
    run: ScoringRun, store: RunStore | None, total: int | None, *, at_once: bool, stand_ins: tuple[str, ...]
) -> Report:
    """Score all conversations but those that an earlier run has scored."""
    if store is not None and run.kept:
        note(f"Going on: {store.file} holds {counted(len(run.kept), 'conversation')} of an earlier run.")

    def announce() -> None:
        way_on = (
            _way_on(run, store) if store else "Nothing is kept: with --json FILE a run can be gone on with."
        )
        note(f"Interrupted. {way_on}")

    with leaving_on_ctrl_c(announce), progress_bar("scoring", total, failing="broken") as advance:

        def done(outcome: Any) -> None:
            advance(isinstance(outcome, BrokenConversation))

        try:
            if at_once:
                return asyncio.run(run.areport(done=done, stand_ins=stand_ins))
            return run.report(done=done, stand_ins=stand_ins)
        except ArqGraphError as error:
            if store is not None and run.kept:
                error.add_note(_way_on(run, store))
            raise


def _way_on(run: ScoringRun, store: RunStore) -> str:
    scored = counted(len(run.kept), "conversation")
    return f"{scored} scored so far, kept in {store.file}: the same command goes on from there."


def _leave_empty_handed(
    result: Report, unanswered: int, store: RunStore | None, use_case: str | None
) -> None:
    if store is not None:
        store.remove()
    if unanswered:
        warn("nothing could be scored: the judge gave no answer")
        raise typer.Exit(NO_ANSWER)
    whose = f"no conversation is of the use case {use_case!r}" if use_case else "there is no conversation"
    broken = f", and {counted(len(result.broken), 'record')} broken" if result.broken else ""
    raise InputError(f"nothing could be scored: {whose}{broken}")


def _hint_at_judge(result: Report) -> None:
    names = list(
        dict.fromkeys(
            name
            for one in result.conversations
            if one.progress_range is not None and (one.goal_completed is None or one.progress_rate is None)
            for name in one.undecided
        )
    )
    if not names:
        return
    listed = ", ".join(names[:_UNDECIDED_SHOWN]) + (", …" if names[_UNDECIDED_SHOWN:] else "")
    note(
        f"Nothing says whether these were observed: {listed}. Where that matters the figures are a range; "
        "--judge MODEL decides them, or a `check:` in the milestone file."
    )
