"""An episode in a world: playing it to the end, and the record of it that a milestone graph measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage

from arq_graph.agent.environment import Environment, Observation
from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Call, Event, Result, Transcript
from arq_graph.milestones.transcripts.messages import read_messages
from arq_graph.nodes.speaking.move_schema import ACT


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """One action and what the world showed for it.

    Args:
        action: The action, as it was chosen.
        observation: What it led to.
    """

    action: str
    observation: Observation


@dataclass(frozen=True)
class Episode:
    """One time through a world, or the part of it that was played so far.

    Args:
        beginning: The first observation.
        steps: The actions taken, those that the world refused included, in order.
    """

    beginning: str
    steps: tuple[EpisodeStep, ...] = ()

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that were chosen, in order."""
        return tuple(step.action for step in self.steps)

    @property
    def invalid(self) -> int:
        """How many actions the world refused (ReSpAct, C.1)."""
        return sum(not step.observation.valid for step in self.steps)

    @property
    def done(self) -> bool:
        """Whether the task has ended, reached or not."""
        return bool(self.steps) and self.steps[-1].observation.done

    @property
    def score(self) -> float | None:
        """How well it went, on the world's own scale; None where nothing was done or the world keeps no score."""
        return self.steps[-1].observation.score if self.steps else None


Player = Callable[[Episode, Sequence[str] | None], str | None]
"""Chooses the next action from what happened so far and the actions that are possible now (None: any text may be
one); None gives up."""


def play_episode(
    environment: Environment, player: Player, *, max_steps: int = 50, seed: int | None = None
) -> Episode:
    """Play a world from its beginning until it has ended, the player gives up, or the steps are spent.

    Args:
        environment: The world; it is reset first, and not closed.
        player: Who chooses the actions.
        max_steps: How many actions may be taken, refused ones included; 1 or more.
        seed: What `reset` is given.

    Raises:
        InputError: `max_steps` is below 1, or the player gave something that is no text.
    """
    if max_steps < 1:
        raise InputError(f"max_steps is {max_steps}: an episode takes 1 or more")
    episode = Episode(environment.reset(seed))
    while not environment.done and len(episode.steps) < max_steps:
        action = player(episode, environment.actions())
        if action is None:
            break
        if not isinstance(action, str):
            raise InputError(f"the player gave a {type(action).__name__}: an action is a text, None gives up")
        step = EpisodeStep(action, environment.step(action))
        episode = replace(episode, steps=(*episode.steps, step))
    return episode


def episode_transcript(
    episode: Episode | Mapping[str, Any] | Iterable[BaseMessage],
    *,
    id: str = "",
    task: str | None = None,
    by_verb: bool = False,
) -> Transcript:
    """The record of an episode as a milestone graph measures it: each action a call, what it led to its result.

    An action is a call of `act` with the argument `action`; one that the world refused is a failed call, which serves
    no milestone. What was said between agent and user stands where it was said. `extra` holds `score`, `done` and
    `invalid` where they are known.

    Args:
        episode: An `Episode`; or what an agent made with `environment=` returned, its state or its messages alone.
        id: The transcript's id.
        task: The task that it was a run of, where one was played several times.
        by_verb: Let an action be a call of its first word (`open`, `take`) instead of `act`.

    Raises:
        InputError: Nothing happened in it, or it holds no messages.
    """
    if isinstance(episode, Episode):
        world: Any = episode
        events = tuple(_events(episode))
    else:
        state: Mapping[str, Any] = episode if isinstance(episode, Mapping) else {"messages": episode}
        if "messages" not in state:
            raise InputError("the episode's state has no `messages`: give what the agent returned")
        worlds: Any = state.get("world") or [None]
        world = worlds[-1]
        events = read_messages(state["messages"]).events
    if by_verb:
        events = _by_verb(events)
    known = {name: _of(world, name) for name in ("score", "done", "invalid")} if world is not None else {}
    beginning = _of(world, "beginning") or ""
    return Transcript(events, id=id, task=task, instructions=beginning, extra=known)


def _events(episode: Episode) -> Iterable[Event]:
    for number, (action, seen) in enumerate((step.action, step.observation) for step in episode.steps):
        yield Call(ACT, {"action": action}, step=number)
        yield Result(2 * number + 1, ACT, seen.text, failed=not seen.valid, step=number)


def _by_verb(events: Sequence[Event]) -> tuple[Event, ...]:
    verbs: dict[int, str] = {}
    renamed: list[Event] = []
    for number, event in enumerate(events, start=1):
        if isinstance(event, Call) and event.tool == ACT:
            words = str(event.arguments.get("action", "")).split()
            verbs[number] = words[0].lower() if words else ACT
            event = replace(event, tool=verbs[number])
        elif isinstance(event, Result) and event.call in verbs:
            event = replace(event, tool=verbs[event.call])
        renamed.append(event)
    return tuple(renamed)


def _of(world: Any, name: str) -> Any:
    return world.get(name) if isinstance(world, Mapping) else getattr(world, name, None)
