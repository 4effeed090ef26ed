"""Planning: all steps up to the final answer, refined after every observation (Pre-Act, 3.1 and Appendices D, E)."""

from __future__ import annotations

from typing import Any

from arq_graph.agent.state import Plan, PlanChange, PlanStep
from arq_graph.nodes.plan_schema import FINAL_ANSWER, pre_act_blueprint
from arq_graph.nodes.planner import Action, Planner, Situation
from arq_graph.reasoning.answer import Complaint


class PreActPlanner(Planner):
    """Plan every step up to the final answer with its reason, and take the first; refine it after each result.

    Writes the plan to `plan`, and its action: a message with one tool call, or the final answer. A new customer
    message starts a new plan. A result that contradicts the plan (a failure, an empty result, another branch)
    changes it, and the plan says what changed and why. A call that failed is not made again in that turn, and a
    plan that goes on as if it had not failed is refused. What is refused is asked for again, within the reasoner's
    `max_candidates`; after that the turn ends with the agent's `fallback`, or without a draft.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification. Its tools are gated by its active guidelines, as for `ToolCaller`.
        max_steps: How many calls one turn may make; after them only the final answer is left.
        draft: Keep the final answer in the plan, where `MessageReviser` finds it as its draft, in place of sending
            it as a message.
        **settings: `agrees`, `template`, `temperature` (0.05) and the others, as for `ToolCaller`.

    Raises:
        InputError: `max_steps` is below 1.
        ReasoningError: When run: the model gave no answer.
        StateError: When run: a channel holds something else.
    """

    files = "pre_act_planner"
    of_examples = staticmethod(pre_act_blueprint)

    def faults(self, value: Any, situation: Situation, action: Action) -> list[Complaint]:
        """A plan that is not one: its first step is the action, its last the final answer, a change is told."""
        steps, last = value.next_steps, len(value.next_steps) - 1
        taken = action.call.tool if action.call else None
        found = []
        if steps[0].tool != taken:
            found.append(
                ("next_steps[0].tool", f"the first step is the action taken now, {taken or FINAL_ANSWER}")
            )
        for number, step in enumerate(steps):
            if number == last and step.tool is not None:
                found.append((f"next_steps[{number}].tool", "the last step is the final answer: null"))
            elif number < last and step.tool is None:
                only = "only the last step is the final answer; this one needs its tool"
                found.append((f"next_steps[{number}].tool", only))
        if situation.results and not (value.previous_steps or "").strip():
            found.append(
                ("previous_steps", "a tool ran for this request: sum up what was done and what it told")
            )
        if _is_contradicted(value, situation) and value.change is None:
            found.append(("change", "the result was not as expected: say what changes in the plan, and why"))
        if action.call is None and _goes_on_regardless(value, situation):
            found.append(
                ("next_steps", "the result was not as expected: say what the answer now tells instead")
            )
        return [Complaint(type(value).__name__, place, message) for place, message in found]

    def blocks(self, value: Any, situation: Situation, action: Action) -> list[Complaint]:
        """A plan that goes on as if what failed had not."""
        if action.call is None or not _goes_on_regardless(value, situation):
            return []
        ids = ", ".join(line.id for line in situation.new_results)
        message = f"the plan is the one from before, though {ids} was not as expected: make another one"
        return [Complaint(type(value).__name__, "next_steps", message)]

    def record(self, value: Any, situation: Situation, action: Action) -> Plan:
        """The steps still to come, what was done, and what changed."""
        before, results = situation.plan, situation.results
        changes = before.changes if before else ()
        if before and value.change is not None:
            changes += (PlanChange(version=before.version + 1, what=value.change.what, why=value.change.why),)
        return Plan(
            turn=situation.turn,
            previous_steps=value.previous_steps if results else None,
            steps=tuple(PlanStep(description=s.step, reason=s.reason, tool=s.tool) for s in value.next_steps),
            observation=_observation(value, situation),
            changes=changes,
        )


def _observation(value: Any, situation: Situation) -> Any:
    if not situation.results:
        return None
    return "failed" if situation.has_failed else value.observation or "as_expected"


def _is_contradicted(value: Any, situation: Situation) -> bool:
    """Whether a result is against the plan before."""
    is_new = situation.plan is not None and bool(situation.new_results)
    return is_new and _observation(value, situation) != "as_expected"


def _goes_on_regardless(value: Any, situation: Situation) -> bool:
    """Whether the steps are those that were left of the plan before, though a result is against it."""
    if situation.plan is None or not _is_contradicted(value, situation):
        return False
    new = [(step.tool, _plain(step.step)) for step in value.next_steps]
    return new == [(step.tool, _plain(step.description)) for step in situation.plan.steps[1:]]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
