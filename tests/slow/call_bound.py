"""How many model calls a turn can take at most, from the limits of the graph and of the reasoner."""

from __future__ import annotations

from arq_graph import Agent

MAX_ATTEMPTS = 3
"""Invalid answers of one ask, of which the last ends it: `Reasoner`'s default."""

MATCHER_CANDIDATES = 2
"""Valid judgements asked for while they contradict themselves: once more (ARQ paper, 5.1.1)."""

REVISER_CANDIDATES = 2
"""The reply, and one more revision that code asks for: `MessageReviser`'s default."""


CANDIDATES = 3
"""Valid answers of one ask that code refuses, of which the last ends it: `Reasoner`'s default."""

THOUGHTS = 2
"""Thoughts before one move: `Speaker`'s default."""


def most_calls(
    agent: Agent, *, batch_size: int, max_rounds: int, tools_per_call: int = 1, deciding: str = "tools"
) -> int:
    """The most answers that one turn can ask for.

    With B batches of guidelines, T batches of tools, R rounds and A attempts an ask:

        matching      B (1 + R) (A + 1)    the first look and one after each round
        tools         T (2 R - 1) A        one decision before each round; before all but the first, one more
                                           where a guideline became active without a call being made
        planner       (R + 1) (A + 2)      one call a round, and the final answer
        speaker       3 (R + 1) (A + 2)    the same, each after two thoughts
        message       A + 1

    A and the number of candidates add up to A + candidates - 1 for one ask, since each answer is either
    invalid or a candidate. Calls that an endpoint refuses while its method is found out come on top.
    """
    judged = [g for g in agent.guidelines if not (g.continuous and not isinstance(g.condition, str))]
    batches = sum(
        -(-len(group) // batch_size)
        for group in (
            [g for g in judged if g.sensitive_to_tools is not False],
            [g for g in judged if g.sensitive_to_tools is False],
        )
    )
    tool_batches = -(-len(agent.toolbox) // tools_per_call)
    matching = batches * (1 + max_rounds) * (MAX_ATTEMPTS + MATCHER_CANDIDATES - 1)
    moves = (max_rounds + 1) * (MAX_ATTEMPTS + CANDIDATES - 1)
    decided = {
        "tools": tool_batches * (2 * max_rounds - 1) * MAX_ATTEMPTS,
        "planner": moves,
        "speaker": (THOUGHTS + 1) * moves,
    }
    message = MAX_ATTEMPTS + REVISER_CANDIDATES - 1
    return matching + decided[deciding] + message
