"""How things stand before a move: what it is held against, and what the prompt says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Move, WorldStatus
from arq_graph.nodes.channels import Reader
from arq_graph.nodes.confirmation import Settled
from arq_graph.nodes.gate import Gate, active_guidelines
from arq_graph.nodes.outcomes import outcome_of
from arq_graph.nodes.speaking.calls import JudgedMove, Rules, Situation
from arq_graph.nodes.speaking.grounds import Grounds
from arq_graph.nodes.speaking.moves import ACT, THINK, Setting
from arq_graph.nodes.speaking.policies import Policy, is_half_said, named_by
from arq_graph.nodes.speaking.questions import QuestionRow, question_row, task_messages
from arq_graph.nodes.speaking.utterances import SpeechJudge, too_many_in
from arq_graph.nodes.speaking.world import MAX_SHOWN
from arq_graph.nodes.spec_sections import designed, shown_guideline, state_for_functions
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.violations import PromptFacts
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json


@dataclass(frozen=True)
class Standing:
    """How things stand before a move.

    Args:
        agent: The specification.
        tools: Its tools by name.
        situation: The thread, the gate, and what waits for the customer.
        facts: What an utterance must not give away, and what it may cite.
        grounds: What was said and found.
        rules: The rules that hold now.
        row: The questions that were asked in a row.
        moves: The moves of this turn, or of the task.
        task: Id of the message that began the turn, or the task.
        setting: `chat` or `task`.
        active: Ids of the active guidelines.
        world: How the world stands, where there is one.
    """

    agent: Agent
    tools: Mapping[str, ToolArguments]
    situation: Situation
    facts: PromptFacts
    grounds: Grounds
    rules: Rules
    row: QuestionRow
    moves: Sequence[Move]
    task: str
    setting: Setting
    active: Sequence[str]
    world: WorldStatus | None

    @property
    def conversation(self) -> Conversation:
        """The thread."""
        return self.situation.conversation

    @property
    def is_over(self) -> bool:
        """Whether no step is left, or the world's task has ended."""
        return self.situation.steps_left < 1 or bool(self.world and self.world.done)

    def judge_thought(self, name: str, text: str, before: Sequence[str], limit: int) -> JudgedMove:
        """Decide on a thought: there are not too many, and none comes twice."""
        earlier = [*(move.text for move in self.moves if move.kind == "think"), *before]
        wrong = None
        if len(before) >= limit:
            wrong = f"{limit} thoughts before a move are enough: speak or act"
        elif not text.strip() or _plain(text) in map(_plain, earlier):
            wrong = "this was thought before: speak or act"
        refusals = (Complaint(name, f"move.{THINK}.thought", wrong),) if wrong else ()
        return JudgedMove("think", text, refusals=refusals)

    def judge_action(self, name: str, action: str) -> JudgedMove:
        """Decide on an action in the world: it is possible, as far as the world tells."""
        action = action.strip()
        allowed = self.world.actions if self.world else None
        wrong = None
        if self.situation.steps_left < 1:
            wrong = "no step is left: speak"
        elif self.world is None or self.world.done:
            wrong = "the world's task has ended: speak"
        elif not action:
            wrong = "it is empty"
        elif allowed is not None and action not in allowed:
            same = [each for each in allowed if _plain(each) == _plain(action)]
            if len(same) == 1:
                return JudgedMove("act", same[0])
            wrong = f"it cannot be done now; what can: {', '.join(allowed[:MAX_SHOWN]) or 'nothing'}"
        refusals = (Complaint(name, f"move.{ACT}.action", wrong),) if wrong else ()
        return JudgedMove("act", action, refusals=refusals)

    def speech_judge(self, name: str, max_results: int) -> SpeechJudge:
        """What decides on an utterance."""
        too_many = [] if self.grounds.told_to_pick else too_many_in(self.conversation, max_results)
        must_end = self.setting == "task" and self.is_over
        return SpeechJudge(
            name, self.tools, self.situation, self.facts, self.rules, self.row, too_many, must_end
        )

    def tail(
        self,
        variables: Sequence[Mapping[str, Any]],
        thoughts: Sequence[str],
        max_thoughts: int,
        max_results: int,
    ) -> dict[str, Any]:
        """What the prompt says of how things stand."""
        earlier = [{"thought": m.text, "after": m.after} for m in self.moves if m.kind == "think"]
        shown = [*earlier, *({"thought": text} for text in thoughts)]
        return {
            "variables": list(variables),
            "active_guidelines": [shown_guideline(self.agent.guideline(id)) for id in self.active]
            if self.agent.guidelines
            else None,
            "thoughts": [{**each, "observed": "OK"} for each in shown],
            "world": self._shown_world() if self.world else None,
            "now": self._now(max_thoughts - len(thoughts), max_results),
        }

    def _shown_world(self) -> dict[str, Any]:
        assert self.world is not None
        shown: dict[str, Any] = {"beginning": self.world.beginning}
        if self.world.actions is not None:
            shown["actions"] = list(self.world.actions)
        if self.world.score is not None:
            shown["score"] = self.world.score
        return {**shown, "done": self.world.done, "invalid_actions": self.world.invalid}

    def _now(self, thoughts_left: int, max_results: int) -> dict[str, Any]:
        conversation, rules = self.conversation, self.rules
        last = conversation.last_customer_line
        callable = self.situation.gate.granted.keys() - frozenset(rules.forbidden)
        now: dict[str, Any] = {
            "turn": last.id if last else None,
            "candidates": [name for name in self.agent.toolbox if name in callable],
            "steps_left": self.situation.steps_left,
            "thoughts_left": thoughts_left,
            "questions_left": self.row.left,
        }
        results = conversation.results
        by_outcome = {
            outcome: [line.id for line in results if outcome_of(line) == outcome]
            for outcome in ("failed", "empty")
        }
        listed = {
            "active": list(self.active),
            "results": [line.id for line in results],
            **by_outcome,
            "too_many": too_many_in(conversation, max_results),
            "required_first": sorted(rules.required),
            "awaiting_confirmation": self.situation.settled.shown(),
            "asked_about_again": [
                {"tool": each.tool, "arguments": each.arguments} for each in self.situation.settled.insights
            ],
            "told_to_pick": self.grounds.told_to_pick,
            "half_request": rules.is_half_said,
        }
        return {**now, **{name: value for name, value in listed.items() if value}}


@dataclass(frozen=True)
class StandingOf:
    """Reads how things stand from a state.

    Args:
        agent: The specification.
        tools: Its tools by name.
        policies: The policies that are switched on.
        setting: `chat` or `task`.
        max_steps: How many steps a turn, or a task, may take.
        max_questions: How many questions may follow each other.
    """

    agent: Agent
    tools: Mapping[str, ToolArguments]
    policies: Mapping[str, Policy]
    setting: Setting
    max_steps: int
    max_questions: int

    def __call__(self, gate: Gate, settled: Settled, variables: Sequence[Mapping[str, Any]]) -> Standing:
        """How things stand in a state.

        Raises:
            StateError: A channel holds another type.
            InputError: A policy names a tool that the agent does not have.
        """
        state, conversation = gate.state, gate.conversation
        messages = state.messages()
        task = task_messages(messages)
        first = task[0] if task else None
        begun = (first.id or "") if isinstance(first, HumanMessage) else ""
        facts = self._facts(conversation, variables)
        active = (
            list(active_guidelines(self.agent, state, conversation.turn)) if self.agent.guidelines else []
        )
        return Standing(
            agent=self.agent,
            tools=self.tools,
            situation=Situation(gate, settled, max(0, self.max_steps - self._steps_made(task)), facts),
            facts=facts,
            grounds=Grounds(conversation, self._known(variables)),
            rules=self.rules(state, conversation, task),
            row=question_row(messages, self.max_questions),
            moves=[move for move in state.records("moves", Move) or [] if begun and move.turn == begun],
            task=begun,
            setting=self.setting,
            active=active,
            world=state.record("world", WorldStatus),
        )

    def _steps_made(self, task: Sequence[BaseMessage]) -> int:
        """The steps of a turn or a task so far: in a chat, calls alone."""
        return sum(
            isinstance(message, AIMessage)
            and message.name == self.agent.name
            and (self.setting == "task" or bool(message.tool_calls))
            for message in task
        )

    def rules(self, state: Reader, conversation: Conversation, task: Sequence[BaseMessage]) -> Rules:
        """What the policies make of a state."""
        called = {call["name"] for m in task if isinstance(m, AIMessage) for call in m.tool_calls}
        rules = self.policies.values()
        forbids = [(policy.name, policy.forbids) for policy in rules if policy.forbids]
        requires = [(policy.name, policy.requires) for policy in rules if policy.requires]
        given = state_for_functions(self.agent, state)
        forbidden = named_by(forbids, given, self.tools)
        required = named_by(requires, given, self.tools)
        last = conversation.last_customer_line
        asked_first = "complete_half_requests" in self.policies and not conversation.results
        return Rules(
            policies=frozenset(self.policies),
            forbidden=forbidden,
            required=required - called - forbidden,
            is_half_said=asked_first and last is not None and is_half_said(last.message.text),
        )

    def _facts(self, conversation: Conversation, variables: Sequence[Mapping[str, Any]]) -> PromptFacts:
        glossary = [entry["id"] for entry in designed(self.agent)["glossary"]]
        return PromptFacts(
            conversation,
            {"P", *glossary, *(variable["id"] for variable in variables)},
            tuple(self.agent.toolbox),
            (*(g.id for g in self.agent.guidelines), *(variable["name"] for variable in variables)),
            public_text=self.agent.profile,
        )

    def _known(self, variables: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        return (self.agent.profile, *(as_json(variable["value"]) for variable in variables))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
