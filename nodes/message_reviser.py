"""Message revision: the reply, revised until it follows the rules (ARQ paper, 5.1.3 and Appendix C).

Query keys are the paper's where they fit into the 64 characters that some providers allow for a property.
Subclass `MessageBlueprint` to add queries of your domain; each lands in its stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AppliedGuideline, Revision, ToolInsight
from arq_graph.errors import (
    BlueprintError,
    InputError,
    ReasoningError,
    RefusalError,
    require_choice,
    require_count,
)
from arq_graph.nodes.blueprint_node import AgentNode, NodeSettings, Steps
from arq_graph.nodes.channels import StateView
from arq_graph.nodes.confirmation import ask_for_confirmation, find_question_conflict, format_question
from arq_graph.nodes.current_turn import current_turn_draft, current_turn_matches
from arq_graph.nodes.events import ReplyRevised, ReplySent
from arq_graph.nodes.gate import get_active_scores, get_granted_tools
from arq_graph.nodes.reply_stream import ReplyStream
from arq_graph.nodes.spec_sections import describe_guideline, describe_turn, describe_variables
from arq_graph.nodes.violations import PromptFacts, find_blockers, find_leaks, find_violations
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.reasoner import ModelLike

MAX_REVISIONS = 5
MAX_INSIGHTS = 3

OnUnsatisfied = Literal["send_last", "fallback"]


class ContextEvaluation(ARQ, defer_build=True):
    """What the customer needs, and what is here to help."""

    most_recent_customer_inquiries_or_needs: str = query("What does the customer ask or need now?")
    parts_of_the_context_with_information_on_these_needs: str = query("Which ids bear on it?")
    topics_with_sufficient_information_to_help: str = query("What is known well enough to help with?")
    what_i_do_not_have_enough_information_to_help_with: str = query("What is not known here?")
    was_i_given_specific_information_on_how_to_address_these_needs: bool = query(
        "Do the guidelines tell how?"
    )
    should_i_tell_the_customer_i_cannot_help_with_some_needs: bool = respond("Must the reply say so?")


class Insight(ARQ, defer_build=True):
    """What the reply has to respect that no instruction says."""

    insight: str = respond("What to respect.")
    source: str | None = respond("Id of what it comes from.")


class InstructionEvaluation(ARQ, defer_build=True):
    """How a guideline or an insight is followed."""

    instruction: str = respond("Its id, or the insight.")
    evaluation: str = respond("How does the reply follow it?")
    data_available: str = respond("Is the data it needs here? Give ids.")


class SourcedFact(ARQ, defer_build=True):
    """A fact that the reply states."""

    fact: str = respond("The fact.")
    source: str | None = respond("Id of where this prompt says so.")


class OfferedService(ARQ, defer_build=True):
    """A service that the reply offers."""

    service: str = respond("The service.")
    source: str | None = respond("Id of where this prompt offers it.")


class BrokenInstruction(ARQ, defer_build=True):
    """A guideline or an insight that the reply does not follow."""

    instruction: str = respond("Its id, or the insight.")
    forbids: bool = respond("Does it forbid something?")
    reason: Literal["prioritization", "missing_data", "customer_request", "awaits_agreement", "none"] = (
        respond("Why is it not followed?")
    )
    rationale: str = respond("In a few words.")


class MessageRevision(ARQ, defer_build=True):
    """One version of the reply, and its check."""

    revision_number: int = query("From 1.", ge=1)
    content: str = respond("The whole reply; empty: the draft as it stands.")
    followed: list[str] = respond("Ids of the guidelines it follows.")
    factual_information_provided: list[SourcedFact] = verify("Every fact it states.")
    offered_services: list[OfferedService] = verify("Every service it offers.")
    instructions_broken: list[BrokenInstruction] = verify("Every instruction it does not follow.")
    is_repeat_message: bool = verify("Does it repeat an earlier message of the agent?")


class MessageBlueprint(ARQ):
    """Write the agent's next message to the customer."""

    last_message_of_customer: str | None = reinstate("Verbatim.")
    context_evaluation: ContextEvaluation = query("What is needed, and what is here?")
    insights: list[Insight] = query("At most three; often none.", max_length=MAX_INSIGHTS)
    evaluation_for_each_instruction: list[InstructionEvaluation] = query(
        "Each active guideline and each insight."
    )
    revisions: list[MessageRevision] = respond(
        "One, and further ones while a check fails. The last one is sent.",
        min_length=1,
        max_length=MAX_REVISIONS,
    )


class MessageReviser(AgentNode[MessageBlueprint]):
    """Write the reply; have it revised while code finds something wrong with it.

    Writes the reply as a message, the candidates to `revisions`, and what the reply follows to
    `applied_guidelines`, which the matcher reads in later turns. Where a planner has left its final answer, or a
    speaker its utterance, that is the draft it begins with; `draft_key` names a channel with one of yours. Where calls
    wait for the customer's yes, code's own question stands at the end of the reply, and `agreements` keeps what was
    put.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        blueprint: What is asked; subclass `MessageBlueprint` to add queries of your domain.
        extra_revisions: How many more times the model is asked when code finds a violation.
        on_unsatisfied: When violations are left: `send_last` sends the last candidate, or where that is empty or gives
            internals away, the draft, or where that does so too or there is none, the agent's `fallback`; `fallback`
            always sends that sentence. Where code has a question to put, that stands in the place of the fallback.
        draft_key: Channel of a draft that something else has written in this turn, as text; empty or None: there is
            none, and the reviser writes the reply itself.
        stream: Have the model stream, and write the reply to `stream_mode="custom"` while it is written: `ReplyDelta`
            events, each sentence once code has found no internals in it. What is accepted is known at the end only.
        **settings: `template`, `temperature` (the paper's 0.1) and the others of `BlueprintNode`.

    Raises:
        InputError: A setting is out of its range.
        ReasoningError: When run: the model gave no answer. Under `on_unsatisfied="fallback"` an invalid answer
            or a refusal sends the fallback instead.
    """

    module = "message"
    files = "message_reviser"
    agent_state_channels = (
        *("guideline_matches", "applied_guidelines", "tool_insights", "plan", "moves", "revisions"),
        *("agreements", "variables"),
    )
    default_temperature = 0.1

    example_blueprint = staticmethod(lambda _: MessageBlueprint)

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

    @property
    def channels(self) -> dict[str, Any]:
        """The channels this node reads or writes besides the messages, with their types."""
        return super().channels | ({self.draft_key: str | None} if self.draft_key else {})

    def steps(self, state: StateView) -> Steps:
        """Write the reply of this turn."""
        conversation = self.read_conversation(state)
        turn = state.turn
        scores = get_active_scores(self.agent, state)
        active = {id: score for id, score in scores.items() if self.agent.guideline(id).action is not None}
        draft = state.get(self.draft_key) if self.draft_key else current_turn_draft(state)
        insights = state.read_turn_records("tool_insights", ToolInsight, turn)
        waiting = [each for each in insights if each.kind == "confirm"]
        sections = {**self._sections(state, conversation, active, waiting), "draft": draft}
        sources = [each["id"] for each in sections["insights"]]
        sources += [each["name"] for each in sections["tool_descriptions"]]
        facts = self.collect_facts(conversation, sections["variables"], [*active, *sources])
        candidates: list[Revision] = []

        def check(answer: MessageBlueprint) -> list[Complaint]:
            last = answer.revisions[-1]
            content = last.content if last.content.strip() else draft or ""
            found = find_violations(answer, content, facts)
            # Once only: a reply that still asks something is left out, and code's question goes alone.
            may_revise = self.extra_revisions and not candidates
            if may_revise and (beside := find_question_conflict(content, waiting)):
                found.append(Complaint(type(answer).__name__, "revisions[-1].content", beside))
            # What a subclass verifies with `must_be` is held against the reply too; the reasoner tells the model.
            wrong = tuple(map(str, [*answer.unmet(), *found]))
            candidates.append(
                Revision(turn=turn, content=content, followed=tuple(last.followed), violations=wrong)
            )
            state.emit(ReplyRevised(content=content, violations=wrong))
            return found

        def must_not_show(content: str) -> bool:
            return bool(find_leaks(content, facts) or find_question_conflict(content, waiting))

        question = Question(
            self.blueprint,
            self.build_prompt(conversation, sections, head=self.head),
            check,
            max_candidates=1 + self.extra_revisions,
            guidelines=tuple(active),
            on_partial=ReplyStream(state, must_not_show, draft) if self.streams else None,
        )
        (answer,) = yield [question]
        # Code's own question stands in the place of the fallback.
        sent = self._choose(answer, candidates, facts, draft, "" if waiting else self.agent.fallback)
        reply, agreed, asked = ask_for_confirmation(self.agent, state, sent.content, waiting)
        # Code's question goes alone where the reply asks something.
        is_said = sent.content.strip() in reply.text
        followed = tuple(id for id in active if id in sent.followed and is_said)
        final = sent.model_copy(update={"content": reply.text, "followed": followed, "sent": True})
        applied = {
            each.guideline: each for each in state.read_records("applied_guidelines", AppliedGuideline)
        }
        for id in followed:
            times = applied[id].times + 1 if id in applied else 1
            applied[id] = AppliedGuideline(guideline=id, turn=turn, message_id=str(reply.id), times=times)
        state.emit(ReplySent(content=reply.text, followed=followed, satisfied=not sent.violations))
        state.emit(asked)
        others = [each for each in candidates if each is not sent]
        return {
            self.messages_key: [reply],
            "revisions": state.replace_records("revisions", [*others, final]),
            "applied_guidelines": state.replace_records("applied_guidelines", applied.values()),
            **agreed,
        }

    def _sections(
        self,
        state: StateView,
        conversation: Conversation,
        active: Mapping[str, int],
        waiting: Sequence[ToolInsight],
    ) -> dict[str, Any]:
        staged = [line.id for line in conversation.current_turn_results]
        # What is known of the tools of this turn: what a deed costs, and whether it can be undone.
        used = {line.call["name"] for line in conversation.current_turn_results if line.call}
        used |= get_granted_tools(self.agent, state).keys()
        told = self._insights(state, waiting)
        return {
            "variables": describe_variables(self.agent, state),
            "active_guidelines": [
                {**describe_guideline(guideline), "priority": guideline.priority, "score": score}
                for guideline, score in ((self.agent.guideline(id), score) for id, score in active.items())
            ],
            "set_aside": list(self._set_aside(state)),
            "tool_descriptions": [
                {"name": name, "description": tool.description}
                for name, tool in self.agent.toolbox.items()
                if name in used
            ],
            "insights": [{"id": f"I{number}", **each} for number, each in enumerate(told, start=1)],
            "now": describe_turn(conversation, {}, {"staged": staged}),
        }

    def _set_aside(self, state: StateView) -> Iterator[dict[str, Any]]:
        """The guidelines that would be followed, were they not overridden by another one."""
        matches = current_turn_matches(state)
        active = [self.agent.guideline(match.guideline) for match in matches if match.active]
        for match in matches:
            by = [guideline.id for guideline in active if match.guideline in guideline.overrides]
            if match.matched and not match.active and by:
                yield {**describe_guideline(self.agent.guideline(match.guideline)), "replaced_by": by}

    def _insights(self, state: StateView, waiting: Sequence[ToolInsight]) -> Iterator[dict[str, Any]]:
        """What is open in this turn: arguments, a question of code's, conditions that are not known yet."""
        for each in state.read_turn_records("tool_insights", ToolInsight, state.turn):
            if each.kind in ("missing", "invalid"):
                told = {"tool", "kind", "argument", "description", "problem"}
                yield each.model_dump(include=told, exclude_defaults=True)
        if waiting:
            yield {"kind": "confirm", "question": format_question(self.agent, waiting)}
        for match in current_turn_matches(state):
            if match.missing_information and not match.active:
                guideline = self.agent.guideline(match.guideline)
                yield {
                    "kind": "not_known_yet",
                    "condition": guideline.condition_text,
                    "action": guideline.action,
                    "what_would_decide_it": match.missing_information,
                }

    def _choose(
        self,
        answer: Answer[Any] | ReasoningError,
        candidates: Sequence[Revision],
        facts: PromptFacts,
        draft: str | None,
        fallback: str,
    ) -> Revision:
        turn, other, why = facts.conversation.turn, fallback, "no candidate was acceptable"
        if isinstance(answer, ReasoningError):
            if self.on_unsatisfied != "fallback" or not isinstance(answer, BlueprintError | RefusalError):
                raise answer
            why = f"no reply came ({type(answer).__name__})"
        elif not candidates[-1].violations:
            return candidates[-1]
        elif self.on_unsatisfied == "send_last":
            if not find_blockers(candidates[-1].content, facts):
                return candidates[-1]
            other = draft if draft and not find_blockers(draft, facts) else fallback
        what = "the draft" if other == draft else "the fallback"
        return Revision(turn=turn, content=other, violations=(f"{why}: {what} was sent",))
