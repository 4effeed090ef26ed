"""A household made of text: an agent that thinks, speaks and acts in a world, and how far it gets (ReSpAct, 3.1).

pip install "arq_graph[textworld]"
python -m examples.textworld.text_adventure                  # the offline model: no key needed, and little judgement
python -m examples.textworld.text_adventure openai:gpt-4o 7  # a model, and the seed of the game
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from typing import Any

from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import ReSpAct, create_respact_agent
from arq_graph.milestones import (
    AgendaUser,
    Call,
    Message,
    MilestoneGraph,
    Result,
    Transcript,
    UserSpec,
    read_transcript,
    score,
)
from examples.textworld.environment import TextWorldEnvironment, make_text_game


def quest(world: TextWorldEnvironment) -> MilestoneGraph:
    """The way that wins, as milestones: each action a call of `act`."""
    return MilestoneGraph.from_actions(
        {"tool": "act", "arguments": {"action": action}} for action in world.walkthrough
    )


def guide(world: TextWorldEnvironment) -> UserSpec:
    """Someone who gives the task, knows the way, and tells of it what is asked."""
    way = {f"step {number}": action for number, action in enumerate(world.walkthrough, start=1)}
    first = {"what to do first": f"First: {world.walkthrough[0]}."}
    task = {"request": world.objective, "answers": first}
    return UserSpec.model_validate({"role": "guide", "intents": [task], "knowledge": way})


def walk(world: TextWorldEnvironment) -> Transcript:
    """Take the way that wins; its record has each action as a call of `act`, and what it led to as the result."""
    world.reset()
    events: list[Call | Result] = []
    for action in world.walkthrough:
        seen = world.step(action)
        events.append(Call("act", {"action": action}))
        events.append(Result(len(events), "act", seen.text, failed=not seen.valid))
    return Transcript(tuple(events))


def hold(app: Any, user: AgendaUser) -> dict[str, Any]:
    """Hold one task: the guide gives it, and answers what the agent asks on the way."""
    thread: Any = {"configurable": {"thread_id": "house"}}
    state = app.invoke({"messages": [("user", asyncio.run(user.aspeak(())))]}, thread)
    while "__interrupt__" in state and (said := asyncio.run(user.aspeak(spoken(state)))) is not None:
        state = app.invoke(Command(resume=said), thread)
    return dict(state)


def spoken(state: dict[str, Any]) -> list[Message]:
    """What agent and guide said."""
    return [event for event in read_transcript(state["messages"]).events if isinstance(event, Message)]


def show(who: str, world: TextWorldEnvironment, transcript: Transcript) -> None:
    """Print what was done, and how far it got."""
    calls = [call.arguments["action"] for _, call in transcript.calls()]
    invalid = sum(getattr(event, "failed", False) for event in transcript.events)
    measured = score(quest(world), transcript)
    print(f"{who}: {len(calls)} actions, {invalid} refused, score {world.score:g} of {world.max_score:g}")
    print(f"  progress {measured.progress_rate:.0%}: {', '.join(calls)}")


def main(model: str = "offline", seed: int = 7) -> None:
    """Make a game; let one play who knows the way, then an agent."""
    with tempfile.TemporaryDirectory() as folder:
        game = make_text_game(folder, seed=seed)
        with TextWorldEnvironment(game, show_objective=False) as world:
            show("walkthrough", world, walk(world))
            app = create_respact_agent(
                model, strategy=ReSpAct(environment=world, max_steps=30), checkpointer=MemorySaver()
            )
            state = hold(app, AgendaUser(guide(world), seed=seed))
            for said in spoken(state):
                print(f"  {said.speaker}: {said.text}")
            show("agent", world, read_transcript(state["messages"]))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0] if given else "offline", int(given[1]) if len(given) > 1 else 7)
