"""What is decided about proposed tool calls: which are made, and what the reply has to say about the others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolCall

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.channels import Reader
from arq_graph.nodes.confirmation import NOT_AGREED, as_put, is_affirmed
from arq_graph.nodes.proposals import CALL_FROM
from arq_graph.nodes.tool_arguments import Problem, ToolArguments
from arq_graph.reasoning.conversation import Conversation


def calls_of_turn(state: Reader, conversation: Conversation) -> list[ToolInsight]:
    """The calls that were decided on earlier in this turn, as they were proposed."""
    insights = state.records("tool_insights", ToolInsight) or []
    return [insight for insight in insights if insight.kind == "run" and insight.turn == conversation.turn]


class Decisions:
    """The calls and insights of one round."""

    def __init__(
        self,
        conversation: Conversation,
        candidates: frozenset[str],
        pending: Sequence[ToolInsight],
        run: Sequence[ToolInsight],
    ) -> None:
        self.calls: list[ToolCall] = []
        self.insights: list[ToolInsight] = []
        self._conversation = conversation
        self._candidates = candidates
        self._pending = pending
        # What was proposed counts beside what ran: an operator may have changed the arguments in between.
        self._staged = {call_key(insight.tool, insight.arguments) for insight in run} | {
            call_key(line.call["name"], line.call["args"]) for line in conversation.results if line.call
        }

    def consider(self, tool: ToolArguments, candidate: Any, confirmed_by_customer: bool) -> None:
        """Decide on every proposed call of a tool; each candidate leaves a record, called or not."""
        proposals = candidate.tool_calls_for_candidate_tool
        for proposal in proposals:
            self._decide(tool, proposal, confirmed_by_customer)
        if not proposals:
            why = getattr(candidate, "subtleties_to_be_aware_of", "")
            idle = ToolInsight(turn=self._conversation.turn, tool=tool.name, kind="declined", rationale=why)
            self._note(idle, "no call was proposed")

    def _decide(self, tool: ToolArguments, proposal: Any, confirmed_by_customer: bool) -> None:
        """Decide on one proposed call (Appendix B)."""
        arguments, problems = tool.read(proposal.arguments) if tool.arguments else ({}, tool.validate({}))
        key = call_key(tool.name, arguments)
        better = proposal.potentially_better_tool_name
        insight = ToolInsight(
            turn=self._conversation.turn,
            tool=tool.name,
            kind="declined",
            arguments=arguments,
            score=proposal.score,
            rationale=getattr(proposal, "applicability_rationale", ""),
        )
        if proposal.score < CALL_FROM:
            self._note(insight, f"score {proposal.score} is below {CALL_FROM}")
        elif (
            better in self._candidates
            and better != tool.name
            and not proposal.better_tool_should_run_in_tandem
        ):
            self._note(insight, f"{better} fits better")
        elif problems:
            for problem in problems:
                self.insights.append(insight.model_copy(update=told(problem, tool)))
        elif not proposal.should_run:
            self._note(insight, "the model says that it should not run")
        elif key in self._staged and not proposal.repeat_is_justified:
            self._note(insight, "the same call was already made in this turn")
        elif confirmed_by_customer and not is_affirmed(
            insight, as_put(self._pending, insight, tool.settled), proposal, self._conversation
        ):
            self._note(insight, NOT_AGREED, kind="confirm")
        elif any(call_key(call["name"], call["args"]) == key for call in self.calls):
            self._note(insight, "the same call was proposed twice")
        else:
            self._note(insight, "", kind="run")
            self.calls.append(new_call(tool.name, arguments))

    def _note(self, insight: ToolInsight, problem: str, **changes: Any) -> None:
        self.insights.append(insight.model_copy(update={"problem": problem, **changes}))


def calling(*calls: ToolCall) -> AIMessage:
    """The message that makes calls.

    It has an id of its own: LangGraph gives one to a message without whenever it reads a write that is not committed
    yet, another one each time.
    """
    return AIMessage("", id=str(uuid4()), tool_calls=list(calls))


def new_call(tool: str, arguments: dict[str, Any]) -> ToolCall:
    """A call with an id of its own."""
    return ToolCall(name=tool, args=arguments, id=f"call_{uuid4().hex}", type="tool_call")


def told(problem: Problem, tool: ToolArguments) -> dict[str, Any]:
    """What an insight tells of an argument that is missing or invalid."""
    return {
        "problem": problem.message,
        "kind": "missing" if problem.kind == "missing" else "invalid",
        "argument": problem.argument.name if problem.argument else None,
        "description": problem.argument.description if problem.argument else tool.tool.description,
    }


def call_key(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as text that equal calls share."""
    return json.dumps([name, arguments], sort_keys=True, default=str)
