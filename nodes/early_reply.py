"""Early replies: those that code sends in the place of the strategy's, after a failed check or a hand-over."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END

from arq_graph.agent.check import CheckDecision
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolVerdict
from arq_graph.agent.takeover import Takeover
from arq_graph.nodes.checks import MAX_REASON_LENGTH, choose_failed, make_decisions, write_decisions
from arq_graph.nodes.events import ReplySent
from arq_graph.nodes.messages import classify_result, find_unanswered_calls, make_agent_message
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.state_view import StateView, view_state
from arq_graph.nodes.takeover import is_hand_over, write_takeover

Route = Callable[[Any], Any]


@dataclass(frozen=True)
class _Stop:
    """Why a turn ends early: what the agent says, and the takeover if the conversation is handed over."""

    text: str
    takeover: Takeover | None = None


class EarlyReply(Node):
    """End the turn with the designer's words if an input check failed or `hand_over` was called; else do nothing.

    Put it where the turn must not go on in that case: after the matcher and the `InputChecker`, and after the tools.
    Calls that were proposed beside a check that failed are taken back. `route_early_reply` leads on from it.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.

    Raises:
        StateError: When run: a channel holds another type.
    """

    name = "early_reply"

    def __init__(self, agent: Agent, *, messages_key: str = "messages") -> None:
        self.agent = agent
        self.messages_key = messages_key
        names = ("checks", "takeover", "agreements", "tool_insights", "journeys")
        self.declare_channels({messages_key: list[AnyMessage]} | get_channel_types(*names))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Reply if the turn has to end."""
        state = view_state(self.agent, input, self.messages_key)
        stop = _find_stop(self.agent, state)
        return _stop_turn(self.agent, state, stop) if stop else {}


def route_early_reply(
    agent: Agent, *, otherwise: str | Sequence[str] | Route, messages_key: str = "messages"
) -> Route:
    """Return the router after an `EarlyReply`: to the end if it replied, else on.

    The router's return annotation lists its destinations, so a graph draws its edges without a path map.

    Args:
        agent: The specification.
        otherwise: Where to go without an early reply: one or several nodes, or another router of this package.
        messages_key: Channel of the messages.
    """

    def route(state: Any) -> Any:
        if _find_stop(agent, view_state(agent, state, messages_key)):
            return END
        return otherwise(state) if callable(otherwise) else otherwise

    destinations = [END]
    if isinstance(otherwise, str):
        destinations.append(otherwise)
    else:
        further = get_args(otherwise.__annotations__["return"]) if callable(otherwise) else otherwise
        destinations.extend(further)
    route.__annotations__["return"] = Literal[tuple(destinations)]
    channels = get_channel_types("checks") | {messages_key: list[AnyMessage]}
    route.__annotations__["state"] = TypedDict("RouterState", channels, total=False)  # type: ignore[operator]
    return route


def check_reply(
    agent: Agent, state: StateView, text: str
) -> Generator[Runnable[None, Any], Any, tuple[Update, BaseMessage | None]]:
    """Run the agent's output checks on a reply.

    Returns:
        The update that records the decisions and a takeover, and the message to send instead if a check failed.
    """
    decisions = yield from make_decisions(agent, state, "output", text)
    if not decisions:
        return {}, None
    update = write_decisions(state, decisions)
    failed = choose_failed(decisions)
    if failed is None:
        return update, None
    early = _stop_turn(agent, state, _make_stop(failed))
    message = early.pop(state.messages_key)[-1]  # unanswered calls are not the concern of a reply
    return update | early, message


def _find_stop(agent: Agent, state: StateView) -> _Stop | None:
    decisions = state.read_turn_records("checks", CheckDecision, state.turn_id)
    failed = choose_failed([decision for decision in decisions if decision.on == "input"])
    if failed is not None:
        return _make_stop(failed)
    for line in reversed(state.history.lines):
        if line.speaker == "customer":
            return None
        if line.call and is_hand_over(agent, line.call["name"]) and classify_result(line) != "failed":
            reason = str(line.call["args"].get("reason", ""))
            return _Stop(agent.handed_over, Takeover(by="agent", reason=reason[:MAX_REASON_LENGTH]))
    return None


def _make_stop(decision: CheckDecision) -> _Stop:
    takeover = None
    if decision.then == "takeover":
        takeover = Takeover(by=f"check {decision.check}", reason=decision.reason)
    return _Stop(decision.text, takeover)


def _stop_turn(agent: Agent, state: StateView, stop: _Stop) -> Update:
    """Return the update that ends the turn: the reply, without calls that have no result, and the takeover."""
    unanswered = find_unanswered_calls(state.messages)
    messages: list[BaseMessage] = [RemoveMessage(str(call.message.id)) for call in unanswered[:1]]
    messages.append(make_agent_message(agent.name, stop.text))
    verdicts = state.read_turn_records("tool_insights", ToolVerdict, state.turn_id)
    made = [verdict for verdict in verdicts if verdict.kind == "run" and not unanswered]
    update: Update = {
        state.messages_key: messages,
        "tool_insights": state.build_channel_value("tool_insights", made),
    }
    if stop.takeover is not None:
        update |= write_takeover(agent, state, stop.takeover)
    state.emit(ReplySent(content=stop.text))
    return update
