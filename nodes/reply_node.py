"""The base class of the nodes that send the reply: what the prompt shows, which candidate is sent, what is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AppliedGuideline, Revision, ToolVerdict
from arq_graph.errors import ReasoningError, require_count
from arq_graph.nodes.agent_node import AgentNode, NodeSettings, describe_guideline
from arq_graph.nodes.blueprint_node import NodeSteps, QuestionBatch
from arq_graph.nodes.confirmation import find_preamble_problem, format_question, make_reply
from arq_graph.nodes.early_reply import check_reply
from arq_graph.nodes.events import ReplyRevised, ReplySent
from arq_graph.nodes.grants import get_active_scores, get_granted_tools
from arq_graph.nodes.messages import list_ids
from arq_graph.nodes.node import Update
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.turn_records import read_current_draft, select_verdicts
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import B
from arq_graph.reasoning.reasoner import ModelLike
from arq_graph.reasoning.sections import make_id

OnPartial: TypeAlias = Callable[[Mapping[str, Any]], None]


class ReplyNodeSettings(NodeSettings, total=False):
    """Settings that all nodes share that send a reply; see `MessageReviser`."""

    extra_revisions: int
    draft_key: str | None
    stream: bool


@dataclass(frozen=True)
class ReplyContext:
    """The basis of a turn's reply.

    Args:
        state: The state.
        scores: The scores of the active guidelines that have an action, by id.
        pending: The calls that the confirmation question below the reply is about.
        draft: A planner's final answer, a speaker's utterance, or the text in the channel of your own; None: none.
        sections: The sections of the prompt's tail.
    """

    state: StateView
    scores: Mapping[str, int]
    pending: Sequence[ToolVerdict]
    draft: str | None
    sections: Mapping[str, Any]


class ReplyReview(ABC):
    """Reviews the candidates for one reply, collects them, and chooses the one that is sent.

    Args:
        context: What the reply rests on.
        may_revise: Whether the model is asked again about a candidate that code objects to.
    """

    def __init__(self, context: ReplyContext, may_revise: bool) -> None:
        self.context = context
        self.candidates: list[Revision] = []
        self._may_revise = may_revise

    @abstractmethod
    def check(self, answer: Any) -> list[Complaint]:
        """Return the complaints about a new candidate."""

    @abstractmethod
    def read_candidate(self, answer: Any) -> Revision:
        """Return the candidate in an answer, without violations."""

    @abstractmethod
    def choose_substitute(self, error: ReasoningError | None) -> Revision:
        """Return what is sent if no candidate is acceptable, or if there is none because of an error; or raise it."""

    @abstractmethod
    def make_stream(self) -> OnPartial:
        """Make the function that writes the reply to the stream while it is written."""

    def add_candidate(self, answer: Any, complaints: Sequence[Complaint]) -> None:
        """Add a candidate with the complaints about it, and emit an event."""
        violations = tuple(map(str, complaints))
        candidate = self.read_candidate(answer).model_copy(update={"violations": violations})
        self.candidates.append(candidate)
        self.context.state.emit(ReplyRevised(candidate=candidate.content, violations=violations))

    def choose(self, answer: Answer[Any] | ReasoningError) -> Revision:
        """Return the last candidate, or what is sent in its place."""
        if isinstance(answer, ReasoningError):
            return self.choose_substitute(answer)
        last = self.candidates[-1]
        return self.choose_substitute(None) if last.violations else last

    def find_preamble_problem(self, content: str) -> str | None:
        """Return why the model is asked again because of the confirmation question below the reply, or None.

        Only the first candidate is complained about: after that, the confirmation question is sent alone.
        """
        if not self._may_revise or self.candidates:
            return None
        return find_preamble_problem(content, self.context.pending)

    def make_revision(self, content: str, violation: str) -> Revision:
        """Return what is sent in place of the candidates, and the reason why."""
        return Revision(turn=self.context.state.turn_id, content=content, violations=(violation,))


class ReplyNode(AgentNode[B], ABC):
    """A node that ends the turn with the reply. A subclass makes the review of the candidates."""

    module = "message"
    agent_state_channels = (
        "guideline_matches",
        "passages",
        "applied_guidelines",
        "journeys",
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
        blueprint: type[B],
        *,
        extra_revisions: int = 1,
        draft_key: str | None = None,
        stream: bool = False,
        **settings: Unpack[NodeSettings],
    ) -> None:
        self.draft_key = draft_key
        if draft_key:
            self.further_channels = {draft_key: str | None}
        super().__init__(model, agent, blueprint, **settings)
        self.extra_revisions = require_count("extra_revisions", extra_revisions, minimum=0)
        self.is_streaming = stream
        replies = () if agent.composition == "free" else agent.replies
        self.head = self.render_head(replies=[reply.model_dump(exclude_defaults=True) for reply in replies])

    @abstractmethod
    def make_review(self, context: ReplyContext) -> ReplyReview:
        """Make the review of the candidates for a reply."""

    def steps(self, state: StateView) -> NodeSteps:
        """Write the reply of this turn."""
        state.require_message()
        if state.conversation.unreadable_line:
            reply = self.make_unreadable_reply(state)
            revision = Revision(turn=state.turn_id, content=reply.text, sent=True)
            revisions = state.build_channel_value("revisions", [revision])
            return {self.messages_key: [reply], "revisions": revisions}
        context = self._make_context(state)
        review = self.make_review(context)
        streams = self.is_streaming and not self.agent.select_checks("output")
        question = Question(
            self.blueprint,
            self.build_prompt(state.conversation, context.sections),
            review.check,
            max_candidates=1 + self.extra_revisions,
            guidelines=tuple(context.scores),
            on_candidate=review.add_candidate,
            on_partial=review.make_stream() if streams else None,
        )
        # Not by `ask_questions`, which raises an error that may be a reason to send something else.
        (answer,) = yield QuestionBatch([question])
        return (yield from self._send(context, review.choose(answer), review.candidates))

    def _make_context(self, state: StateView) -> ReplyContext:
        scores: dict[str, int] = {}
        for id, score in get_active_scores(self.agent, state).items():
            if self.agent.get_guideline(id).action is not None:  # the others are observations
                scores[id] = score
        draft = state.get(self.draft_key) if self.draft_key else read_current_draft(state)
        verdicts = state.read_turn_records("tool_insights", ToolVerdict, state.turn_id)
        pending = select_verdicts(verdicts, "confirm")
        sections = self._describe_context(state, scores, verdicts, pending) | {"draft": draft}
        return ReplyContext(state, scores, pending, draft, sections)

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
        names.update(line.call["name"] for line in results if line.call)
        tools = [tool for name, tool in self.agent.toolbox.items() if name in names]
        sections = self.describe_turn(state, {}, {"staged": list_ids(results)})
        sections["active_guidelines"] = active_guidelines
        sections["set_aside"] = list(self._describe_overridden(state))
        sections["tool_descriptions"] = [
            {"name": tool.name, "description": tool.description} for tool in tools
        ]
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

    def _send(self, context: ReplyContext, chosen: Revision, candidates: Sequence[Revision]) -> NodeSteps:
        state = context.state
        followed = tuple(id for id in context.scores if id in chosen.followed)
        reply = make_reply(self.agent, state, chosen.content, context.pending, followed=followed)
        text = reply.message.text
        checked, other_message = yield from check_reply(self.agent, state, text)
        if other_message is not None:
            rejected = state.build_channel_value("revisions", candidates)
            return checked | {self.messages_key: [other_message], "revisions": rejected}
        broken, cited = chosen.broken, chosen.cited
        if not reply.has_text:
            followed, broken, cited = (), None, ()
        revisions = [candidate for candidate in candidates if candidate is not chosen]
        fields = {"content": text, "followed": followed, "cited": cited}
        revisions.append(chosen.model_copy(update=fields | {"broken": broken, "sent": True}))
        records = state.read_records("applied_guidelines", AppliedGuideline)
        applied = {record.guideline: record for record in records}
        for id in followed:
            times = applied[id].times + 1 if id in applied else 1
            applied[id] = AppliedGuideline(
                guideline=id, turn=state.turn_id, message_id=str(reply.message.id), times=times
            )
        state.emit(ReplySent(**fields, satisfied=not chosen.violations))
        state.emit(reply.event)
        update: Update = {
            self.messages_key: [reply.message],
            "revisions": state.build_channel_value("revisions", revisions),
            "applied_guidelines": state.build_channel_value("applied_guidelines", applied.values()),
        }
        return update | reply.update | checked
