"""The blueprint of the question about journeys: which of their open steps are taken, answered or changed."""

from __future__ import annotations

from typing import Literal

from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond


class StepJudgement(ARQ, defer_build=True):
    """A step."""

    action: str = reinstate("Verbatim.")
    condition_rationale: str | None = query(
        "If it has a condition: briefly why it holds, or not, or what decides it."
    )
    what_it_asks_for: str | None = query(
        "If the customer has to tell something for it: what? Part by part; null for what the agent tells or looks up."
    )
    what_is_known_of_that: str | None = query(
        "If it asks for something: which parts are known, and from where?"
    )
    condition_holds: Literal["no", "yes", "not_known_yet"] = respond("yes, too, if it has none.")
    asks_for_something: bool = respond("Does it ask the customer for something?")
    answered_by: str | None = respond(
        "If it asks: the id of the message, result or variable that completes the answer; null while a part is open."
    )
    done_when_holds: bool | None = respond("If it has `done_when`: does that hold?")


class JudgedStep(ARQ, defer_build=True):
    """A step of `judge`."""

    step: str = respond("Its id.")
    judgement: StepJudgement = respond("")


class ChangedStep(ARQ, defer_build=True):
    """A step of `done` whose answer or value the customer changes."""

    step: str = respond("Its id.")
    answered_by: str | None = respond(
        "The id of the message that gives the new answer; null: it is still to come."
    )


class JourneyBlueprint(ARQ):
    """Judge the steps of journeys."""

    last_message_of_customer: str = reinstate("Verbatim.")
    what_it_changes: str | None = query(
        "If it changes or takes back what they said before, in a step of `done`: what, and to what?"
    )
    steps: list[JudgedStep] = respond("Each in `judge`, in its order.")
    changed: list[ChangedStep] = respond("Steps of `done` that it changes; often none.")
    given_up: list[str] = respond("Ids in `give_up` whose condition holds now; often none.")
    begun_anew: list[str] = respond("Ids in `ended` that the customer wants to go through again; often none.")
