"""Answers that make no sense, scripted and from a real server: nothing breaks, every turn is bounded."""

from __future__ import annotations

import random
from collections import Counter
from importlib.util import find_spec
from time import monotonic

import pytest
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import PreAct, ReAct, ReSpAct, ScriptedChatModel, ToolCalling, create_guided_agent, track_usage
from tests.slow.senseless import MARKUP, Customers, Desk, random_instance
from tests.slow.tiny_server import tiny_server

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:guideline")]

TURNS = 40
STEPS = 3
# Of one question: three invalid answers, and two more candidates that are valid and wrong.
AN_ASK = 5
# One batch of guidelines is matched before and after each step, and one reply is written.
AROUND = (1 + STEPS + 1) * AN_ASK
# Strategy, and the most questions that it asks in a turn.
STRATEGIES = {
    "tools": (ToolCalling(max_rounds=STEPS), 4 * 2 * STEPS),
    "pre-act": (PreAct(max_steps=STEPS), STEPS + 2),
    "react": (ReAct(max_steps=STEPS), STEPS + 2),
    "respact": (ReSpAct(max_steps=STEPS), 3 * (STEPS + 2)),
}


# Of the real server, turns are fewer where the machine is slow; what ran is printed.
SECONDS = 30.0


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_turns_of_answers_without_sense_break_nothing(strategy, mode, tmp_path):
    desk = Desk()
    settings, asks = STRATEGIES[strategy]
    chance = random.Random(f"{strategy} {mode}")
    names = [*desk.agent.toolbox, *(guideline.id for guideline in desk.agent.guidelines)]
    model = ScriptedChatModel(lambda call: random_instance(call.schema or {"type": "null"}, names, chance))
    customers = Customers(desk, random.Random(7))
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        app = create_guided_agent(model, desk.agent, strategy=settings, mode=mode, checkpointer=saver)
        for _ in range(TURNS):
            model.calls.clear()
            customers.turn(app)
            assert len(model.calls) <= asks * AN_ASK + AROUND
            # What is asked again is appended to the two messages of the question.
            questions = Counter((call.module, *(m.text for m in call.messages[:2])) for call in model.calls)
            assert all(times <= AN_ASK for times in questions.values())
            written = [m.text for call in model.calls for m in call.messages if m.type != "ai"]
            # The first is how the conversation really ends.
            raw = [words for words in MARKUP[1:] if any(words in text for text in written)]
            assert raw == [], "a text stands in the prompt as markup"
    print(f"\n{strategy} {mode}: {dict(customers.outcomes)}; tools run: {dict(desk.ran)}")
    assert customers.outcomes["reply"] > TURNS / 4, f"too few turns came to an end: {customers.outcomes}"


@pytest.fixture(scope="module")
def base_url(tmp_path_factory):
    if not (find_spec("llama_cpp") and find_spec("uvicorn") and find_spec("gguf")):
        pytest.skip(
            "needs a server that is compiled on installation: pip install 'llama-cpp-python[server]' gguf"
        )
    with tiny_server(tmp_path_factory.mktemp("tiny")) as url:
        yield url


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_turns_with_a_server_that_draws_its_answers_break_nothing(strategy, base_url):
    desk = Desk()
    settings, asks = STRATEGIES[strategy]
    # This server does not know the newer max_completion_tokens.
    model = ChatOpenAI(
        model=f"tiny-{strategy}", base_url=base_url, api_key="none", extra_body={"max_tokens": 700}
    )
    app = create_guided_agent(model, desk.agent, strategy=settings, mode="direct", checkpointer=MemorySaver())
    customers = Customers(desk, random.Random(strategy))
    turns, end = 0, monotonic() + SECONDS
    while turns < TURNS / 2 and (monotonic() < end or not customers.outcomes["reply"]):
        with track_usage() as used:
            customers.turn(app)
        turns += 1
        assert used.calls <= asks * AN_ASK + AROUND
    print(f"\n{strategy}: {turns} turns, {dict(customers.outcomes)}; tools run: {dict(desk.ran)}")
    assert customers.outcomes["reply"], "no turn came to an end"
