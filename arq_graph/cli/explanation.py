"""Why an agent said what it said: every judgement, decision and revision of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from arq_graph.agent.state import GuidelineMatch, Revision, ToolInsight
from arq_graph.cli.screen import entry, printable, sentence, spoken, words
from arq_graph.cli.threads import ThreadNote, when
from arq_graph.cli.turn import ToolRun, Turn
from arq_graph.cli.turn_view import (
    call_in_words,
    customer_said,
    move_in_words,
    plan_in_words,
    progress_in_words,
    reply_of,
    run_in_words,
)

LEGEND = "M1, M2, … are the messages of the thread and T1, T2, … its tool results, as the model counts them."
_LONG = 2_000
_DECIDED = {
    "code": "decided by code",
    "relation": "decided by a relation",
    "failure": "judging it failed",
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


def explanation_of(turn: Turn, about: ThreadNote | None) -> Iterator[RenderableType]:
    """The explanation of a turn, for people."""
    yield customer_said(turn.customer)
    yield reply_of(turn) if turn.reply is not None else words("There is no reply yet.", "yellow")
    ordered = sorted(turn.matches, key=lambda match: not match.active)
    active = len(turn.active)
    yield from _titled(f"Guidelines: {active} active, {len(ordered) - active} not")
    texts = about.guidelines if about else {}
    for match in ordered:
        yield _guideline(match, texts.get(match.guideline))
    if turn.plan is not None:
        yield from _titled(f"Plan: version {turn.plan.version}")
        yield from plan_in_words(turn.plan)
    if turn.moves:
        yield from _titled("Moves")
        for move in turn.moves:
            yield move_in_words(move)
            yield from (words(f"  {printable(fault)}", "yellow") for fault in move.faults)
    yield from _titled("Tools" if turn.decisions or turn.tool_runs else "Tools: none was considered")
    reasons = list(turn.decisions)
    for run in turn.tool_runs:
        reason = next((each for each in reasons if each.kind == "run" and each.tool == run.tool), None)
        if reason is not None:
            reasons.remove(reason)
        yield _called(run, reason)
    for decision in reasons:
        yield _decided(decision)
    yield from _titled(_revisions_title(turn.revisions))
    for number, revision in enumerate(turn.revisions, start=1):
        yield _revision(revision, number)
    if turn.reply is not None:
        yield from _titled(f"Followed: {', '.join(turn.followed) or 'none of the active guidelines'}")
    if turn.progress is not None:
        yield from _titled("Progress")
        yield progress_in_words(turn.progress)
    yield ""
    yield words(LEGEND, "dim")


def explanation_record(turn: Turn, about: ThreadNote | None) -> dict[str, Any]:
    """The explanation of a turn, for programs."""
    told = turn.as_data()
    texts = about.guidelines if about else {}
    for match in told["guidelines"]:
        match["condition"], match["action"] = texts.get(match["guideline"], (None, None))
    names = ("agent", "file", "model", "mode")
    return {**{name: getattr(about, name, None) for name in names}, **told}


def _titled(title: str) -> Iterator[RenderableType]:
    yield ""
    yield words(title, "bold")


def _guideline(match: GuidelineMatch, texts: tuple[str | None, str | None] | None) -> RenderableType:
    head = sentence(
        words(match.guideline, "bold cyan" if match.active else "cyan"),
        f"  score {match.score}" if match.score is not None else "",
        words(f"  {_DECIDED[match.origin]}", "dim") if _DECIDED[match.origin] else "",
        words("  continuous" if match.continuous else "", "dim"),
        words(
            f"  {match.previously_applied} applied before"
            if match.previously_applied in ("partially", "fully")
            else "",
            "dim",
        ),
    )
    lines: list[Text] = [head]
    if texts is not None:
        condition, action = texts
        lines.append(words(": ".join(filter(None, (when(condition), action))), "dim"))
    if match.rationale:
        lines.append(words(printable(match.rationale, _LONG)))
    lines += [words(remark, "yellow") for remark in match.remarks]
    return entry("●" if match.active else "○", "green" if match.active else "dim", lines)


def _called(run: ToolRun, reason: ToolInsight | None) -> RenderableType:
    lines: list[Text] = [run_in_words(run, _LONG)]
    if reason is not None:
        lines.append(words(" ".join(_reasons(reason)), "dim"))
    mark, style = _MARKS[run.status]
    return entry(mark, style, lines)


def _decided(decision: ToolInsight) -> RenderableType:
    what = (
        call_in_words(decision.tool, decision.arguments)
        if decision.arguments
        else words(decision.tool, "bold")
    )
    lines: list[Text] = [sentence(what, f"  {_NOT_RUN[decision.kind]}")]
    if decision.argument:
        lines.append(words(f"{decision.argument}: {decision.description}"))
    if decision.problem:
        lines.append(words(printable(decision.problem, _LONG), "yellow"))
    lines.append(words(" ".join(_reasons(decision)), "dim"))
    return entry("○", "dim", lines)


def _reasons(decision: ToolInsight) -> Iterator[str]:
    if decision.score is not None:
        yield f"score {decision.score}."
    yield printable(decision.rationale, _LONG)


def _revisions_title(revisions: tuple[Revision, ...]) -> str:
    if not revisions:
        return "Revisions: none yet"
    return (
        "Revisions: the first was sent"
        if len(revisions) == 1
        else f"Revisions: {len(revisions)}, the last was sent"
    )


def _revision(revision: Revision, number: int) -> RenderableType:
    lines: list[Text] = [words(spoken(revision.content, _LONG))]
    lines += [words(violation, "yellow") for violation in revision.violations]
    if revision.followed:
        lines.append(words(f"says that it follows {', '.join(revision.followed)}", "dim"))
    return entry(str(number), "green" if revision.sent else "dim", lines)
