"""`arq-graph explain`: the last turn of a thread, or a turn of an evaluated conversation, with every decision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType
from rich.text import Text
from typer import Argument, BadParameter, Option

from arq_graph.agent.journey import make_rule_id
from arq_graph.agent.state import GuidelineMatch, Revision, ToolVerdict
from arq_graph.cli import options
from arq_graph.cli.journey_view import explain_journey
from arq_graph.cli.noted_turn import explain_noted_turn
from arq_graph.cli.screen import (
    join_parts,
    list_entry,
    message_text,
    print_json,
    safe_text,
    show,
    show_command,
    show_heading,
)
from arq_graph.cli.takeover_view import format_checks, takeover_view
from arq_graph.cli.threads import ThreadNote, find_latest_thread, load_last_turn, open_existing_threads
from arq_graph.cli.turn import Turn
from arq_graph.cli.turn_view import (
    DECISION_LABELS,
    LIMIT,
    ORIGIN_LABELS,
    customer_view,
    format_call,
    format_move,
    format_passages,
    format_plan,
    format_tool_run,
    format_violation,
    guideline_text,
    progress_line,
    reply_view,
)

LEGEND = "M1, M2, … are the messages of the thread and T1, T2, … its tool results, as the model counts them."
_STATUS_MARKS = {"success": ("✓", "green"), "error": ("✗", "red"), "pending": ("○", "yellow")}


def explain(
    results: Annotated[
        Path | None,
        Argument(
            metavar="RESULTS.jsonl",
            help="The results of an evaluation. Default: threads, as chat saves them.",
        ),
    ] = None,
    conversation: Annotated[
        str | None, Option("--conversation", metavar="ID", help="One of the results. Default: the last one.")
    ] = None,
    turn_number: Annotated[
        int | None, Option("--turn", metavar="N", help="One of its turns, from 1. Default: the last one.")
    ] = None,
    thread: Annotated[
        str | None, Option("--thread", "-t", metavar="ID", help="The thread. Default: the one used last.")
    ] = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> None:
    """See why a reply is what it is: guidelines, tool decisions, revisions.

    Of a thread, it is the last reply. Of an evaluation's results, it is that of any turn, as far as the file notes it.
    """
    if results is not None:
        explain_noted_turn(results, conversation, turn_number, as_json=as_json)
        return
    if conversation is not None or turn_number is not None:
        raise BadParameter(
            "--conversation and --turn are for the results of an evaluation: name their file first"
        )
    with open_existing_threads(db) as threads:
        thread = thread or find_latest_thread(threads)
        turn = load_last_turn(thread, threads)
        thread_note = ThreadNote.load(thread, threads)
    if as_json:
        made_with = thread_note.model_dump(exclude={"guidelines", "journeys"}) if thread_note else {}
        print_json({"thread": thread} | made_with | turn.model_dump(mode="json"))
        return
    name, model = "Thread", ""
    if thread_note:
        name, model = thread_note.agent, f" · {thread_note.model} · mode {thread_note.mode}"
    show(join_parts(safe_text(name, "bold"), f"{model} · thread {thread}, turn {turn.turn}"), "")
    show_explanation(turn, thread_note)
    if turn.reply is None and turn.takeover is None and thread_note:
        show("", "The turn is unfinished. Continue with:")
        command = ["arq-graph", "chat", thread_note.file, "--thread", thread]
        if db:
            command += ["--db", str(db)]
        show_command(command)


def show_explanation(turn: Turn, thread_note: ThreadNote | None) -> None:
    """Print every judgement, decision and revision of a turn."""
    show(customer_view(turn.customer))
    if turn.reply is not None:
        show(reply_view(turn))
    elif turn.takeover is None:
        show("There is no reply yet.", style="yellow")
    if turn.takeover is not None:
        show(takeover_view(turn.takeover))
    if turn.checks:
        show_heading("Checks")
        for line in format_checks(turn.checks):
            show(line)
    steps_by_journey = _list_steps(turn, thread_note)
    step_ids = {make_rule_id(journey, step) for journey, steps in steps_by_journey.items() for step in steps}
    guidelines = [
        match for match in turn.guidelines if match.guideline not in step_ids | steps_by_journey.keys()
    ]
    active_count = sum(match.active for match in guidelines)
    show_heading(f"Guidelines: {active_count} active, {len(guidelines) - active_count} not")
    texts = thread_note.guidelines if thread_note else {}
    for match in sorted(guidelines, key=lambda match: not match.active):
        show(_guideline_entry(match, texts.get(match.guideline)))
    if turn.journeys:
        show_heading("Journeys")
    matches = {match.guideline: match for match in turn.guidelines}
    for journey in turn.journeys:
        show(explain_journey(journey, steps_by_journey[journey.journey], matches))
    if turn.passages:
        show_heading(f"Knowledge: {len(turn.passages)} passages found")
        for line in format_passages(turn):
            show(line)
    if turn.plan is not None:
        show_heading(f"Plan: version {turn.plan.version}")
        for line in format_plan(turn.plan):
            show(line)
    if turn.moves:
        show_heading("Moves")
        for move in turn.moves:
            show(format_move(move))
            for fault in move.faults:
                show(join_parts("  ", safe_text(fault, "yellow")))
    show_heading("Tools" if turn.tool_decisions or turn.tool_calls else "Tools: none was considered")
    for entry in _tool_entries(turn):
        show(entry)
    sent = ("none yet", "the first was sent", "the last was sent")[min(len(turn.revisions), 2)]
    show_heading(f"Revisions: {sent}")
    for number, revision in enumerate(turn.revisions, start=1):
        show(_revision_entry(revision, number))
    if turn.reply is not None:
        show_heading(f"Followed: {', '.join(turn.followed) or 'none of the active guidelines'}")
    if turn.all_progress:
        show_heading("Progress")
        show(*map(progress_line, turn.all_progress))
    show("", LEGEND, style="dim")


def _list_steps(turn: Turn, thread_note: ThreadNote | None) -> dict[str, tuple[str, ...]]:
    """Return the ids of the steps of each journey that has begun; without a note, of those that ever opened."""
    steps: dict[str, tuple[str, ...]] = {}
    for journey in turn.journeys:
        steps[journey.journey] = tuple(progress.step for progress in journey.steps)
        if thread_note:
            steps[journey.journey] = thread_note.journeys.get(journey.journey, steps[journey.journey])
    return steps


def _guideline_entry(match: GuidelineMatch, texts: tuple[str | None, str | None] | None) -> RenderableType:
    mark, mark_style, style = ("●", "green", "bold cyan") if match.active else ("○", "dim", "cyan")
    title = safe_text(match.guideline, style)
    if match.score is not None:
        title.append_text(safe_text(f"  score {match.score}"))
    title.append_text(safe_text(ORIGIN_LABELS.get(match.origin, ""), "dim"))
    if match.continuous:
        title.append_text(safe_text("  continuous", "dim"))
    if match.previously_applied in ("partially", "fully"):
        title.append_text(safe_text(f"  {match.previously_applied} applied before", "dim"))
    lines = [title]
    if texts is not None:
        lines.append(safe_text(guideline_text(*texts), "dim"))
    if match.rationale:
        lines.append(safe_text(match.rationale, limit=LIMIT))
    for remark in match.remarks:
        lines.append(safe_text(remark, "yellow"))
    return list_entry(mark, mark_style, lines)


def _tool_entries(turn: Turn) -> Iterator[RenderableType]:
    """Lay out each call with the decision that led to it, then the decisions that led to no call."""
    remaining = list(turn.tool_decisions)
    for run in turn.tool_calls:
        lines = [format_tool_run(run, LIMIT)]
        for decision in remaining:
            if decision.kind == "run" and decision.tool == run.tool:
                remaining.remove(decision)
                lines.append(_decision_reason(decision))
                break
        mark, style = _STATUS_MARKS[run.status]
        yield list_entry(mark, style, lines)
    for decision in remaining:
        yield list_entry("○", "dim", list(_decision_lines(decision)))


def _decision_lines(decision: ToolVerdict) -> Iterator[Text]:
    call = safe_text(decision.tool, "bold")
    if decision.arguments:
        call = format_call(decision.tool, decision.arguments)
    yield join_parts(call, f"  {DECISION_LABELS[decision.kind]}")
    if decision.argument:
        yield safe_text(f"{decision.argument}: {decision.description}")
    if decision.problem:
        yield safe_text(decision.problem, "yellow", LIMIT)
    yield _decision_reason(decision)


def _decision_reason(decision: ToolVerdict) -> Text:
    score = f"score {decision.score}. " if decision.score is not None else ""
    return safe_text(score + decision.rationale, "dim", LIMIT)


def _revision_entry(revision: Revision, number: int) -> RenderableType:
    lines = [message_text(revision.content, LIMIT)]
    for violation in revision.violations:
        lines.append(format_violation(violation))
    for used in revision.replies:
        sources = [f"{name} from {field.source}" for name, field in used.values.items()]
        lines.append(safe_text(" · ".join([f"reply {used.reply}", *sources]), "dim", LIMIT))
    for id, reason in (revision.broken or {}).items():
        lines.append(safe_text(f"breaks {id}: {reason}", "yellow", LIMIT))
    if revision.followed:
        lines.append(safe_text(f"says that it follows {', '.join(revision.followed)}", "dim"))
    style = "green" if revision.sent else "dim"
    return list_entry(str(number), style, lines)
