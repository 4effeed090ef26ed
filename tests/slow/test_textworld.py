"""TextWorld's games, made here: what a policy that knows the way wins, and what nobody can break."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arq_graph.agent.environment import Environment
from arq_graph.errors import InputError
from arq_graph.milestones import score
from examples.textworld.environment import TextWorldEnvironment, make_text_game
from examples.textworld.episode import Episode, episode_transcript, play_episode
from tests.slow.playing import NEEDS_TEXTWORLD, follows, walkthrough_graph, wanders

pytestmark = NEEDS_TEXTWORLD


def test_the_same_numbers_make_the_same_game(games: list[Path], tmp_path: Path) -> None:
    again = make_text_game(tmp_path, seed=2, rooms=3, objects=6, quest_length=4)
    for made in (again, again.with_suffix(".json")):
        assert made.read_bytes() == (games[1].parent / made.name).read_bytes()
    assert games[1].read_bytes() != games[-1].read_bytes()


def test_a_policy_that_knows_the_way_wins(world: TextWorldEnvironment) -> None:
    assert isinstance(world, Environment)
    episode = play_episode(world, follows(world.walkthrough))
    assert episode.actions == world.walkthrough
    assert (episode.done, world.won, episode.invalid) == (True, True, 0)
    assert episode.score == world.score == world.max_score
    assert score(walkthrough_graph(world), episode_transcript(episode)).goal_completed is True


def test_half_of_the_way_is_progress_and_no_win(world: TextWorldEnvironment) -> None:
    half = len(world.walkthrough) // 2
    episode = play_episode(world, follows(world.walkthrough[:half]))
    assert (episode.done, world.won) == (False, False)
    measured = score(walkthrough_graph(world), episode_transcript(episode))
    assert measured.progress_rate == half / (len(world.walkthrough) + 1)


def test_the_task_comes_first_and_the_interpreter_shows_nowhere(world: TextWorldEnvironment) -> None:
    episode = play_episode(world, follows(world.walkthrough))
    assert episode.beginning.startswith(world.objective)
    for shown in (episode.beginning, *(step.observation.text for step in episode.steps)):
        assert shown
        assert not any(mark in shown for mark in ("$$", "\n>", "RESTART", "\n\n\n"))


def test_a_task_that_a_person_gives_is_not_shown(games: list[Path]) -> None:
    with TextWorldEnvironment(games[0], show_objective=False) as world:
        assert world.reset().startswith("-=")


def test_who_wanders_is_stopped_and_has_a_score(world: TextWorldEnvironment) -> None:
    for seed in range(3):
        episode = play_episode(world, wanders(seed), max_steps=40)
        assert len(episode.steps) == 40 or episode.done
        assert episode.invalid == 0
        assert episode.score is not None
        assert 0 <= episode.score <= world.max_score


def test_the_same_actions_show_the_same(world: TextWorldEnvironment, games: list[Path]) -> None:
    for seed in range(3):
        first = play_episode(world, wanders(seed), max_steps=40, seed=5)
        assert play_episode(world, follows(first.actions), seed=5) == first
        with TextWorldEnvironment(world._path) as other:
            assert play_episode(other, follows(first.actions), seed=5) == first


def test_two_games_at_once_do_not_touch_each_other(games: list[Path]) -> None:
    alone = [play_alone(game) for game in games]
    worlds = [TextWorldEnvironment(game) for game in games]
    begun = [Episode(world.reset()) for world in worlds]
    shown: list[list[str]] = [[episode.beginning] for episode in begun]
    for number in range(max(len(world.walkthrough) for world in worlds)):
        for world, seen in zip(worlds, shown, strict=True):
            if number < len(world.walkthrough):
                seen.append(world.step(world.walkthrough[number]).text)
    for world in worlds:
        assert world.won
        world.close()
    assert shown == alone


def play_alone(game: Path) -> list[str]:
    with TextWorldEnvironment(game) as world:
        episode = play_episode(world, follows(world.walkthrough))
    return [episode.beginning, *(step.observation.text for step in episode.steps)]


# What the interpreter and TextWorld's own debugging would obey.
NO_ACTIONS = [
    "quit",
    "restart",
    "save",
    "restore",
    "undo",
    "verbose",
    "tw-print-state",
    "actions",
    "purloin all",
    "",
]


def test_nothing_but_the_possible_actions_reaches_the_game(house: TextWorldEnvironment) -> None:
    way = [action for each in house.walkthrough for action in (*NO_ACTIONS, each)]
    episode = play_episode(house, follows(way), max_steps=100)
    plain = play_episode(house, follows(house.walkthrough))
    assert episode.invalid == len(NO_ACTIONS) * len(house.walkthrough)
    assert [step for step in episode.steps if step.observation.valid] == list(plain.steps)
    assert episode.done


def test_case_and_spacing_of_an_action_do_not_matter(house: TextWorldEnvironment) -> None:
    loud = [f"  {action.upper().replace(' ', '   ')}\n" for action in house.walkthrough]
    assert play_episode(house, follows(loud)).invalid == 0
    assert house.won


def test_after_the_end_nothing_is_possible(house: TextWorldEnvironment) -> None:
    play_episode(house, follows(house.walkthrough))
    assert house.actions() == ()
    seen = house.step("look")
    assert (seen.valid, seen.done, seen.score) == (False, True, house.max_score)


def test_a_closed_game_is_opened_again_by_reset(house: TextWorldEnvironment) -> None:
    first = house.reset()
    house.step(house.walkthrough[0])
    house.close()
    house.close()
    with pytest.raises(InputError, match="call reset"):
        house.step("look")
    assert house.actions() == ()
    assert house.reset() == first


@pytest.mark.parametrize("seed", [-1, 2**31, 1.5, True])
def test_a_seed_that_is_none_is_refused(games: list[Path], seed: Any, tmp_path: Path) -> None:
    uses: list[Callable[[], object]] = [
        lambda: TextWorldEnvironment(games[0], seed=seed),
        lambda: TextWorldEnvironment(games[0]).reset(seed),
        lambda: make_text_game(tmp_path, seed=seed),
    ]
    for use in uses:
        with pytest.raises(InputError, match="seed is"):
            use()


@pytest.mark.parametrize(
    "numbers", [{"rooms": 0}, {"objects": -2}, {"quest_length": 0}, {"quest_length": 51}]
)
def test_a_game_that_cannot_be_made_is_refused(numbers: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="from 1 to 50"):
        make_text_game(tmp_path, seed=1, **numbers)


def copied(game: Path, folder: Path) -> Path:
    for file in (game, game.with_suffix(".json")):
        shutil.copy(file, folder)
    return folder / game.name


def test_a_damaged_game_is_told_and_does_not_end_the_process(games: list[Path], tmp_path: Path) -> None:
    game = copied(games[0], tmp_path)
    whole = game.read_bytes()
    chance = random.Random(7)
    damaged = [whole[: chance.randrange(len(whole) - 1000)] for _ in range(10)] + [b"", b"no game"]
    for _ in range(10):
        at = chance.randrange(64, 200_000)
        damaged.append(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
    for story in damaged:
        game.write_bytes(story)
        with pytest.raises(InputError, match=r"damaged|missing"):
            TextWorldEnvironment(game)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"version": 1, "KB": {}}', "\u0000"])
def test_a_description_that_is_none_is_told(games: list[Path], tmp_path: Path, text: str) -> None:
    game = copied(games[0], tmp_path)
    game.with_suffix(".json").write_text(text)
    with pytest.raises(InputError, match="does not describe a game"):
        TextWorldEnvironment(game)


def test_what_is_no_game_is_told(games: list[Path], tmp_path: Path) -> None:
    alone = shutil.copy(games[0], tmp_path / "alone.z8")
    for path, why in [(alone, "alone.json is missing"), (games[0].with_suffix(".json"), "is no game")]:
        with pytest.raises(InputError, match=why):
            TextWorldEnvironment(path)
    with pytest.raises(InputError, match="is missing"):
        TextWorldEnvironment(tmp_path / "none.z8")
