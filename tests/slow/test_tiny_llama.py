"""A real server without a real model: whatever it answers stays bounded, and breaks nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_openai import ChatOpenAI

from arq_graph import create_guided_agent
from arq_graph.reasoning.blueprint import Mode
from tests.slow.call_bound import most_calls
from tests.slow.conversations import Customers, sqlite_saver, state_of
from tests.slow.desk import SmallDesk
from tests.slow.tiny_server import tiny_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:guideline"),
    pytest.mark.skipif(
        not (find_spec("llama_cpp") and find_spec("uvicorn") and find_spec("gguf")),
        reason="needs a server that is compiled on installation: pip install 'llama-cpp-python[server]' gguf",
    ),
]

TURNS = 200
THREADS = 8
ROUNDS = 2
# Turns are fewer where the machine is slow; what ran is printed.
SECONDS = 720.0
TOKENS = 700
PARTS: list[Mode] = ["direct", "cot", "arq"]
# Without the instructions, which mean nothing to this model and take most of its time.
PROMPTS: Any = {
    "matcher": "{% block head %}{{ guidelines | section('guidelines') }}{% endblock %}"
    "{% block tail %}{{ now | section('now') }}{% endblock %}",
    "tools": "{% block head %}{{ tools | section('tools') }}{% endblock %}"
    "{% block tail %}{{ now | section('now') }}{% endblock %}",
    "message": "{% block head %}{{ profile | section('profile') }}{% endblock %}"
    "{% block tail %}{{ active_guidelines | section('active_guidelines') }}{{ now | section('now') }}{% endblock %}",
}


class Answers(BaseCallbackHandler):
    """Counts the calls that were answered, and those that were refused."""

    def __init__(self) -> None:
        self.answered = 0
        self.refused: Counter[str] = Counter()

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.answered += 1

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.refused[type(error).__name__] += 1


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with tiny_server(tmp_path_factory.mktemp("tiny")) as url:
        yield url


def test_two_hundred_turns_with_a_random_llama_break_nothing(base_url: str, tmp_path: Path) -> None:
    desk = SmallDesk()
    customers = Customers(desk, THREADS, random.Random("a random llama"))
    bound = most_calls(desk.agent, batch_size=1, max_rounds=ROUNDS)
    answers = Answers()
    per_turn: list[int] = []
    started = monotonic()
    for number, mode in enumerate(PARTS, start=1):
        model = ChatOpenAI(
            model=f"tiny-{mode}",
            base_url=base_url,
            api_key="none",
            max_retries=0,
            temperature=1.0,
            extra_body={"max_tokens": TOKENS},  # this server does not know the newer max_completion_tokens
            callbacks=[answers],
        )
        with sqlite_saver(tmp_path / "threads.sqlite", asynchronously=number % 2 == 0) as (saver, runner):
            app = create_guided_agent(
                model,
                desk.agent,
                mode=mode,
                batch_size=lambda _: 1,
                max_rounds=ROUNDS,
                prompts=PROMPTS,
                max_history_tokens=500,
                checkpointer=saver,
            )
            for thread, messages in customers.messages.items():
                loaded = state_of(app, {"configurable": {"thread_id": thread}}, runner)
                assert len(loaded.values["messages"]) >= len(messages)
            for _ in range(TURNS // len(PARTS) + 1):
                if monotonic() - started > SECONDS * number / len(PARTS):
                    break
                before = answers.answered
                customers.turn(app, runner)
                per_turn.append(answers.answered - before)
                assert per_turn[-1] <= bound, f"{per_turn[-1]} answers in a turn, {bound} at most"
    print(
        f"\n{len(per_turn)} turns in {monotonic() - started:.0f} s: {dict(customers.outcomes)}; answers a turn up to "
        f"{max(per_turn)} of {bound}; refused calls: {dict(answers.refused)}; "
        f"tools run: {dict(Counter(run.tool for run in desk.runs))}"
    )
    assert len(per_turn) >= 2 * len(PARTS), "too slow here to tell anything"
    assert customers.outcomes["reply"], "no turn came to an end"
