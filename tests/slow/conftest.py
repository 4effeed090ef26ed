"""TextWorld's games, made once for all tests that play them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.textworld.environment import TextWorldEnvironment, make_text_game

# Seed, rooms, objects, quest length.
GAMES = [(1, 1, 3, 2), (2, 3, 6, 4), (3, 5, 10, 6), (11, 3, 6, 4)]


@pytest.fixture(scope="session")
def games(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("games")
    return [
        make_text_game(folder, seed=seed, rooms=rooms, objects=objects, quest_length=length)
        for seed, rooms, objects, length in GAMES
    ]


@pytest.fixture(params=range(len(GAMES)), ids=[f"{rooms} rooms, seed {seed}" for seed, rooms, *_ in GAMES])
def world(request: pytest.FixtureRequest, games: list[Path]) -> Iterator[TextWorldEnvironment]:
    with TextWorldEnvironment(games[request.param]) as opened:
        yield opened


@pytest.fixture
def house(games: list[Path]) -> Iterator[TextWorldEnvironment]:
    """The last of the games, in which something is unlocked."""
    with TextWorldEnvironment(games[-1]) as opened:
        yield opened
