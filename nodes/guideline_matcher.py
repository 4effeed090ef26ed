"""Guideline matching: deciding which guidelines the next reply has to act on (ARQ paper, 5.1.1 and Appendix A)."""

from __future__ import annotations

from collections.abc import Container, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Unpack

from langchain_core.embeddings import Embeddings

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AppliedGuideline, GuidelineMatch
from arq_graph.errors import InputError, ReasoningError, require_choice
from arq_graph.nodes.agent_node import AgentNode, NodeSettings, build_callback_state
from arq_graph.nodes.blueprint_node import DeferredCall, NodeSteps, QuestionBatch
from arq_graph.nodes.condition_calls import evaluate_condition
from arq_graph.nodes.events import GuidelinesMatched
from arq_graph.nodes.guideline_batches import Batch, group_guidelines, is_decided_by_code
from arq_graph.nodes.journey_judge import JourneyJudge, JourneyQuestion
from arq_graph.nodes.journey_walk import JourneyWalk
from arq_graph.nodes.judgement_schema import Judgement, make_batch_blueprint
from arq_graph.nodes.judgements import (
    apply_relations,
    compact_matches,
    find_contradictions,
    is_relevant_later,
    make_match,
    make_match_by_code,
    make_plain_match,
)
from arq_graph.nodes.messages import make_history_repair
from arq_graph.nodes.node import Update
from arq_graph.nodes.preselection import build_search_text
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.turn_records import find_requests_of_last_reply
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.reasoner import ModelLike

KeepMatches = Literal["all", "active"]

_GUIDELINES_WITH_ALL_QUERIES = (
    Guideline("a condition", "an action", id="a"),
    Guideline("a condition", "an action", id="b"),
)


@dataclass(frozen=True)
class BatchToJudge:
    """A batch, and the ids of those of its guidelines that a matching pass judges."""

    batch: Batch
    ids: Sequence[str]


@dataclass(frozen=True)
class PassInputs:
    """The inputs of one matching pass.

    Args:
        state: The state.
        matches: This turn's matches so far, by guideline.
        condition_results: The results of the conditions that code evaluates, by guideline.
        awaiting_answer: The guidelines that grant a tool about which the last reply asked the customer something.
        callback_state: What the functions of conditions are called with.
    """

    state: StateView
    matches: Mapping[str, GuidelineMatch]
    condition_results: Mapping[str, bool]
    awaiting_answer: Container[str]
    callback_state: Any

    def holds_by_code(self, id: str) -> bool:
        """Return True if code knows that a guideline's condition holds; False if it doesn't, or the model judges it."""
        return self.condition_results.get(id, False)


class GuidelineMatcher(AgentNode[ARQ]):
    """Judge the agent's guidelines against the conversation and write `guideline_matches`.

    All batches are judged in parallel. After tools have run in a turn, a re-match judges only the guidelines that
    aren't active yet and that a tool's result could change. A batch with nothing left to judge is skipped.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        batch_size: How many guidelines one call judges; None: about 5 up to 100 guidelines, 10 from 200 on.
        max_judged: If the agent has more guidelines than this, each matching pass judges whole batches with about this
            many of them. It chooses those nearest to the customer's words or the tools' results, those with
            `always_judge`, those that were active or undecided in the turn before, and those that relations connect
            with these. 1 or more; None: all.
        embeddings: LangChain embeddings to measure nearness with; None: it is measured by the spelling of words.
        keep_matches: `all` stores every judgement of a turn in `guideline_matches`. `active` stores in full only those
            that are active or that a later step or turn needs, and of the others only the ids; their judgements are
            then only in the event `GuidelinesMatched`.
        judgement: The queries about each guideline; subclass `Judgement` to add queries or to reword some.
        **settings: `template`, `temperature` (the paper's 0.15) and the others of `BlueprintNode`. A condition that is
            a function is called with a dict of `messages`, `variables`, the channels of this library and those of
            `reads`.

    Raises:
        InputError: A setting is out of its range.
        ReasoningError: When run: a judgement failed, and its guideline doesn't say what to do then (`on_failure`).
        SpecError: When run: a condition's function fails.
    """

    module = "matcher"
    prompt_name = "guideline_matcher"
    agent_state_channels = (
        "guideline_matches",
        "applied_guidelines",
        "journeys",
        "tool_insights",
        "variables",
    )
    default_temperature = 0.15

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
        blueprint: type[ARQ] | None = None
        if judgement is not Judgement:
            # Never asked: it shows the base class all queries, of which `Reasoner(derive=…)` may leave out some.
            blueprint = make_batch_blueprint(_GUIDELINES_WITH_ALL_QUERIES, judgement)
        super().__init__(model, agent, blueprint, **settings)
        self.keep_matches: KeepMatches = require_choice("keep_matches", keep_matches, KeepMatches)
        if embeddings is not None and max_judged is None:
            raise InputError(
                "embeddings choose which guidelines a matching pass judges: give max_judged= too"
            )
        groups, self._preselection = group_guidelines(agent.judged_rules, batch_size, max_judged, embeddings)
        render_head = partial(self.render_head, tools=list(agent.toolbox))
        self.batches: list[Batch] = []
        for number, group in enumerate(groups, start=1):
            batch = Batch(f"batch-{number}", group, judgement, render_head, has_tools=bool(agent.toolbox))
            self.batches.append(batch)
            # With a preselection, a batch is prepared when it is first asked, except the first, which shows errors now.
            if self._preselection is None or number == 1:
                batch.prepare()
        settings.pop("template", None)  # it is that of the batches
        self._journeys = JourneyJudge(self.reasoner, agent, **settings) if agent.journeys else None

    @staticmethod
    def make_example_blueprint(_: Sequence[ToolSchema]) -> type[ARQ]:
        """Return the blueprint of a worked example, in which two guidelines are judged."""
        return make_batch_blueprint(_GUIDELINES_WITH_ALL_QUERIES, has_tools=False)

    def steps(self, state: StateView) -> NodeSteps:
        """Judge what is left to judge in this turn."""
        update: Update = {}
        if repair := make_history_repair(state.history, self.agent.toolbox):
            update[self.messages_key] = repair
        if state.conversation.unreadable_line:
            return update
        inputs = yield from self._read_inputs(state)
        candidates = yield from self._choose_candidates(inputs)
        to_judge = self._list_batches_to_judge(inputs, candidates)
        matches = dict(inputs.matches) | self._match_by_code(inputs)
        walk: JourneyWalk | None = None
        journey_question: JourneyQuestion | None = None
        if self._journeys:
            walk, journey_question = yield from self._journeys.start(state, inputs.callback_state)
        questions: list[Question[Any]] = []
        for batch_to_judge in to_judge:
            questions.append(self._make_question(batch_to_judge, inputs))
        if journey_question:
            questions.append(journey_question.question)
        answers: Sequence[Answer[ARQ] | ReasoningError] = []
        if questions:
            possible_ids = walk.list_possible_rules() if walk else []
            make_optimistic_update = partial(
                _make_optimistic_update, state, dict(update), dict(matches), to_judge, possible_ids
            )
            answers = yield QuestionBatch(questions, make_optimistic_update)
        judged_ids: list[str] = []
        for batch_to_judge, answer in zip(to_judge, answers, strict=False):  # journeys come last
            for id in batch_to_judge.ids:
                guideline, holds_by_code = self.agent.get_guideline(id), inputs.holds_by_code(id)
                matches[id] = make_match(guideline, answer, state.turn_id, holds_by_code=holds_by_code)
            judged_ids.extend(batch_to_judge.ids)
        if self._journeys and walk:
            journey_answers = answers[len(to_judge) :]
            update |= yield from self._journeys.finish(walk, journey_question, journey_answers, matches)
            judged_ids.extend(walk.judgements)
        resolved = apply_relations(self.agent.relations, matches)
        state.emit(GuidelinesMatched(matches=tuple(resolved), judged=tuple(judged_ids)))
        stored = resolved if self.keep_matches == "all" else compact_matches(resolved)
        update["guideline_matches"] = state.build_channel_value("guideline_matches", stored)
        return update

    def _read_inputs(self, state: StateView) -> Generator[DeferredCall, Any, PassInputs]:
        matches = {match.guideline: match for match in state.current_turn_matches}
        condition_results: dict[str, bool] = {}
        callback_state = build_callback_state(self.agent, state)
        for guideline in self.agent.judged_rules:
            if guideline.condition is None:
                condition_results[guideline.id] = True
            elif not isinstance(guideline.condition, str):
                condition_results[guideline.id] = yield from evaluate_condition(guideline, callback_state)
        awaiting_answer: set[str] = set()
        for request in find_requests_of_last_reply(state):
            awaiting_answer.update(self.agent.grants.get(request.tool, ()))
        return PassInputs(state, matches, condition_results, awaiting_answer, callback_state)

    def _choose_candidates(self, inputs: PassInputs) -> Generator[DeferredCall, Any, Container[str]]:
        """Return the ids of the guidelines that this pass may judge: all, or those that are preselected."""
        if self._preselection is None:
            return {guideline.id for guideline in self.agent.judged_rules}
        search_text = build_search_text(inputs.state.conversation, is_rematch=bool(inputs.matches))
        chosen = yield from self._preselection.choose_guidelines(search_text)
        chosen.update(inputs.matches)
        # The stored matches are of this turn or of the one before.
        for match in inputs.state.read_records("guideline_matches", GuidelineMatch):
            if is_relevant_later(match):
                chosen.add(match.guideline)
        for guideline in self.agent.judged_rules:
            is_awaited = guideline.id in inputs.awaiting_answer
            if guideline.always_judge or is_awaited or inputs.holds_by_code(guideline.id):
                chosen.add(guideline.id)
        return self.agent.relations.find_related(chosen)

    def _list_batches_to_judge(self, inputs: PassInputs, candidates: Container[str]) -> list[BatchToJudge]:
        batches_to_judge: list[BatchToJudge] = []
        for batch in self.batches:
            ids: list[str] = []
            for guideline in batch.guidelines:
                is_refuted = inputs.condition_results.get(guideline.id) is False
                is_candidate = guideline.id in candidates and not is_refuted
                if is_candidate and _should_judge(guideline, inputs.matches.get(guideline.id)):
                    ids.append(guideline.id)
            if ids:
                batches_to_judge.append(BatchToJudge(batch, ids))
        return batches_to_judge

    def _match_by_code(self, inputs: PassInputs) -> dict[str, GuidelineMatch]:
        """Return the matches of the guidelines that code decides, or whose conditions it refutes in the first pass."""
        matches: dict[str, GuidelineMatch] = {}
        for id, is_condition_met in inputs.condition_results.items():
            guideline = self.agent.get_guideline(id)
            match = inputs.matches.get(id)
            if match is not None and match.matched:
                continue
            is_newly_refuted = match is None and not is_condition_met
            if is_newly_refuted or is_decided_by_code(guideline):
                turn_id = inputs.state.turn_id
                matches[id] = make_match_by_code(guideline, turn_id, is_condition_met=is_condition_met)
        return matches

    def _make_question(self, batch_to_judge: BatchToJudge, inputs: PassInputs) -> Question[ARQ]:
        batch, ids = batch_to_judge.batch, batch_to_judge.ids

        def check(answer: ARQ) -> list[Complaint]:
            complaints: list[Complaint] = []
            for id in ids:
                guideline, judgement = self.agent.get_guideline(id), getattr(answer, id)
                holds_by_code = inputs.holds_by_code(id)
                complaints.extend(find_contradictions(guideline, judgement, holds_by_code=holds_by_code))
            return complaints

        conversation = inputs.state.conversation
        known_to_hold: list[str] = []
        for id in ids:
            if callable(self.agent.get_guideline(id).condition) and inputs.holds_by_code(id):
                known_to_hold.append(id)
        applied: list[dict[str, str]] = []
        for record in inputs.state.read_records("applied_guidelines", AppliedGuideline):
            if record.guideline in ids and record.guideline not in inputs.awaiting_answer:
                reply = conversation.find_line_id(record.message_id) or "an earlier reply"
                applied.append({"guideline": record.guideline, "reply": reply})
        optional = {
            "holds": known_to_hold,
            "applied": applied,
            "unfinished": [id for id in ids if id in inputs.awaiting_answer],
        }
        sections = self.describe_turn(inputs.state, {"judge": ids}, optional)
        prompt = self.build_prompt(conversation, sections, head=batch.head)
        return Question(batch.blueprint, prompt, check, batch.name, max_candidates=2, guidelines=tuple(ids))


def _should_judge(guideline: Guideline, match: GuidelineMatch | None) -> bool:
    """Return True in a turn's first pass; in a re-match, only if a tool's result could activate the guideline."""
    if match is None:
        return True
    if match.matched or match.active:
        return False
    if guideline.sensitive_to_tools is not None:
        return guideline.sensitive_to_tools
    return not match.independent_of_tools


def _make_optimistic_update(
    state: StateView,
    update: Update,
    matches: Mapping[str, GuidelineMatch],
    to_judge: Sequence[BatchToJudge],
    possible_ids: Sequence[str],
) -> Update:
    """Return the update of a matching pass as if all guidelines that it judges matched."""
    ids: dict[str, None] = {}  # in order, each once
    for id, match in matches.items():
        if match.matched or match.active:
            ids[id] = None
    for batch_to_judge in to_judge:
        ids.update(dict.fromkeys(batch_to_judge.ids))
    ids.update(dict.fromkeys(possible_ids))
    records = [make_plain_match(id, state.turn_id, True) for id in ids]
    return update | {"guideline_matches": state.build_channel_value("guideline_matches", records)}
