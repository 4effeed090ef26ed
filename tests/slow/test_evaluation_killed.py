"""A run of 500 conversations that is killed again and again: 500 results, each once, and none held twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from arq_graph.milestones.reports.report import read_report

pytestmark = pytest.mark.slow

RUNS = 50
COUNT = 5 * 2 * RUNS
KILLS = 5
AT_ONCE = 8
_ROOT = Path(__file__).parent.parent.parent


def start(file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.slow.killed_evaluation", str(file), str(RUNS)]
    return subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def keys(file: Path) -> list[tuple[str, str, int]]:
    """The conversations whose lines are whole."""
    if not file.exists():
        return []
    whole = file.read_bytes().rpartition(b"\n")[0].splitlines()
    about = [json.loads(line)["arq_graph"] for line in whole]
    about = [one for one in about if not isinstance(one, str)]
    return [(one["arm"], one["scenario"], one["run"]) for one in about]


def began(line: str) -> tuple[str, str, int]:
    scenario, arm, run, _ = line.removeprefix("began ").split(" / ")
    return arm, scenario, int(run)


def test_500_conversations_killed_five_times_are_500_results_each_once(tmp_path):
    file = tmp_path / "results.jsonl"
    chance = random.Random(5)
    for _ in range(KILLS):
        before = set(keys(file))
        after = chance.randint(30, 110)
        lines: list[str] = []
        with start(file) as process:
            assert process.stdout
            for line in process.stdout:
                lines.append(line)
                if len(lines) >= after:
                    break
            process.send_signal(signal.SIGKILL)
            lines += process.stdout
        assert process.returncode == -signal.SIGKILL
        held = [began(line) for line in lines if line.endswith("\n")]
        assert not before & set(held), "what was kept was held again"
        kept = set(keys(file))
        assert before <= kept
        assert len(set(held) - kept) <= AT_ONCE, "more is lost than was under way"
    assert 0 < len(set(keys(file))) < COUNT
    with start(file) as process:
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    counted = Counter(keys(file))
    assert len(counted) == COUNT
    assert set(counted.values()) == {1}
    report = read_report(file.with_suffix(".report.json"))
    assert len(report.conversations) == COUNT
    assert report.missing == 0
    assert report.summary.arms["a"].goal_completion.count == COUNT / 4
    assert report.summary.comparisons[0].comparison.overall.pairs == COUNT / 2
