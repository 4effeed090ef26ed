"""Guideline matching: which guidelines the next reply has to act on (ARQ paper, 5.1.1 and Appendix A)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Unpack

from langchain_core.embeddings import Embeddings

from arq_graph.agent.spec import Agent, Guideline
from arq_graph.agent.state import AppliedGuideline, GuidelineMatch
from arq_graph.errors import (
    BlueprintError,
    InputError,
    ReasoningError,
    SpecError,
    require_choice,
    require_count,
)
from arq_graph.nodes.blueprint_node import AgentNode, Answers, NodeSettings, Questions, Steps, UserFunction
from arq_graph.nodes.channels import StateView, Update
from arq_graph.nodes.current_turn import (
    compact_matches,
    current_turn_matches,
    find_answered_insights,
    is_relevant_later,
)
from arq_graph.nodes.events import GuidelinesMatched
from arq_graph.nodes.judgements import (
    ACTIVATION_SCORE,
    Judgement,
    describe_missing_information,
    find_contradictions,
    find_remarks,
    get_application,
    is_due,
    make_batch_blueprint,
)
from arq_graph.nodes.messages import answer_abandoned_calls
from arq_graph.nodes.preselection import Preselection, build_search_text
from arq_graph.nodes.spec_sections import (
    build_function_state,
    describe_guideline,
    describe_turn,
    describe_variables,
)
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.reasoner import ModelLike

KeepMatches = Literal["all", "active"]

_ENTAILED = "active because"
_REMOVED = "not active:"
_ANY = Guideline("a condition", "an action", id="a")  # of which all there is to ask is asked


def default_batch_size(guidelines: int) -> int:
    """About 5 guidelines a call up to 100 of them, about 10 from 200 on; no batch is a small rest."""
    batches = max(1, round(guidelines / min(10, max(5, guidelines / 20))))
    return max(1, -(-guidelines // batches))


@dataclass(eq=False)
class Batch:
    """What is asked in one call of several at a time; formed once, so that its head and schema never change."""

    name: str
    guidelines: Sequence[Guideline]
    render: Callable[..., str]
    judgement: type[Judgement]

    @cached_property
    def blueprint(self) -> type[ARQ]:
        """Asks about each guideline."""
        return make_batch_blueprint(self.guidelines, self.judgement)

    @cached_property
    def head(self) -> str:
        """What each of its prompts begins with."""
        return self.render(guidelines=[describe_guideline(guideline) for guideline in self.guidelines])


class GuidelineMatcher(AgentNode[ARQ]):
    """Judge the agent's guidelines against the conversation and write `guideline_matches`.

    All batches are judged in parallel. Once tools have run in a turn, running it again judges only what is not
    active yet and could be changed by a tool's result. A batch with nothing left to judge is skipped.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        batch_size: How many guidelines one call judges; None: about 5 up to 100 guidelines, 10 from 200 on.
        max_judged: If the agent has more guidelines than this, each look judges whole batches with about so many of
            them: those nearest to what was said or found, those with `always_judge`, those that were active or
            undecided in the turn before, and those that relations connect with these. 1 or more; None: all.
        embeddings: LangChain embeddings to measure nearness with; None: it is measured by the spelling of words.
        keep_matches: `all` keeps every judgement of a turn in `guideline_matches`. `active` keeps those that are active
            and those that a later step or turn needs, and only the ids of the others, whose judgements are then only in
            the event `GuidelinesMatched`.
        judgement: What is asked about each guideline; subclass `Judgement` to add queries, or to put some in other
            words.
        **settings: `template`, `temperature` (the paper's 0.15) and the others of `BlueprintNode`; `reads` are further
            channels that conditions that are functions look at: they are called with a dict of these, `messages`,
            `variables` and the channels of this library.

    Raises:
        InputError: A setting is out of its range.
        ReasoningError: When run: a judgement failed, and its guideline does not say what then (`on_failure`).
        SpecError: When run: a condition's function fails.
    """

    module = "matcher"
    files = "guideline_matcher"
    agent_state_channels = ("guideline_matches", "applied_guidelines", "tool_insights", "variables")
    default_temperature = 0.15

    example_blueprint = staticmethod(lambda _: make_batch_blueprint([_ANY]))

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        batch_size: int | None = None,
        max_judged: int | None = None,
        embeddings: Embeddings | None = None,
        keep_matches: KeepMatches = "all",
        judgement: type[Judgement] = Judgement,
        **settings: Unpack[NodeSettings],
    ) -> None:
        if not (isinstance(judgement, type) and issubclass(judgement, Judgement)):
            raise InputError(f"judgement is {judgement!r}: it must be Judgement or a subclass of it")
        blueprint = ARQ if judgement is Judgement else make_batch_blueprint([_ANY], judgement)
        super().__init__(model, agent, blueprint, **settings)
        self.keep_matches: KeepMatches = require_choice("keep_matches", keep_matches, KeepMatches)
        self._in_code = [each for each in agent.guidelines if not isinstance(each.condition, str)]
        judged = [guideline for guideline in agent.guidelines if not _decided_by_code(guideline)]
        size = (
            default_batch_size(len(judged)) if batch_size is None else require_count("batch_size", batch_size)
        )
        self._always = [each.id for each in agent.guidelines if each.always_judge]
        choice = [each for each in judged if isinstance(each.condition, str) and not each.always_judge]
        always = [each for each in judged if not isinstance(each.condition, str) or each.always_judge]
        if embeddings is not None and max_judged is None:
            raise InputError("embeddings choose which guidelines a look judges: give max_judged= too")
        self._preselection: Preselection | None = None
        if max_judged is None or len(choice) <= require_count("max_judged", max_judged):
            # Those that a tool's result may activate come first: a second look asks no more batches than it has to.
            judged.sort(key=lambda guideline: guideline.sensitive_to_tools is False)
            groups = _groups(judged, size)
        else:
            # As the designer wrote them: what stands together is often about the same matter.
            groups = _groups(choice, size)
            self._preselection = Preselection(groups, -(-max_judged // size), embeddings)
            groups = [*groups, *_groups(always, size)]
        parts = partial(self.render_head, tools=list(agent.toolbox))
        self.batches = [
            Batch(f"batch-{number}", each, parts, judgement) for number, each in enumerate(groups, start=1)
        ]
        # With many, each is made when it is first asked.
        for batch in self.batches if self._preselection is None else self.batches[:1]:
            batch.head, batch.blueprint  # noqa: B018

    def steps(self, state: StateView) -> Steps:
        """Judge what is left to judge in this turn."""
        conversation = self.read_conversation(state)
        turn = conversation.turn
        matches = {match.guideline: match for match in current_turn_matches(state)}
        holds = yield from self._conditions_in_code(state)
        # What the last reply asked the customer for is granted by these: they are judged, and not done with.
        waiting = find_answered_insights(state, conversation)
        granting = {id for each in waiting for id in self.agent.grants.get(each.tool, ())}
        looked_at: Container[str] = self.agent.relations.by_id
        if self._preselection is not None:
            near = yield from self._preselection.choose_guidelines(
                build_search_text(conversation, is_rematch=bool(matches))
            )
            known = state.read_records(
                "guideline_matches", GuidelineMatch
            )  # of this turn, or of the one before
            left = [match.guideline for match in known if is_relevant_later(match)]
            left += [*granting, *(id for id, held in holds.items() if held)]
            looked_at = self.agent.relations.find_related([*near, *self._always, *matches, *left])
        asked: list[tuple[Batch, list[str]]] = []
        for batch in self.batches:
            judged = [
                each for each in batch.guidelines if each.id in looked_at and holds.get(each.id) is not False
            ]
            if open_now := [each.id for each in judged if _is_open(each, matches.get(each.id))]:
                asked.append((batch, open_now))
        for guideline in self._in_code:
            before, held = matches.get(guideline.id), holds.get(guideline.id)
            is_known = _decided_by_code(guideline) or (before is None and held is False)
            if is_known and not (before and before.matched):
                matches[guideline.id] = _by_code(guideline, turn, bool(held))
        abandoned = answer_abandoned_calls(state.messages, self.agent.toolbox)
        before_it: Update = {self.messages_key: abandoned} if abandoned else {}

        def widest() -> Update:
            matched = [id for id, match in matches.items() if match.matched or match.active]
            could_be = dict.fromkeys([*matched, *(id for _, ids in asked for id in ids)])
            found = [GuidelineMatch(guideline=id, turn=turn, active=True, matched=True) for id in could_be]
            return {**before_it, "guideline_matches": state.replace_records("guideline_matches", found)}

        answers: Answers = []
        if asked:
            asking = [self._question(*each, state, conversation, holds, granting) for each in asked]
            answers = yield Questions(asking, widest)
        for (_, ids), answer in zip(asked, answers, strict=True):
            for id in ids:
                matches[id] = self._match(self.agent.guideline(id), answer, turn, holds.get(id, False))
        related = self._related(matches)
        judged_now = tuple(id for _, ids in asked for id in ids)
        state.emit(GuidelinesMatched(matches=tuple(related), judged=judged_now))
        kept = related if self.keep_matches == "all" else compact_matches(related)
        return {**before_it, "guideline_matches": state.replace_records("guideline_matches", kept)}

    def _question(
        self,
        batch: Batch,
        ids: Sequence[str],
        state: StateView,
        conversation: Conversation,
        holds: Mapping[str, bool],
        granting: Container[str],
    ) -> Question[ARQ]:
        def check(answer: ARQ) -> list[Complaint]:
            return [
                complaint
                for id in ids
                for complaint in find_contradictions(
                    self.agent.guideline(id), getattr(answer, id), holds=holds.get(id, False)
                )
            ]

        unfinished = [id for id in ids if id in granting]
        listed = {
            "holds": [id for id in ids if holds.get(id) and callable(self.agent.guideline(id).condition)],
            "applied": [
                {
                    "guideline": each.guideline,
                    "reply": conversation.find_line_id(each.message_id) or "an earlier reply",
                }
                for each in state.read_records("applied_guidelines", AppliedGuideline)
                if each.guideline in ids and each.guideline not in unfinished
            ],
            "unfinished": unfinished,
        }
        now = describe_turn(conversation, {"judge": ids}, listed)
        tail = {"variables": describe_variables(self.agent, state), "now": now}
        prompt = self.build_prompt(conversation, tail, head=batch.head)
        return Question(batch.blueprint, prompt, check, batch.name, max_candidates=2, guidelines=tuple(ids))

    def _conditions_in_code(self, state: StateView) -> Generator[UserFunction, Any, dict[str, bool]]:
        given, known = build_function_state(self.agent, state), {}
        for each in self._in_code:
            known[each.id] = each.condition is None or (yield from _holds(each, given))
        return known

    def _match(
        self, guideline: Guideline, answer: Answer[Any] | ReasoningError, turn: str, held: bool
    ) -> GuidelineMatch:
        if isinstance(answer, ReasoningError):
            return self._failed(guideline, answer, turn)
        judgement: Judgement | None = getattr(answer.value, guideline.id)
        if judgement is None:
            missing = f"matcher: no judgement of guideline {guideline.id} came"
            return self._failed(guideline, BlueprintError(missing, answer.attempts), turn)
        matched = is_due(guideline, judgement) and (held or judgement.score >= ACTIVATION_SCORE)
        application, continuous = get_application(judgement), guideline.continuous
        if continuous is None and application is not None:
            continuous = application.is_continuous
        still = [each for each in answer.complaints if each.query.split(".")[0] == guideline.id]
        return GuidelineMatch(
            guideline=guideline.id,
            turn=turn,
            active=matched,
            matched=matched,
            score=judgement.score,
            rationale=getattr(judgement, "condition_application_rationale", answer.reasoning),
            continuous=continuous,
            previously_applied=application and application.guideline_previously_applied,
            missing_information=describe_missing_information(judgement),
            independent_of_tools=not matched and not getattr(judgement, "could_a_tool_change_that", True),
            remarks=(
                *(f"after a second look still: {complaint}" for complaint in still),
                *find_remarks(guideline, judgement, guideline.condition_text),
            ),
        )

    def _failed(self, guideline: Guideline, error: ReasoningError, turn: str) -> GuidelineMatch:
        if guideline.on_failure == "raise":
            raise error
        is_active = guideline.on_failure == "activate"
        what = "activated" if is_active else "skipped"
        warnings.warn(f"guideline {guideline.id} is {what}: judging it failed: {error}", stacklevel=2)
        why = f"{what}, because judging it failed: {type(error).__name__}"
        told = {"rationale": why, "origin": "failure"}
        return GuidelineMatch(guideline=guideline.id, turn=turn, active=is_active, matched=is_active, **told)

    def _related(self, matches: Mapping[str, GuidelineMatch]) -> list[GuidelineMatch]:
        scores = {id: match.score or ACTIVATION_SCORE for id, match in matches.items() if match.matched}
        resolution = self.agent.relations.resolve(scores)
        related = []
        for match in (matches[id] for id in self.agent.relations.by_id if id in matches):
            update: dict[str, Any] = {"active": match.guideline in resolution.active}
            remarks = [each for each in match.remarks if not each.startswith((_ENTAILED, _REMOVED))]
            if (by := resolution.entailed.get(match.guideline)) and update["active"]:
                update |= {"score": resolution.active[match.guideline], "origin": "relation"}
                remarks.append(f"{_ENTAILED} {by} entails it")
            elif match.origin == "relation":
                # Its own judgement, if there was one, made it inactive; the score was that of what entailed it.
                update |= {"score": None, "origin": "code"}
            if reason := resolution.removed.get(match.guideline):
                remarks.append(f"{_REMOVED} {reason}")
            related.append(match.model_copy(update={**update, "remarks": tuple(remarks)}))
        return related


def _groups(guidelines: Sequence[Guideline], size: int) -> list[Sequence[Guideline]]:
    return [guidelines[at : at + size] for at in range(0, len(guidelines), size)]


def _is_open(guideline: Guideline, match: GuidelineMatch | None) -> bool:
    """Whether a guideline is judged in this look: any at first, then what a tool's result could change."""
    if match is None or match.matched or match.active:
        return match is None
    return (
        not match.independent_of_tools
        if guideline.sensitive_to_tools is None
        else guideline.sensitive_to_tools
    )


def _decided_by_code(guideline: Guideline) -> bool:
    """Whether no model is needed: code knows of the condition, and what there is to do goes on, or is nothing."""
    return not isinstance(guideline.condition, str) and (
        guideline.continuous is True or guideline.action is None
    )


def _by_code(guideline: Guideline, turn: str, held: bool) -> GuidelineMatch:
    why = "it has no condition, and nothing in it is ever done with: always active"
    if guideline.condition is not None:
        why = f"the condition's function returned {held}"
    told = {"rationale": why, "origin": "code", "continuous": guideline.continuous}
    score = 10 if held else 1
    return GuidelineMatch(guideline=guideline.id, turn=turn, active=held, matched=held, score=score, **told)


def _holds(guideline: Guideline, given: Mapping[str, Any]) -> Generator[UserFunction, Any, bool]:
    """What a condition that is a function says; a text is an error, since "no" is true, too."""
    condition: Any = guideline.condition
    cause = None
    try:
        holds = yield partial(condition, given)
        if not isinstance(holds, str):
            return bool(holds)
        what = f"returned {holds!r:.60}"
    except Exception as error:
        cause, what = error, f"raised {type(error).__name__}: {error}"
    raise SpecError(
        f"the condition of guideline {guideline.id} {what}; it is called with a dict of the messages, the "
        "variables and the channels that the matcher's reads= names, and must return True or False for any"
    ) from cause
