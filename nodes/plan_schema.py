"""The planners' blueprints: a plan refined after every observation, or a thought; and one action (Pre-Act 3.1)."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import create_model

from arq_graph.nodes.proposed_calls import FieldDefinition, StillWanted, make_call_options, make_choice
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.reasoning.blueprint import ARQ, combine_blueprints, query, reinstate, respond, verify

MAX_PLANNED_STEPS = 12
FINAL_ANSWER = "final_answer"

Observation = Literal["as_expected", "failed", "empty", "another_branch"]


class ArgumentBasis(ARQ, ABC):
    """The query about the source of a value, asked before the value."""

    basis: Literal["this_request", "known", "another_request", "inferred", "nobody"] = respond(
        "What the value rests on: stated for this request (or plainly what those words say, in the tool's form), "
        "known from a tool result, a variable or the profile, stated for another request, inferred, or nobody gave "
        "it."
    )


class AskedFor(ARQ):
    """An argument that the answer asks the customer for."""

    tool: str = respond("The tool that waits for it.")
    argument: str = respond("The argument.")


class FinalAnswer(ARQ):
    """The answer to the customer, which ends the plan; it may be a question."""

    asks_for: list[AskedFor] = respond(
        "The arguments that it asks the customer for, so that a tool can be called; else empty."
    )
    answer: str = respond("The whole message to the customer.")


class ChangeOfPlan(ARQ):
    """What is different from the plan before."""

    what: str = respond("What the plan now does otherwise.")
    why: str = respond("What in the result made that necessary; give its id.")


class PlannedStep(ARQ, ABC):
    """One step that is still to come."""

    step: str = respond("What is done, in a few words.")
    reason: str = respond("Why, and why at this place.")


class PreActPlan(ARQ, ABC):
    """Plan all steps up to the final answer, and take the first of them now."""

    last_customer_message: str = reinstate(
        "The id of the customer's last message, and what it says in short."
    )
    request: str = query("What does the customer want in the end?")
    newest_result: str | None = reinstate(
        "What the newest result of this turn says, with its id; null if there is none."
    )
    result_against_expectation: str | None = query(
        "How does it compare with what was expected of it? Null if there is none."
    )
    values_at_hand: str | None = query(
        "Which values do the next steps need, and where is each of them? Null if they need none."
    )
    previous_steps: str | None = respond(
        "What was done for this request and what it told, with ids; null before a tool ran for it."
    )
    observation: Observation | None = respond("How the newest result was; null before there is one.")
    change: ChangeOfPlan | None = respond(
        "What changes in the plan and why; null for the first plan, and where all was as expected."
    )


class CheckedPlan(ARQ, ABC):
    """The check of a plan, asked after the action."""

    answer_rests_on_this_prompt: bool = verify(
        "Does a final answer state only what this prompt tells? True for a call.", must_be=True
    )


class ReActStep(ARQ, ABC):
    """Think about what to do next, and do it."""

    thought: str = respond("What the newest result or message means, and what is to be done next.")


def make_pre_act_blueprint(tools: Sequence[ToolSchema], *, with_pending_calls: bool = False) -> type[ARQ]:
    """Return the blueprint of a multi-step plan and one action (Pre-Act 3.1, Appendices D and E), with every tool.

    `with_pending_calls` adds the query about pending calls.
    """
    names = tuple(tool.name for tool in tools)
    tool_type: Any = Literal[names] | None if names else None
    step: Any = create_model(
        "PlannedStep",
        __base__=PlannedStep,
        __doc__=PlannedStep.__doc__,
        tool=(
            tool_type,
            respond("The tool it calls; null for the final answer, which is the last step."),
        ),
    )
    question = "Every step still to come. The first is the action taken now; the last is the final answer."
    expected = (str, respond("What its result is expected to tell."))
    fields: dict[str, Any] = {
        "next_steps": (list[step], respond(question, min_length=1, max_length=MAX_PLANNED_STEPS)),
        "action": _make_action(tools, {"expected": expected}),
    }
    parts = (StillWanted, PreActPlan, CheckedPlan) if with_pending_calls else (PreActPlan, CheckedPlan)
    return combine_blueprints("PreActPlan", PreActPlan.__doc__, *parts, **fields)


def make_react_blueprint(tools: Sequence[ToolSchema], *, with_pending_calls: bool = False) -> type[ARQ]:
    """Return the blueprint of a thought and one action, the baseline; its arguments are those for a plan."""
    parts = (StillWanted, ReActStep) if with_pending_calls else (ReActStep,)
    return combine_blueprints("ReActStep", ReActStep.__doc__, *parts, action=_make_action(tools, {}))


def _make_action(tools: Sequence[ToolSchema], call_fields: Mapping[str, FieldDefinition]) -> FieldDefinition:
    options = make_call_options(tools, ArgumentBasis, (FINAL_ANSWER,), call_fields)
    options[FINAL_ANSWER] = (FinalAnswer, "The final answer.")
    return make_choice("The action taken now: one call, or the final answer.", options)
