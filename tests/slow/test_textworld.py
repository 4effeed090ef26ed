"""The text adventure of the examples: who knows the way wins, and an agent's way is measured on it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("textworld"), reason='needs pip install "arq_graph[textworld]"'),
]


@pytest.mark.parametrize("seed", ["2", "7"])
def test_the_example_plays_and_measures(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.textworld.text_adventure", "offline", seed],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    walked, way, *_, agent, progress = done.stdout.splitlines()
    assert walked.startswith("walkthrough: ")
    assert " 0 refused" in walked
    assert way.strip().startswith("progress 100%")
    assert agent.startswith("agent: ")
    assert progress.strip().startswith("progress ")


def test_a_won_game_is_told_and_what_is_no_action_never_reaches_it(tmp_path: Path) -> None:
    from examples.textworld.environment import TextWorldEnvironment, make_text_game

    game = make_text_game(tmp_path, seed=11, rooms=3, objects=6, quest_length=4)
    with TextWorldEnvironment(game) as world:
        assert world.objective in world.reset()
        for action in world.walkthrough:
            refused = [world.step(other) for other in ("quit", "restart", "save", "tw-print-state", "")]
            assert not any(seen.valid for seen in refused) and not world.done
            seen = world.step(f"  {action.upper()}\n")
            assert seen.valid
        assert (world.done, world.won, world.score) == (True, True, world.max_score)
        assert world.actions() == ()
