"""The planners' blueprints: a plan refined after every observation, or a thought; and one action (Pre-Act 3.1).

The action is one of several objects, each with a single property: the name of the tool that is called, or
`final_answer`. So no two of them begin with the same key, which OpenAI's strict mode asks of a choice.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, cast

from pydantic import Discriminator, Tag, create_model

from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify

MAX_PLANNED_STEPS = 12
FINAL_ANSWER = "final_answer"

Observation = Literal["as_expected", "failed", "empty", "another_branch"]


class ArgumentBasis(ARQ, ABC):
    """What a value rests on; stands before the value."""

    basis: Literal["this_request", "known", "another_request", "inferred", "nobody"] = respond(
        "What the value rests on: stated for this request (or plainly what those words say, in the tool's form), "
        "known from a tool result, a variable or the profile, stated for another request, inferred, or nobody gave "
        "it."
    )


class AskedFor(ARQ):
    """Something that the final answer asks the customer for."""

    tool: str = respond("The tool that waits for it.")
    argument: str | None = respond("The argument it is; null where the answer asks whether to make the call.")


class FinalAnswer(ARQ):
    """The answer to the customer, which ends the plan; it may be a question."""

    asks_for: list[AskedFor] = respond(
        "What it asks the customer for, so that a tool can be called; else empty."
    )
    answer: str = respond("The whole message to the customer.")


class FinalAction(ARQ):
    """Answer the customer."""

    final_answer: FinalAnswer = respond("The final answer.")


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

    last_customer_message: str = reinstate("The customer's last message.")
    request: str = query("What does the customer want in the end?")
    plan_so_far: str | None = reinstate("The steps that the plan before still had; null if there is none.")
    newest_result: str | None = reinstate(
        "What the newest result of this turn says, with its id; null if there is none."
    )
    result_against_expectation: str | None = query("How does it compare with what was expected of it?")
    values_at_hand: str = query("Which values do the next steps need, and where is each of them?")
    previous_steps: str | None = respond(
        "What was done for this request and what it told, with ids; null before a tool ran for it."
    )
    observation: Observation | None = respond("How the newest result was; null before there is one.")
    change: ChangeOfPlan | None = respond(
        "What changes in the plan and why; null for the first plan, and where all was as expected."
    )


class CheckedPlan(ARQ, ABC):
    """The check of a plan; stands behind the action."""

    answer_rests_on_this_prompt: bool = verify(
        "Does a final answer state only what this prompt tells? True for a call.", must_be=True
    )


class ReActStep(ARQ, ABC):
    """Think about what to do next, and do it."""

    thought: str = respond("What the newest result or message means, and what is to be done next.")


@dataclass(frozen=True)
class PlannerBlueprint:
    """A planner's blueprint with the tools that its action may call.

    Args:
        blueprint: What is asked.
        tools: Each tool by the property of the action that calls it.
    """

    blueprint: type[ARQ]
    tools: Mapping[str, ToolArguments]


def pre_act_blueprint(tools: Sequence[ToolArguments], confirmed: frozenset[str]) -> PlannerBlueprint:
    """The multi-step plan and one action (Pre-Act 3.1, Appendices D and E).

    Args:
        tools: Every tool of the agent, so that the schema never changes.
        confirmed: Names of the tools whose calls the customer has to agree to.
    """
    names = tuple(tool.name for tool in tools)
    kind: Any = Literal[names] | None if names else None
    step: Any = create_model(
        "PlannedStep",
        __base__=PlannedStep,
        __doc__=PlannedStep.__doc__,
        tool=(kind, respond("The tool it calls; null for the final answer, which is the last step.")),
    )
    asked = {
        "next_steps": (
            list[step],
            respond(
                "Every step still to come. The first is the action taken now; the last is the final answer.",
                min_length=1,
                max_length=MAX_PLANNED_STEPS,
            ),
        )
    }
    return _blueprint("PreActPlan", (CheckedPlan, PreActPlan), asked, tools, confirmed, expects=True)


def react_blueprint(tools: Sequence[ToolArguments], confirmed: frozenset[str]) -> PlannerBlueprint:
    """A thought and one action, the baseline; arguments are those of `pre_act_blueprint`."""
    return _blueprint("ReActStep", (ReActStep,), {}, tools, confirmed, expects=False)


def property_of(tool: str) -> str:
    """The property of an action that calls a tool: its name, unless it is called like the final answer."""
    return f"tool_{tool}" if tool == FINAL_ANSWER else tool


def _blueprint(
    name: str,
    bases: tuple[type[ARQ], ...],
    asked: dict[str, Any],
    tools: Sequence[ToolArguments],
    confirmed: frozenset[str],
    *,
    expects: bool,
) -> PlannerBlueprint:
    by_property = {property_of(tool.name): tool for tool in tools}
    actions = {
        key: _call_action(key, tool, tool.name in confirmed, expects) for key, tool in by_property.items()
    }
    asked["action"] = _one_of({**actions, FINAL_ANSWER: FinalAction})
    made = create_model(name, __base__=bases, __doc__=bases[-1].__doc__, **asked)
    return PlannerBlueprint(cast(type[ARQ], made), by_property)


def _one_of(actions: Mapping[str, type[ARQ]]) -> tuple[Any, Any]:
    question = "The action taken now: one call, or the final answer."
    if len(actions) == 1:
        return FinalAction, respond(question)
    tagged: list[Any] = [Annotated[action, Tag(key)] for key, action in actions.items()]
    choice: Any = reduce(or_, tagged)
    # Told apart by its one property, an action that is wrong is reported for itself alone, not for every tool.
    return choice, respond(question, discriminator=Discriminator(_first_property))


def _first_property(action: Any) -> Any:
    fields = action if isinstance(action, Mapping) else getattr(type(action), "model_fields", {})
    return next(iter(fields), None)


def _call_action(key: str, tool: ToolArguments, confirmed: bool, expects: bool) -> type[ARQ]:
    fields: dict[str, Any] = {}
    if tool.arguments:
        fields["arguments"] = (
            tool.blueprint_with(ArgumentBasis, "planned", "Planned"),
            respond("Each of its arguments."),
        )
    if expects:
        fields["expected"] = (str, respond("What its result is expected to tell."))
    if confirmed:
        fields["affirmed_in"] = (
            str | None,
            respond(
                "Id of the customer's message that agrees to exactly these arguments, after being asked; null if "
                "none does."
            ),
        )
    if not fields:
        fields["go_ahead"] = (Literal[True], respond("It takes no arguments: true makes the call."))
    call = create_model(f"{tool.name}_planned", __base__=ARQ, __doc__="The call.", **fields)
    asked: dict[str, Any] = {key: (call, respond(f"A call of {tool.name}."))}
    return create_model(f"{tool.name}_action", __base__=ARQ, __doc__="Call this tool.", **asked)
