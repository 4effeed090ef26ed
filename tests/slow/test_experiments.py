"""Experiments on the library's own suites: to the end, killed and gone on with, and replayed, with the same figures."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def experiment(folder: Path, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", "arq_graph", "experiment", *arguments]
    return [*command, "--record", str(folder)]


def done(folder: Path, *arguments: str) -> Any:
    """What a command writes as its figures."""
    ended = subprocess.run(experiment(folder, *arguments), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "No evidence: the agent's model was a stand-in." in " ".join(ended.stdout.split())
    (figures,) = folder.glob("*.json")
    return json.loads(figures.read_text())


def without_times(figures: Any) -> Any:
    for conversation in figures["report"]["conversations"]:
        del conversation["turn_seconds"]
    return figures


def test_the_guideline_suite_is_held_and_replayed(tmp_path: Path) -> None:
    arms = ("guidelines", "--arms", "direct")
    held = done(tmp_path / "held", *arms, "--model", "offline")
    conversations = held["report"]["conversations"]
    assert len({one["scenario"] for one in conversations}) >= 120
    assert {one["ended"] for one in conversations} == {"user"}
    titles = [table["title"] for table in held["tables"]]
    assert titles[:2] == ["goal completion", "goal completion by category"]
    published = {row["name"]: row["cells"] for row in held["tables"][0]["rows"]}
    assert published["published"] == ["", "81.54%"]
    replayed = done(tmp_path / "replayed", *arms, "--replay", str(tmp_path / "held"))
    assert without_times(replayed) == without_times(held)


def test_an_experiment_that_was_killed_goes_on_and_comes_to_the_same(tmp_path: Path) -> None:
    arms = ("household", "--arms", "react,respact", "--model", "offline", "--concurrency", "2")
    whole = done(tmp_path / "whole", *arms)
    results = tmp_path / "parts" / "household.results.jsonl"
    process = subprocess.Popen(
        experiment(tmp_path / "parts", *arms), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not (results.exists() and results.read_bytes().count(b"\n") > 20):
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    process.kill()
    assert process.wait() != 0
    parts = done(tmp_path / "parts", *arms, "--resume")
    assert without_times(parts) == without_times(whole)
