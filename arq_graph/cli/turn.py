"""One turn of a thread, read off its state: what was judged, called and said, and how people like to read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, computed_field
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch, Move, Plan, Progress, Revision, ToolInsight
from arq_graph.cli.screen import Row, labelled, named, printable, sentence, spoken, words
from arq_graph.reasoning.usage import UsageTracker

LEGEND = "M1, M2, … are the messages of the thread and T1, T2, … its tool results, as the model counts them."
_MOVES = {"think": "thought", "speak": "said", "act": "called"}
_SHORT = 110
_RESULT = 240


class ToolRun(BaseModel):
    """One tool call and what came of it."""

    tool: str
    arguments: dict[str, Any]
    status: Literal["success", "error", "pending"]
    result: str | None


class Turn(BaseModel, frozen=True):
    """One turn; its dump is what programs are given."""

    turn: int
    customer: str
    reply: str | None
    guidelines: tuple[GuidelineMatch, ...]
    tool_calls: tuple[ToolRun, ...]
    tool_decisions: tuple[ToolInsight, ...]
    revisions: tuple[Revision, ...]
    plan: Plan | None
    moves: tuple[Move, ...]
    progress: Progress | None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def active(self) -> tuple[str, ...]:
        """Ids of the active guidelines."""
        return tuple(match.guideline for match in self.guidelines if match.active)

    @property
    def sent(self) -> Revision | None:
        """The candidate that became the reply."""
        return next((revision for revision in self.revisions if revision.sent), None)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def followed(self) -> tuple[str, ...]:
        """Ids of the active guidelines that the reply follows."""
        return tuple(id for id in self.active if self.sent and id in self.sent.followed)


@dataclass(frozen=True)
class Outcome:
    """What came of running a thread once."""

    turn: Turn
    waiting: tuple[Mapping[str, Any], ...]
    used: UsageTracker
    seconds: float


def customer_messages(values: Mapping[str, Any]) -> list[HumanMessage]:
    """What the customer said in a thread."""
    return [message for message in values.get("messages") or () if isinstance(message, HumanMessage)]


def last_turn(values: Mapping[str, Any], agent: str | None = None) -> Turn | None:
    """The last turn of a thread, as one agent's records tell it, or those of any; None before the first."""
    said = customer_messages(values)
    if not said:
        return None
    messages: list[AnyMessage] = values["messages"]
    after = messages[messages.index(said[-1]) + 1 :]
    last = after[-1] if after else None

    def records(channel: str) -> list[Any]:
        return [each for each in values.get(channel) or () if agent in (None, each["agent"])]

    def of_turn(channel: str) -> list[Any]:
        return [each for each in records(channel) if each["turn"] == said[-1].id]

    matches = [GuidelineMatch.model_validate(raw) for raw in of_turn("guideline_matches")]
    return Turn(
        turn=len(said),
        customer=said[-1].text,
        reply=last.text if isinstance(last, AIMessage) and not last.tool_calls else None,
        guidelines=tuple(each for match in matches for each in match.expand()),
        tool_calls=tuple(_tool_calls(after)),
        tool_decisions=of_turn("tool_insights"),
        revisions=of_turn("revisions"),
        plan=next(reversed(of_turn("plan")), None),
        moves=of_turn("moves"),
        progress=next(reversed(records("progress")), None),
    )


def _tool_calls(messages: Sequence[AnyMessage]) -> Iterator[ToolRun]:
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            result = results.get(call["id"] or "")
            yield ToolRun(
                tool=call["name"],
                arguments=call["args"],
                status=result.status if result else "pending",
                result=result.text if result else None,
            )


def guideline_text(condition: str | None, action: str | None = None) -> str:
    """A guideline as people read it."""
    when = "always" if condition is None else f"when {condition}"
    return f"{when}: {action}" if action else when


def customer_said(text: str) -> Table:
    """What the customer says."""
    return labelled([("Customer", "bold green", [spoken(text)])])


def reply_of(turn: Turn) -> Table:
    """What the agent says, and what is wrong with it."""
    rows: list[Row] = [("Agent", "bold cyan", [spoken(turn.reply or "")])]
    wrong = turn.sent.violations if turn.sent else ()
    rows += [("but", "yellow", [words(violation, "yellow")]) for violation in wrong]
    return labelled(rows)


def outcome_of(outcome: Outcome, agent: Agent) -> Iterator[RenderableType]:
    """What led to the reply, the reply, and what it took."""
    turn = outcome.turn
    if trace := list(_trace(turn, agent)):
        yield labelled(trace)
        yield ""
    if outcome.waiting:
        names = ", ".join(call["name"] for call in outcome.waiting)
        yield labelled([("waits", "bold yellow", [words(f"for an operator to approve {names}")])])
        return
    yield reply_of(turn)
    if turn.progress is not None:
        yield labelled([("progress", "dim", [progress_line(turn.progress)])])
    calls, tokens = outcome.used.calls, outcome.used.total["total_tokens"]
    parts = [
        f"follows {', '.join(turn.followed)}" if turn.followed else "",
        f"{calls} model call{'s' if calls != 1 else ''}" if calls else "",
        f"{tokens:,} tokens" if tokens else "",
        f"{outcome.seconds:.1f} s",
    ]
    yield labelled([("", "", [words(" · ".join(filter(None, parts)), "dim")])])


def _trace(turn: Turn, agent: Agent) -> Iterator[Row]:
    if active := [match for match in turn.guidelines if match.active]:
        yield "active", "dim", [named((match.guideline, [_reason(match, agent)]) for match in active)]
    if dropped := [match for match in turn.guidelines if match.matched and not match.active]:
        why = [(match.guideline, [words("; ".join(match.remarks[-1:]), "dim", _SHORT)]) for match in dropped]
        yield "dropped", "dim", [named(why)]
    if turn.plan is not None:
        yield "plan", "dim", list(plan_lines(turn.plan))
    if turn.moves:
        yield "moves", "dim", [move_line(move) for move in turn.moves]
    if turn.tool_calls:
        yield "tools", "dim", [run_line(run, _RESULT) for run in turn.tool_calls]
    if missing := [each for each in turn.tool_decisions if each.kind in ("missing", "invalid")]:
        yield "missing", "yellow", [_missing(decision) for decision in missing]
    if waiting := [each for each in turn.tool_decisions if each.kind == "confirm"]:
        yield "to agree", "yellow", [call_line(each.tool, each.arguments) for each in waiting]


def _reason(match: GuidelineMatch, agent: Agent) -> Text:
    if match.origin == "relation" and match.remarks:
        return words(match.remarks[-1], limit=_SHORT)
    condition = agent.guideline(match.guideline).condition_text
    return words(match.rationale or guideline_text(condition), limit=_SHORT)


def _missing(decision: ToolInsight) -> Text:
    what = decision.argument or "the arguments"
    why = decision.problem if decision.kind == "invalid" else decision.description
    said = words(f"{decision.kind}. {printable(why, _SHORT)}", "dim")
    return sentence(words(decision.tool, "bold"), f": {what} ", said)


def call_line(tool: str, arguments: Mapping[str, Any]) -> Text:
    """A call as one would write it."""
    given = (
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()
    )
    return sentence(words(tool, "bold"), "(", words(", ".join(given), limit=_RESULT), ")")


def run_line(run: ToolRun, limit: int) -> Text:
    """A call and its result."""
    call = call_line(run.tool, run.arguments)
    if run.result is None:
        return sentence(call, words(" … no result yet", "yellow"))
    mark, style = ("→", "green") if run.status == "success" else ("✗", "red")
    return sentence(call, words(f" {mark} ", style), words(run.result, limit=limit))


def plan_lines(plan: Plan) -> Iterator[Text]:
    """What was done, what changed, and what comes next."""
    if plan.previous_steps:
        yield words(f"so far: {printable(plan.previous_steps, _RESULT)}", "dim")
    for change in plan.changes:
        what = printable(change.what, _SHORT).rstrip(".")
        yield words(f"changed: {what}, as {printable(change.why, _SHORT)}", "yellow")
    for number, step in enumerate(plan.steps, start=1):
        tool = words(f"  {step.tool}", "bold") if step.tool else ""
        yield sentence(f"{number}. ", words(step.description, limit=_SHORT), tool)
        yield words(f"   {printable(step.reason, _SHORT)}", "dim")
    yield from (words(fault, "yellow", _RESULT) for fault in plan.faults)


def move_line(move: Move) -> Text:
    """One move of a speaker."""
    doing = move.category.replace("_", " ") if move.category else _MOVES[move.kind]
    return sentence(
        words(f"{doing}: ", "dim"), words(move.text, "dim" if move.kind == "think" else "", _RESULT)
    )


def progress_line(progress: Progress) -> Text:
    """How far the conversation got, and what could come next."""
    if progress.progress_range is None:
        rate = "nothing to measure"
    else:
        rate = " to ".join(f"{end:.0%}" for end in dict.fromkeys(progress.progress_range))
    done = words(" goal completed", "green") if progress.goal_completed else ""
    next_names = printable(", ".join(milestone.name for milestone in progress.next), _SHORT)
    following = f" · next: {next_names}" if next_names and not progress.goal_completed else ""
    broken = words(f" · forbidden: {', '.join(progress.forbidden)}", "red") if progress.forbidden else ""
    return sentence(words(rate, "bold"), done, words(following, "dim"), broken)
