"""Experiments on the library's own suites: killed and resumed, or replayed, with the same figures."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def make_command(folder: Path, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", "arq_graph", "experiment", *arguments]
    return [*command, "--record", str(folder)]


def run_experiment(folder: Path, *arguments: str) -> Any:
    """Return the figures that the command writes."""
    ended = subprocess.run(make_command(folder, *arguments), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "No evidence: the agent's model was a fake." in " ".join(ended.stdout.split())
    (figures,) = folder.glob("*.json")
    return json.loads(figures.read_text())


def without_times(figures: Any) -> Any:
    for conversation in figures["report"]["conversations"]:
        del conversation["turn_seconds"]
    return figures


def test_the_guideline_suite_is_recorded_and_replayed(tmp_path: Path) -> None:
    arms = ("guidelines", "--arms", "direct", "--only", "tool results", "--only", "repeated calls")
    recorded = run_experiment(tmp_path / "recorded", *arms, "--model", "offline")
    conversations = recorded["report"]["conversations"]
    assert len({record["scenario"] for record in conversations}) >= 8
    assert {record["ended"] for record in conversations} == {"user"}
    titles = [table["title"] for table in recorded["tables"]]
    assert titles[:2] == ["goal completion", "goal completion by category"]
    replayed = run_experiment(tmp_path / "replayed", *arms, "--replay", str(tmp_path / "recorded"))
    assert without_times(replayed) == without_times(recorded)


def test_a_killed_experiment_resumes_to_the_same_figures(tmp_path: Path) -> None:
    arms = ("household", "--arms", "react,respact", "--model", "offline", "--concurrency", "2")
    uninterrupted = run_experiment(tmp_path / "whole", *arms)
    results = tmp_path / "parts" / "household.results.jsonl"
    process = subprocess.Popen(
        make_command(tmp_path / "parts", *arms), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not (results.exists() and results.read_bytes().count(b"\n") > 20):
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    process.kill()
    assert process.wait() != 0
    resumed = run_experiment(tmp_path / "parts", *arms, "--resume")
    assert without_times(resumed) == without_times(uninterrupted)
