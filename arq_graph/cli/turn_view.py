"""A turn as people like to read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch, Move, Plan, Progress, ToolInsight
from arq_graph.cli.dialogue import Outcome
from arq_graph.cli.screen import Row, labelled, printable, sentence, spoken, table, words
from arq_graph.cli.threads import when
from arq_graph.cli.turn import ToolRun, Turn
from arq_graph.nodes.spec_sections import condition_text

_MOVES = {"think": "thought", "speak": "said", "act": "called"}
_SHORT = 110
_RESULT = 240


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
        yield labelled([("progress", "dim", [progress_in_words(outcome.turn.progress)])])
    yield labelled([("", "", [words(_footer(outcome), "dim")])])


def call_in_words(tool: str, arguments: Mapping[str, Any]) -> Text:
    """A call as one would write it."""
    inside = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()
    )
    return sentence(words(tool, "bold"), f"({printable(inside, _RESULT)})")


def run_in_words(run: ToolRun, limit: int = _RESULT) -> Text:
    """A call and its result."""
    call = call_in_words(run.tool, run.arguments)
    if run.result is None:
        return sentence(call, words(" … no result yet", "yellow"))
    mark, style = ("→", "green") if run.status == "success" else ("✗", "red")
    return sentence(call, words(f" {mark} ", style), printable(run.result, limit))


def plan_in_words(plan: Plan) -> Iterator[Text]:
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


def move_in_words(move: Move) -> Text:
    """One move of a speaker."""
    doing = move.category.replace("_", " ") if move.category else _MOVES[move.kind]
    style = "dim" if move.kind == "think" else ""
    return sentence(words(f"{doing}: ", "dim"), words(printable(move.text, _RESULT), style))


def progress_in_words(progress: Progress) -> Text:
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


def _trace(turn: Turn, agent: Agent) -> Iterator[Row]:
    active = [match for match in turn.matches if match.active]
    if active:
        yield "active", "dim", [table([_reason(match, agent) for match in active])]
    dropped = [match for match in turn.matches if match.matched and not match.active]
    if dropped:
        yield "dropped", "dim", [table([_remark(match) for match in dropped])]
    if turn.plan is not None:
        yield "plan", "dim", list(plan_in_words(turn.plan))
    if turn.moves:
        yield "moves", "dim", [move_in_words(move) for move in turn.moves]
    if turn.tool_runs:
        yield "tools", "dim", [run_in_words(run) for run in turn.tool_runs]
    if missing := turn.of_kind("missing", "invalid"):
        yield "missing", "yellow", [_missing(decision) for decision in missing]
    if waiting := turn.of_kind("confirm"):
        yield "to agree", "yellow", [call_in_words(each.tool, each.arguments) for each in waiting]


def _reason(match: GuidelineMatch, agent: Agent) -> tuple[str, list[Text]]:
    why = match.rationale
    if match.origin == "relation" and match.remarks:
        why = match.remarks[-1]
    if not why:
        why = when(condition_text(agent.guideline(match.guideline)))
    return match.guideline, [words(printable(why, _SHORT))]


def _remark(match: GuidelineMatch) -> tuple[str, list[Text]]:
    why = match.remarks[-1] if match.remarks else ""
    return match.guideline, [words(printable(why, _SHORT), "dim")]


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
