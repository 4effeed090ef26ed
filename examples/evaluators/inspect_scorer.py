"""Measure an agent on milestones in inspect_ai; here its conversations are recorded ones, and no model is asked.

    pip install inspect-ai
    inspect eval examples/evaluators/inspect_scorer.py --model mockllm/model

With your agent as the solver, the same scorer measures its conversations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall

from arq_graph.milestones import MilestoneGraph, amilestone_evaluator, read_milestones

RENTAL = Path(__file__).parent.parent / "score_any_agent"


@scorer(metrics={"goal_completion": [mean()], "progress_rate": [mean()]})
def milestones(graph: MilestoneGraph) -> Scorer:
    """Goal completion and progress rate; what is undecided is NaN, which inspect_ai leaves out of its means."""
    evaluate = amilestone_evaluator(graph)

    async def score(state: TaskState, target: Target) -> Score:
        results = await evaluate(outputs=as_record(state.messages))
        values = {}
        ranges = {}
        for result in results:
            value = result["score"]
            values[result["key"]] = nan if value is None else float(value)
            ranges[result["key"]] = result["metadata"]
        return Score(value=values, explanation=results[0]["comment"], metadata=ranges)

    return score


def as_record(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """Return messages as inspect_ai writes them into its logs, which arq_graph reads."""
    return {"messages": [message.model_dump(exclude_none=True) for message in messages]}


@solver
def replay() -> Solver:
    """Take the conversation from the metadata of the sample, in the place of your agent."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.messages = list(map(read_message, state.metadata["messages"]))
        return state

    return solve


def read_message(message: dict[str, Any]) -> ChatMessage:
    """Return a message of the chat completions API as one of inspect_ai, whose own function moves replies."""
    content = message["content"] or ""
    if message["role"] == "user":
        return ChatMessageUser(content=content)
    if message["role"] == "tool":
        return ChatMessageTool(content=content, tool_call_id=message["tool_call_id"])
    calls = []
    for call in message.get("tool_calls", []):
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        calls.append(ToolCall(id=call["id"], function=name, arguments=arguments))
    return ChatMessageAssistant(content=content, tool_calls=calls or None)


@task
def rental() -> Task:
    """The recorded conversations of a bicycle rental."""
    samples = []
    for line in (RENTAL / "conversations.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        samples.append(Sample(record["messages"][0]["content"], id=record["id"], metadata=record))
    scorer = milestones(read_milestones(RENTAL / "milestones.yaml"))
    return Task(dataset=samples, solver=replay(), scorer=scorer)
