"""Agents that play TextWorld's games: what they do is bounded, counted and measured, whoever answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from arq_graph.errors import ArqGraphError, StateError
from arq_graph.milestones import Message, Result, Transcript, score
from arq_graph.milestones.evaluation.dialogue import converse
from arq_graph.milestones.evaluation.scenario import Limits
from arq_graph.milestones.users.simulated import make_user
from arq_graph.milestones.users.spec import Intent, UserSpec
from arq_graph.models.scripted import ScriptedCall, ScriptedChatModel
from examples.textworld.environment import TextWorldEnvironment
from examples.textworld.episode import episode_transcript
from tests.slow.playing import NEEDS_TEXTWORLD, walkthrough_graph
from tests.speaking import respact

pytestmark = NEEDS_TEXTWORLD


def acts(action: str) -> dict[str, Any]:
    return {"move": {"act": {"action": action}}}


def asks(text: str) -> dict[str, Any]:
    flags = dict.fromkeys(
        ("mentions_failure", "closes", "states_belief", "offers_choice", "ends_task"), False
    )
    return {"move": {"speak": {"utterance": text, "facts": [], "promises": [], "asks": True, **flags}}}


def agent(model: Any, world: TextWorldEnvironment, saver: Any = None, **more: Any) -> Any:
    return respact(
        model, environment=world, mode="direct", checkpointer=saver or MemorySaver(), seed=3, **more
    )


def on(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 400}


TASK = {"messages": [("user", "Please do what the game asks of you.")]}


def test_an_agent_that_knows_the_way_wins(world: TextWorldEnvironment) -> None:
    app = agent(ScriptedChatModel([acts(action) for action in world.walkthrough]), world)
    state = app.invoke(TASK, on("t"))
    assert (state["world"][-1].done, state["world"][-1].score, state["world"][-1].invalid) == (
        True,
        world.max_score,
        0,
    )
    transcript = episode_transcript(state)
    assert score(walkthrough_graph(world), transcript).goal_completed is True
    assert (transcript.instructions, transcript.extra["done"]) == (state["world"][-1].beginning, True)


def test_what_the_world_refuses_an_agent_is_counted(house: TextWorldEnvironment) -> None:
    # It insists: an action that is not listed is asked again before it is taken at its word.
    answers = [acts(action) for each in house.walkthrough for action in (*["fly to the moon"] * 3, each)]
    state = agent(ScriptedChatModel(answers), house).invoke(TASK, on("t"))
    measured = episode_transcript(state)
    assert state["world"][-1].done
    refused = sum(getattr(event, "failed", False) for event in measured.events)
    assert measured.extra["invalid"] == refused >= len(house.walkthrough)
    assert score(walkthrough_graph(house), measured).goal_completed is True


def test_an_agent_without_a_model_takes_a_bounded_number_of_steps(world: TextWorldEnvironment) -> None:
    app = agent("offline", world, max_steps=12, max_questions=2)
    held = converse(app, make_user(guide_to(world), seed=1), thread_id="t")
    assert held.error is None
    state = app.get_state(on("t")).values
    assert state["world"][-1].score is not None
    assert state["world"][-1].invalid == 0  # it chooses among what is listed
    for transcript in by_task(state["messages"]):
        assert sum(1 for _ in transcript.calls()) <= 12


def guide_to(world: TextWorldEnvironment, kind: Any = "helpful") -> UserSpec:
    steps = {f"step {number}": action for number, action in enumerate(world.walkthrough, start=1)}
    return UserSpec(
        role="guide",
        kind=kind,
        intents=(
            Intent(request=world.objective, answers={"what to do first": f"First: {world.walkthrough[0]}."}),
        ),
        knowledge=steps,
        max_turns=6,
    )


def by_task(messages: Sequence[Any]) -> list[Transcript]:
    """The record of each task, from the words that gave it to those before the next."""
    starts = [i for i, each in enumerate(messages) if each.type == "human"]
    ends = [*starts[1:], len(messages)]
    return [episode_transcript(messages[start:end]) for start, end in zip(starts, ends, strict=True)]


def test_a_guide_answers_the_agent_and_it_goes_on_and_wins(house: TextWorldEnvironment) -> None:
    way = house.walkthrough
    heard: list[str] = []

    def plays(call: ScriptedCall) -> dict[str, Any]:
        heard.append(call.text)
        return acts(way[len(heard) - 2]) if len(heard) > 1 else asks("What should I do first?")

    app = agent(ScriptedChatModel(plays), house)
    held = converse(app, make_user(guide_to(house), seed=1), limits=Limits(turns=2), thread_id="t")
    assert held.error is None
    assert house.won
    assert len(heard) == 1 + len(way)
    assert f"First: {way[0]}." in heard[1]
    transcript = episode_transcript(app.get_state(on("t")).values)
    said = [event.text for event in transcript.events if isinstance(event, Message)]
    assert said[:2] == [house.objective, "What should I do first?"]
    assert said[2].endswith(f"First: {way[0]}.")
    assert len(said) == 3
    assert score(walkthrough_graph(house), transcript).goal_completed is True


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_model_answers_the_task_is_bounded_and_counted(
    house: TextWorldEnvironment, seed: int
) -> None:
    chance = random.Random(seed)

    def anything(call: ScriptedCall) -> dict[str, Any]:
        possible = [*(house.actions() or ("look",)), "quit", "fly", ""]
        said = chance.choice(["Where am I?", "Where am I?", "And now?", ""])
        return chance.choice(
            [acts(chance.choice(possible)), asks(said), {"move": {"think": {"thought": said}}}]
        )

    model = ScriptedChatModel(anything)
    app = agent(model, house, max_steps=15, max_questions=3)
    held = converse(app, make_user(guide_to(house), seed=seed), limits=Limits(turns=6), thread_id="t")
    assert held.failure is None or isinstance(held.failure, ArqGraphError)
    state = app.get_state(on("t")).values
    transcript = episode_transcript(state)
    results = [event for event in transcript.events if isinstance(event, Result)]
    assert len(results) <= 15 * 6
    assert state["world"][-1].invalid == sum(event.failed for event in results)
    assert state["world"][-1].taken == sum(not event.failed for event in results)
    assert state["world"][-1].score == house.score
    assert (state["world"][-1].score == house.max_score) is house.won


async def test_a_world_is_played_without_blocking(house: TextWorldEnvironment) -> None:
    app = agent(ScriptedChatModel([acts(action) for action in house.walkthrough]), house)
    state = await app.ainvoke(TASK, on("t"))
    assert state["world"][-1].done
    assert house.won


def test_a_task_is_taken_up_in_another_process_with_the_world_as_it_was(
    games: list[Path], tmp_path: Path
) -> None:
    with (
        SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver,
        TextWorldEnvironment(games[-1]) as world,
    ):
        way = world.walkthrough
        first = ScriptedChatModel([acts(way[0]), acts(way[1]), asks("Shall I go on?")])
        state = agent(first, world, saver).invoke(TASK, on("t"))
        assert state["__interrupt__"][0].value["text"] == "Shall I go on?"
    # Nothing of the first world is left: another one is brought to where the thread stands.
    with (
        SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver,
        TextWorldEnvironment(games[-1]) as again,
    ):
        second = ScriptedChatModel([acts(action) for action in way[2:]])
        state = agent(second, again, saver).invoke(Command(resume="Yes, please."), on("t"))
        assert state["world"][-1].done
        assert again.won


def test_another_game_is_not_taken_for_the_threads(games: list[Path]) -> None:
    saver = MemorySaver()
    with TextWorldEnvironment(games[1]) as world, TextWorldEnvironment(games[-1]) as other:
        way = world.walkthrough
        agent(ScriptedChatModel([acts(way[0]), asks("Shall I go on?")]), world, saver).invoke(TASK, on("t"))
        goes_on = agent(ScriptedChatModel([acts(way[1])]), other, saver)
        with pytest.raises(StateError, match="does not repeat itself"):
            goes_on.invoke(Command(resume="Yes."), on("t"))


def test_the_example_plays_and_measures(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "text_adventure.py"
    spec = spec_from_file_location("example_text_adventure", path)
    assert spec is not None
    assert spec.loader is not None
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(seed=2)
    told = capsys.readouterr().out
    assert "walkthrough" in told
    assert "100%" in told
