"""A process that is killed in the middle of a turn: nothing that was committed is lost, or done again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import ScriptedChatModel, create_guided_agent
from tests.slow.killed_turn import SAVED_INPUT, agent
from tests.slow.transcripts import assert_whole, said

pytestmark = pytest.mark.slow

KILLS = 20
THREADS = 4


@dataclass
class Shop:
    """Threads in a database, the processes that work on them, and what each of these was seen to do.

    Args:
        folder: Where the database and the tools' log are.
        way: "sync" or "async".
        chance: When processes are killed, and what the customer does then.
    """

    folder: Path
    way: str
    chance: random.Random
    told: dict[str, list[str]] = field(default_factory=dict)
    marks_of_a_turn: int = 0

    @property
    def database(self) -> Path:
        return self.folder / "threads.sqlite"

    @property
    def log(self) -> Path:
        return self.folder / "tools.log"

    def runs(self) -> Counter[str]:
        """How often each call's tool has run."""
        return Counter(self.log.read_text().split()) if self.log.exists() else Counter()

    def process(self, thread: str, action: str, text: str = "") -> subprocess.Popen[str]:
        arguments = [str(self.database), str(self.log), thread, self.way, action, text]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.slow.killed_turn", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
        )

    def undisturbed(self, thread: str, action: str, text: str = "") -> list[str]:
        """Let a process work to its end; gives its marks."""
        with self.process(thread, action, text) as process:
            output, _ = process.communicate("")  # nothing to wait for at any mark
        assert process.returncode == 0
        return output.splitlines()

    def killed(self, thread: str, action: str, text: str = "") -> list[str]:
        """Kill a process a moment after some mark; gives the marks it came to, none if it ended before."""
        last = self.chance.randint(1, self.marks_of_a_turn)
        moment = self.chance.choice([0.0, self.chance.uniform(0.0, 0.004)])
        marks: list[str] = []
        with self.process(thread, action, text) as process:
            assert process.stdout
            for mark in process.stdout:
                marks.append(mark.strip())
                if len(marks) >= last:
                    break
                _go_on(process)
            if moment:
                _go_on(process)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(moment)
            process.kill()
            marks += [mark.strip() for mark in process.stdout]
        assert process.returncode in (0, -signal.SIGKILL), "it failed by itself"
        return marks if process.returncode else []

    def state(self, thread: str) -> Any:
        with SqliteSaver.from_conn_string(str(self.database)) as saver:
            app = create_guided_agent(ScriptedChatModel([]), agent(self.log), checkpointer=saver)
            return app.get_state({"configurable": {"thread_id": thread}})

    def messages(self, thread: str) -> list[AnyMessage]:
        found: list[AnyMessage] = self.state(thread).values.get("messages", [])
        return found

    def committed(self, thread: str) -> set[str]:
        """The calls whose results are saved: in the messages, or beside them until the step is done."""
        with SqliteSaver.from_conn_string(str(self.database)) as saver:
            saved = saver.get_tuple({"configurable": {"thread_id": thread}})
        if saved is None:
            return set()
        values = [value for _, channel, value in saved.pending_writes or () if channel == "messages"]
        values.append(saved.checkpoint["channel_values"].get("messages", []))
        messages = [m for value in values for m in (value if isinstance(value, list) else [value])]
        return {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and m.status == "success"}


def _go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    with suppress(BrokenPipeError):  # it has ended
        os.write(process.stdin.fileno(), b"\n")


@pytest.mark.parametrize("way", ["sync", "async"])
def test_processes_killed_in_mid_turn_lose_nothing_and_repeat_nothing_committed(
    way: str, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, way, random.Random(f"killed {way}"))
    shop.marks_of_a_turn = len(shop.undisturbed("measured", "invoke", "Where are my orders?"))
    assert len(shop.runs()) == 5, "a whole turn calls five tools"
    kills = abandoned = 0
    last_marks: Counter[str] = Counter()
    repeated: Counter[str] = Counter()
    while kills < KILLS:
        thread = f"thread-{kills % THREADS}"
        told = shop.told.setdefault(thread, [])
        question = f"Where are my orders? ({kills})"
        marks = shop.killed(thread, "invoke", question)
        if SAVED_INPUT in marks or not marks:
            told.append(question)
        elif said(shop.messages(thread)) == [*told, question]:
            told.append(question)  # saved, but the mark did not come to be printed
        assert said(shop.messages(thread)) == told, "a customer's message was lost"
        if not marks:
            continue
        kills += 1
        last_marks[marks[-1]] += 1
        committed, before = shop.committed(thread), shop.runs()
        match shop.chance.choice(["resume", "resume and say", "say", "killed again"]):
            case "killed again":
                kills += bool(shop.killed(thread, "resume"))
                still = shop.runs()
                assert all(still[call] == before[call] for call in committed)
                committed |= shop.committed(thread)
                before = still
                shop.undisturbed(thread, "resume")
            case "resume":
                shop.undisturbed(thread, "resume")
            case "resume and say":
                told.append("And now?")
                shop.undisturbed(thread, "resume", "And now?")
            case "say":
                told.append("Never mind. And now?")
                shop.undisturbed(thread, "invoke", "Never mind. And now?")
                abandoned += assert_abandoned_in_place(shop.messages(thread))
        after = shop.runs()
        assert all(after[call] == before[call] for call in committed), "a committed result was made again"
        repeated += Counter(call for call in after if after[call] > 1)
        state = shop.state(thread)
        if told:
            assert not state.tasks, "the turn was not finished"
            assert_whole(state.values["messages"])
            assert said(state.values["messages"]) == told
    print(f"\n{way}: {kills} kills, the last marks: {dict(last_marks)}; calls abandoned: {abandoned}")
    print(f"calls whose tool ran again because its result was not saved yet: {len(repeated)}")
    assert len(last_marks) >= 4, "all kills fell on the same few moments"


def assert_abandoned_in_place(messages: list[AnyMessage]) -> int:
    """Each abandoned call's result stands with its call's message, before the customer speaks again."""
    found = 0
    behind: AnyMessage | None = None
    for message in messages:
        if isinstance(message, AIMessage | HumanMessage):
            behind = message
        elif isinstance(message, ToolMessage) and message.text.startswith("abandoned"):
            found += 1
            assert message.status == "error"
            assert isinstance(behind, AIMessage)
            assert message.tool_call_id in [call["id"] for call in behind.tool_calls]
    return found
