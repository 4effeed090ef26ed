"""Message revision: writing the reply and having it revised until it follows the rules (ARQ paper, 5.1.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from arq_graph.nodes.blueprint_node import NodeSteps, QuestionBatch
from arq_graph.nodes.confirmation import find_preamble_problem, format_question, make_reply
from arq_graph.nodes.events import ReplyRevised, ReplySent
from arq_graph.nodes.grants import get_active_scores, get_granted_tools
from arq_graph.nodes.message_schema import MessageBlueprint
from arq_graph.nodes.messages import list_ids
from arq_graph.nodes.node import Update
from arq_graph.nodes.reply_stream import ReplyStream
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.turn_records import read_current_draft, select_verdicts
from arq_graph.nodes.violations import (
    PromptReferences,
    collect_references,
    find_grave_violations,
    find_leaks,
    find_violations,
)
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.reasoner import ModelLike
from arq_graph.reasoning.sections import make_id

OnUnsatisfied = Literal["send_last", "fallback"]


class MessageReviser(AgentNode[MessageBlueprint]):
    """Write the reply, and have it revised while code finds something wrong with it.

    Writes the reply as a message, the candidates to `revisions`, and the guidelines that the reply follows to
    `applied_guidelines`, which the matcher reads in later turns. If a planner has left its final answer, or a speaker
    its utterance, the reviser starts from this draft; `draft_key` names a channel with a draft of your own. If calls
    are pending, the generated confirmation question ends the reply, and `agreements` stores what was asked.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        blueprint: The queries; subclass `MessageBlueprint` to add queries of your domain.
        extra_revisions: How many more times the model is asked if code finds a violation.
        on_unsatisfied: What to send if violations remain. `send_last` sends the last candidate, else the draft, each
            unless it is empty or reveals internals, else the agent's `fallback`. `fallback` always sends the
            `fallback`. If calls are pending, the confirmation question replaces the fallback.
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
        if draft_key:
            self.further_channels = {draft_key: str | None}
        super().__init__(model, agent, blueprint, **settings)
        if not (isinstance(blueprint, type) and issubclass(blueprint, MessageBlueprint)):
            raise InputError(f"blueprint is {blueprint!r}: it must be MessageBlueprint or a subclass of it")
        self.extra_revisions = require_count("extra_revisions", extra_revisions, minimum=0)
        self.is_streaming = stream
        self.on_unsatisfied: OnUnsatisfied = require_choice("on_unsatisfied", on_unsatisfied, OnUnsatisfied)
        self.head = self.render_head()

    @staticmethod
    def make_example_blueprint(_: Sequence[ToolSchema]) -> type[ARQ]:
        """Return the blueprint of a worked example, which doesn't depend on tools."""
        return MessageBlueprint

    def steps(self, state: StateView) -> NodeSteps:
        """Write the reply of this turn."""
        state.require_message()
        if state.conversation.unreadable_line:
            reply = self.make_unreadable_reply(state)
            revision = Revision(turn=state.turn_id, content=reply.text, sent=True)
            revisions = state.build_channel_value("revisions", [revision])
            return {self.messages_key: [reply], "revisions": revisions}
        scores: dict[str, int] = {}
        for id, score in get_active_scores(self.agent, state).items():
            if self.agent.get_guideline(id).action is not None:  # the others are observations
                scores[id] = score
        draft = state.get(self.draft_key) if self.draft_key else read_current_draft(state)
        verdicts = state.read_turn_records("tool_insights", ToolVerdict, state.turn_id)
        pending = select_verdicts(verdicts, "confirm")
        sections = self._describe_context(state, scores, verdicts, pending)
        review = _ReplyReview(
            state, self._collect_references(state, sections), pending, draft, self.extra_revisions > 0
        )
        stream: ReplyStream | None = None
        if self.is_streaming:
            stream = ReplyStream(state, review.must_not_show, draft)
        question = Question(
            self.blueprint,
            self.build_prompt(state.conversation, sections | {"draft": draft}),
            review.check,
            max_candidates=1 + self.extra_revisions,
            guidelines=tuple(scores),
            on_candidate=review.add_candidate,
            on_partial=stream,
        )
        # Not by `ask_questions`, which raises an error that may be a reason to send the fallback.
        (answer,) = yield QuestionBatch([question])
        chosen = self._choose_reply(answer, review)
        return self._send(state, chosen, review, list(scores))

    def _describe_context(
        self,
        state: StateView,
        scores: Mapping[str, int],
        verdicts: Sequence[ToolVerdict],
        pending: Sequence[ToolVerdict],
    ) -> dict[str, Any]:
        active_guidelines: list[dict[str, Any]] = []
        for id, score in scores.items():
            guideline = self.agent.get_guideline(id)
            weight = {"priority": guideline.priority, "score": score}
            active_guidelines.append(describe_guideline(guideline) | weight)
        insights: list[dict[str, Any]] = []
        for number, insight in enumerate(self._describe_insights(state, verdicts, pending), start=1):
            insights.append({"id": make_id("I", number)} | insight)
        results = state.conversation.current_turn_results
        # The descriptions of tools that ran or may run this turn may say what they cost, and if they can be undone.
        names = set(get_granted_tools(self.agent, state))
        for line in results:
            if line.call:
                names.add(line.call["name"])
        tool_descriptions: list[dict[str, Any]] = []
        for name, tool in self.agent.toolbox.items():
            if name in names:
                tool_descriptions.append({"name": name, "description": tool.description})
        sections = self.describe_turn(state, {}, {"staged": list_ids(results)})
        sections["active_guidelines"] = active_guidelines
        sections["set_aside"] = list(self._describe_overridden(state))
        sections["tool_descriptions"] = tool_descriptions
        sections["insights"] = insights
        return sections

    def _describe_overridden(self, state: StateView) -> Iterator[dict[str, Any]]:
        """Describe the guidelines that matched, but are overridden by another one."""
        matches = state.current_turn_matches
        active = [self.agent.get_guideline(match.guideline) for match in matches if match.active]
        for match in matches:
            overriding = [guideline.id for guideline in active if match.guideline in guideline.overrides]
            if match.matched and not match.active and overriding:
                guideline = self.agent.get_guideline(match.guideline)
                yield describe_guideline(guideline) | {"replaced_by": overriding}

    def _describe_insights(
        self, state: StateView, verdicts: Sequence[ToolVerdict], pending: Sequence[ToolVerdict]
    ) -> Iterator[dict[str, Any]]:
        """Describe what is open in this turn: arguments, the confirmation question, undecided conditions."""
        fields = {"tool", "kind", "argument", "description", "problem"}
        for verdict in select_verdicts(verdicts, "missing", "invalid"):
            yield verdict.model_dump(include=fields, exclude_defaults=True)
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

    def _collect_references(self, state: StateView, sections: Mapping[str, Any]) -> PromptReferences:
        citable_ids = [tool["name"] for tool in sections["tool_descriptions"]]
        for entry in sections["active_guidelines"] + sections["insights"]:
            citable_ids.append(entry["id"])
        return collect_references(self.agent, state.conversation, sections["variables"], citable_ids)

    def _choose_reply(self, answer: Answer[Any] | ReasoningError, review: _ReplyReview) -> Revision:
        """Return the last candidate; if that must not be sent, the draft or the fallback."""
        turn_id = review.state.turn_id
        fallback = "" if review.pending else self.agent.fallback
        if isinstance(answer, ReasoningError):
            is_replaceable = isinstance(answer, BlueprintError | RefusalError)
            if self.on_unsatisfied != "fallback" or not is_replaceable:
                raise answer
            violation = f"no reply came ({type(answer).__name__}): the fallback was sent"
            return Revision(turn=turn_id, content=fallback, violations=(violation,))
        last = review.candidates[-1]
        if not last.violations:
            return last
        if self.on_unsatisfied == "send_last":
            if not find_grave_violations(last.content, review.references):
                return last
            if review.draft and not find_grave_violations(review.draft, review.references):
                violation = "no candidate was acceptable: the draft was sent"
                return Revision(turn=turn_id, content=review.draft, violations=(violation,))
        violation = "no candidate was acceptable: the fallback was sent"
        return Revision(turn=turn_id, content=fallback, violations=(violation,))

    def _send(
        self, state: StateView, chosen: Revision, review: _ReplyReview, active_ids: Sequence[str]
    ) -> Update:
        reply = make_reply(self.agent, state, chosen.content, review.pending)
        text = reply.message.text
        followed: tuple[str, ...] = ()
        if reply.has_text:
            followed = tuple(id for id in active_ids if id in chosen.followed)
        revisions = [candidate for candidate in review.candidates if candidate is not chosen]
        revisions.append(chosen.model_copy(update={"content": text, "followed": followed, "sent": True}))
        records = state.read_records("applied_guidelines", AppliedGuideline)
        applied = {record.guideline: record for record in records}
        for id in followed:
            times = applied[id].times + 1 if id in applied else 1
            applied[id] = AppliedGuideline(
                guideline=id, turn=state.turn_id, message_id=str(reply.message.id), times=times
            )
        state.emit(ReplySent(content=text, followed=followed, satisfied=not chosen.violations))
        state.emit(reply.event)
        update: Update = {
            self.messages_key: [reply.message],
            "revisions": state.build_channel_value("revisions", revisions),
            "applied_guidelines": state.build_channel_value("applied_guidelines", applied.values()),
        }
        return update | reply.update


class _ReplyReview:
    """Reviews the candidates for one reply, and collects them."""

    def __init__(
        self,
        state: StateView,
        references: PromptReferences,
        pending: Sequence[ToolVerdict],
        draft: str | None,
        may_revise: bool,
    ) -> None:
        self.state = state
        self.references = references
        self.pending = pending
        self.draft = draft
        self.candidates: list[Revision] = []
        self._may_revise = may_revise

    def check(self, answer: MessageBlueprint) -> list[Complaint]:
        """Return the complaints about a new candidate."""
        content = self._get_content(answer)
        complaints = find_violations(answer, content, self.references)
        problem = find_preamble_problem(content, self.pending)
        # Only the first candidate is complained about: after that, the confirmation question is sent alone.
        if problem and self._may_revise and not self.candidates:
            complaints.append(Complaint(type(answer).__name__, "revisions[-1].content", problem))
        return complaints

    def add_candidate(self, answer: MessageBlueprint, complaints: Sequence[Complaint]) -> None:
        """Add a candidate with the complaints about it, and emit an event."""
        content = self._get_content(answer)
        candidate = Revision(
            turn=self.state.turn_id,
            content=content,
            followed=tuple(answer.revisions[-1].followed),
            violations=tuple(map(str, complaints)),
        )
        self.candidates.append(candidate)
        self.state.emit(ReplyRevised(candidate=content, violations=candidate.violations))

    def must_not_show(self, content: str) -> bool:
        """Return True if the beginning of a candidate must not be streamed."""
        return bool(find_leaks(content, self.references) or find_preamble_problem(content, self.pending))

    def _get_content(self, answer: MessageBlueprint) -> str:
        """Return the text of an answer's last revision, or the draft if it is empty."""
        content = answer.revisions[-1].content
        return content if content.strip() else self.draft or ""
