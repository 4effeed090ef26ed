"""Count what one matching pass costs, by the number of guidelines that one call judges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from arq_graph import Agent, ScriptedChatModel
from arq_graph.models.scripted import ScriptedCall
from arq_graph.nodes import GuidelineMatcher
from benchmarks.in_process import answer_call, make_agent, make_model
from benchmarks.output_tokens import CountTokens
from benchmarks.turn import TURN


@dataclass(frozen=True)
class PassCost:
    """The cost of one matching pass in which one guideline holds.

    Args:
        guideline_count: The number of guidelines.
        batch_size: How many of them one call judges.
        is_default: It is the size that the matcher chooses itself.
        calls: Model calls, all made at the same time.
        input_tokens: Tokens of all prompts and schemas.
        output_tokens: Tokens of all answers.
        longest_answer: Tokens of the longest answer, for which the pass waits.
    """

    guideline_count: int
    batch_size: int
    is_default: bool
    calls: int
    input_tokens: int
    output_tokens: int
    longest_answer: int


def measure_batch_sizes(count_tokens: CountTokens) -> Iterator[PassCost]:
    """Measure a pass of small and large agents with batches of 5, 10 and 20 guidelines."""
    for guideline_count in (20, 100, 200):
        agent = make_agent(guideline_count)
        default_batch = GuidelineMatcher(make_model(), agent).batches[0]
        default_size = len(default_batch.guidelines)
        for batch_size in (5, 10, 20):
            yield _measure_pass(agent, batch_size, batch_size == default_size, count_tokens)


def _measure_pass(agent: Agent, batch_size: int, is_default: bool, count_tokens: CountTokens) -> PassCost:
    answer_tokens: list[int] = []

    def answer(call: ScriptedCall) -> str:
        text = answer_call(call)
        answer_tokens.append(count_tokens(text))
        return text

    model = ScriptedChatModel(answer)
    GuidelineMatcher(model, agent, batch_size=batch_size).invoke(TURN)
    input_tokens = 0
    for call in model.calls:
        input_tokens += count_tokens(call.text) + count_tokens(json.dumps(call.schema))
    return PassCost(
        guideline_count=len(agent.guidelines),
        batch_size=batch_size,
        is_default=is_default,
        calls=len(model.calls),
        input_tokens=input_tokens,
        output_tokens=sum(answer_tokens),
        longest_answer=max(answer_tokens),
    )
