"""The turns of recorded conversations, and the answers with which a planner would have done what they tell (Pre-Act
3.2, Algorithm 1, Appendices B and E).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.errors import InputError
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.transcript import Call, Transcript
from arq_graph.milestones.turn_level.turn_steps import convert_events_to_messages
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.plan_schema import FINAL_ANSWER
from arq_graph.nodes.planner import Planner
from arq_graph.nodes.proposed_calls import get_property_name
from arq_graph.reasoning.blueprint import list_response_fields
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.history import History, Line
from arq_graph.reasoning.sections import as_json

UNFILLED = "[to be filled in]"
"""Replaces a reason that a person or a model has to write."""

MAX_RESULT_LENGTH = 200
"""Characters of a result that the description of earlier steps quotes."""

_FINAL_STEP = "give the final answer"
_FAILURES = {"failed": "the call failed", "empty": "nothing was found"}


@dataclass
class RecordedTurn:
    """A customer's message and what the agent did after it.

    Args:
        history: The messages up to the customer's.
        calls: Each call in a message of its own, with the text beside it, and its result; also those that were made at
            the same time.
        answer: What the agent said after the last call; empty if the record ends before that.
        later_system_messages: System messages within the turn, which are history of the next one.
    """

    history: list[BaseMessage]
    calls: list[tuple[AIMessage, BaseMessage]] = field(default_factory=list)
    answer: str = ""
    later_system_messages: list[BaseMessage] = field(default_factory=list)

    @cached_property
    def conversation(self) -> Conversation:
        """The whole turn and its history, as a planner reads it."""
        return Conversation(History(self.list_messages()))

    @property
    def has_action(self) -> bool:
        """True if the agent called or said something."""
        return bool(self.calls or self.answer)

    @property
    def has_customer(self) -> bool:
        """True if the customer has said something before it."""
        return any(isinstance(message, HumanMessage) for message in self.history)

    def list_messages(self) -> list[BaseMessage]:
        """Return the history and the turn."""
        messages = list(self.history)
        for call_and_result in self.calls:
            messages.extend(call_and_result)
        if self.answer:
            messages.append(AIMessage(self.answer))
        return messages

    def add_agent_message(self, message: AIMessage, results: Sequence[BaseMessage]) -> None:
        """Add what the agent said, and its calls with their results."""
        if self.answer and message.text:
            self.answer += "\n\n"
        self.answer += message.text
        for call, result in zip(message.tool_calls, results, strict=True):
            self.calls.append((AIMessage(self.answer, tool_calls=[call]), result))
            self.answer = ""

    def start_next(self, customer_message: BaseMessage) -> RecordedTurn:
        """Return the next turn, whose history includes this one."""
        history = self.list_messages()
        history.extend(self.later_system_messages)
        history.append(customer_message)
        return RecordedTurn(history)


def split_turns(transcript: Transcript) -> Iterator[RecordedTurn]:
    """Yield the turns of a conversation in which its agent did something.

    Text before a call is kept beside it, and several messages after the last call are one answer. A malformed call is
    left out with its result. What the agent says before the customer does, and the transcript's own history, are only
    history.
    """
    messages = list(convert_events_to_messages(transcript.events))
    earlier_events = transcript.events[: transcript.history_length]
    earlier_count = len(list(convert_events_to_messages(earlier_events)))
    turn = RecordedTurn(history=[])
    for position, message in enumerate(messages):
        if isinstance(message, AIMessage):
            # The results follow directly, in the order of the calls.
            results = messages[position + 1 : position + 1 + len(message.tool_calls)]
            turn.add_agent_message(message, results)
        elif message.type == "tool":
            continue
        elif not turn.has_action:
            turn.history.append(message)
        elif isinstance(message, HumanMessage):
            if position > earlier_count and turn.has_customer:
                yield turn
            turn = turn.start_next(message)
        else:
            turn.later_system_messages.append(message)
    if len(messages) > earlier_count and turn.has_action and turn.has_customer:
        yield turn


class PlanStep(NamedTuple):
    """A step of a plan.

    Args:
        text: What is done.
        reason: Why, and why at this place.
        call: The call that it makes; None for the final answer.
        expected: What the call's result is expected to tell.
    """

    text: str
    reason: str
    call: Mapping[str, Any] | None = None
    expected: str = ""


class ReasonSheet:
    """Asks for what no record tells: why each step was planned, and what was expected of each call.

    Args:
        stored_answers: Answers by question, as a person or a model wrote them.

    Attributes:
        answers: The answers by question, in the order in which they were asked for; empty where nobody wrote one.
    """

    def __init__(self, stored_answers: Mapping[str, str]) -> None:
        self._stored_answers = stored_answers
        self._step_count = 0
        self.answers: dict[str, str] = {}

    def make_step(self, planned_after: Line | None, call: Mapping[str, Any] | None = None) -> PlanStep:
        """Return a call or the final answer as a step, with its written reasons.

        `planned_after` is the last line that was known then.
        """
        self._step_count += 1
        text = f"call {call['name']}" if call else _FINAL_STEP
        place = f"{self._step_count}. {text}"
        arguments = f" {as_json(call['args'])}" if call else ""
        last_id = planned_after.id if planned_after else "nothing"
        reason = self._ask(f"{place}{arguments}, planned after {last_id}: why, and why at this place?")
        if call is None:
            return PlanStep(text, reason)
        return PlanStep(text, reason, call, self._ask(f"{place}: what is its result expected to tell?"))

    def _ask(self, question: str) -> str:
        self.answers[question] = self._stored_answers.get(question, "").strip()
        return self.answers[question] or UNFILLED


def reconstruct_plans(turn: RecordedTurn, sheet: ReasonSheet) -> list[list[PlanStep]]:
    """Return the plan before each call of a turn and before its answer: the steps that were still ahead.

    A plan ends with the final answer, and reaches as far as could be foreseen: to the next call that failed or found
    nothing.
    """
    remaining: list[list[PlanStep]] = []
    plan: list[PlanStep] = []
    planned_after = turn.conversation.last_customer_line
    for result in turn.conversation.current_turn_results:
        plan.append(sheet.make_step(planned_after, result.call))
        if _classify_outcome(result) != "as_expected":
            plan.append(sheet.make_step(planned_after))
            remaining.extend(_list_tails(plan)[:-1])  # its final answer was not given
            plan, planned_after = [], result
    plan.append(sheet.make_step(planned_after))
    return remaining + _list_tails(plan)


def compose_answer(
    planner: Planner, turn: RecordedTurn, plan: Sequence[PlanStep], results: Sequence[Line]
) -> dict[str, Any]:
    """Return the answer with which a planner takes the first step of a plan, with the fields of its blueprint.

    Args:
        planner: The planner.
        turn: The recorded turn.
        plan: The steps ahead.
        results: The results of this turn that are there already.
    """
    call = plan[0].call
    field_names = list_response_fields(planner.blueprint)
    next_steps = [_describe_step(step) for step in plan]
    observation = _classify_outcome(results[-1]) if results else None
    change = None
    if observation in _FAILURES:
        result_id = results[-1].id
        if call is None:
            next_steps[0]["step"] = f"{_FINAL_STEP} without what {result_id} was to tell"
        change = {
            "what": f"Next: {next_steps[0]['step']}.",
            "why": f"{result_id}: {_FAILURES[observation]}.",
        }
    if call is None:
        thought = "What to answer is known."
        action: dict[str, Any] = {FINAL_ANSWER: {"asks_for": [], "answer": turn.answer}}
    else:
        thought = f"{call['name']} is needed."
        proposal = _compose_arguments(planner, turn, call)
        if "next_steps" in field_names:
            proposal["expected"] = plan[0].expected
        action = {get_property_name(call["name"], (FINAL_ANSWER,)): proposal or {"go_ahead": True}}
    fields = {
        "still_wanted": None,
        "thought": thought,
        "previous_steps": "\n".join(map(_describe_result, results)) or None,
        "observation": observation,
        "change": change,
        "next_steps": next_steps,
        "action": action,
    }
    return {name: fields[name] for name in field_names}


def _list_tails(plan: Sequence[PlanStep]) -> list[list[PlanStep]]:
    return [list(plan[start:]) for start in range(len(plan))]


def _classify_outcome(result: Line) -> str:
    """Return "as_expected", "failed" or "empty"."""
    outcome = classify_result(result)
    # A tool that only does something may return no text at all.
    has_no_text = not result.text.strip()
    if outcome == "filled" or (outcome == "empty" and has_no_text):
        return "as_expected"
    return outcome


def _describe_step(step: PlanStep) -> dict[str, Any]:
    return {"step": step.text, "reason": step.reason, "tool": step.call and step.call["name"]}


def _describe_result(result: Line) -> str:
    tool = result.call and result.call["name"]
    return f"{result.id}, {tool}: {result.text[:MAX_RESULT_LENGTH]}"


def _compose_arguments(planner: Planner, turn: RecordedTurn, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call; a value rests on the customer's words if they hold it, else on what is known."""
    customer_words = Grounding()
    for message in turn.history:
        if isinstance(message, HumanMessage):
            customer_words.add_text(message.text)
    tool = planner.tools[call["name"]]
    values = dict(call["args"])
    decisions: dict[str, Any] = {}
    for argument in tool.arguments:
        if argument.name not in values:
            decisions[argument.property_name] = {"basis": "nobody", "given": False, "value": None}
            continue
        value = values.pop(argument.name)
        basis = "this_request"
        if customer_words.find_invented_arguments(Call(tool.name, {argument.name: value})):
            basis = "known"
        if argument.strict_schema is None and value is not None:
            value = json.dumps(value)  # asked for as a string that holds JSON
        decisions[argument.property_name] = {"basis": basis, "given": True, "value": value}
    if values:
        raise InputError(f"{tool.name} has no argument {min(values)!r}")
    return {"arguments": decisions} if decisions else {}
