"""Tool calling: which tools run now, with which arguments (ARQ paper, 5.1.2 and Appendix B)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch, ToolInsight
from arq_graph.errors import InputError, ReasoningError
from arq_graph.nodes.blueprint_node import (
    PROMPTS,
    Answers,
    BlueprintNode,
    NodeSettings,
    Steps,
    Update,
    checked_agent,
)
from arq_graph.nodes.channels import Reader, emit
from arq_graph.nodes.confirmation import awaiting_confirmation, is_affirmed, left_open, still_open
from arq_graph.nodes.events import ToolsDecided, total_usage
from arq_graph.nodes.gate import active_guidelines, callable_tools
from arq_graph.nodes.proposals import CALL_FROM, property_of, tool_blueprint
from arq_graph.nodes.spec_sections import designed, shown_guideline, shown_variables
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.turns import rounds_of_turn
from arq_graph.nodes.worked_examples import Example, shown, tool_examples
from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.reasoner import Reasoner


@dataclass(frozen=True)
class ToolBatch:
    """Tools that are decided on in one call; formed once, so that its head and schema never change."""

    tools: tuple[ToolArguments, ...]
    blueprint: type[ARQ]
    head: str
    name: str


class ToolCaller(BlueprintNode[ARQ]):
    """Decide on the tools that the active guidelines grant; write the calls as a message, and `tool_insights`.

    Every candidate tool is asked about in parallel. A call is made if it is called for, none of its required
    arguments is missing or invalid, it was not made in this turn already (unless that is justified) and no other
    candidate fits better. Missing and invalid arguments become insights, which the reply asks the customer about.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        tools_per_call: How many candidate tools one model call decides on.
        max_rounds: How many times tools may be called in a turn; after that it proposes nothing.
        temperature: The paper's 0.05 unless given; left out for models that take none or have one set.
        template: A replacement for the shipped prompt.
        examples: Worked examples in the prompt.
        **settings: `mode`, `max_history_tokens`, `count_tokens`, `messages_key`: as for `BlueprintNode`.

    Raises:
        InputError: `tools_per_call` is below 1.
        ReasoningError: When run: the model gave no answer.
        StateError: When run: a channel holds another type.
    """

    module = "tools"

    def __init__(
        self,
        model: BaseChatModel | str | Reasoner,
        agent: Agent,
        *,
        tools_per_call: int = 1,
        max_rounds: int = 3,
        temperature: float | None = 0.05,
        template: str | Path = PROMPTS / "tool_caller.md",
        examples: Sequence[Example] | None = None,
        **settings: Unpack[NodeSettings],
    ) -> None:
        self.agent = checked_agent(agent)
        if tools_per_call < 1:
            raise InputError(f"tools_per_call must be at least 1, not {tools_per_call}")
        if not isinstance(max_rounds, int) or max_rounds < 1:
            raise InputError(f"max_rounds must be a whole number from 1 on, not {max_rounds!r}")
        super().__init__(
            model,
            ARQ,
            template,
            temperature=temperature,
            **settings,
        )
        examples = tool_examples() if examples is None else examples
        self.max_rounds = max_rounds
        self._confirmed = frozenset(name for name, by in agent.confirm.items() if by == "customer")
        tools = [ToolArguments(tool) for tool in agent.toolbox.values()]
        self.batches = tuple(
            self._batch(tools[start : start + tools_per_call], examples)
            for start in range(0, len(tools), tools_per_call)
        )

    def _batch(self, tools: Sequence[ToolArguments], examples: Sequence[Example]) -> ToolBatch:
        shown_tools = [
            {
                "name": tool.name,
                "description": tool.tool.description,
                "arguments": [argument.shown() for argument in tool.arguments],
                "granted_by": [
                    shown_guideline(self.agent.guideline(id)) for id in self.agent.grants[tool.name]
                ],
            }
            for tool in tools
        ]
        head = self.template.render(
            "head",
            {
                **designed(self.agent),
                "tools": shown_tools,
                "examples": [shown(example, self.mode) for example in examples],
            },
        )
        blueprint = tool_blueprint(tools, self._confirmed)
        return ToolBatch(tuple(tools), blueprint, head, "+".join(tool.name for tool in tools))

    def channels(self) -> dict[str, Any]:
        """What it reads and writes besides the messages."""
        return {
            "guideline_matches": list[GuidelineMatch],
            "tool_insights": list[ToolInsight],
            "variables": dict[str, Any],
        }

    def steps(self, state: Reader) -> Steps:
        """Decide on every candidate tool."""
        conversation = self.read_conversation(state)
        candidates = callable_tools(self.agent, state, conversation.turn)
        if rounds_of_turn(state.messages()) >= self.max_rounds:
            return {}
        asked = [batch for batch in self.batches if any(tool.name in candidates for tool in batch.tools)]
        pending = awaiting_confirmation(state, conversation)
        answers: Answers = []
        if asked:
            variables = shown_variables(self.agent, state)
            answers = yield [
                Question(
                    batch.blueprint,
                    self.prompt(
                        conversation,
                        {
                            "variables": variables,
                            "now": self._now(batch, state, conversation, candidates, pending),
                        },
                        head=batch.head,
                    ),
                    name=batch.name,
                )
                for batch in asked
            ]
        decisions = _Decisions(conversation, candidates, pending, _run(state, conversation))
        for batch, answer in zip(asked, answers, strict=True):
            if isinstance(answer, ReasoningError):
                raise answer
            for tool in batch.tools:
                if tool.name in candidates:
                    candidate = getattr(answer.value, property_of(tool.name))
                    decisions.consider(tool, candidate, tool.name in self._confirmed)
        return self._update(state, conversation, decisions, [a for a in answers if isinstance(a, Answer)])

    def _now(
        self,
        batch: ToolBatch,
        state: Reader,
        conversation: Conversation,
        candidates: frozenset[str],
        pending: Sequence[ToolInsight],
    ) -> dict[str, Any]:
        last = conversation.last_customer_line
        own = [tool.name for tool in batch.tools if tool.name in candidates]
        active = active_guidelines(self.agent, state, conversation.turn)
        granting = {id for name in own for id in self.agent.grants[name]}
        now: dict[str, Any] = {
            "turn": last.id if last else None,
            "candidates": own,
            "active": [id for id in active if id in granting],
        }
        if others := [name for name in self.agent.toolbox if name in candidates and name not in own]:
            now["other_candidates"] = others
        if staged := [line.id for line in conversation.results]:
            now["staged"] = staged
        if waiting := [insight for insight in pending if insight.tool in own]:
            now["awaiting_confirmation"] = [
                {
                    "tool": insight.tool,
                    "arguments": insight.arguments,
                    "asked_after": conversation.id_of(insight.turn),
                }
                for insight in waiting
            ]
        return now

    def _update(
        self, state: Reader, conversation: Conversation, decisions: _Decisions, answers: Sequence[Answer[Any]]
    ) -> Update:
        run = [insight for insight in _run(state, conversation) + decisions.insights if insight.kind == "run"]
        others = [insight for insight in decisions.insights if insight.kind != "run"]
        open_before = still_open(left_open(state, conversation), run)
        emit(
            ToolsDecided(
                turn=conversation.turn,
                decisions=tuple(decisions.insights),
                calls=sum(len(answer.attempts) for answer in answers),
                usage=total_usage(answers),
            )
        )
        update: Update = {"tool_insights": [*open_before, *run, *others]}
        if decisions.calls:
            update[self.messages_key] = [AIMessage("", tool_calls=decisions.calls)]
        return update


def _run(state: Reader, conversation: Conversation) -> list[ToolInsight]:
    """The calls that were decided on earlier in this turn, as they were proposed."""
    insights = state.records("tool_insights", ToolInsight) or []
    return [insight for insight in insights if insight.kind == "run" and insight.turn == conversation.turn]


class _Decisions:
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
        self._staged = {_signature(insight.tool, insight.arguments) for insight in run} | {
            _signature(line.call["name"], line.call["args"]) for line in conversation.results if line.call
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
        signature = _signature(tool.name, arguments)
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
                self._note(
                    insight,
                    problem.message,
                    kind="missing" if problem.kind == "missing" else "invalid",
                    argument=problem.argument.name if problem.argument else None,
                    description=problem.argument.description if problem.argument else tool.tool.description,
                )
        elif not proposal.should_run:
            self._note(insight, "the model says that it should not run")
        elif signature in self._staged and not proposal.repeat_is_justified:
            self._note(insight, "the same call was already made in this turn")
        elif confirmed_by_customer and not is_affirmed(insight, self._pending, proposal, self._conversation):
            self._note(insight, "the customer has not agreed to these arguments yet", kind="confirm")
        elif any(_signature(call["name"], call["args"]) == signature for call in self.calls):
            self._note(insight, "the same call was proposed twice")
        else:
            self._note(insight, "", kind="run")
            self.calls.append(
                ToolCall(name=tool.name, args=arguments, id=f"call_{uuid4().hex}", type="tool_call")
            )

    def _note(self, insight: ToolInsight, problem: str, **changes: Any) -> None:
        self.insights.append(insight.model_copy(update={"problem": problem, **changes}))


def _signature(name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([name, arguments], sort_keys=True, default=str)
