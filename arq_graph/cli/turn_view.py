"""A turn as people like to read it: in short as it is held, and in full to see why the reply is what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch, Move, Plan, Progress, Revision, ToolInsight
from arq_graph.cli.dialogue import Outcome
from arq_graph.cli.screen import Row, entry, labelled, printable, sentence, spoken, table, words
from arq_graph.cli.threads import ThreadNote, when
from arq_graph.cli.turn import ToolRun, Turn
from arq_graph.nodes.spec_sections import condition_text

_MOVES = {"think": "thought", "speak": "said", "act": "called"}
_SHORT = 110
_RESULT = 240
_LONG = 2_000
_DECIDED = {
    "code": "  decided by code",
    "relation": "  decided by a relation",
    "failure": "  judging it failed",
    "model": "",
}
_MARKS = {"success": ("✓", "green"), "error": ("✗", "red"), "pending": ("○", "yellow")}
_NOT_RUN = {
    "run": "is to be called",
    "missing": "an argument is missing",
    "invalid": "an argument is invalid",
    "confirm": "waits for the customer's word",
    "declined": "not called",
}
LEGEND = "M1, M2, … are the messages of the thread and T1, T2, … its tool results, as the model counts them."


def heading(number: int) -> Rule:
    """The line above a turn."""
    return Rule(Text(f" {number} "), align="left", style="dim")


def customer_said(text: str) -> Table:
    """What the customer says."""
    return labelled([("Customer", "bold green", [words(spoken(text))])])


def reply_of(turn: Turn) -> Table:
    """What the agent says, and what is wrong with it."""
    rows: list[Row] = [("Agent", "bold cyan", [words(spoken(turn.reply or ""))])]
    rows += [("but", "yellow", [words(violation, "yellow")]) for violation in turn.violations]
    return labelled(rows)


def outcome_of(outcome: Outcome, agent: Agent) -> Iterator[RenderableType]:
    """What led to the reply, the reply, and what it took."""
    if trace := list(_trace(outcome.turn, agent)):
        yield labelled(trace)
        yield ""
    if outcome.waiting:
        names = ", ".join(call["name"] for call in outcome.waiting)
        yield labelled([("waits", "bold yellow", [words(f"for an operator's word on {names}")])])
        return
    yield reply_of(outcome.turn)
    if outcome.turn.progress is not None:
        yield labelled([("progress", "dim", [_progress(outcome.turn.progress)])])
    yield labelled([("", "", [words(_footer(outcome), "dim")])])


def _trace(turn: Turn, agent: Agent) -> Iterator[Row]:
    if active := [match for match in turn.matches if match.active]:
        yield "active", "dim", [table([(match.guideline, [_reason(match, agent)]) for match in active])]
    if dropped := [match for match in turn.matches if match.matched and not match.active]:
        yield "dropped", "dim", [table([(match.guideline, [_last_remark(match)]) for match in dropped])]
    if turn.plan is not None:
        yield "plan", "dim", list(_plan(turn.plan))
    if turn.moves:
        yield "moves", "dim", [_move(move) for move in turn.moves]
    if turn.tool_runs:
        yield "tools", "dim", [_run(run, _RESULT) for run in turn.tool_runs]
    if missing := turn.of_kind("missing", "invalid"):
        yield "missing", "yellow", [_missing(decision) for decision in missing]
    if waiting := turn.of_kind("confirm"):
        yield "to agree", "yellow", [_call(each.tool, each.arguments) for each in waiting]


def _reason(match: GuidelineMatch, agent: Agent) -> Text:
    if match.origin == "relation" and match.remarks:
        return words(printable(match.remarks[-1], _SHORT))
    why = match.rationale or when(condition_text(agent.guideline(match.guideline)))
    return words(printable(why, _SHORT))


def _last_remark(match: GuidelineMatch) -> Text:
    return words(printable(match.remarks[-1] if match.remarks else "", _SHORT), "dim")


def _missing(decision: ToolInsight) -> Text:
    what = decision.argument or "the arguments"
    why = decision.problem if decision.kind == "invalid" else decision.description
    return sentence(
        words(decision.tool, "bold"), f": {what} ", words(f"{decision.kind}. {printable(why, _SHORT)}", "dim")
    )


def _footer(outcome: Outcome) -> str:
    tokens = sum(used.usage["total_tokens"] for used in outcome.usage.values() if used.usage)
    parts = [
        f"follows {', '.join(outcome.turn.followed)}" if outcome.turn.followed else "",
        f"{outcome.calls} model call{'s' if outcome.calls != 1 else ''}" if outcome.calls else "",
        f"{tokens:,} tokens" if tokens else "",
        f"{outcome.seconds:.1f} s",
    ]
    return " · ".join(part for part in parts if part)


def _call(tool: str, arguments: Mapping[str, Any]) -> Text:
    """A call as one would write it."""
    inside = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()
    )
    return sentence(words(tool, "bold"), f"({printable(inside, _RESULT)})")


def _run(run: ToolRun, limit: int) -> Text:
    """A call and its result."""
    call = _call(run.tool, run.arguments)
    if run.result is None:
        return sentence(call, words(" … no result yet", "yellow"))
    mark, style = ("→", "green") if run.status == "success" else ("✗", "red")
    return sentence(call, words(f" {mark} ", style), printable(run.result, limit))


def _plan(plan: Plan) -> Iterator[Text]:
    """What was done, what changed, and what comes next."""
    if plan.previous_steps:
        yield words(f"so far: {printable(plan.previous_steps, _RESULT)}", "dim")
    for change in plan.changes:
        yield words(
            f"changed: {printable(change.what, _SHORT).rstrip('.')}, as {printable(change.why, _SHORT)}",
            "yellow",
        )
    for number, step in enumerate(plan.steps, start=1):
        tool = words(f"  {step.tool}", "bold") if step.tool else ""
        yield sentence(f"{number}. {printable(step.description, _SHORT)}", tool)
        yield words(f"   {printable(step.reason, _SHORT)}", "dim")
    for fault in plan.faults:
        yield words(printable(fault, _RESULT), "yellow")


def _move(move: Move) -> Text:
    """One move of a speaker."""
    doing = move.category.replace("_", " ") if move.category else _MOVES[move.kind]
    style = "dim" if move.kind == "think" else ""
    return sentence(words(f"{doing}: ", "dim"), words(printable(move.text, _RESULT), style))


def _progress(progress: Progress) -> Text:
    """How far the conversation got, and what could come next."""
    if progress.progress_range is None:
        rate = "nothing to measure"
    elif progress.progress_rate is None:
        low, high = progress.progress_range
        rate = f"{low:.0%} to {high:.0%}"
    else:
        rate = f"{progress.progress_rate:.0%}"
    done = words(" goal completed", "green") if progress.goal_completed else ""
    named = ", ".join(milestone.name for milestone in progress.next)
    following = f" · next: {printable(named, _SHORT)}" if named and not progress.goal_completed else ""
    broken = words(f" · forbidden: {', '.join(progress.forbidden)}", "red") if progress.forbidden else ""
    return sentence(words(rate, "bold"), done, words(following, "dim"), broken)


def explanation_of(turn: Turn, about: ThreadNote | None) -> Iterator[RenderableType]:
    """Every judgement, decision and revision of a turn."""
    yield customer_said(turn.customer)
    yield reply_of(turn) if turn.reply is not None else words("There is no reply yet.", "yellow")
    active = len(turn.active)
    yield from _titled(f"Guidelines: {active} active, {len(turn.matches) - active} not")
    for match in sorted(turn.matches, key=lambda match: not match.active):
        yield _guideline(match, about.guidelines.get(match.guideline) if about else None)
    if turn.plan is not None:
        yield from _titled(f"Plan: version {turn.plan.version}")
        yield from _plan(turn.plan)
    if turn.moves:
        yield from _titled("Moves")
        for move in turn.moves:
            yield _move(move)
            yield from (words(f"  {printable(fault)}", "yellow") for fault in move.faults)
    yield from _titled("Tools" if turn.decisions or turn.tool_runs else "Tools: none was considered")
    yield from _tools(turn)
    sent = "the last was sent" if len(turn.revisions) > 1 else "the first was sent"
    yield from _titled(f"Revisions: {sent if turn.revisions else 'none yet'}")
    for number, revision in enumerate(turn.revisions, start=1):
        yield _revision(revision, number)
    if turn.reply is not None:
        yield from _titled(f"Followed: {', '.join(turn.followed) or 'none of the active guidelines'}")
    if turn.progress is not None:
        yield from _titled("Progress")
        yield _progress(turn.progress)
    yield ""
    yield words(LEGEND, "dim")


def _titled(title: str) -> Iterator[RenderableType]:
    yield ""
    yield words(title, "bold")


def _guideline(match: GuidelineMatch, texts: tuple[str | None, str | None] | None) -> RenderableType:
    applied = match.previously_applied if match.previously_applied in ("partially", "fully") else None
    lines = [
        sentence(
            words(match.guideline, "bold cyan" if match.active else "cyan"),
            f"  score {match.score}" if match.score is not None else "",
            words(_DECIDED[match.origin], "dim"),
            words("  continuous" if match.continuous else "", "dim"),
            words(f"  {applied} applied before" if applied else "", "dim"),
        )
    ]
    if texts is not None:
        condition, action = texts
        lines.append(words(": ".join(filter(None, (when(condition), action))), "dim"))
    if match.rationale:
        lines.append(words(printable(match.rationale, _LONG)))
    lines += [words(remark, "yellow") for remark in match.remarks]
    return entry("●" if match.active else "○", "green" if match.active else "dim", lines)


def _tools(turn: Turn) -> Iterator[RenderableType]:
    """What was called, each with the decision that led to it, and then the decisions that led to no call."""
    rest = list(turn.decisions)
    for run in turn.tool_runs:
        lines = [_run(run, _LONG)]
        reason = next((each for each in rest if each.kind == "run" and each.tool == run.tool), None)
        if reason is not None:
            rest.remove(reason)
            lines.append(_why(reason))
        yield entry(*_MARKS[run.status], lines)
    for decision in rest:
        call = (
            _call(decision.tool, decision.arguments) if decision.arguments else words(decision.tool, "bold")
        )
        lines = [sentence(call, f"  {_NOT_RUN[decision.kind]}")]
        if decision.argument:
            lines.append(words(f"{decision.argument}: {decision.description}"))
        if decision.problem:
            lines.append(words(printable(decision.problem, _LONG), "yellow"))
        yield entry("○", "dim", [*lines, _why(decision)])


def _why(decision: ToolInsight) -> Text:
    score = f"score {decision.score}. " if decision.score is not None else ""
    return words(score + printable(decision.rationale, _LONG), "dim")


def _revision(revision: Revision, number: int) -> RenderableType:
    lines = [words(spoken(revision.content, _LONG))]
    lines += [words(violation, "yellow") for violation in revision.violations]
    if revision.followed:
        lines.append(words(f"says that it follows {', '.join(revision.followed)}", "dim"))
    return entry(str(number), "green" if revision.sent else "dim", lines)
