"""Processes that are killed: what was committed is neither lost nor done again, and what hangs does not stay."""

from __future__ import annotations

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
from tests.slow.killable import ORDERS, SAVED_INPUT, THREAD, turn_app

pytestmark = pytest.mark.slow

KILLS = 12
ROOT = Path(__file__).parent.parent.parent


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
        # A process in the background would not hear Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def undisturbed(*arguments: str | Path) -> list[str]:
    """The lines of a process that works to its end."""
    with started(*arguments) as process:
        output, errors = process.communicate("")
    assert process.returncode == 0, errors
    return output.splitlines()


def stopped(after: int, *arguments: str | Path, how: signal.Signals = signal.SIGKILL) -> list[str]:
    """The lines of a process until it was stopped after so many."""
    lines = []
    with started(*arguments) as process:
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
    assert process.returncode == -how, said
    return lines


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
    process = ("tests.slow.killable", "turn", database, log)
    marks = undisturbed(*process, "Where are my orders?")
    assert marks.count("tool took effect") == len(ORDERS)
    chance, told, fell = random.Random(5), ["Where are my orders?"], Counter[str]()
    for kill in range(KILLS):
        _, committed = saved(database, log)
        before = Counter(log.read_text().split())
        # First it finishes the turn that was killed, then it takes up the new message.
        seen = stopped(chance.randint(5, len(marks)), *process, f"And now? ({kill})")
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


@pytest.mark.parametrize("held_by", ["evaluation", "workers"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_an_evaluation_stopped_again_and_again_holds_each_conversation_once(
    tmp_path: Path, how: signal.Signals, held_by: str
) -> None:
    file = tmp_path / "results.jsonl"
    chance, began = random.Random(5), Counter[str]()
    process = ("tests.slow.killable", held_by, file)
    for _ in range(2):
        # What it prints ends when the last of its workers has ended.
        began.update(filter(None, stopped(chance.randint(20, 60), *process, how=how)))
    began.update(filter(None, undisturbed(*process)))
    assert len(began) == 5 * 2 * 20
    assert began.total() - len(began) <= 2 * 8, "more was held again than was under way"
    report = read_report(file.with_suffix(".report.json"))
    held = Counter((one.arm, one.scenario, one.run) for one in report.conversations)
    assert set(held.values()) == {1}
    assert (len(held), report.missing) == (len(began), 0)
    assert report.summary.arms["a"].goal_completion.count == len(began) / 4


def test_conversations_that_hang_end_at_their_limit_and_the_program_ends_too(tmp_path: Path) -> None:
    undisturbed("tests.slow.killable", "hanging", tmp_path / "report.json")
    assert read_report(tmp_path / "report.json").summary.arms["hangs"].ended == {"seconds": 40}
