"""Strict replies: the model chooses among replies that a designer wrote, and code fills them in and sends nothing else.

The model's answer has no text that is sent: only ids of replies, and values with their sources, which code looks up
itself. A draft of a planner, a speaker or a chat model is material for the choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from pydantic import ValidationError

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Revision, UsedReply
from arq_graph.errors import BlueprintError, InputError, ReasoningError, RefusalError
from arq_graph.nodes.confirmation import find_preamble_problem
from arq_graph.nodes.message_schema import ChosenReply, ReplyChoice
from arq_graph.nodes.reply_node import OnPartial, ReplyContext, ReplyNode, ReplyNodeSettings, ReplyReview
from arq_graph.nodes.reply_stream import DeltaWriter
from arq_graph.nodes.reply_values import FilledReply, ReplyFiller
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.reasoner import ModelLike

_PARAGRAPH = "\n\n"


class ReplyChooser(ReplyNode[ReplyChoice]):
    """Have the model choose prepared replies, for an agent with `composition="strict"`.

    Its channels and events are those of `MessageReviser`. If no choice is acceptable, or no valid answer came, the
    agent's `otherwise` reply is sent; above a confirmation question, nothing.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        blueprint: The queries; subclass `ReplyChoice` to add queries of your domain.
        **settings: `extra_revisions`, `draft_key`, `stream` and the others of `MessageReviser`. A stream has whole
            replies, each once it is filled in.

    Raises:
        InputError: The agent isn't strict, or a setting is out of its range.
        ReasoningError: When run: the model can't be reached.
    """

    prompt_name = "reply_chooser"
    make_example_blueprint = staticmethod(lambda _: ReplyChoice)

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        blueprint: type[ReplyChoice] = ReplyChoice,
        **settings: Unpack[ReplyNodeSettings],
    ) -> None:
        super().__init__(model, agent, blueprint, **settings)
        if not (isinstance(blueprint, type) and issubclass(blueprint, ReplyChoice)):
            raise InputError(f"blueprint is {blueprint!r}: it must be ReplyChoice or a subclass of it")
        if agent.composition != "strict":
            raise InputError(f"agent {agent.name!r} isn't composition='strict': use MessageReviser")

    def make_review(self, context: ReplyContext) -> ReplyReview:
        """Make the review of the candidates for a reply."""
        return _ChoiceReview(context, self.extra_revisions > 0, self.agent)


class _ChoiceReview(ReplyReview):
    """Reviews choices of replies, and fills them in."""

    def __init__(self, context: ReplyContext, may_revise: bool, agent: Agent) -> None:
        super().__init__(context, may_revise)
        self._agent = agent
        self._filler = ReplyFiller(agent, context.state.conversation, context.sections)
        self._language = ""

    def check(self, answer: ReplyChoice) -> list[Complaint]:
        """Return the complaints about a new candidate."""
        problems: list[tuple[str, str]] = []
        for index, filled in enumerate(self._fill(answer)):
            problems.extend((f"replies[{index}]", problem) for problem in filled.problems)
        if not answer.replies and not self.context.pending:
            problems.append(("replies", "it is empty; if nothing else fits, choose the `otherwise` reply"))
        if problem := self.find_preamble_problem(self.read_candidate(answer).content):
            problems.append(("replies", problem))
        return [Complaint(type(answer).__name__, query, problem) for query, problem in problems]

    def read_candidate(self, answer: ReplyChoice) -> Revision:
        """Return the filled replies in an answer; without text if one of them can't be filled."""
        filled_replies = self._fill(answer)
        content = ""
        if not any(filled.problems for filled in filled_replies):
            content = _PARAGRAPH.join(filled.text for filled in filled_replies)
        return Revision(
            turn=self.context.state.turn_id,
            content=content,
            followed=tuple(answer.followed),
            cited=self._list_passages(filled_replies),
            replies=tuple(filled.used for filled in filled_replies),
        )

    def add_candidate(self, answer: ReplyChoice, complaints: Sequence[Complaint]) -> None:
        """Add a candidate, and remember its language for the `otherwise` reply."""
        super().add_candidate(answer, complaints)
        self._language = answer.language

    def choose_substitute(self, error: ReasoningError | None) -> Revision:
        """Return the `otherwise` reply; above a confirmation question, none."""
        if error is not None and not isinstance(error, BlueprintError | RefusalError):
            raise error
        reason = f"no reply came ({type(error).__name__})" if error else "no choice was acceptable"
        if self.context.pending:
            return self.make_revision("", f"{reason}: the question was sent alone")
        reply = next(reply for reply in self._agent.replies if reply.otherwise)
        revision = self.make_revision(reply.get_text(self._language), f"{reason}: {reply.id!r} was sent")
        return revision.model_copy(update={"replies": (UsedReply(reply=reply.id),)})

    def make_stream(self) -> OnPartial:
        """Make the function that writes each reply to the stream once it is chosen."""
        return _ChoiceStream(self, DeltaWriter(self.context.state))

    def fill_to_show(self, choice: Any, language: Any) -> str | None:
        """Return the text of one choice in a partial answer; None if it must not show."""
        try:
            chosen = ChosenReply.model_validate(choice)
        except ValidationError:
            return None
        filled = self._filler.fill(chosen, str(language))
        is_shown = filled.text and not find_preamble_problem(filled.text, self.context.pending)
        return filled.text if is_shown else None

    def _list_passages(self, filled_replies: Sequence[FilledReply]) -> tuple[str, ...]:
        """Return the ids of the passages that the replies cite."""
        sources: set[str] = set()
        for filled in filled_replies:
            sources.update(value.source for value in filled.used.values.values())
        passage_ids = [passage["id"] for passage in self.context.sections["knowledge"]]
        return tuple(id for id in passage_ids if id in sources)

    def _fill(self, answer: ReplyChoice) -> list[FilledReply]:
        return [self._filler.fill(choice, answer.language) for choice in answer.replies]


@dataclass
class _ChoiceStream:
    """Writes the replies in a partial answer to `stream_mode="custom"`, each when the next part of the answer begins.

    Once one of them can't be sent, the rest is withheld.
    """

    review: _ChoiceReview
    writer: DeltaWriter
    _read_count: int = field(default=0, init=False)
    _is_withheld: bool = field(default=False, init=False)

    def __call__(self, answer: Mapping[str, Any]) -> None:
        """Write the replies that are complete now; an empty answer starts again."""
        choices = answer.get("replies")
        if not isinstance(choices, list):
            self._read_count = 0
            self._is_withheld = False
            self.writer.restart()
            return
        is_complete = list(answer)[-1] != "replies"  # the next field has begun
        complete_count = len(choices) if is_complete else len(choices) - 1
        for choice in choices[self._read_count : complete_count]:
            text = self.review.fill_to_show(choice, answer.get("language"))
            self._is_withheld = self._is_withheld or text is None
            if text and not self._is_withheld:
                self.writer.write(_PARAGRAPH + text if self._read_count else text)
            self._read_count += 1
