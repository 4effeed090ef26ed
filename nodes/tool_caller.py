"""Tool calling: which tools run now, with which arguments (ARQ paper, 5.1.2 and Appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from langchain_core.language_models import BaseChatModel

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolInsight
from arq_graph.errors import InputError, ReasoningError
from arq_graph.nodes.blueprint_node import (
    PROMPTS,
    Answers,
    BlueprintNode,
    NodeSettings,
    Steps,
    Update,
    checked_agent,
    counted,
)
from arq_graph.nodes.channels import Reader, emit, our_channels
from arq_graph.nodes.confirmation import awaiting_confirmation, left_open, still_open
from arq_graph.nodes.decisions import Decisions, calling, calls_of_turn
from arq_graph.nodes.events import ToolsDecided, total_usage
from arq_graph.nodes.gate import active_guidelines, callable_tools
from arq_graph.nodes.proposals import property_of, tool_blueprint
from arq_graph.nodes.spec_sections import designed, shown_tool, shown_variables
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
        super().__init__(
            model,
            ARQ,
            template,
            temperature=temperature,
            **settings,
        )
        examples = tool_examples() if examples is None else examples
        self.max_rounds = counted("max_rounds", max_rounds)
        self._confirmed = agent.confirmed_by("customer", "interrupt")
        tools = [ToolArguments(tool) for tool in agent.toolbox.values()]
        self.batches = tuple(
            self._batch(tools[start : start + tools_per_call], examples)
            for start in range(0, len(tools), tools_per_call)
        )

    def _batch(self, tools: Sequence[ToolArguments], examples: Sequence[Example]) -> ToolBatch:
        head = self.template.render(
            "head",
            {
                **designed(self.agent),
                "tools": [shown_tool(self.agent, tool) for tool in tools],
                "examples": [shown(example, self.mode) for example in examples],
            },
        )
        blueprint = tool_blueprint(tools, self._confirmed)
        return ToolBatch(tuple(tools), blueprint, head, "+".join(tool.name for tool in tools))

    def channels(self) -> dict[str, Any]:
        """What it reads and writes besides the messages."""
        return our_channels("guideline_matches", "tool_insights", "variables")

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
        decisions = Decisions(conversation, candidates, pending, calls_of_turn(state, conversation))
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
        self, state: Reader, conversation: Conversation, decisions: Decisions, answers: Sequence[Answer[Any]]
    ) -> Update:
        run = [
            insight
            for insight in calls_of_turn(state, conversation) + decisions.insights
            if insight.kind == "run"
        ]
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
        update: Update = {"tool_insights": state.written("tool_insights", [*open_before, *run, *others])}
        if decisions.calls:
            update[self.messages_key] = [calling(*decisions.calls)]
        return update
