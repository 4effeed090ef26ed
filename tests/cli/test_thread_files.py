"""Files of threads that somebody sent: reading one never runs its code, and never changes it."""

import pickle
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import BaseModel

THREADS = Path(".arq_graph/threads.sqlite")
MILESTONES = "- {name: Start, type: NFC}\n- {name: End, type: NFC, dependencies: [Start]}\n"
READERS = (
    ["explain"],
    ["score", THREADS, "--milestones", "milestones.yaml"],
    ["finetune-data", THREADS, "--stage", "1", "--out", "examples.jsonl"],
)


class Touch:
    """A pickle that makes a file when it is read."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("ran"),)


class Note(BaseModel):
    """A type of another program's state."""

    text: str


def write_thread(kind: str, checkpoint: bytes) -> None:
    """Write a file of threads that holds one checkpoint."""
    Path("milestones.yaml").write_text(MILESTONES)
    THREADS.parent.mkdir(exist_ok=True)
    with SqliteSaver.from_conn_string(str(THREADS)) as saver:
        saver.setup()
        row = ("t", str(uuid4()), kind, checkpoint, b"{}")
        columns = "thread_id, checkpoint_id, type, checkpoint, metadata"
        saver.conn.execute(f"INSERT INTO checkpoints ({columns}) VALUES (?, ?, ?, ?, ?)", row)
        saver.conn.commit()


def pack(values: Mapping[str, Any]) -> bytes:
    """Return a checkpoint with these values as LangGraph stores it."""
    checkpoint: dict[str, Any] = {**empty_checkpoint(), "channel_values": values}
    return JsonPlusSerializer().dumps_typed(checkpoint)[1]


def pack_call(code: int, module: str, name: str, payload: object, *more: str) -> bytes:
    """Return a checkpoint whose messages are what a function returns."""
    call = ormsgpack.Ext(code, ormsgpack.packb([module, name, payload, *more]))
    return ormsgpack.packb({**empty_checkpoint(), "channel_values": {"messages": [call]}})


JSON_CALL = b'{"lc": %d, "type": "constructor", "id": ["os", "mkdir"], "args": ["ran"]}'
JSON_CHECKPOINT = b'{"channel_values": {"messages": [%s]}}'
HOSTILE_CHECKPOINTS = {
    "one argument": ("msgpack", pack_call(0, "os", "mkdir", "ran")),
    "several arguments": ("msgpack", pack_call(1, "os", "mkdir", ["ran"])),
    "named arguments": ("msgpack", pack_call(2, "os", "mkdir", {"path": "ran"})),
    "a method": ("msgpack", pack_call(3, "pathlib", "Path", "ran", "touch")),
    "pydantic 1": ("msgpack", pack_call(4, "os", "mkdir", {"path": "ran"})),
    "pydantic 2": ("msgpack", pack_call(5, "os", "mkdir", {"path": "ran"})),
    "a code of tomorrow": ("msgpack", pack_call(9, "os", "mkdir", "ran")),
    "JSON of LangGraph": ("json", JSON_CHECKPOINT % (JSON_CALL % 2)),
    "JSON of LangChain": ("json", JSON_CHECKPOINT % (JSON_CALL % 1)),
    "a pickle": ("pickle", pickle.dumps(Touch())),
    "half a value": ("msgpack", pack({"messages": []})[:-3]),
}


@pytest.mark.parametrize("checkpoint", HOSTILE_CHECKPOINTS.values(), ids=HOSTILE_CHECKPOINTS)
def test_a_file_of_threads_runs_nothing_and_what_is_not_read_is_named(cli, checkpoint):
    write_thread(*checkpoint)
    for command in READERS:
        result = cli(*command)
        assert result.code == 1, result.words
        assert "not read" in result.words or "cannot be read" in result.words
        assert "should not happen" not in result.words
        assert not Path("ran").exists()


def test_a_pattern_inside_a_message_of_a_file_of_threads_is_not_compiled(cli):
    pattern = ormsgpack.Ext(1, ormsgpack.packb(["re", "compile", ["(x+x+)+y", 0]]))
    fields = {"content": "Hi", "additional_kwargs": {"pattern": pattern}}
    write_thread("msgpack", pack_call(5, "langchain_core.messages.human", "HumanMessage", fields))
    assert "the type 're.compile', which is not read" in cli("explain").words


def test_messages_and_plain_values_are_read_beside_types_that_are_not(cli):
    values = {
        "messages": [HumanMessage("Hello", id="1"), AIMessage("Good morning", id="2")],
        "plain": [datetime.now(UTC), uuid4(), {"a", "b"}, b"bytes", 1.5],
        "note": Note(text="of another program"),
    }
    write_thread("msgpack", pack(values))
    result = cli("explain")
    assert (result.code, "Good morning" in result.out) == (0, True), result.words
    assert result.err.count("warning: ") == 1
    assert "the type 'tests.cli.test_thread_files.Note', which is not read" in result.words


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON checkpoints BEGIN DELETE FROM writes; END",
        "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n",
    ],
)
def test_a_file_of_threads_with_statements_of_its_own_is_refused(cli, statement):
    write_thread("msgpack", pack({"messages": [HumanMessage("Hello", id="1")]}))
    connection = sqlite3.connect(THREADS)
    connection.execute(statement)
    connection.close()
    result = cli("explain")
    assert (result.code, "is a view, a trigger or a virtual table" in result.words) == (1, True)


def list_contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_file_of_threads_is_read_without_a_change(cli, journal):
    write_thread("msgpack", pack({"messages": [HumanMessage("Hello", id="1"), AIMessage("Hi", id="2")]}))
    connection = sqlite3.connect(THREADS)
    connection.execute("ALTER TABLE writes DROP COLUMN task_path")  # as older versions of LangGraph wrote it
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.close()
    before = list_contents(THREADS.parent)
    assert "Hi" in cli("explain").out
    cli("score", THREADS, "--milestones", "milestones.yaml")
    assert list_contents(THREADS.parent) == before


def test_what_another_process_is_just_writing_is_read(cli):
    write_thread("msgpack", pack({"messages": [HumanMessage("Hello", id="1"), AIMessage("Hi", id="2")]}))
    with closing(sqlite3.connect(THREADS)) as connection:
        connection.execute("UPDATE checkpoints SET thread_id = 'renamed'")
        connection.commit()
        assert "thread renamed" in cli("explain").out


def test_a_database_of_another_program_is_refused_and_not_changed(cli):
    THREADS.parent.mkdir()
    with closing(sqlite3.connect(THREADS)) as connection:
        connection.execute("CREATE TABLE mine (value)")
    before = list_contents(THREADS.parent)
    assert "no LangGraph thread was ever saved in it" in cli("explain").words
    assert list_contents(THREADS.parent) == before
