"""Message revision: writing the reply and having it revised until it follows the rules (ARQ paper, 5.1.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Unpack

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AppliedGuideline, Revision, ToolVerdict
from arq_graph.errors import (
    BlueprintError,
    InputError,
    ReasoningError,
    RefusalError,
    require_choice,
    require_count,
)
from arq_graph.nodes.agent_node import AgentNode, NodeSettings, describe_guideline
from arq_graph.nodes.blueprint_node import NodeRequests
from arq_graph.nodes.channels import StateView, Update, read_current_draft
from arq_graph.nodes.confirmation import ask_for_confirmation, find_question_conflict, format_question
from arq_graph.nodes.events import ReplyRevised, ReplySent
from arq_graph.nodes.gate import get_active_scores, get_granted_tools
from arq_graph.nodes.message_schema import MessageBlueprint
from arq_graph.nodes.reply_stream import ReplyStream
from arq_graph.nodes.violations import (
    PromptReferences,
    collect_references,
    find_blockers,
    find_leaks,
    find_violations,
)
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.reasoner import ModelLike

OnUnsatisfied = Literal["send_last", "fallback"]


class MessageReviser(AgentNode[MessageBlueprint]):
    """Write the reply, and have it revised while code finds something wrong with it.

    Writes the reply as a message, the candidates to `revisions`, and the guidelines that the reply follows to
    `applied_guidelines`, which the matcher reads in later turns. If a planner has left its final answer, or a speaker
    its utterance, the reviser starts from this draft; `draft_key` names a channel with a draft of your own. If calls
    are pending, code's own confirmation question ends the reply, and `agreements` stores what was asked.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        blueprint: The queries; subclass `MessageBlueprint` to add queries of your domain.
        extra_revisions: How many more times the model is asked if code finds a violation.
        on_unsatisfied: What to send if violations remain. `send_last` sends the last candidate; if that is empty or
            gives internals away, it sends the draft; if there is no draft, or the same is true of it, the agent's
            `fallback`. `fallback` always sends the `fallback`. If calls are pending, the confirmation question
            replaces the fallback.
        draft_key: Channel of a draft that another step has written in this turn, as text. If it is empty or None,
            the reviser writes the reply itself.
        stream: Have the model stream, and write the reply to `stream_mode="custom"` while it is written, as
            `ReplyDelta` events: each sentence once code has found no internals in it. Only the end tells whether the
            reply is accepted.
        **settings: `template`, `temperature` (the paper's 0.1) and the others of `BlueprintNode`.

    Raises:
        InputError: A setting is out of its range.
        ReasoningError: When run: the model gave no answer. Under `on_unsatisfied="fallback"` an invalid answer
            or a refusal sends the fallback instead.
    """

    module = "message"
    prompt_name = "message_reviser"
    agent_state_channels = (
        "guideline_matches",
        "applied_guidelines",
        "tool_insights",
        "plan",
        "moves",
        "revisions",
        "agreements",
        "variables",
    )
    default_temperature = 0.1

    make_example_blueprint = staticmethod(lambda _: MessageBlueprint)

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        blueprint: type[MessageBlueprint] = MessageBlueprint,
        extra_revisions: int = 1,
        on_unsatisfied: OnUnsatisfied = "send_last",
        draft_key: str | None = None,
        stream: bool = False,
        **settings: Unpack[NodeSettings],
    ) -> None:
        self.draft_key = draft_key
        super().__init__(model, agent, blueprint, **settings)
        if not (isinstance(blueprint, type) and issubclass(blueprint, MessageBlueprint)):
            raise InputError(f"blueprint is {blueprint!r}: it must be MessageBlueprint or a subclass of it")
        self.extra_revisions = require_count("extra_revisions", extra_revisions, minimum=0)
        self.streams = stream
        self.on_unsatisfied: OnUnsatisfied = require_choice("on_unsatisfied", on_unsatisfied, OnUnsatisfied)
        self.head = self.render_head()

    @cached_property
    def channels(self) -> dict[str, Any]:
        """The channels that this node reads or writes besides the messages, with their types."""
        channels = super().channels
        if self.draft_key:
            channels[self.draft_key] = str | None
        return channels

    def reason(self, state: StateView) -> NodeRequests:
        """Write the reply of this turn."""
        conversation = self.read_conversation(state)
        # The active guidelines that have an action; the others are observations.
        scores = get_active_scores(self.agent, state)
        scores = {
            id: score for id, score in scores.items() if self.agent.get_guideline(id).action is not None
        }
        draft = state.get(self.draft_key) if self.draft_key else read_current_draft(state)
        insights = state.read_turn_records("tool_insights", ToolVerdict, state.turn_id)
        pending = [insight for insight in insights if insight.kind == "confirm"]
        context = self._describe_context(state, scores, insights)
        facts = self._collect_context_facts(conversation, context)
        candidates: list[Revision] = []

        def check(answer: MessageBlueprint) -> list[Complaint]:
            content = _get_content(answer, draft)
            complaints = find_violations(answer, content, facts)
            conflict = find_question_conflict(content, pending)
            # Only once: if the reply still asks something then, code's question goes out alone.
            if conflict and self.extra_revisions and not candidates:
                complaints.append(Complaint(type(answer).__name__, "revisions[-1].content", conflict))
            return complaints

        def add_candidate(answer: MessageBlueprint, complaints: Sequence[Complaint]) -> None:
            content = _get_content(answer, draft)
            violations = tuple(map(str, complaints))
            followed = tuple(answer.revisions[-1].followed)
            candidates.append(
                Revision(turn=state.turn_id, content=content, followed=followed, violations=violations)
            )
            state.emit(ReplyRevised(content=content, violations=violations))

        def must_not_show(content: str) -> bool:
            return bool(find_leaks(content, facts) or find_question_conflict(content, pending))

        question = Question(
            self.blueprint,
            self.build_prompt(conversation, {**context, "draft": draft}, head=self.head),
            check,
            max_candidates=1 + self.extra_revisions,
            guidelines=tuple(scores),
            on_candidate=add_candidate,
            on_partial=ReplyStream(state, must_not_show, draft) if self.streams else None,
        )
        (answer,) = yield [question]
        fallback = "" if pending else self.agent.fallback
        chosen = self._choose_reply(answer, candidates, facts, draft, fallback)
        rejected = [candidate for candidate in candidates if candidate is not chosen]
        return self._send(state, chosen, rejected, list(scores), pending)

    def _describe_context(
        self,
        state: StateView,
        scores: Mapping[str, int],
        tool_insights: Sequence[ToolVerdict],
    ) -> dict[str, Any]:
        active_guidelines: list[dict[str, Any]] = []
        for id, score in scores.items():
            guideline = self.agent.get_guideline(id)
            weight = {"priority": guideline.priority, "score": score}
            active_guidelines.append({**describe_guideline(guideline), **weight})
        insights: list[dict[str, Any]] = []
        for number, insight in enumerate(self._describe_insights(state, tool_insights), start=1):
            insights.append({"id": f"I{number}", **insight})
        results = state.conversation.current_turn_results
        # The tools that ran or may run this turn: what they cost, and whether they can be undone.
        names = set(get_granted_tools(self.agent, state))
        names.update(line.call["name"] for line in results if line.call)
        used_tools: list[dict[str, Any]] = []
        for name, tool in self.agent.toolbox.items():
            if name in names:
                used_tools.append({"name": name, "description": tool.description})
        return {
            **self.describe_turn(state, {}, {"staged": [line.id for line in results]}),
            "active_guidelines": active_guidelines,
            "set_aside": list(self._describe_overridden(state)),
            "tool_descriptions": used_tools,
            "insights": insights,
        }

    def _describe_overridden(self, state: StateView) -> Iterator[dict[str, Any]]:
        """Describe the guidelines that the reply would follow, if another one didn't override them."""
        matches = state.current_turn_matches
        active = [self.agent.get_guideline(match.guideline) for match in matches if match.active]
        for match in matches:
            overriding = [guideline.id for guideline in active if match.guideline in guideline.overrides]
            if match.matched and not match.active and overriding:
                guideline = self.agent.get_guideline(match.guideline)
                yield {**describe_guideline(guideline), "replaced_by": overriding}

    def _describe_insights(
        self, state: StateView, tool_insights: Sequence[ToolVerdict]
    ) -> Iterator[dict[str, Any]]:
        """Describe what is open this turn: arguments, a confirmation question, conditions that aren't known yet."""
        fields = {"tool", "kind", "argument", "description", "problem"}
        for insight in tool_insights:
            if insight.kind in ("missing", "invalid"):
                yield insight.model_dump(include=fields, exclude_defaults=True)
        pending = [insight for insight in tool_insights if insight.kind == "confirm"]
        if pending:
            yield {"kind": "confirm", "question": format_question(self.agent, pending)}
        for match in state.current_turn_matches:
            if match.missing_information and not match.active:
                guideline = self.agent.get_guideline(match.guideline)
                yield {
                    "kind": "not_known_yet",
                    "condition": guideline.condition_text,
                    "action": guideline.action,
                    "what_would_decide_it": match.missing_information,
                }

    def _collect_context_facts(
        self, conversation: Conversation, context: Mapping[str, Any]
    ) -> PromptReferences:
        sources = [guideline["id"] for guideline in context["active_guidelines"]]
        sources += [insight["id"] for insight in context["insights"]]
        sources += [tool["name"] for tool in context["tool_descriptions"]]
        return collect_references(self.agent, conversation, context["variables"], sources)

    def _choose_reply(
        self,
        answer: Answer[Any] | ReasoningError,
        candidates: Sequence[Revision],
        facts: PromptReferences,
        draft: str | None,
        fallback: str,
    ) -> Revision:
        """Return the last candidate, or if it must not be sent, the draft or the fallback."""
        turn = facts.conversation.turn_id
        if isinstance(answer, ReasoningError):
            is_replaceable = isinstance(answer, BlueprintError | RefusalError)
            if self.on_unsatisfied != "fallback" or not is_replaceable:
                raise answer
            violation = f"no reply came ({type(answer).__name__}): the fallback was sent"
            return Revision(turn=turn, content=fallback, violations=(violation,))
        last = candidates[-1]
        if not last.violations:
            return last
        if self.on_unsatisfied == "send_last":
            if not find_blockers(last.content, facts):
                return last
            if draft and not find_blockers(draft, facts):
                violation = "no candidate was acceptable: the draft was sent"
                return Revision(turn=turn, content=draft, violations=(violation,))
        violation = "no candidate was acceptable: the fallback was sent"
        return Revision(turn=turn, content=fallback, violations=(violation,))

    def _send(
        self,
        state: StateView,
        chosen: Revision,
        rejected: Sequence[Revision],
        active: Sequence[str],
        pending: Sequence[ToolVerdict],
    ) -> Update:
        reply, agreements, question_asked = ask_for_confirmation(self.agent, state, chosen.content, pending)
        followed: tuple[str, ...] = ()
        # A reply that asks something itself is left out: code's question goes out alone.
        if chosen.content.strip() in reply.text:
            followed = tuple(id for id in active if id in chosen.followed)
        sent = chosen.model_copy(update={"content": reply.text, "followed": followed, "sent": True})
        records = state.read_records("applied_guidelines", AppliedGuideline)
        applied = {record.guideline: record for record in records}
        for id in followed:
            times = applied[id].times + 1 if id in applied else 1
            applied[id] = AppliedGuideline(
                guideline=id, turn=state.turn_id, message_id=str(reply.id), times=times
            )
        state.emit(ReplySent(content=reply.text, followed=followed, satisfied=not chosen.violations))
        state.emit(question_asked)
        return {
            self.messages_key: [reply],
            "revisions": state.replace_records("revisions", [*rejected, sent]),
            "applied_guidelines": state.replace_records("applied_guidelines", applied.values()),
            **agreements,
        }


def _get_content(answer: MessageBlueprint, draft: str | None) -> str:
    """Return the text of an answer's last revision; an empty one stands for the draft."""
    content = answer.revisions[-1].content
    return content if content.strip() else draft or ""
