"""How a turn looks in the terminal: in brief, as in `chat`, and the lines that `explain` shows, too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch, Move, Plan, Progress, ToolVerdict
from arq_graph.cli.journey_view import list_journeys
from arq_graph.cli.screen import (
    Row,
    join_parts,
    label_grid,
    make_printable,
    message_text,
    name_grid,
    safe_text,
    show,
)
from arq_graph.cli.takeover_view import HOW_TO_WRITE, format_checks, takeover_view
from arq_graph.cli.turn import ToolRun, Turn, TurnOutcome
from arq_graph.milestones.reports.table_format import format_range

LIMIT = 2_000
"""The most characters of a text that is shown in full."""
LONG = 240
_SHORT = 110
ORIGIN_LABELS = {
    "code": "  decided by code",
    "relation": "  decided by a relation",
    "failure": "  could not be judged",
}
DECISION_LABELS = {
    "run": "is to be called",
    "missing": "an argument is missing",
    "invalid": "an argument is invalid",
    "confirm": "waits for the customer's yes",
    "declined": "not called",
}
_MOVE_LABELS = {"think": "thought", "speak": "said", "act": "called"}


def format_violation(violation: str) -> Text:
    """Lay out what is wrong with a candidate, without the blueprint's name and the candidate's number."""
    return safe_text(re.sub(r"^\w+\.(revisions\[-?\d+\]\.)?", "", violation), "yellow")


def customer_view(text: str) -> Table:
    """Lay out the customer's message."""
    return label_grid([("Customer", "bold green", [message_text(text)])])


def reply_view(turn: Turn) -> Table:
    """Lay out the reply and what is wrong with it."""
    rows: list[Row] = [("Agent", "bold cyan", [message_text(turn.reply or "")])]
    if turn.sent_revision is not None:
        for violation in turn.sent_revision.violations:
            rows.append(("but", "yellow", [format_violation(violation)]))
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
    if turn.reply is not None:
        show(reply_view(turn))
    if turn.takeover is not None:
        is_new = turn.reply is not None  # later turns have none
        show(takeover_view(turn.takeover, with_summary=is_new), HOW_TO_WRITE)
    if turn.all_progress:
        show(label_grid([("progress", "dim", list(map(progress_line, turn.all_progress)))]))
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
    journey_rules = {id for journey in agent.journeys for id in journey.rule_ids}
    active = []
    for match in turn.guidelines:
        if match.active and match.guideline not in journey_rules:
            active.append((match.guideline, [_match_reason(match, agent)]))
    if active:
        yield "active", "dim", [name_grid(active)]
    dropped = []
    for match in turn.guidelines:
        if match.matched and not match.active:
            dropped.append((match.guideline, [safe_text("; ".join(match.remarks[-1:]), "dim", _SHORT)]))
    if dropped:
        yield "dropped", "dim", [name_grid(dropped)]
    if turn.journeys:
        yield "journeys", "dim", [name_grid(list_journeys(turn.journeys, agent, turn.guidelines))]
    failed_checks = [decision for decision in turn.checks if not decision.passed]
    if failed_checks:
        yield "checks", "yellow", list(format_checks(failed_checks))
    if turn.passages:
        yield "found", "dim", list(format_passages(turn))
    if turn.plan is not None:
        yield "plan", "dim", list(format_plan(turn.plan))
    if turn.moves:
        yield "moves", "dim", [format_move(move) for move in turn.moves]
    if turn.tool_calls:
        yield "tools", "dim", [format_tool_run(run, LONG) for run in turn.tool_calls]
    incomplete, unconfirmed = [], []
    for decision in turn.tool_decisions:
        if decision.kind in ("missing", "invalid"):
            incomplete.append(_incomplete_call_line(decision))
        elif decision.kind == "confirm":
            unconfirmed.append(format_call(decision.tool, decision.arguments))
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


def format_passages(turn: Turn) -> Iterator[Text]:
    """Yield a line for each passage that was found: where it is from, if the reply cites it, and how it begins."""
    cited = turn.sent_revision.cited if turn.sent_revision else ()
    for passage in turn.passages:
        line = safe_text(passage.id, "bold cyan" if passage.id in cited else "cyan")
        if passage.id in cited:
            line.append_text(safe_text(" cited", "green"))
        for label in filter(None, (passage.title, passage.url or passage.source)):
            line.append_text(safe_text(f" · {label}"))
        yield join_parts(line, safe_text(f": {make_printable(passage.text, _SHORT)}", "dim"))


def format_call(tool: str, arguments: Mapping[str, Any]) -> Text:
    """Return a call as it would be written in code."""
    parts = []
    for name, value in arguments.items():
        parts.append(f"{name}={json.dumps(value, ensure_ascii=False, default=str)}")
    return join_parts(safe_text(tool, "bold"), "(", safe_text(", ".join(parts), limit=LONG), ")")


def format_tool_run(run: ToolRun, limit: int) -> Text:
    """Return a call with its result, of which at most so many characters are shown."""
    call = format_call(run.tool, run.arguments)
    if run.result is None:
        return join_parts(call, safe_text(" … no result yet", "yellow"))
    mark = safe_text(" → ", "green") if run.status == "success" else safe_text(" ✗ ", "red")
    return join_parts(call, mark, safe_text(run.result, limit=limit))


def format_plan(plan: Plan) -> Iterator[Text]:
    """Yield the lines of a plan: what was done, what changed, what is to come."""
    if plan.previous_steps:
        yield safe_text(f"so far: {make_printable(plan.previous_steps, LONG)}", "dim")
    for change in plan.changes:
        description = make_printable(change.what, _SHORT).rstrip(".")
        yield safe_text(f"changed: {description}, as {make_printable(change.why, _SHORT)}", "yellow")
    for number, step in enumerate(plan.steps, start=1):
        tool = safe_text(f"  {step.tool}", "bold") if step.tool else ""
        yield join_parts(f"{number}. ", safe_text(step.description, limit=_SHORT), tool)
        yield safe_text(f"   {make_printable(step.reason, _SHORT)}", "dim")
    for fault in plan.faults:
        yield safe_text(fault, "yellow", LONG)


def format_move(move: Move) -> Text:
    """Return a speaker's move as a line."""
    label = move.category.replace("_", " ") if move.category else _MOVE_LABELS[move.kind]
    style = "dim" if move.kind == "think" else ""
    return join_parts(safe_text(f"{label}: ", "dim"), safe_text(move.text, style, LONG))


def progress_line(progress: Progress) -> Text:
    """Lay out how far the conversation got, and which milestones could come next."""
    rate = "nothing to measure"
    if progress.progress_range is not None:
        low, high = progress.progress_range
        rate = format_range(f"{low:.0%}", f"{high:.0%}")
    line = safe_text(f"{progress.journey}: " if progress.journey else "")
    line.append_text(safe_text(rate, "bold"))
    if progress.goal_completed:
        line.append_text(safe_text(" goal completed", "green"))
    elif progress.next:
        names = ", ".join(milestone.name for milestone in progress.next)
        line.append_text(safe_text(f" · next: {make_printable(names, _SHORT)}", "dim"))
    if progress.forbidden:
        line.append_text(safe_text(f" · forbidden: {', '.join(progress.forbidden)}", "red"))
    return line
