"""Processes that are killed: what was committed is neither lost nor done again, and what hangs does not stay."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph.milestones import read_report
from tests.slow.killed import ORDERS, SAVED_INPUT, THREAD, turn_app

pytestmark = pytest.mark.slow

KILLS = 12
ROOT = Path(__file__).parent.parent.parent


def started(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "COLUMNS": "200"},
        # A process in the background would not hear Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def undisturbed(*arguments: str | Path, cwd: Path = ROOT) -> list[str]:
    """The lines of a process that works to its end."""
    with started(*arguments, cwd=cwd) as process:
        output, errors = process.communicate("")
    assert process.returncode == 0, errors
    return output.splitlines()


def stopped(
    after: int, *arguments: str | Path, how: signal.Signals = signal.SIGKILL, cwd: Path = ROOT
) -> tuple[list[str], str]:
    """The lines of a process until it was stopped after so many, and what it said on its stderr."""
    lines = []
    with started(*arguments, cwd=cwd) as process:
        assert process.stdin and process.stdout and process.stderr
        for line in process.stdout:
            lines.append(line.strip())
            if len(lines) == after:
                break
            with suppress(BrokenPipeError):
                os.write(process.stdin.fileno(), b"\n")
        process.send_signal(how)
        lines += [line.strip() for line in process.stdout]
        said = process.stderr.read()
    assert process.returncode in (-how, 130), said
    return lines, said


def saved(database: Path, log: Path) -> tuple[Any, set[str]]:
    """The thread, and the calls whose results are saved: in its messages, or beside them until the step is done."""
    with SqliteSaver.from_conn_string(str(database)) as saver:
        snapshot = turn_app(log, saver).get_state(THREAD)
        kept = saver.get_tuple(THREAD)
    written = [value for _, channel, value in (kept and kept.pending_writes) or () if channel == "messages"]
    lists = [value if isinstance(value, list) else [value] for value in written]
    messages = [*snapshot.values.get("messages", ()), *(message for each in lists for message in each)]
    return snapshot, {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


def test_a_turn_killed_at_any_moment_loses_nothing_and_repeats_nothing_committed(tmp_path: Path) -> None:
    database, log = tmp_path / "threads.sqlite", tmp_path / "tools.log"
    process = ("tests.slow.killed", "turn", database, log)
    marks = undisturbed(*process, "Where are my orders?")
    assert marks.count("tool took effect") == len(ORDERS)
    chance, told, fell = random.Random(5), ["Where are my orders?"], Counter[str]()
    for kill in range(KILLS):
        _, committed = saved(database, log)
        before = Counter(log.read_text().split())
        # First it finishes the turn that was killed, then it takes up the new message.
        seen, _ = stopped(chance.randint(5, len(marks)), *process, f"And now? ({kill})")
        told += [f"And now? ({kill})"] if SAVED_INPUT in seen else []
        fell[seen[-1]] += 1
        after = Counter(log.read_text().split())
        assert all(after[call] == before[call] for call in committed), "a committed result was made again"
    undisturbed(*process)
    thread, _ = saved(database, log)
    assert not thread.tasks
    messages = thread.values["messages"]
    assert [message.text for message in messages if message.type == "human"] == told
    calls = [call["id"] for each in messages if isinstance(each, AIMessage) for call in each.tool_calls]
    results = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    assert sorted(results) == sorted(calls) == sorted(set(calls))
    assert len(calls) == len(ORDERS) * len(told)
    assert len(told) > KILLS / 3 and len(fell) >= 4, f"the kills fell on the same few moments: {fell}"


def test_an_evaluation_killed_again_and_again_holds_each_conversation_once(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    chance, began = random.Random(5), Counter[str]()
    process = ("tests.slow.killed", "evaluation", file)
    for _ in range(2):
        began.update(stopped(chance.randint(20, 60), *process)[0])
    began.update(undisturbed(*process))
    assert len(began) == 5 * 2 * 20
    assert began.total() - len(began) <= 2 * 8, "more was held again than was under way"
    report = read_report(file.with_suffix(".report.json"))
    held = Counter((one.arm, one.scenario, one.run) for one in report.conversations)
    assert set(held.values()) == {1}
    assert (len(held), report.missing) == (len(began), 0)
    assert report.summary.arms["a"].goal_completion.count == len(began) / 4


CHECK = """
import sys


def began(event, earlier):
    if not earlier:
        print("began", event.text, flush=True)
        sys.stdin.readline()
    return "thank" in getattr(event, "text", "").lower()
"""
GRAPH = """
milestones:
- {name: Start, type: NFC}
- {name: thanked, type: NFC, check: "began_check:began", dependencies: [Start]}
- {name: find, type: FC, dependencies: [Start]}
- {name: End, type: NFC, dependencies: [thanked, find]}
"""


def write_shop(folder: Path, chance: random.Random) -> None:
    (folder / "began_check.py").write_text(CHECK)
    (folder / "shop.yaml").write_text(GRAPH)
    lines = []
    for number in range(60):
        call = {"id": "1", "function": {"name": chance.choice(["find", "buy"]), "arguments": "{}"}}
        messages = [
            {"role": "user", "content": str(number)},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "ü" * chance.randrange(99)},
            {"role": "assistant", "content": chance.choice(["Thank you.", "No lamps."])},
        ]
        broken = chance.random() < 0.1
        lines.append('{"messages": [{"role": "user"' if broken else json.dumps({"messages": messages}))
    (folder / "chats.jsonl").write_text("\n".join(lines))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_scoring_that_is_stopped_reports_what_an_unstopped_one_does(
    tmp_path: Path, how: signal.Signals
) -> None:
    chance = random.Random(7)
    write_shop(tmp_path, chance)
    command = ("arq_graph.cli", "score", "chats.jsonl", "--milestones", "shop.yaml", "--json")

    def scored(lines: list[str]) -> list[str]:
        return [line for line in lines if line.startswith("began")]

    every = scored(undisturbed(*command, "unstopped.json", cwd=tmp_path))
    began = Counter[str]()
    for _ in range(2):
        lines, said = stopped(chance.randint(5, 15), *command, "out.json", how=how, cwd=tmp_path)
        began.update(scored(lines))
        assert not (tmp_path / "out.json").exists()
        assert how == signal.SIGKILL or "the same command goes on from there" in said
    began.update(scored(undisturbed(*command, "out.json", cwd=tmp_path)))
    assert began.keys() == set(every)
    assert began.total() - len(every) <= 2, "more was scored again than was under way"
    assert (tmp_path / "out.json").read_text() == (tmp_path / "unstopped.json").read_text()


@pytest.mark.parametrize("what", ["app", "tool"])
def test_conversations_that_hang_end_at_their_limit_and_the_program_ends_too(
    tmp_path: Path, what: str
) -> None:
    undisturbed("tests.slow.killed", "hanging", what, tmp_path / "report.json")
    assert read_report(tmp_path / "report.json").summary.arms["hangs"].ended == {"seconds": 40}
