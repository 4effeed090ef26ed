"""Measure an agent on milestones in pydantic-evals.

pip install pydantic-evals
python examples/evaluators/pydantic_evals_evaluator.py
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext

from arq_graph.milestones import MilestoneGraph, milestone_evaluator, read_milestones

RENTAL = Path(__file__).parent.parent / "score_any_agent"


@dataclass(repr=False)
class Milestones(Evaluator[Any, Any, Any]):
    """Goal completion as an assertion, and both ends of the progress rate; an undecided goal is a label."""

    graph: MilestoneGraph

    def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> dict[str, EvaluationReason]:
        goal, progress = milestone_evaluator(self.graph)(outputs=ctx.output)
        reason = goal["comment"]
        value = "undecided" if goal["score"] is None else bool(goal["score"])
        return {
            "goal_completion": EvaluationReason(value, reason),
            "progress_at_least": EvaluationReason(progress["metadata"]["low"], reason),
            "progress_at_most": EvaluationReason(progress["metadata"]["high"], reason),
        }


def main() -> None:
    records = map(json.loads, (RENTAL / "conversations.jsonl").read_text(encoding="utf-8").splitlines())
    recorded = {record["id"]: record for record in records}
    cases = [Case(name=id, inputs=id) for id in recorded]
    evaluators = [Milestones(read_milestones(RENTAL / "milestones.yaml"))]
    dataset = Dataset(name="bicycle rental", cases=cases, evaluators=evaluators)
    report = dataset.evaluate_sync(recorded.__getitem__, progress=False)  # in place of it: your app
    report.print()


if __name__ == "__main__":
    main()
