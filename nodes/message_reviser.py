"""Message revision: writing the reply and having it revised until it follows the rules (ARQ paper, 5.1.3)."""

from __future__ import annotations

from typing import Literal, Unpack

from arq_graph.agent.braces import has_template_text
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Revision, UsedReply
from arq_graph.errors import BlueprintError, InputError, ReasoningError, RefusalError, require_choice
from arq_graph.nodes.confirmation import find_preamble_problem
from arq_graph.nodes.message_schema import MessageBlueprint
from arq_graph.nodes.reply_node import OnPartial, ReplyContext, ReplyNode, ReplyNodeSettings, ReplyReview
from arq_graph.nodes.reply_stream import DeltaWriter, ReplyStream
from arq_graph.nodes.violations import (
    PromptReferences,
    collect_references,
    find_broken_guidelines,
    find_cited_passages,
    find_grave_violations,
    find_leaks,
    find_violations,
)
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.reasoner import ModelLike

OnUnsatisfied = Literal["send_last", "fallback"]


class MessageReviser(ReplyNode[MessageBlueprint]):
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
            reply is accepted. If the agent has output checks, the whole reply is held back until it has passed them.
        **settings: `template`, `temperature` (the paper's 0.1) and the others of `BlueprintNode`.

    Raises:
        InputError: A setting is out of its range.
        ReasoningError: When run: the model gave no answer. Under `on_unsatisfied="fallback"` an invalid answer
            or a refusal sends the fallback instead.
    """

    prompt_name = "message_reviser"
    make_example_blueprint = staticmethod(lambda _: MessageBlueprint)

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        blueprint: type[MessageBlueprint] = MessageBlueprint,
        on_unsatisfied: OnUnsatisfied = "send_last",
        **settings: Unpack[ReplyNodeSettings],
    ) -> None:
        super().__init__(model, agent, blueprint, **settings)
        if not (isinstance(blueprint, type) and issubclass(blueprint, MessageBlueprint)):
            raise InputError(f"blueprint is {blueprint!r}: it must be MessageBlueprint or a subclass of it")
        if agent.composition == "strict":
            raise InputError(f"agent {agent.name!r} is composition='strict': use ReplyChooser")
        self.on_unsatisfied: OnUnsatisfied = require_choice("on_unsatisfied", on_unsatisfied, OnUnsatisfied)

    def make_review(self, context: ReplyContext) -> ReplyReview:
        """Make the review of the candidates for a reply."""
        sections = context.sections
        citable_ids = [tool["name"] for tool in sections["tool_descriptions"]]
        for entry in sections["active_guidelines"] + sections["insights"]:
            citable_ids.append(entry["id"])
        references = collect_references(self.agent, context.state, citable_ids)
        return _MessageReview(context, self.extra_revisions > 0, references, self.agent, self.on_unsatisfied)


class _MessageReview(ReplyReview):
    """Reviews candidates in the model's words."""

    def __init__(
        self,
        context: ReplyContext,
        may_revise: bool,
        references: PromptReferences,
        agent: Agent,
        on_unsatisfied: OnUnsatisfied,
    ) -> None:
        super().__init__(context, may_revise)
        self._references = references
        self._replies = agent.replies if agent.composition == "prefer" else ()
        self._fallback = "" if context.pending else agent.fallback
        self._on_unsatisfied = on_unsatisfied

    def check(self, answer: MessageBlueprint) -> list[Complaint]:
        """Return the complaints about a new candidate."""
        content = self._get_content(answer)
        complaints = find_violations(answer, content, self._references)
        if problem := self.find_preamble_problem(content):
            complaints.append(Complaint(type(answer).__name__, "revisions[-1].content", problem))
        return complaints

    def read_candidate(self, answer: MessageBlueprint) -> Revision:
        """Return the candidate in an answer, without violations."""
        content = self._get_content(answer)
        used: list[UsedReply] = []
        for reply in self._replies:
            if any(has_template_text(content, text) for text in reply.texts.values()):
                used.append(UsedReply(reply=reply.id))
        return Revision(
            turn=self.context.state.turn_id,
            content=content,
            followed=tuple(answer.revisions[-1].followed),
            broken=find_broken_guidelines(answer, self.context.scores),
            cited=find_cited_passages(answer, self._references),
            replies=tuple(used),
        )

    def choose_substitute(self, error: ReasoningError | None) -> Revision:
        """Return the last candidate with its faults; if that must not be sent, the draft or the fallback."""
        if error is not None:
            is_replaceable = isinstance(error, BlueprintError | RefusalError)
            if self._on_unsatisfied != "fallback" or not is_replaceable:
                raise error
            violation = f"no reply came ({type(error).__name__}): the fallback was sent"
            return self.make_revision(self._fallback, violation)
        if self._on_unsatisfied == "send_last":
            last = self.candidates[-1]
            if not find_grave_violations(last.content, self._references):
                return last
            draft = self.context.draft
            if draft and not find_grave_violations(draft, self._references):
                return self.make_revision(draft, "no candidate was acceptable: the draft was sent")
        return self.make_revision(self._fallback, "no candidate was acceptable: the fallback was sent")

    def make_stream(self) -> OnPartial:
        """Make the function that writes the reply to the stream while it is written."""
        return ReplyStream(DeltaWriter(self.context.state), self._must_not_show, self.context.draft)

    def _must_not_show(self, content: str) -> bool:
        problem = find_preamble_problem(content, self.context.pending)
        return bool(find_leaks(content, self._references) or problem)

    def _get_content(self, answer: MessageBlueprint) -> str:
        """Return the text of an answer's last revision, or the draft if it is empty."""
        content = answer.revisions[-1].content
        return content if content.strip() else self.context.draft or ""
