"""A real server without a real model: whatever it answers, every strategy stays bounded and nothing breaks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.util import find_spec
from time import monotonic
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import create_guided_agent
from tests.slow.senseless import Customers, Desk
from tests.slow.test_random_answers import AN_ASK, AROUND, STRATEGIES
from tests.slow.tiny_server import tiny_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:guideline"),
    pytest.mark.skipif(
        not (find_spec("llama_cpp") and find_spec("uvicorn") and find_spec("gguf")),
        reason="needs a server that is compiled on installation: pip install 'llama-cpp-python[server]' gguf",
    ),
]

# Turns are fewer where the machine is slow; what ran is printed.
TURNS, SECONDS = 20, 30.0


class Answers(BaseCallbackHandler):
    """Counts the calls that were answered."""

    answered = 0

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.answered += 1


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with tiny_server(tmp_path_factory.mktemp("tiny")) as url:
        yield url


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_turns_with_a_random_llama_break_nothing(strategy: str, base_url: str) -> None:
    desk = Desk()
    settings, asks = STRATEGIES[strategy]
    answers = Answers()
    model = ChatOpenAI(
        model=f"tiny-{strategy}",
        base_url=base_url,
        api_key="none",
        max_retries=0,
        temperature=1.0,
        extra_body={"max_tokens": 700},  # this server does not know the newer max_completion_tokens
        callbacks=[answers],
    )
    app = create_guided_agent(model, desk.agent, strategy=settings, mode="direct", checkpointer=MemorySaver())
    customers = Customers(desk, random.Random(strategy))
    per_turn: list[int] = []
    end = monotonic() + SECONDS
    while len(per_turn) < TURNS and (monotonic() < end or not customers.outcomes["reply"]):
        before = answers.answered
        customers.turn(app)
        per_turn.append(answers.answered - before)
        assert per_turn[-1] <= asks * AN_ASK + AROUND
    print(
        f"\n{strategy}: {len(per_turn)} turns, {dict(customers.outcomes)}; answers a turn up to {max(per_turn)};"
        f" tools run: {dict(desk.ran)}"
    )
    assert customers.outcomes["reply"], "no turn came to an end"
