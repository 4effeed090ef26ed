"""Runs of `arq-graph score` that are killed or interrupted: nothing is lost, and nothing is scored twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.interrupting import hears_ctrl_c
from tests.slow.killed_score import write_shop

pytestmark = pytest.mark.slow

COUNT = 120
KILLS = 7
JUDGE = ["--judge", "offline", "--concurrency", "4"]


class Run:
    """The command in a folder, as often as needed."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        self.folder = folder
        self.options = options

    def start(self, out: str = "out.json") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "arq_graph.cli", "score", "chats.jsonl", "--milestones", "shop.yaml"]
        return subprocess.Popen(
            [*command, "--json", out, *self.options],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
            preexec_fn=hears_ctrl_c,
        )

    def undisturbed(self, out: str = "out.json") -> list[int]:
        """Which conversations were scored in a run to its end."""
        with self.start(out) as process:
            output, errors = process.communicate("")
        assert process.returncode == 0, errors
        return began(output.splitlines())

    def stopped(self, after: int, moment: float, how: signal.Signals) -> tuple[list[int], str]:
        """Stop a run a moment after so many conversations began; which began, and what was said.

        Args:
            after: How many conversations.
            moment: Seconds that pass while it runs freely; 0: it is stopped while it waits.
            how: By which signal.
        """
        lines: list[str] = []
        with self.start() as process:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            for line in process.stdout:
                lines.append(line)
                if len(began(lines)) >= after:
                    break
                with suppress(BrokenPipeError):
                    os.write(process.stdin.fileno(), b"\n")
            if moment:
                with suppress(BrokenPipeError):
                    os.write(process.stdin.fileno(), b"\n" * COUNT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(moment)
            process.send_signal(how)
            lines += process.stdout
            said = process.stderr.read()
        assert process.returncode in (0, -how, 130), said
        return began(lines), said

    def kept(self) -> set[int]:
        """The records whose results are whole on disk."""
        file = self.folder / "out.json.partial.jsonl"
        if not file.exists():
            return set()
        whole = file.read_bytes().rpartition(b"\n")[0].splitlines()[1:]
        return {json.loads(line)["record"] for line in whole}

    def report(self, out: str = "out.json") -> str:
        return (self.folder / out).read_text(encoding="utf-8")


def began(lines: list[str]) -> list[int]:
    return [int(line.split()[1]) for line in lines if line.startswith("began")]


@pytest.mark.parametrize("options", [[], JUDGE], ids=["by code", "with a judge"])
def test_a_run_killed_again_and_again_reports_what_an_unkilled_one_does(tmp_path, options):
    chance = random.Random(7)
    write_shop(tmp_path, COUNT, chance)
    run = Run(tmp_path, options)
    every = run.undisturbed("unkilled.json")
    assert len(every) > COUNT / 2
    at_once = 4 if options else 1

    killed = 0
    for _ in range(KILLS):
        if (tmp_path / "out.json").exists():
            break
        before = run.kept()
        left = len(set(every) - before)
        moment = chance.choice([0.0, chance.uniform(0.0, 0.005)])
        scored, _ = run.stopped(chance.randint(1, max(1, left // 4)), moment, signal.SIGKILL)
        assert not before & set(scored), "a result that was kept was scored again"
        assert len(scored) == len(set(scored))
        if (tmp_path / "out.json").exists():
            break
        killed += 1
        after = run.kept()
        assert before <= after, "a result that was kept is lost"
        assert len(set(scored) - after) <= at_once, "more is lost than was under way"
    print(f"{killed} kills of a run over {COUNT} records")
    assert killed >= 3

    if not (tmp_path / "out.json").exists():
        before = run.kept()
        assert set(run.undisturbed()) == set(every) - before
    assert run.report() == run.report("unkilled.json")
    assert not (tmp_path / "out.json.partial.jsonl").exists()


@pytest.mark.parametrize("options", [[], JUDGE], ids=["by code", "with a judge"])
def test_ctrl_c_leaves_says_how_to_go_on_and_loses_nothing(tmp_path, options):
    write_shop(tmp_path, COUNT, random.Random(3))
    run = Run(tmp_path, options)
    every = run.undisturbed("unkilled.json")
    with run.start() as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if len(began(lines)) == 20:
                break
            os.write(process.stdin.fileno(), b"\n")
        process.send_signal(signal.SIGINT)
        lines += process.stdout
        said = process.stderr.read()
    assert process.returncode == 130
    assert "Interrupted." in said
    assert "out.json.partial.jsonl: the same command goes on from there" in said
    kept = run.kept()
    assert len(kept & set(every)) >= 20 - (4 if options else 1)
    assert set(run.undisturbed()) == set(every) - kept
    assert run.report() == run.report("unkilled.json")
