"""Message revision: the reply, revised until it follows the rules (ARQ paper, 5.1.3 and Appendix C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AppliedGuideline, Revision, ToolInsight
from arq_graph.errors import BlueprintError, InputError, ReasoningError, RefusalError, UnsatisfiedError
from arq_graph.nodes.blueprint_node import (
    PROMPTS,
    BlueprintNode,
    NodeSettings,
    Steps,
    Update,
    checked,
    checked_agent,
)
from arq_graph.nodes.channels import Reader, emit, our_channels
from arq_graph.nodes.events import ReplyRevised, ReplySent, total_usage
from arq_graph.nodes.gate import active_guidelines
from arq_graph.nodes.replies import MessageBlueprint
from arq_graph.nodes.reply_bounds import ReplyBounds
from arq_graph.nodes.speaking.questions import fallback_statement, question_row
from arq_graph.nodes.spec_sections import condition_text, designed, shown_variables
from arq_graph.nodes.turns import draft_of_turn, utterance_of_turn
from arq_graph.nodes.violations import PromptFacts, forbids, leaks, violations
from arq_graph.nodes.worked_examples import Example, reviser_examples, shown
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import Unmet
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.reasoner import Reasoner

OnUnsatisfied = Literal["send_last", "fallback", "raise"]

_FOR_THE_REPLY = {"missing", "invalid", "confirm"}


class MessageReviser(BlueprintNode[MessageBlueprint]):
    """Write the reply; have it revised while code finds something wrong with it.

    Writes the reply as a message, the candidates to `revisions`, and what the reply follows to
    `applied_guidelines`, which the matcher reads in later turns. Where a planner has left its final answer, or a
    speaker its utterance, that is the draft it begins with; the speaker's bounds of questions then hold for the reply.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        blueprint: What is asked; subclass `MessageBlueprint` to add queries of your domain.
        extra_revisions: How many more times the model is asked when code finds a violation.
        on_unsatisfied: When violations are left: `send_last` sends the last candidate, or where that is empty, gives
            internals away or asks what was just asked, the draft, or where that does so too or there is none, the
            agent's `fallback`; `fallback` always sends that sentence, `raise` raises.
        temperature: The paper's 0.1 unless given; left out for models that take none or have one set.
        template: A replacement for the shipped prompt.
        examples: Worked examples in the prompt.
        **settings: `mode`, `max_history_tokens`, `count_tokens`, `messages_key`: as for `BlueprintNode`.

    Raises:
        InputError: A setting is out of its range.
        UnsatisfiedError: When run: violations are left under `on_unsatisfied="raise"`.
        ReasoningError: When run: the model gave no answer. Under `on_unsatisfied="fallback"` an invalid answer
            or a refusal sends the fallback instead.
        StateError: When run: a channel holds another type.
    """

    module = "message"

    def __init__(
        self,
        model: BaseChatModel | str | Reasoner,
        agent: Agent,
        *,
        blueprint: type[MessageBlueprint] = MessageBlueprint,
        extra_revisions: int = 1,
        on_unsatisfied: OnUnsatisfied = "send_last",
        temperature: float | None = 0.1,
        template: str | Path = PROMPTS / "message_reviser.md",
        examples: Sequence[Example] | None = None,
        **settings: Unpack[NodeSettings],
    ) -> None:
        self.agent = checked_agent(agent)
        if not (isinstance(blueprint, type) and issubclass(blueprint, MessageBlueprint)):
            raise InputError(f"blueprint is {blueprint!r}: it must be MessageBlueprint or a subclass of it")
        if extra_revisions < 0:
            raise InputError(f"extra_revisions must be at least 0, not {extra_revisions}")
        super().__init__(
            model,
            blueprint,
            template,
            temperature=temperature,
            **settings,
        )
        self.extra_revisions = extra_revisions
        self.on_unsatisfied: OnUnsatisfied = checked("on_unsatisfied", on_unsatisfied, OnUnsatisfied)
        examples = reviser_examples() if examples is None else examples
        designs = designed(agent)
        self.head = self.template.render(
            "head", {**designs, "examples": [shown(example, self.mode) for example in examples]}
        )
        self._sources = {"P", *(entry["id"] for entry in designs["glossary"])}
        self._descriptions = {name: tool.description for name, tool in agent.toolbox.items()}
        self._internal = tuple(guideline.id for guideline in agent.guidelines)
        self._prohibitions = {g.id: g.action for g in agent.guidelines if g.action and forbids(g.action)}
        self._public = " ".join(
            [
                agent.profile,
                *(text for term in agent.glossary for text in (term.name, term.description, *term.synonyms)),
                *(guideline.action for guideline in agent.guidelines if guideline.action),
            ]
        )

    def channels(self) -> dict[str, Any]:
        """What it reads and writes besides the messages."""
        names = ("guideline_matches", "applied_guidelines", "tool_insights", "plan", "moves", "revisions")
        return our_channels(*names, "variables")

    def steps(self, state: Reader) -> Steps:
        """Write the reply of this turn."""
        conversation = self.read_conversation(state)
        active = active_guidelines(self.agent, state, conversation.turn)
        variables = shown_variables(self.agent, state)
        facts = PromptFacts(
            conversation,
            {*self._sources, *active, *(entry["id"] for entry in variables)},
            tuple(self.agent.toolbox),
            (*self._internal, *(entry["name"] for entry in variables)),
            self._prohibitions,
            self._public,
            self._bounds(state, conversation.turn),
        )
        draft = draft_of_turn(state, conversation.turn)
        candidates: list[Revision] = []

        def check(answer: MessageBlueprint) -> list[Complaint]:
            found = violations(answer, facts)
            # What a subclass verifies with `must_be` is held against the reply too; the reasoner tells the model.
            revision = _revision(answer, conversation.turn, [*answer.unmet(), *found])
            candidates.append(revision)
            emit(
                ReplyRevised(turn=conversation.turn, content=revision.content, violations=revision.violations)
            )
            return found

        (answer,) = yield [
            Question(
                self.blueprint,
                self.prompt(
                    conversation, self._tail(state, conversation, active, variables, draft), head=self.head
                ),
                check=check,
                max_candidates=1 + self.extra_revisions,
            )
        ]
        sent = self._choose(answer, candidates, facts, draft)
        return self._update(state, facts, sent, candidates, active, answer)

    def _bounds(self, state: Reader, turn: str) -> ReplyBounds:
        put = [each for each in self._insights(state, turn) if each.kind == "confirm"]
        said = utterance_of_turn(state, turn)
        if said is None or said.questions_left is None:
            return ReplyBounds(put, self._descriptions)
        row = question_row(state.messages(), 0)
        return ReplyBounds(put, self._descriptions, replace(row, limit=len(row.asked) + said.questions_left))

    def _insights(self, state: Reader, turn: str) -> list[ToolInsight]:
        return [each for each in state.records("tool_insights", ToolInsight) or [] if each.turn == turn]

    def _tail(
        self,
        state: Reader,
        conversation: Conversation,
        active: dict[str, int],
        variables: list[dict[str, Any]],
        draft: str | None,
    ) -> dict[str, Any]:
        last = conversation.last_customer_line
        now: dict[str, Any] = {"turn": last.id if last else None}
        if staged := [line.id for line in conversation.results]:
            now["staged"] = staged
        return {
            "variables": variables,
            "active_guidelines": [self._active(id, score) for id, score in active.items()],
            "insights": [
                _shown_insight(insight)
                for insight in self._insights(state, conversation.turn)
                if insight.kind in _FOR_THE_REPLY
            ],
            "draft": draft,
            "now": now,
        }

    def _active(self, id: str, score: int) -> dict[str, Any]:
        guideline = self.agent.guideline(id)
        return {
            "id": id,
            "condition": condition_text(guideline),
            "action": guideline.action,
            "priority": guideline.priority,
            "score": score,
        }

    def _choose(
        self,
        answer: Answer[Any] | ReasoningError,
        candidates: list[Revision],
        facts: PromptFacts,
        draft: str | None,
    ) -> Revision:
        if isinstance(answer, ReasoningError):
            if self.on_unsatisfied == "fallback" and isinstance(answer, BlueprintError | RefusalError):
                return self._fallback(facts, f"no reply came ({type(answer).__name__})")
            raise answer
        last = candidates[-1]
        if not last.violations:
            return last
        if self.on_unsatisfied == "raise":
            raise UnsatisfiedError(
                f"no acceptable reply within {1 + self.extra_revisions} answers: {'; '.join(last.violations)}",
                answer.attempts,
            )
        if self.on_unsatisfied == "fallback":
            return self._fallback(facts, "no candidate was acceptable")
        if not _is_unfit(last.content, facts):
            return last
        if draft is None or _is_unfit(draft, facts):
            return self._fallback(facts, "no candidate was acceptable")
        violation = "no candidate was acceptable: the draft was sent"
        candidates.append(Revision(turn=last.turn, content=draft, violations=(violation,)))
        return candidates[-1]

    def _fallback(self, facts: PromptFacts, why: str) -> Revision:
        content = fallback_statement(self.agent) if facts.bounds.row else self.agent.fallback
        violation = f"{why}: the agent's fallback was sent"
        return Revision(turn=facts.conversation.turn, content=content, violations=(violation,))

    def _update(
        self,
        state: Reader,
        facts: PromptFacts,
        sent: Revision,
        candidates: list[Revision],
        active: dict[str, int],
        answer: Answer[Any] | ReasoningError,
    ) -> Update:
        reply = AIMessage(sent.content, id=str(uuid4()), name=self.agent.name)
        turn = facts.conversation.turn
        followed = [id for id in active if id in sent.followed]
        applied = {r.guideline: r for r in state.records("applied_guidelines", AppliedGuideline) or []}
        for id in followed:
            times = applied[id].times + 1 if id in applied else 1
            applied[id] = AppliedGuideline(guideline=id, turn=turn, message=str(reply.id), times=times)
        before = [revision for revision in candidates if revision is not sent]
        emit(
            ReplySent(
                turn=turn,
                content=sent.content,
                followed=tuple(followed),
                satisfied=not sent.violations,
                calls=len(answer.attempts) if isinstance(answer, Answer | BlueprintError) else 1,
                usage=total_usage([answer]) if isinstance(answer, Answer) else None,
            )
        )
        update: Update = {
            self.messages_key: [reply],
            "revisions": state.written("revisions", [*before, sent.model_copy(update={"sent": True})]),
            "applied_guidelines": state.written("applied_guidelines", applied.values()),
        }
        if unput := self._unput(state, sent, facts, is_fallback=sent not in candidates):
            insights = state.records("tool_insights", ToolInsight) or []
            kept = [insight for insight in insights if insight.kind != "confirm" or insight.tool not in unput]
            update["tool_insights"] = state.written("tool_insights", kept)
        return update

    def _unput(self, state: Reader, sent: Revision, facts: PromptFacts, *, is_fallback: bool) -> set[str]:
        """The tools whose calls the reply does not ask about: no later "yes" may be taken for an answer to it."""
        if is_fallback:
            insights = state.records("tool_insights", ToolInsight) or []
            return {insight.tool for insight in insights if insight.kind == "confirm"}
        return set(facts.bounds.unput(sent.content))


def _is_unfit(content: str, facts: PromptFacts) -> bool:
    """Whether a reply must not be sent, whatever becomes of the turn."""
    return not content.strip() or bool(leaks(content, facts) or facts.bounds.unaskable(content))


def _revision(answer: Any, turn: str, found: Sequence[Complaint | Unmet]) -> Revision:
    last = answer.revisions[-1]
    return Revision(
        turn=turn,
        content=last.content,
        followed=tuple(last.followed),
        violations=tuple(map(str, found)),
    )


def _shown_insight(insight: ToolInsight) -> dict[str, Any]:
    shown = {"tool": insight.tool, "kind": insight.kind, "description": insight.description}
    if insight.argument:
        shown["argument"] = insight.argument
    if insight.problem:
        shown["problem"] = insight.problem
    return {**shown, "arguments": insight.arguments} if insight.kind == "confirm" else shown
