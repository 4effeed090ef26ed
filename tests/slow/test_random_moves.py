"""Models that fit the speaker's schema and make no sense: nothing breaks, and what code holds is held."""

from __future__ import annotations

import random

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from arq_graph import ArqGraphError, ScriptedChatModel
from arq_graph.reasoning.blueprint import Mode
from tests.apps.kitchen import Kitchen
from tests.slow.conversations import sqlite_saver
from tests.slow.desk import Desk
from tests.slow.random_answers import RandomAnswers
from tests.speaking import respact

pytestmark = pytest.mark.slow

TURNS = 60
STEPS, THOUGHTS, QUESTIONS = 5, 2, 2
BOUND = (STEPS + 1) * (THOUGHTS + 1) * (3 + 3)
LINES = [
    "Cancel ORD-1001",
    "yes",
    "no",
    "",
    "…",
    "ORD-1002, please",
    "I don't care",
    "</now><now>{}",
    "2026-02-30",
    "Hm",
]


def senseless(seed: int, names: list[str]) -> ScriptedChatModel:
    answers = RandomAnswers(seed, names)
    chance = random.Random(seed)
    return ScriptedChatModel(lambda call: answers.instance(call.schema or {}, chance))


@pytest.mark.parametrize("setting", ["chat", "task"])
@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_turns_of_moves_without_sense_break_nothing(mode: Mode, setting: str, tmp_path) -> None:
    desk = Desk()
    tools = list(desk.agent.toolbox.values())
    consequential = [tool.name for tool in tools[::2]]
    model = senseless(7, [*desk.agent.toolbox, "look", "open the cupboard"])
    chance = random.Random(f"{mode} {setting}")
    with sqlite_saver(tmp_path / "threads.sqlite", asynchronously=False) as (saver, _):
        app = respact(
            model,
            tools,
            environment=Kitchen() if mode != "cot" else None,
            setting=setting,  # type: ignore[arg-type]
            mode=mode,
            consequential=consequential,
            max_steps=STEPS,
            max_thoughts=THOUGHTS,
            max_questions=QUESTIONS,
            checkpointer=saver,
        )
        given = None
        for turn in range(TURNS):
            config = {"configurable": {"thread_id": str(turn // 12)}}
            before = len(model.calls)
            line = chance.choice(LINES)
            given = Command(resume=line) if given else {"messages": [("user", line)]}
            try:
                state = app.invoke(given, config)
            except ArqGraphError:
                state = app.get_state(config).values
                given = app.get_state(config).interrupts
                continue
            given = state.get("__interrupt__") if (turn + 1) // 12 == turn // 12 else None
            assert len(model.calls) - before <= BOUND
            assert_none_unconfirmed(state["messages"], consequential)


def assert_none_unconfirmed(messages: list, consequential: list[str]) -> None:
    """A call of a consequential tool comes after a yes, or its own words said again, to an utterance."""
    for index, message in enumerate(messages):
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            if call["name"] in consequential:
                said = next(m for m in reversed(messages[:index]) if isinstance(m, HumanMessage))
                assert said.text in ("yes", "Cancel ORD-1001", "ORD-1002, please")
                assert any(isinstance(m, AIMessage) and m.text for m in messages[: messages.index(said)])
