"""Measure an agent on milestones in DeepEval.

    pip install deepeval
    python examples/evaluators/deepeval_metric.py

DeepEval calls a score good or bad by its `threshold`. What is undecided has the score None, and is neither; its range
is in `score_breakdown`.
"""

from __future__ import annotations

import json
from typing import Any

from deepeval.metrics import BaseConversationalMetric
from deepeval.test_case import ConversationalTestCase, ToolCall, Turn

from arq_graph.milestones import MilestoneGraph, milestone_evaluator, parse_milestones


class MilestoneMetric(BaseConversationalMetric):
    """The progress rate of a conversation."""

    def __init__(self, graph: MilestoneGraph, threshold: float = 1.0) -> None:
        self.threshold = self._threshold = threshold
        self._evaluate = milestone_evaluator(graph)

    def measure(self, test_case: ConversationalTestCase, *args: Any, **kwargs: Any) -> Any:
        """Measure a conversation; None if its progress is undecided."""
        _, progress = self._evaluate(outputs=as_messages(test_case.turns))
        self.score = progress["score"]
        self.reason = progress["comment"]
        self.score_breakdown = progress["metadata"]
        self.success = None
        if self.score is not None:
            self.success = self.score >= self._threshold
        return self.score

    async def a_measure(self, test_case: ConversationalTestCase, *args: Any, **kwargs: Any) -> Any:
        """Measure a conversation; it takes milliseconds, and waits for nobody."""
        return self.measure(test_case, *args, **kwargs)

    def is_successful(self) -> bool | None:
        """Return whether the score reaches the threshold; None if it is undecided."""
        return self.success

    @property
    def __name__(self) -> str:
        return "Milestones"


def as_messages(turns: list[Turn]) -> list[dict[str, Any]]:
    """Return a conversation with its tool calls as chat messages."""
    messages: list[dict[str, Any]] = []
    for number, turn in enumerate(turns):
        for position, call in enumerate(turn.tools_called or []):
            id = f"{number}-{position}"
            function = {"name": call.name, "arguments": json.dumps(call.input_parameters or {})}
            messages.append({"role": "assistant", "tool_calls": [{"id": id, "function": function}]})
            messages.append({"role": "tool", "tool_call_id": id, "content": str(call.output)})
        messages.append({"role": turn.role, "content": turn.content})
    return messages


GRAPH = """
milestones:
- {name: Start, type: NFC}
- {name: find_order, type: FC}
- {name: Apology, type: NFC, check: {said_by: agent, pattern: sorry}, dependencies: [find_order]}
- {name: End, type: NFC, dependencies: [Apology]}
"""


def main() -> None:
    call = ToolCall(name="find_order", input_parameters={"order": 17}, output="delayed")
    turns = [
        Turn(role="user", content="Where is my order 17?"),
        Turn(role="assistant", content="It is delayed. I am sorry.", tools_called=[call]),
    ]
    metric = MilestoneMetric(parse_milestones(GRAPH))
    metric.measure(ConversationalTestCase(turns=turns))
    print(metric.score, metric.is_successful(), metric.reason)


if __name__ == "__main__":
    main()
