"""The question to a model about journeys: the steps that are open, and what the customer has changed."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Unpack

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
from arq_graph.nodes.journey_walk import JourneyWalk, QuestionScope
from arq_graph.nodes.node import Update
from arq_graph.nodes.state_view import StateView
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.reasoner import ModelLike

MAX_QUESTIONS = 4
"""How many questions about journeys one matching pass asks at most."""


class JourneyQuestion(NamedTuple):
    """A question to a model, and what it is about."""

    scope: QuestionScope
    question: Question[Any]


class JourneyJudge(AgentNode[JourneyBlueprint]):
    """Makes the questions about journeys; the matcher asks them."""

    module = "matcher"
    prompt_name = "journeys"
    make_example_blueprint = staticmethod(lambda _: JourneyBlueprint)
    agent_state_channels = ("journeys", "applied_guidelines", "tool_insights")

    def __init__(self, model: ModelLike, agent: Agent, **settings: Unpack[NodeSettings]) -> None:
        super().__init__(model, agent, JourneyBlueprint, **settings)
        self.head = self.render_head()

    def start(
        self, state: StateView, callback_state: Any
    ) -> Generator[DeferredCall, Any, tuple[JourneyWalk, JourneyQuestion | None]]:
        """Return the walk of a matching pass, and its first question, about the journeys that are under way."""
        walk = JourneyWalk(self.agent, state, partial(evaluate_condition, state=callback_state))
        yield from walk.advance({id: run.is_under_way for id, run in walk.runs.items()})
        return walk, self._make_question(walk, is_first=not state.current_turn_matches)

    def finish(
        self,
        walk: JourneyWalk,
        question: JourneyQuestion | None,
        answers: Sequence[Answer[Any] | ReasoningError],
        matches: dict[str, GuidelineMatch],
    ) -> Generator[QuestionBatch | DeferredCall, Any, Update]:
        """Take over the answer, and ask until every open step is judged; add the matches, and return the update.

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
                if question is not None:
                    walk.read_answer(answer.value, question.scope)
            yield from walk.advance(is_condition_met)
            question = self._make_question(walk, is_first=False)
            if question is None or remaining == 0:
                break
            answers = yield QuestionBatch([question.question])
        matches.update(walk.make_matches())
        record = walk.make_record()
        if record is None:
            return {}
        walk.state.emit(JourneysAdvanced(journeys=record.journeys))
        return {"journeys": walk.state.build_channel_value("journeys", [record])}

    def _make_question(self, walk: JourneyWalk, *, is_first: bool) -> JourneyQuestion | None:
        """Return the question about what is open; None if there is nothing to ask.

        The first question of a turn also asks what the customer's message changes.
        """
        under_way = [run for run in walk.runs.values() if run.state == "active"]
        sections: dict[str, list[dict[str, Any]]] = {"judge": [], "done": [], "give_up": [], "ended": []}
        for journey, step in walk.list_steps_to_judge():
            sections["judge"].append(_describe_step(journey, step))
        for run in walk.list_ended():
            description = _describe_journey(run.journey) | {"ended": run.state}
            sections["ended"].append(description)
        for run in under_way if is_first else ():
            sections["done"].extend(_describe_done(walk, run))
            if run.journey.give_up:
                sections["give_up"].append({"id": run.journey.id, "condition": run.journey.give_up})
        if not any(sections.values()):
            return None
        scope: dict[str, list[str]] = {}
        for name, entries in sections.items():
            scope[name] = [entry["id"] for entry in entries]
        journeys: list[dict[str, Any]] = []
        for run in under_way:
            description = _describe_journey(run.journey)
            if run.times_begun > 1:
                description["began_again_at"] = walk.state.conversation.find_line_id(run.began_in)
            journeys.append(description)
        required = {"journeys": journeys, "judge": sections.pop("judge")}
        prompt = self.build_prompt(
            walk.state.conversation, self.describe_turn(walk.state, required, sections)
        )
        check = partial(_find_complaints, scope, walk.facts.citable_ids)
        question = Question(
            JourneyBlueprint, prompt, check, "journeys", max_candidates=2, guidelines=tuple(scope["judge"])
        )
        return JourneyQuestion(scope, question)


def _find_complaints(
    scope: QuestionScope, citable_ids: Container[str], answer: JourneyBlueprint
) -> list[Complaint]:
    """Return complaints if an answer doesn't judge what it was asked about, or cites what there isn't."""
    complaints: list[Complaint] = []
    judged_ids = [entry.step for entry in answer.steps]
    for id in scope["judge"]:
        if id not in judged_ids:
            complaints.append(Complaint("JourneyBlueprint", "steps", f"{id} is in `judge`, so judge it"))
    cited = {f"changed[{number}]": change.answered_by for number, change in enumerate(answer.changed)}
    for number, entry in enumerate(answer.steps):
        if entry.judgement.asks_for_something:
            cited[f"steps[{number}].judgement"] = entry.judgement.answered_by
    for place, cited_id in cited.items():
        if cited_id is not None and cited_id not in citable_ids:
            problem = f"there is no {cited_id!r}: give the id of a message, a result or a variable"
            complaints.append(Complaint("JourneyBlueprint", f"{place}.answered_by", problem))
    changed = [change.step for change in answer.changed]
    for query, section, ids in (
        ("steps", "judge", judged_ids),
        ("changed", "done", changed),
        ("given_up", "give_up", answer.given_up),
        ("begun_anew", "ended", answer.begun_anew),
    ):
        for id in ids:
            if id not in scope[section]:
                problem = f"{id!r} is not in `{section}`: leave it out"
                complaints.append(Complaint("JourneyBlueprint", query, problem))
    return complaints


def _describe_journey(journey: Journey) -> dict[str, Any]:
    return {"id": journey.id, "condition": journey.condition_rule.condition_text}


def _describe_done(walk: JourneyWalk, run: JourneyRun) -> Iterator[dict[str, Any]]:
    for step in run.journey.steps:
        if run.is_done(step.id) and step.journey is None:
            progress = run.steps[step.id]
            place = walk.state.conversation.find_line_id(progress.source)
            rule_id = make_rule_id(run.journey.id, step.id)
            yield {"id": rule_id, "action": step.action, "done": progress.reason, "at": place}


def _describe_step(journey: Journey, step: JourneyStep) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": make_rule_id(journey.id, step.id)}
    if isinstance(step.condition, str):
        entry["condition"] = step.condition
    entry["action"] = step.action
    if isinstance(step.done_when, str):
        entry["done_when"] = step.done_when
    return entry
