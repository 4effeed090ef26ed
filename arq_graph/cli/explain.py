"""`arq-graph explain`: why the agent said what it said last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from rich.console import RenderableType
from rich.text import Text
from typer import Option

from arq_graph.agent.state import GuidelineMatch, Revision, ToolInsight
from arq_graph.cli import turn as view
from arq_graph.cli.dialogue import ThreadNote, existing_threads
from arq_graph.cli.options import AsJson, Database
from arq_graph.cli.screen import entry, output, print_json, sentence, show_command, spoken, titled, words
from arq_graph.cli.turn import Turn
from arq_graph.errors import InputError

_LONG = 2_000
_DECIDED = {
    "code": "  decided by code",
    "relation": "  decided by a relation",
    "failure": "  could not be judged",
}
_MARKS = {"success": ("✓", "green"), "error": ("✗", "red"), "pending": ("○", "yellow")}
_NOT_RUN = {
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
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """See why the last reply is what it is: guidelines, tool decisions, revisions."""
    with existing_threads(db) as threads:
        if (last := next(threads.list(None, limit=1), None)) is None:
            raise InputError("no conversation is saved yet: run one first with `arq-graph chat AGENT.yaml`")
        latest = last.config["configurable"]["thread_id"]
        id = thread or latest
        found = threads.get_tuple({"configurable": {"thread_id": id}})
        about = ThreadNote.of(id, threads)
    turn = view.last_turn(found.checkpoint["channel_values"]) if found else None
    if turn is None:
        said = (
            f"no thread {id!r} is saved here; the latest is {latest!r}: name one with --thread, or start one"
        )
        raise InputError(said)
    if as_json:
        made_with = about.model_dump(exclude={"guidelines"}) if about else {}
        print_json({"thread": id, **made_with, **turn.model_dump(mode="json")})
        return
    console = output()
    name = words(about.agent if about else "Thread", "bold")
    model = f" · {about.model} · mode {about.mode}" if about else ""
    console.print(sentence(name, f"{model} · thread {id}, turn {turn.turn}"))
    console.print()
    for part in explanation_of(turn, about):
        console.print(part)
    if turn.reply is None and about:
        console.print()
        console.print(words("The turn is unfinished. Continue with:"))
        where = ["--db", db] if db else []
        show_command(console, "arq-graph", "chat", about.file, "--thread", id, *where)


def explanation_of(turn: Turn, about: ThreadNote | None) -> Iterator[RenderableType]:
    """Every judgement, decision and revision of a turn."""
    yield view.customer_said(turn.customer)
    yield view.reply_of(turn) if turn.reply is not None else words("There is no reply yet.", "yellow")
    active = len(turn.active)
    yield titled(f"Guidelines: {active} active, {len(turn.guidelines) - active} not")
    for match in sorted(turn.guidelines, key=lambda match: not match.active):
        yield _guideline(match, about.guidelines.get(match.guideline) if about else None)
    if turn.plan is not None:
        yield titled(f"Plan: version {turn.plan.version}")
        yield from view.plan_lines(turn.plan)
    if turn.moves:
        yield titled("Moves")
        for move in turn.moves:
            yield view.move_line(move)
            yield from (sentence("  ", words(fault, "yellow")) for fault in move.faults)
    yield titled("Tools" if turn.tool_decisions or turn.tool_calls else "Tools: none was considered")
    yield from _tools(turn)
    sent = "the last was sent" if len(turn.revisions) > 1 else "the first was sent"
    yield titled(f"Revisions: {sent if turn.revisions else 'none yet'}")
    for number, revision in enumerate(turn.revisions, start=1):
        yield _revision(revision, number)
    if turn.reply is not None:
        yield titled(f"Followed: {', '.join(turn.followed) or 'none of the active guidelines'}")
    if turn.progress is not None:
        yield titled("Progress")
        yield view.progress_line(turn.progress)
    yield ""
    yield words(view.LEGEND, "dim")


def _guideline(match: GuidelineMatch, texts: tuple[str | None, str | None] | None) -> RenderableType:
    applied = match.previously_applied if match.previously_applied in ("partially", "fully") else None
    head = sentence(
        words(match.guideline, "bold cyan" if match.active else "cyan"),
        f"  score {match.score}" if match.score is not None else "",
        words(_DECIDED.get(match.origin, ""), "dim"),
        words("  continuous" if match.continuous else "", "dim"),
        words(f"  {applied} applied before" if applied else "", "dim"),
    )
    lines = [words(view.guideline_text(*texts), "dim")] if texts is not None else []
    lines += [words(match.rationale, limit=_LONG)] if match.rationale else []
    lines += [words(remark, "yellow") for remark in match.remarks]
    return entry("●" if match.active else "○", "green" if match.active else "dim", head, *lines)


def _tools(turn: Turn) -> Iterator[RenderableType]:
    """What was called, each with the decision that led to it, and then the decisions that led to no call."""
    rest = list(turn.tool_decisions)
    for run in turn.tool_calls:
        lines = [view.run_line(run, _LONG)]
        reason = next((each for each in rest if each.kind == "run" and each.tool == run.tool), None)
        if reason is not None:
            rest.remove(reason)
            lines.append(_why(reason))
        yield entry(*_MARKS[run.status], *lines)
    for decision in rest:
        tool = words(decision.tool, "bold")
        call = view.call_line(decision.tool, decision.arguments) if decision.arguments else tool
        lines = [sentence(call, f"  {_NOT_RUN[decision.kind]}")]
        if decision.argument:
            lines.append(words(f"{decision.argument}: {decision.description}"))
        if decision.problem:
            lines.append(words(decision.problem, "yellow", _LONG))
        yield entry("○", "dim", *lines, _why(decision))


def _why(decision: ToolInsight) -> Text:
    score = f"score {decision.score}. " if decision.score is not None else ""
    return words(score + decision.rationale, "dim", _LONG)


def _revision(revision: Revision, number: int) -> RenderableType:
    lines = [spoken(revision.content, _LONG)]
    lines += [words(violation, "yellow") for violation in revision.violations]
    if revision.followed:
        lines.append(words(f"says that it follows {', '.join(revision.followed)}", "dim"))
    return entry(str(number), "green" if revision.sent else "dim", *lines)
