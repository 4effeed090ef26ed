"""One turn of a thread, read off its state: what was judged, called and said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from arq_graph.agent.state import GuidelineMatch, Move, Plan, Progress, Record, Revision, ToolInsight

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class ToolRun:
    """One tool call and what came of it."""

    tool: str
    arguments: dict[str, Any]
    status: Literal["success", "error", "pending"]
    result: str | None


@dataclass(frozen=True)
class Turn:
    """One turn."""

    number: int
    customer: str
    reply: str | None
    matches: tuple[GuidelineMatch, ...] = ()
    decisions: tuple[ToolInsight, ...] = ()
    tool_runs: tuple[ToolRun, ...] = ()
    revisions: tuple[Revision, ...] = ()
    plan: Plan | None = None
    moves: tuple[Move, ...] = ()
    progress: Progress | None = None

    @property
    def active(self) -> tuple[str, ...]:
        """Ids of the active guidelines."""
        return tuple(match.guideline for match in self.matches if match.active)

    @property
    def sent(self) -> Revision | None:
        """The candidate that became the reply."""
        return next((revision for revision in self.revisions if revision.sent), None)

    @property
    def followed(self) -> tuple[str, ...]:
        """Ids of the active guidelines that the reply follows."""
        return tuple(id for id in self.active if self.sent and id in self.sent.followed)

    @property
    def violations(self) -> tuple[str, ...]:
        """What is wrong with the reply that was sent."""
        return self.sent.violations if self.sent else ()

    def of_kind(self, *kinds: str) -> tuple[ToolInsight, ...]:
        """The decisions of these kinds."""
        return tuple(decision for decision in self.decisions if decision.kind in kinds)

    def as_data(self) -> dict[str, Any]:
        """Everything as plain data, for programs."""

        def plain(records: Sequence[Record]) -> list[dict[str, Any]]:
            return [record.model_dump(mode="json", exclude={"turn", "agent"}) for record in records]

        return {
            "turn": self.number,
            "customer": self.customer,
            "reply": self.reply,
            "guidelines": plain(self.matches),
            "tool_calls": [asdict(run) for run in self.tool_runs],
            "tool_decisions": plain(self.decisions),
            "revisions": plain(self.revisions),
            "followed": list(self.followed),
            "plan": plain([self.plan])[0] if self.plan else None,
            "moves": plain(self.moves),
            "progress": self.progress.model_dump(mode="json") if self.progress else None,
        }


def customer_messages(values: Mapping[str, Any]) -> list[HumanMessage]:
    """What the customer said in a thread."""
    return [message for message in values.get("messages") or () if isinstance(message, HumanMessage)]


def last_turn(values: Mapping[str, Any], agent: str | None = None) -> Turn | None:
    """The last turn of a thread; None before the first."""
    said = customer_messages(values)
    if not said:
        return None
    messages: Sequence[AnyMessage] = values["messages"]
    start = max(index for index, message in enumerate(messages) if message is said[-1])
    after = messages[start + 1 :]

    def records(channel: str, kind: type[R]) -> tuple[R, ...]:
        listed = [kind.model_validate(each) for each in values.get(channel) or ()]
        return tuple(each for each in listed if each.turn == said[-1].id and agent in (None, each.agent))

    plans = records("plan", Plan)
    measured = [each for each in values.get("progress") or () if agent in (None, each["agent"])]
    return Turn(
        number=len(said),
        customer=said[-1].text,
        reply=_reply(after),
        matches=records("guideline_matches", GuidelineMatch),
        decisions=records("tool_insights", ToolInsight),
        tool_runs=tuple(_tool_runs(after)),
        revisions=records("revisions", Revision),
        plan=plans[-1] if plans else None,
        moves=records("moves", Move),
        progress=Progress.model_validate(measured[-1]) if measured else None,
    )


def _reply(messages: Sequence[AnyMessage]) -> str | None:
    last = messages[-1] if messages else None
    return last.text if isinstance(last, AIMessage) and not last.tool_calls else None


def _tool_runs(messages: Sequence[AnyMessage]) -> list[ToolRun]:
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    runs = []
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            result = results.get(call["id"] or "")
            runs.append(
                ToolRun(
                    tool=call["name"],
                    arguments=dict(call["args"]),
                    status=result.status if result else "pending",
                    result=result.text if result else None,
                )
            )
    return runs
