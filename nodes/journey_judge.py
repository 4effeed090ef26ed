"""The question to a model about journeys: the steps that are open, and what the customer has changed."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from functools import partial
from typing import Any, Unpack

from arq_graph.agent.journey import Journey, JourneyStep, make_rule_id
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch
from arq_graph.errors import ReasoningError
from arq_graph.nodes.agent_node import AgentNode, NodeSettings
from arq_graph.nodes.blueprint_node import DeferredCall, QuestionBatch
from arq_graph.nodes.condition_calls import evaluate_condition
from arq_graph.nodes.events import JourneysAdvanced
from arq_graph.nodes.journey_run import JourneyRun
from arq_graph.nodes.journey_schema import JourneyBlueprint
from arq_graph.nodes.journey_walk import JourneyWalk
from arq_graph.nodes.node import Update
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.reasoner import ModelLike

MAX_QUESTIONS = 4
"""How many questions about journeys one matching pass asks at most."""


class JourneyJudge(AgentNode[JourneyBlueprint]):
    """Makes the questions about journeys; the matcher asks them."""

    module = "matcher"
    prompt_name = "journeys"
    agent_state_channels = ("journeys", "applied_guidelines", "tool_insights")

    def __init__(self, model: ModelLike, agent: Agent, **settings: Unpack[NodeSettings]) -> None:
        super().__init__(model, agent, JourneyBlueprint, **settings)
        self.head = self.render_head()

    @staticmethod
    def make_example_blueprint(_: Sequence[ToolSchema]) -> type[ARQ]:
        """Return the blueprint of a worked example, which doesn't depend on tools."""
        return JourneyBlueprint

    def start(self, state: StateView, callback_state: Any) -> Generator[DeferredCall, Any, JourneyWalk]:
        """Return the walk of a matching pass, with its first question: about the journeys that are under way."""
        walk = JourneyWalk(self.agent, state, partial(evaluate_condition, state=callback_state))
        yield from walk.advance({run.journey.id: run.is_under_way for run in walk.runs.values()})
        walk.question = self.make_question(walk, is_first=not state.current_turn_matches)
        return walk

    def finish(
        self,
        walk: JourneyWalk,
        matches: dict[str, GuidelineMatch],
        answers: Sequence[Answer[Any] | ReasoningError],
    ) -> Generator[QuestionBatch | DeferredCall, Any, Update]:
        """Take over the answers, and ask until every open step is judged; add the matches, and return the update.

        A journey that has just begun needs another question, and so do steps that a skipped one opens; there are at
        most `MAX_QUESTIONS`.

        Raises:
            ReasoningError: A question got no answer.
        """
        is_condition_met = {id: match.matched for id, match in matches.items()}
        for remaining in range(MAX_QUESTIONS, -1, -1):
            for answer in answers:
                if isinstance(answer, ReasoningError):
                    raise answer
                walk.read_answer(answer.value)
            yield from walk.advance(is_condition_met)
            question = self.make_question(walk, is_first=False)
            if question is None or remaining == 0:
                break
            answers = yield QuestionBatch([question])
        matches.update(walk.make_matches())
        record = walk.make_record()
        if record is None:
            return {}
        walk.state.emit(JourneysAdvanced(journeys=record.journeys))
        return {"journeys": walk.state.build_channel_value("journeys", [record])}

    def make_question(self, walk: JourneyWalk, *, is_first: bool) -> Question[JourneyBlueprint] | None:
        """Return the question about what is open; None if there is nothing to ask.

        Args:
            walk: How far the customer is.
            is_first: True for the first question of a turn, which also asks what the customer's message changes.
        """
        steps = walk.list_steps_to_judge()
        under_way = [run for run in walk.runs.values() if run.state == "active"]
        optional: dict[str, list[Any]] = {"ended": []}
        for run in walk.runs.values():
            if walk.may_begin_anew(run):
                walk.asked_to_begin_anew.add(run.journey.id)
                ended = {
                    "journey": run.journey.id,
                    "condition": _get_condition(run.journey),
                    "ended": run.state,
                }
                optional["ended"].append(ended)
        if is_first:
            optional["done"] = [entry for run in under_way for entry in self._describe_done(walk, run)]
            optional["give_up"] = [
                {"journey": run.journey.id, "condition": run.journey.give_up}
                for run in under_way
                if run.journey.give_up
            ]
        if not steps and not any(optional.values()):
            return None
        judge = [_describe_step(journey, step) for journey, step in steps]
        values = {"journeys": self._describe_journeys(walk, under_way), "judge": judge}
        sections = self.describe_turn(walk.state, values, optional)
        rule_ids = tuple(make_rule_id(journey.id, step.id) for journey, step in steps)
        walk.asked = rule_ids
        review = _JourneyReview(rule_ids, optional, walk.citable_ids)
        prompt = self.build_prompt(walk.state.conversation, sections)
        return Question(
            JourneyBlueprint, prompt, review.check, "journeys", max_candidates=2, guidelines=rule_ids
        )

    def _describe_journeys(self, walk: JourneyWalk, runs: Iterable[JourneyRun]) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for run in runs:
            entry: dict[str, Any] = {"id": run.journey.id, "condition": _get_condition(run.journey)}
            if run.begun > 1:
                entry["began_again_at"] = walk.state.conversation.find_line_id(run.begun_in)
            entries.append(entry)
        return entries

    def _describe_done(self, walk: JourneyWalk, run: JourneyRun) -> Iterable[dict[str, Any]]:
        for step in run.journey.steps:
            if run.is_done(step.id) and step.journey is None:
                progress = run.steps[step.id]
                place = walk.state.conversation.find_line_id(progress.source)
                yield {
                    "step": make_rule_id(run.journey.id, step.id),
                    "action": step.action,
                    "done": progress.reason,
                    "at": place,
                }


class _JourneyReview:
    """Checks that an answer judges what it was asked about, and cites what there is."""

    def __init__(
        self, rule_ids: Sequence[str], optional: dict[str, list[Any]], citable_ids: Iterable[str]
    ) -> None:
        self._rule_ids = rule_ids
        self._citable_ids = set(citable_ids)
        self._done = [entry["step"] for entry in optional.get("done", ())]
        self._give_up = [entry["journey"] for entry in optional.get("give_up", ())]
        self._ended = [entry["journey"] for entry in optional["ended"]]

    def check(self, answer: JourneyBlueprint) -> list[Complaint]:
        """Return the complaints about an answer."""
        complaints: list[Complaint] = []
        judged = [entry.step for entry in answer.steps]
        for id in self._rule_ids:
            if id not in judged:
                complaints.append(Complaint("JourneyBlueprint", "steps", f"{id} is in `judge`, so judge it"))
        complaints.extend(_check_ids("steps", judged, self._rule_ids, "judge"))
        for number, entry in enumerate(answer.steps):
            judgement = entry.judgement
            if judgement.asks_for_something:
                place = f"steps[{number}].judgement.answered_by"
                complaints.extend(self._check_citation(place, judgement.answered_by))
        for number, change in enumerate(answer.changed):
            complaints.extend(self._check_citation(f"changed[{number}].answered_by", change.answered_by))
        changed = [change.step for change in answer.changed]
        complaints.extend(_check_ids("changed", changed, self._done, "done"))
        complaints.extend(_check_ids("given_up", answer.given_up, self._give_up, "give_up"))
        complaints.extend(_check_ids("begun_anew", answer.begun_anew, self._ended, "ended"))
        return complaints

    def _check_citation(self, place: str, id: str | None) -> Iterable[Complaint]:
        if id is not None and id not in self._citable_ids:
            problem = f"there is no {id!r}: give the id of a message, a result or a variable"
            yield Complaint("JourneyBlueprint", place, problem)


def _check_ids(field: str, ids: Sequence[str], allowed: Sequence[str], section: str) -> Iterable[Complaint]:
    for id in ids:
        if id not in allowed:
            yield Complaint("JourneyBlueprint", field, f"{id!r} is not in `{section}`: leave it out")


def _describe_step(journey: Journey, step: JourneyStep) -> dict[str, Any]:
    entry: dict[str, Any] = {"step": make_rule_id(journey.id, step.id)}
    if step.condition is not None:
        entry["condition"] = step.condition if isinstance(step.condition, str) else "code checks it: yes"
    entry["action"] = step.action
    if isinstance(step.done_when, str):
        entry["done_when"] = step.done_when
    return entry


def _get_condition(journey: Journey) -> str | None:
    return journey.condition_rule.condition_text
