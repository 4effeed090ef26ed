"""Killed processes: committed work is neither lost nor repeated, and hanging conversations end."""

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
from tests.slow.killable import ORDERS, SAVED_INPUT, THREAD, make_app, make_journey_app

pytestmark = pytest.mark.slow

KILLS = 8
ROOT = Path(__file__).parent.parent.parent


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.slow.killable", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
        # A process in the background would not hear Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def run_to_end(*arguments: str | Path) -> list[str]:
    """Return the lines of a process that is not disturbed."""
    with start(*arguments) as process:
        output, errors = process.communicate("")
    assert process.returncode == 0, errors
    return output.splitlines()


def stop_after(count: int, *arguments: str | Path, how: signal.Signals = signal.SIGKILL) -> list[str]:
    """Return the lines of a process that is stopped when it has printed so many."""
    lines = []
    with start(*arguments) as process:
        assert process.stdin and process.stdout and process.stderr
        for line in process.stdout:
            lines.append(line.strip())
            if len(lines) == count:
                break
            with suppress(BrokenPipeError):
                os.write(process.stdin.fileno(), b"\n")
        process.send_signal(how)
        lines += [line.strip() for line in process.stdout]
        errors = process.stderr.read()
    assert process.returncode == -how, errors
    return lines


def read_thread(database: Path, log: Path) -> tuple[Any, set[str]]:
    """Return the thread, and the ids of the calls with a saved result: in a message, or in a pending write."""
    with SqliteSaver.from_conn_string(str(database)) as saver:
        snapshot = make_app(log, saver).get_state(THREAD)
        checkpoint = saver.get_tuple(THREAD)
    messages = list(snapshot.values.get("messages", ()))
    pending_writes = (checkpoint and checkpoint.pending_writes) or ()
    for _, channel, value in pending_writes:
        if channel == "messages":
            messages += value if isinstance(value, list) else [value]
    return snapshot, {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


def test_a_turn_killed_at_any_moment_loses_nothing_and_repeats_nothing_committed(tmp_path: Path) -> None:
    database, log = tmp_path / "threads.sqlite", tmp_path / "tools.log"
    program = ("turn", database, log)
    marks = run_to_end(*program, "Where are my orders?")
    assert marks.count("tool took effect") == len(ORDERS)
    random_source = random.Random(5)
    expected_texts = ["Where are my orders?"]
    last_marks = Counter[str]()
    for kill in range(KILLS):
        _, committed = read_thread(database, log)
        runs_before = Counter(log.read_text().split())
        # The process finishes the killed turn first, then it takes the new message.
        text = f"And now? ({kill})"
        printed = stop_after(random_source.randint(5, len(marks)), *program, text)
        if SAVED_INPUT in printed:
            expected_texts.append(text)
        last_marks[printed[-1]] += 1
        runs_after = Counter(log.read_text().split())
        assert all(runs_after[call] == runs_before[call] for call in committed), "a committed call ran again"
    run_to_end(*program)
    thread, _ = read_thread(database, log)
    assert not thread.tasks
    messages = thread.values["messages"]
    assert [message.text for message in messages if message.type == "human"] == expected_texts
    calls: list[Any] = []
    for message in messages:
        if isinstance(message, AIMessage):
            calls += [call["id"] for call in message.tool_calls]
    results = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    assert sorted(results) == sorted(calls) == sorted(set(calls))
    assert len(calls) == len(ORDERS) * len(expected_texts)
    (summary,) = thread.values["summaries"]
    assert summary["points"] and len(messages) / 2 < summary["line_count"] < len(messages)
    assert len(expected_texts) > KILLS / 3, "most kills came before the input was saved"
    assert len(last_marks) >= 4, f"the kills fell on the same few moments: {last_marks}"


def test_a_journey_killed_in_any_step_goes_on_where_it_was(tmp_path: Path) -> None:
    marks = run_to_end("journey", tmp_path / "whole.sqlite", tmp_path / "whole.log", "It is broken.")
    first_kill = marks.index("tool begins") - 6
    for kill in random.Random(7).sample(range(first_kill, len(marks)), 2):
        database, log = tmp_path / f"{kill}.sqlite", tmp_path / f"{kill}.log"
        log.touch()
        program = ("journey", database, log)
        stop_after(kill, *program, "It is broken.")
        run_to_end(*program)
        run_to_end(*program, "Thanks.")
        with SqliteSaver.from_conn_string(str(database)) as saver:
            state = make_journey_app(log, saver).get_state(THREAD).values
        ((journey,),) = [record["journeys"] for record in state["journeys"]]
        assert [journey["state"], *(step["state"] for step in journey["steps"])] == ["done"] * 4
        results = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
        assert results == ["ORD-1 is broken", "refunded ORD-1"]
        # A tool that was killed before its result was saved may run again, in the same call.
        assert len(set(log.read_text().split())) == 1


@pytest.mark.parametrize(
    ("program", "how"),
    [("workers", signal.SIGKILL), ("workers", signal.SIGINT), ("evaluation", signal.SIGINT)],
    ids=["workers, killed", "workers, Ctrl-C", "evaluation, Ctrl-C"],
)
def test_an_evaluation_that_is_stopped_twice_runs_each_conversation_once(
    tmp_path: Path, how: signal.Signals, program: str
) -> None:
    file = tmp_path / "results.jsonl"
    random_source, started = random.Random(5), Counter[str]()
    for _ in range(2):
        # The output ends when the last worker has ended.
        started.update(filter(None, stop_after(random_source.randint(20, 60), program, file, how=how)))
    started.update(filter(None, run_to_end(program, file)))
    assert len(started) == 5 * 2 * 20
    assert started.total() - len(started) <= 2 * 8, "more conversations were repeated than were running"
    report = read_report(file.with_suffix(".report.json"))
    finished = Counter((record.arm, record.scenario, record.run) for record in report.conversations)
    assert set(finished.values()) == {1}
    assert (len(finished), report.missing) == (len(started), 0)
    assert report.summary.arms["a"].goal_completion.count == len(started) / 4


def test_conversations_that_hang_end_at_their_limit_and_the_program_ends_too(tmp_path: Path) -> None:
    run_to_end("hanging", tmp_path / "report.json")
    assert read_report(tmp_path / "report.json").summary.arms["hangs"].ended == {"seconds": 40}
