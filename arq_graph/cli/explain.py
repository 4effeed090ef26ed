"""`arq-graph explain`, and how turns look in the terminal: in brief as in `chat`, or with every decision."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from typer import Option

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch, Move, Plan, Progress, Revision, ToolVerdict
from arq_graph.cli import options
from arq_graph.cli.screen import (
    Row,
    join_parts,
    label_grid,
    list_entry,
    make_printable,
    message_text,
    name_grid,
    print_json,
    safe_text,
    show,
    show_command,
    show_heading,
)
from arq_graph.cli.threads import (
    ThreadNote,
    Threads,
    ToolRun,
    Turn,
    TurnOutcome,
    list_threads,
    open_existing_threads,
    read_last_turn,
)
from arq_graph.errors import InputError
from arq_graph.milestones.reports.table_format import format_range

LEGEND = "M1, M2, … are the messages of the thread and T1, T2, … its tool results, as the model counts them."
_MOVE_LABELS = {"think": "thought", "speak": "said", "act": "called"}
_SHORT = 110
_LONG = 240
_LIMIT = 2_000
_ORIGIN_LABELS = {
    "code": "  decided by code",
    "relation": "  decided by a relation",
    "failure": "  could not be judged",
}
_STATUS_MARKS = {"success": ("✓", "green"), "error": ("✗", "red"), "pending": ("○", "yellow")}
_DECISION_LABELS = {
    "run": "is to be called",
    "missing": "an argument is missing",
    "invalid": "an argument is invalid",
    "confirm": "waits for the customer's yes",
    "declined": "not called",
}


def explain(
    thread: Annotated[
        str | None, Option("--thread", "-t", metavar="ID", help="The thread. Default: the one used last.")
    ] = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> None:
    """See why the last reply is what it is: guidelines, tool decisions, revisions."""
    with open_existing_threads(db) as threads:
        latest_thread = _find_latest_thread(threads)
        thread = thread or latest_thread
        checkpoint = threads.get_tuple({"configurable": {"thread_id": thread}})
        thread_note = ThreadNote.load(thread, threads)
    turn = read_last_turn(checkpoint.checkpoint["channel_values"]) if checkpoint else None
    if turn is None:
        raise InputError(
            f"no thread {thread!r} is saved here; the latest is {latest_thread!r}: name one with --thread, or start one"
        )
    if as_json:
        made_with = thread_note.model_dump(exclude={"guidelines"}) if thread_note else {}
        print_json({"thread": thread} | made_with | turn.model_dump(mode="json"))
        return
    name, model = "Thread", ""
    if thread_note:
        name, model = thread_note.agent, f" · {thread_note.model} · mode {thread_note.mode}"
    show(join_parts(safe_text(name, "bold"), f"{model} · thread {thread}, turn {turn.turn}"), "")
    show_explanation(turn, thread_note)
    if turn.reply is None and thread_note:
        show("", "The turn is unfinished. Continue with:")
        command = ["arq-graph", "chat", thread_note.file, "--thread", thread]
        if db:
            command += ["--db", str(db)]
        show_command(command)


def _find_latest_thread(threads: Threads) -> str:
    thread_ids = list_threads(threads)
    if not thread_ids:
        raise InputError("no conversation is saved yet: run one first with `arq-graph chat AGENT.yaml`")
    return thread_ids[0]


def show_explanation(turn: Turn, thread_note: ThreadNote | None) -> None:
    """Print every judgement, decision and revision of a turn."""
    show(customer_view(turn.customer))
    if turn.reply is None:
        show("There is no reply yet.", style="yellow")
    else:
        show(reply_view(turn))
    active_count = len(turn.active)
    show_heading(f"Guidelines: {active_count} active, {len(turn.guidelines) - active_count} not")
    texts = thread_note.guidelines if thread_note else {}
    for match in sorted(turn.guidelines, key=lambda match: not match.active):
        show(_guideline_entry(match, texts.get(match.guideline)))
    if turn.plan is not None:
        show_heading(f"Plan: version {turn.plan.version}")
        for line in _plan_lines(turn.plan):
            show(line)
    if turn.moves:
        show_heading("Moves")
        for move in turn.moves:
            show(_move_line(move))
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
    if turn.progress is not None:
        show_heading("Progress")
        show(progress_line(turn.progress))
    show("", LEGEND, style="dim")


def _guideline_entry(match: GuidelineMatch, texts: tuple[str | None, str | None] | None) -> RenderableType:
    mark, mark_style, style = ("●", "green", "bold cyan") if match.active else ("○", "dim", "cyan")
    title = safe_text(match.guideline, style)
    if match.score is not None:
        title.append_text(safe_text(f"  score {match.score}"))
    title.append_text(safe_text(_ORIGIN_LABELS.get(match.origin, ""), "dim"))
    if match.continuous:
        title.append_text(safe_text("  continuous", "dim"))
    if match.previously_applied in ("partially", "fully"):
        title.append_text(safe_text(f"  {match.previously_applied} applied before", "dim"))
    lines = [title]
    if texts is not None:
        lines.append(safe_text(guideline_text(*texts), "dim"))
    if match.rationale:
        lines.append(safe_text(match.rationale, limit=_LIMIT))
    for remark in match.remarks:
        lines.append(safe_text(remark, "yellow"))
    return list_entry(mark, mark_style, lines)


def _tool_entries(turn: Turn) -> Iterator[RenderableType]:
    """Lay out each call with the decision that led to it, then the decisions that led to no call."""
    remaining = list(turn.tool_decisions)
    for run in turn.tool_calls:
        lines = [_tool_run_line(run, _LIMIT)]
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
        call = _call_line(decision.tool, decision.arguments)
    yield join_parts(call, f"  {_DECISION_LABELS[decision.kind]}")
    if decision.argument:
        yield safe_text(f"{decision.argument}: {decision.description}")
    if decision.problem:
        yield safe_text(decision.problem, "yellow", _LIMIT)
    yield _decision_reason(decision)


def _decision_reason(decision: ToolVerdict) -> Text:
    score = f"score {decision.score}. " if decision.score is not None else ""
    return safe_text(score + decision.rationale, "dim", _LIMIT)


def _revision_entry(revision: Revision, number: int) -> RenderableType:
    lines = [message_text(revision.content, _LIMIT)]
    for violation in revision.violations:
        lines.append(safe_text(violation, "yellow"))
    if revision.followed:
        lines.append(safe_text(f"says that it follows {', '.join(revision.followed)}", "dim"))
    style = "green" if revision.sent else "dim"
    return list_entry(str(number), style, lines)


def customer_view(text: str) -> Table:
    """Lay out the customer's message."""
    return label_grid([("Customer", "bold green", [message_text(text)])])


def reply_view(turn: Turn) -> Table:
    """Lay out the reply and what is wrong with it."""
    rows: list[Row] = [("Agent", "bold cyan", [message_text(turn.reply or "")])]
    if turn.sent_revision is not None:
        for violation in turn.sent_revision.violations:
            rows.append(("but", "yellow", [safe_text(violation, "yellow")]))
    return label_grid(rows)


def show_outcome(outcome: TurnOutcome, agent: Agent) -> None:
    """Print what led to the reply, the reply, and the calls, tokens and time that it took."""
    turn = outcome.turn
    trace_rows = list(_trace_rows(turn, agent))
    if trace_rows:
        show(label_grid(trace_rows), "")
    if outcome.pending_calls:
        names = ", ".join(call["name"] for call in outcome.pending_calls)
        show(label_grid([("waits", "bold yellow", [f"for an operator to approve {names}"])]))
        return
    show(reply_view(turn))
    if turn.progress is not None:
        show(label_grid([("progress", "dim", [progress_line(turn.progress)])]))
    show(label_grid([("", "", [_effort_line(outcome)])]))


def _effort_line(outcome: TurnOutcome) -> Text:
    calls = outcome.usage.calls
    tokens = outcome.usage.total["total_tokens"]
    parts = []
    if outcome.turn.followed:
        parts.append(f"follows {', '.join(outcome.turn.followed)}")
    if calls:
        parts.append("1 model call" if calls == 1 else f"{calls} model calls")
    if tokens:
        parts.append(f"{tokens:,} tokens")
    parts.append(f"{outcome.seconds:.1f} s")
    return safe_text(" · ".join(parts), "dim")


def _trace_rows(turn: Turn, agent: Agent) -> Iterator[Row]:
    active = [(match.guideline, [_match_reason(match, agent)]) for match in turn.guidelines if match.active]
    if active:
        yield "active", "dim", [name_grid(active)]
    dropped = []
    for match in turn.guidelines:
        if match.matched and not match.active:
            dropped.append((match.guideline, [safe_text("; ".join(match.remarks[-1:]), "dim", _SHORT)]))
    if dropped:
        yield "dropped", "dim", [name_grid(dropped)]
    if turn.plan is not None:
        yield "plan", "dim", list(_plan_lines(turn.plan))
    if turn.moves:
        yield "moves", "dim", [_move_line(move) for move in turn.moves]
    if turn.tool_calls:
        yield "tools", "dim", [_tool_run_line(run, _LONG) for run in turn.tool_calls]
    incomplete, unconfirmed = [], []
    for decision in turn.tool_decisions:
        if decision.kind in ("missing", "invalid"):
            incomplete.append(_incomplete_call_line(decision))
        elif decision.kind == "confirm":
            unconfirmed.append(_call_line(decision.tool, decision.arguments))
    if incomplete:
        yield "missing", "yellow", incomplete
    if unconfirmed:
        yield "to agree", "yellow", unconfirmed


def _match_reason(match: GuidelineMatch, agent: Agent) -> Text:
    if match.origin == "relation" and match.remarks:
        return safe_text(match.remarks[-1], limit=_SHORT)
    condition = agent.get_guideline(match.guideline).condition_text
    return safe_text(match.rationale or guideline_text(condition), limit=_SHORT)


def _incomplete_call_line(decision: ToolVerdict) -> Text:
    problem = decision.problem if decision.kind == "invalid" else decision.description
    explanation = safe_text(f"{decision.kind}. {make_printable(problem, _SHORT)}", "dim")
    argument = decision.argument or "the arguments"
    return join_parts(safe_text(decision.tool, "bold"), f": {argument} ", explanation)


def guideline_text(condition: str | None, action: str | None = None) -> str:
    """Return a guideline as people read it."""
    text = "always" if condition is None else f"when {condition}"
    return f"{text}: {action}" if action else text


def _call_line(tool: str, arguments: Mapping[str, Any]) -> Text:
    parts = []
    for name, value in arguments.items():
        parts.append(f"{name}={json.dumps(value, ensure_ascii=False, default=str)}")
    return join_parts(safe_text(tool, "bold"), "(", safe_text(", ".join(parts), limit=_LONG), ")")


def _tool_run_line(run: ToolRun, limit: int) -> Text:
    call = _call_line(run.tool, run.arguments)
    if run.result is None:
        return join_parts(call, safe_text(" … no result yet", "yellow"))
    mark = safe_text(" → ", "green") if run.status == "success" else safe_text(" ✗ ", "red")
    return join_parts(call, mark, safe_text(run.result, limit=limit))


def _plan_lines(plan: Plan) -> Iterator[Text]:
    if plan.previous_steps:
        yield safe_text(f"so far: {make_printable(plan.previous_steps, _LONG)}", "dim")
    for change in plan.changes:
        description = make_printable(change.what, _SHORT).rstrip(".")
        yield safe_text(f"changed: {description}, as {make_printable(change.why, _SHORT)}", "yellow")
    for number, step in enumerate(plan.steps, start=1):
        tool = safe_text(f"  {step.tool}", "bold") if step.tool else ""
        yield join_parts(f"{number}. ", safe_text(step.description, limit=_SHORT), tool)
        yield safe_text(f"   {make_printable(step.reason, _SHORT)}", "dim")
    for fault in plan.faults:
        yield safe_text(fault, "yellow", _LONG)


def _move_line(move: Move) -> Text:
    label = move.category.replace("_", " ") if move.category else _MOVE_LABELS[move.kind]
    style = "dim" if move.kind == "think" else ""
    return join_parts(safe_text(f"{label}: ", "dim"), safe_text(move.text, style, _LONG))


def progress_line(progress: Progress) -> Text:
    """Lay out how far the conversation got, and which milestones could come next."""
    rate = "nothing to measure"
    if progress.progress_range is not None:
        low, high = progress.progress_range
        rate = format_range(f"{low:.0%}", f"{high:.0%}")
    line = safe_text(rate, "bold")
    if progress.goal_completed:
        line.append_text(safe_text(" goal completed", "green"))
    elif progress.next:
        names = ", ".join(milestone.name for milestone in progress.next)
        line.append_text(safe_text(f" · next: {make_printable(names, _SHORT)}", "dim"))
    if progress.forbidden:
        line.append_text(safe_text(f" · forbidden: {', '.join(progress.forbidden)}", "red"))
    return line
