"""The baseline of planning: a thought and an action, with the same base prompt and tools (ReAct)."""

from __future__ import annotations

from typing import Any

from arq_graph.agent.state import Plan, PlanStep
from arq_graph.nodes.plan_schema import react_blueprint
from arq_graph.nodes.planner import Action, Planner, Situation


class ReActPlanner(Planner):
    """Think about the newest message or result and take one action, without a plan: what Pre-Act is held against.

    Arguments, errors and what it writes are those of `PreActPlanner`; its plan is the one step it takes, with the
    thought as the reason.
    """

    files = "react_planner"
    of_examples = staticmethod(react_blueprint)

    def record(self, value: Any, situation: Situation, action: Action) -> Plan:
        """The step that is taken."""
        tool = action.call.tool if action.call else None
        description = f"call {tool}" if tool else "give the final answer"
        return Plan(
            turn=situation.turn,
            previous_steps=_thoughts(situation.plan),
            steps=(PlanStep(description=description, reason=value.thought, tool=tool),),
            observation="failed" if situation.has_failed else None,
        )


def _thoughts(before: Plan | None) -> str | None:
    """What was thought and done in this turn, as ReAct keeps its trace."""
    if before is None:
        return None
    taken = [f"{step.reason} So: {step.description}." for step in before.steps]
    return "\n".join([*([before.previous_steps] if before.previous_steps else []), *taken])
