"""Models that fit every schema and make no sense: nothing breaks, nothing forbidden runs, nothing leaks."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from arq_graph import create_guided_agent
from arq_graph.reasoning.blueprint import Mode
from tests.reasoning.endpoint import Endpoint, taking
from tests.slow.call_bound import most_calls
from tests.slow.conversations import Customers, sqlite_saver, state_of
from tests.slow.desk import Desk
from tests.slow.prompt_sections import assert_sections_hold
from tests.slow.random_answers import RandomAnswers

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:guideline")]

TURNS = 200
THREADS = 6
ROUNDS = 2
BATCH = 2
# How each part of the turns is asked: the endpoint's method, and whether the app runs asynchronously.
PARTS = [
    ("json_schema", False),
    ("function_calling", True),
    ("json_mode", False),
    ("json_schema", True),
]


@pytest.mark.parametrize(
    ("mode", "deciding", "options"),
    [
        ("arq", "tools", {}),
        ("cot", "tools", {}),
        ("direct", "tools", {}),
        ("arq", "planner", {"strategy": "pre-act"}),
        ("direct", "planner", {"strategy": "react"}),
        ("cot", "speaker", {"strategy": "respact"}),
    ],
)
def test_turns_of_answers_without_sense_break_nothing(
    mode: Mode, deciding: str, options: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "threads.sqlite"
    desk = Desk()
    customers = Customers(desk, THREADS, random.Random(f"customers {mode} {options}"))
    bound = most_calls(desk.agent, batch_size=BATCH, max_rounds=ROUNDS, deciding=deciding)
    turns = TURNS if deciding == "tools" else TURNS // 2
    calls: list[int] = []
    states: dict[str, object] = {}
    for number, (method, asynchronously) in enumerate(PARTS):
        answers = RandomAnswers(number, desk.internal_names)
        with (
            Endpoint(taking(method, then=answers)) as endpoint,
            sqlite_saver(file, asynchronously=asynchronously) as (saver, runner),
        ):
            app = create_guided_agent(
                endpoint.chat_model(),
                desk.agent,
                mode=mode,
                batch_size=lambda _: BATCH,
                max_rounds=ROUNDS,
                **options,
                checkpointer=saver,
            )
            for thread, messages in states.items():
                loaded = state_of(app, {"configurable": {"thread_id": thread}}, runner)
                assert loaded.values["messages"] == messages, "a fresh app loads something else"
            for _ in range(turns // len(PARTS)):
                before = endpoint.calls
                thread = customers.turn(app, runner)
                answered = [request for request in endpoint.requests[before:] if request.method == method]
                calls.append(len(answered))
                assert len(answered) <= bound, f"{len(answered)} calls in a turn, {bound} at most"
                for request in answered:
                    assert_sections_hold(request)
                snapshot = state_of(app, {"configurable": {"thread_id": thread}}, runner)
                states[thread] = snapshot.values["messages"]
            refused = Counter(endpoint.methods)
            del refused[method]
            assert sum(refused.values()) <= 3 * bound, "the endpoint's method is not remembered"
    print(f"\n{mode} {options}: {dict(customers.outcomes)}; calls per turn up to {max(calls)} of {bound}")
    print(f"tools run: {dict(Counter(run.tool for run in desk.runs))}")
    assert customers.outcomes["reply"] > turns / 4, "too few turns came to an end to tell anything"
    # What needs a customer's word needs a message id and the same arguments twice: chance hardly finds both.
    # A planner and a speaker choose one tool of all, so chance tries each too seldom to tell.
    by_chance = {
        name
        for name in desk.agent.toolbox
        if name not in desk.agent.confirmed_by("customer") and deciding == "tools"
    }
    assert by_chance <= {run.tool for run in desk.runs}, "some tool never ran"
    assert_loads_strictly(file, {thread: len(said) for thread, said in customers.messages.items()})


def assert_loads_strictly(file: Path, customer_messages: dict[str, int]) -> None:
    """Load every thread in a new process that takes only the types that the state names."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.slow.load_threads", str(file), *customer_messages],
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == customer_messages
    assert "unregistered" not in ran.stderr.lower()
    assert not ran.stderr.strip()
