"""Players of text games, and the way that wins as a milestone graph."""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib.util import find_spec

import pytest

from arq_graph.milestones import MilestoneGraph
from examples.textworld.environment import TextWorldEnvironment
from examples.textworld.episode import Player

NEEDS_TEXTWORLD = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Game .* is not fully supported"),  # said of every game that is made
    pytest.mark.skipif(
        not find_spec("textworld"), reason='needs a package of its own: pip install "arq_graph[textworld]"'
    ),
]


def follows(actions: Sequence[str]) -> Player:
    return lambda episode, _: actions[len(episode.steps)] if len(episode.steps) < len(actions) else None


def wanders(seed: int) -> Player:
    chance = random.Random(seed)
    return lambda _, possible: chance.choice(list(possible or ["look"]))


def walkthrough_graph(world: TextWorldEnvironment) -> MilestoneGraph:
    return MilestoneGraph.from_actions(
        [{"tool": "act", "arguments": {"action": action}} for action in world.walkthrough]
    )
