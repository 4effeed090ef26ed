"""`arq-graph score`: measure recorded conversations, save each as it is measured, and report them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from typer import BadParameter, Exit, Option

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.cli import options
from arq_graph.cli.exit_codes import NO_ANSWER
from arq_graph.cli.input_files import (
    check_output_files,
    find_readable_files,
    read_conversations,
    read_journey_graph,
    read_tools,
)
from arq_graph.cli.progress_display import progress_bar
from arq_graph.cli.report_view import (
    format_count,
    incomplete_exit,
    list_names,
    show_broken,
    show_report,
    write_outputs,
)
from arq_graph.cli.score_processes import choose_process_count, score_in_processes
from arq_graph.cli.screen import note, warn
from arq_graph.cli.thresholds import require_thresholds
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.findings import check_milestones
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.graph_file import read_milestones
from arq_graph.milestones.reports.graph_registry import GraphSource
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord, ReportedConversation
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.scoring_run import (
    NumberedOutcomes,
    ScoringRun,
    UnansweredConversation,
    score_transcripts,
)
from arq_graph.milestones.reports.tables import build_tables
from arq_graph.milestones.transcript import Transcript
from arq_graph.testing.junit import write_junit

_MILESTONES_HELP = "The milestone file. Repeat it for several use cases, each with its NAME."
_PROCESSES_HELP = (
    "How many processes score without a judge. Default: one for each core if the files are large."
)


def score(
    transcripts: options.Transcripts,
    milestones: Annotated[
        list[str] | None, Option("--milestones", metavar="[NAME=]FILE", help=_MILESTONES_HELP)
    ] = None,
    agent: options.AgentOption = None,
    journey: options.Journey = None,
    tools: options.Tools = None,
    judge: options.Judge = None,
    votes: options.Votes = 1,
    base_url: options.BaseUrl = None,
    concurrency: Annotated[
        int, options.declare_count("--concurrency", "How many conversations to judge at once. Default: 8.")
    ] = 8,
    processes: Annotated[int | None, options.declare_count("--processes", _PROCESSES_HELP)] = None,
    html: options.HtmlOut = None,
    json: options.ReportOut = None,
    csv: options.CsvOut = None,
    junit: options.JunitOut = None,
    min_success: options.MinSuccess = None,
    max_broken: options.MaxBroken = None,
    verbose: options.Verbose = False,
) -> None:
    """Measure how far recorded conversations got: goal completion and progress rate.

    With --json, --html or --csv, results are saved as they come, and the same command continues a run that was
    stopped. If a record cannot be scored, the others still are, and the exit code is 1. It is 5 if a threshold was
    missed.
    """
    # The classes of agents and models load LangChain, which takes longer than scoring a thousand conversations.
    known_tools = read_tools(agent, tools)
    instructions = None
    if agent:
        from arq_graph.agent.spec import Agent

        instructions = Agent.from_yaml(agent).describe_instructions()
    files = find_readable_files(transcripts)
    check_output_files([json, html, csv, junit], transcripts)
    if journey is None:
        graphs = _read_graphs(milestones or [], known_tools)
    else:
        graphs = _make_journey_graph(agent, journey, milestones or [])
    llm_judge = None
    judge_name = "none"
    if judge:
        from arq_graph.cli.model_choice import choose_model
        from arq_graph.milestones.judging.llm_judge import LLMJudge

        choice = choose_model(judge, base_url)
        judge_name = choice.name
        llm_judge = LLMJudge(choice.chat_model(), tools=known_tools, votes=votes, instructions=instructions)
    output_file = json or html or csv
    if judge and not output_file:
        note("If this run is stopped, nothing is saved; with --json FILE the same command would continue it.")
    run = score_transcripts(
        graphs,
        read_conversations(files),
        tools=known_tools,
        judge=llm_judge,
        concurrency=concurrency,
        results=output_file and output_file.with_name(f"{output_file.name}.partial.jsonl"),
        depends_on={
            "the transcripts": fingerprint(*files),
            "the agent's instructions": fingerprint(instructions),
            "the judge": judge_name,
            "its votes": str(votes),
            "arq_graph": version("arq_graph"),
        },
    )
    # Counting the conversations costs nothing beside a judge; without one it would take as long as scoring.
    total = sum(1 for _ in read_conversations(files)) if judge else None
    scored = None
    if not judge and not run.stored_records:
        count = processes or choose_process_count(files, graphs)
        if count > 1:
            scored = score_in_processes(run, files, graphs, known_tools, count)
    report = _score(run, total, scored)
    show_broken(report.broken, "scored")
    unanswered = sum(isinstance(record, UnansweredConversation) for record in report.broken)
    if not report.conversations:
        if run.store is not None:
            run.store.remove()
        if not unanswered:
            raise InputError("nothing could be scored")
        warn("nothing could be scored: the judge gave no answer")
        raise Exit(NO_ANSWER)
    # The outputs are written before anything is printed, because printing fails if nobody reads it.
    tables = build_tables(report)
    write_outputs(report, json, html, _read_scored(files, run), tables, csv=csv)
    if junit is not None:
        write_junit(junit, report, "conversations")
    if run.store is not None and not unanswered:
        run.store.remove()
    show_report(report, tables, is_verbose=verbose)
    if not judge:
        _show_undecided(report)
    if run.store is not None and unanswered:
        warn(
            f"the judge gave no answer about {format_count(unanswered, 'conversation')}; the same command asks again "
            f"only about those; the others are saved in {run.store.file}"
        )
    if report.broken:
        raise incomplete_exit()
    require_thresholds([report], min_success, max_broken)


def _read_graphs(arguments: Sequence[str], tools: Any) -> GraphSource:
    """Return the graph for all conversations, or the graphs by use case."""
    if not arguments:
        raise BadParameter(
            "name what is to be reached: --milestones FILE, or --agent AGENT.yaml --journey ID"
        )
    graphs: dict[str, MilestoneGraph] = {}
    for argument in arguments:
        name, equals, file = argument.partition("=")
        if not equals or Path(argument).exists():  # a file's own name may have the sign in it
            name, equals, file = Path(argument).stem, "", argument
        if name in graphs:
            raise BadParameter(f"two milestone files are for the use case {name!r}: write one as NAME=FILE")
        graphs[name] = _read_graph(name, file, tools)
        if len(arguments) == 1 and not equals:
            return graphs[name]
    return graphs


def _make_journey_graph(agent: Path | None, journey: str, milestones: Sequence[str]) -> MilestoneGraph:
    if milestones:
        raise BadParameter("--journey takes the place of --milestones: give one of them")
    if agent is None:
        raise BadParameter("--journey is a journey of an agent: name its file, too: --agent AGENT.yaml")
    return read_journey_graph(agent, journey)


def _read_graph(name: str, file: str, tools: Any) -> MilestoneGraph:
    graph = read_milestones(file)
    graph.name = name
    if tools is not None:
        errors = check_milestones(graph, tools).errors
        if errors:
            problems = [(finding.line, finding.message) for finding in errors]
            raise SpecError.from_problems(problems, file=graph.file)
    return graph


def _score(run: ScoringRun, total: int | None, scored: Iterator[NumberedOutcomes] | None) -> Report:
    resume_hint = ""
    if run.store is not None:
        resume_hint = f"What was scored is saved in {run.store.file}: the same command continues."
        if run.stored_records:
            count = format_count(len(run.stored_records), "conversation")
            note(f"Continuing: {run.store.file} holds {count} of an earlier run.")
    with progress_bar("scoring", total, "broken", resume_hint) as advance:

        def show_progress(outcome: ReportedConversation) -> None:
            advance(isinstance(outcome, BrokenConversation))

        if scored is not None:
            return run.collect_report(scored, on_outcome=show_progress)
        return run_in_loop(run.areport(on_outcome=show_progress), "areport")


def _read_scored(files: Sequence[Path], run: ScoringRun) -> Iterator[Transcript]:
    """Yield the conversations that were scored; they are read again, so that memory stays bounded."""
    for number, conversation in enumerate(read_conversations(files)):
        is_scored = isinstance(run.outcomes.get(number), ConversationRecord)
        if is_scored and isinstance(conversation, Transcript):
            yield conversation


def _show_undecided(report: Report) -> None:
    """Name the milestones that nothing decides, if they change a figure."""
    names: list[str] = []
    for conversation in report.conversations:
        if conversation.progress_range and conversation.progress_rate is None:
            names += [name for name in conversation.undecided if name not in names]
    if names:
        note(
            f"Nothing decides whether these were observed: {list_names(names)}. If that matters, the figures are "
            "a range; --judge MODEL or a `check:` in the milestone file decides them."
        )
