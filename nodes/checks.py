"""Checks: they read what the customer wrote beside the matching, and each reply before any of it is sent."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from arq_graph.agent.check import Check, CheckDecision, CheckedSide, CheckResult
from arq_graph.agent.spec import Agent
from arq_graph.errors import describe_error
from arq_graph.nodes.events import CheckMade
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.side_calls import acall_side_by_side, call_side_by_side
from arq_graph.nodes.state_view import StateView, view_state
from arq_graph.reasoning.deadlines import DeadlineThreads
from arq_graph.reasoning.history import Line
from arq_graph.reasoning.steps import aperform_steps, perform_steps

MAX_REASON_LENGTH = 500
_SEVERITY = ("reply", "block", "takeover")
_threads: WeakKeyDictionary[Agent, DeadlineThreads] = WeakKeyDictionary()


class InputChecker(Node):
    """Run the agent's input checks on what the customer wrote since the last reply, and record them in `checks`.

    It does nothing if all of them have passed in this turn already.

    Put it beside the matcher, and an `EarlyReply` after both, which answers if a check failed. Output checks are run by
    the node that sends the reply, such as a `MessageReviser`.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.

    Raises:
        StateError: When run: a channel holds another type.
    """

    name = "check_input"

    def __init__(self, agent: Agent, *, messages_key: str = "messages") -> None:
        self.agent = agent
        self.messages_key = messages_key
        self.declare_channels({messages_key: list[AnyMessage]} | get_channel_types("checks"))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the checks side by side."""
        return perform_steps(self._steps(input), lambda run: run.invoke(None))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the checks side by side, without blocking."""
        return await aperform_steps(self._steps(input), lambda run: run.ainvoke(None))

    def _steps(self, input: Any) -> Generator[Runnable[None, Any], Any, Update]:
        state = view_state(self.agent, input, self.messages_key)
        earlier = state.read_turn_records("checks", CheckDecision, state.turn_id)
        outcomes = [decision.passed for decision in earlier if decision.on == "input"]
        if outcomes and all(outcomes):
            return {}
        lines = _find_unchecked_lines(state)
        text = "\n\n".join(line.text for line in lines)
        decisions = yield from make_decisions(self.agent, state, "input", text)
        message_ids = tuple(line.turn_id for line in lines)
        decisions = [decision.model_copy(update={"message_ids": message_ids}) for decision in decisions]
        return write_decisions(state, decisions)


def _find_unchecked_lines(state: StateView) -> list[Line]:
    """Return the customer's messages after those that were checked in an earlier turn.

    If none was, they are those since the agent's last reply. A reply alone says little: a client may have written it.
    """
    checked_ids: set[str] = set()
    for record in state.read_records_of_name("checks", CheckDecision):
        if record.turn != state.turn_id:
            checked_ids.update(record.message_ids)
    lines = state.history.lines
    is_known = any(line.turn_id in checked_ids for line in lines)
    unchecked: list[Line] = []
    for line in reversed(lines):
        if line.turn_id in checked_ids or (line.speaker == "agent" and not is_known):
            break
        if line.speaker == "customer":
            unchecked.insert(0, line)
    return unchecked


def make_decisions(
    agent: Agent, state: StateView, on: CheckedSide, text: str
) -> Generator[Runnable[None, Any], Any, list[CheckDecision]]:
    """Run the agent's checks of one side on a text, and emit an event for each."""
    checks = agent.select_checks(on)
    if not checks:
        return []
    calls = [(check.by, check.timeout) for check in checks]
    threads = _threads.setdefault(agent, DeadlineThreads())
    run: Runnable[None, Any] = RunnableLambda(
        lambda _: call_side_by_side(calls, text, threads),
        lambda _: acall_side_by_side(calls, text),
        name="checks",
    )
    outcomes = yield run
    decisions: list[CheckDecision] = []
    for check, outcome in zip(checks, outcomes, strict=True):
        decision = _make_decision(agent, check, outcome, state.turn_id)
        state.emit(CheckMade(decision=decision))
        decisions.append(decision)
    return decisions


def choose_failed(decisions: Sequence[CheckDecision]) -> CheckDecision | None:
    """Return the gravest decision against a text; None if it passed all checks."""
    failed = [decision for decision in decisions if not decision.passed]
    return max(failed, key=lambda decision: _SEVERITY.index(decision.then or "block"), default=None)


def write_decisions(state: StateView, decisions: Sequence[CheckDecision]) -> Update:
    """Return the update that records decisions about one side in this turn.

    Of earlier turns, only those are kept that leave a message out of prompts.
    """
    sides = {decision.on for decision in decisions}
    records: list[CheckDecision] = []
    for record in state.read_records_of_name("checks", CheckDecision):
        is_current = record.turn == state.turn_id
        blocks_earlier_message = record.then == "block" and record.on == "input" and not is_current
        if blocks_earlier_message or (is_current and record.on not in sides):
            record = record.model_copy(update={"specification": ""})  # it outlives an edited specification
            if record not in records:
                records.append(record)
    return {"checks": state.build_channel_value("checks", [*records, *decisions])}


def _make_decision(agent: Agent, check: Check, outcome: Any, turn: str) -> CheckDecision:
    decision = CheckDecision(check=check.label, on=check.on, turn=turn, passed=True)
    try:
        result = _read_result(outcome)
    except Exception as error:
        return _decide_without_result(agent, check, decision, error)
    changes: dict[str, Any] = {"passed": result.passed, "reason": result.reason[:MAX_REASON_LENGTH]}
    if not result.passed:
        default = agent.handed_over if check.then == "takeover" else agent.fallback
        changes |= {"then": check.then, "text": check.text or default}
    return decision.model_copy(update=changes)


def _decide_without_result(
    agent: Agent, check: Check, decision: CheckDecision, error: Exception
) -> CheckDecision:
    reason = describe_error(error)
    consequence = "counts as passed" if check.on_error == "pass" else "is blocked"
    warnings.warn(
        f"check {check.label!r} of agent {agent.name!r} failed, so the {check.on} {consequence}: {reason}",
        stacklevel=2,
    )
    changes: dict[str, Any] = {"is_error": True, "reason": reason[:MAX_REASON_LENGTH]}
    if check.on_error == "block":
        changes |= {"passed": False, "then": "block", "text": agent.fallback}
    return decision.model_copy(update=changes)


def _read_result(value: Any) -> CheckResult:
    if isinstance(value, Exception):
        raise value
    if isinstance(value, CheckResult):
        return value
    if isinstance(value, bool):
        return CheckResult(passed=value)
    if isinstance(value, dict):
        return CheckResult(**value)
    if value is None:
        raise TypeError("it returned None: return True (the text passes), False, or a CheckResult")
    raise TypeError(
        f"it returned {value!r:.80}; return True (the text passes), False, or "
        "CheckResult(passed=False, reason='…')"
    )
