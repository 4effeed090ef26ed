"""The file in which `chat`, `run` and `demo` save their threads, what each was made with, and the last turn of one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from pydantic import BaseModel

from arq_graph.agent.regular_file import require_regular_file
from arq_graph.cli.turn import Turn, read_last_turn
from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcript
from arq_graph.models.resolve import is_offline

DEFAULT_FILE = Path(".arq_graph") / "threads.sqlite"
_NAMESPACE = "arq_graph"
_MAX_VALUE_BYTES = 256 * 2**20

Threads = BaseCheckpointSaver[Any]


class ThreadNote(BaseModel):
    """The agent, its file, the model and mode of a thread's last turn, stored beside its checkpoints."""

    agent: str
    file: str
    model: str
    mode: str
    guidelines: dict[str, tuple[str | None, str | None]]
    """The condition and the action of each guideline by its id."""
    journeys: dict[str, tuple[str, ...]] = {}
    """The ids of the steps of each journey by its id."""

    @classmethod
    def load(cls, thread: str, threads: Threads) -> ThreadNote | None:
        """Read the note of a thread; a thread of another program has none."""
        stored = threads.get_tuple(_note_config(thread))
        if stored is None:
            return None
        return cls.model_validate_json(str(stored.metadata.get(_NAMESPACE)))

    def save(self, thread: str, threads: Threads) -> None:
        """Store the note in the place of the thread's earlier one."""
        # LangGraph writes the metadata of a run to every checkpoint, and a note holds the texts of all guidelines. So
        # it has one checkpoint of its own.
        metadata: Any = {_NAMESPACE: self.model_dump_json()}
        threads.put(_note_config(thread), {**empty_checkpoint(), "id": "0"}, metadata, {})


def _note_config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": _NAMESPACE}}


def open_threads(file: Path | None) -> AbstractContextManager[Threads]:
    """Open a file of threads, or create it; None opens the default file."""
    return _open_file(file or DEFAULT_FILE, is_read_only=False)


def open_existing_threads(file: Path | None) -> AbstractContextManager[Threads]:
    """Open a file of threads to read it, without changing it; None opens the default file."""
    path = file or DEFAULT_FILE
    if not path.is_file():
        raise InputError(
            f"there is no file of threads {path}: run a conversation first with `arq-graph demo` or `arq-graph chat "
            "AGENT.yaml` in this folder, or name the file with --db"
        )
    return _open_file(path, is_read_only=True)


@contextmanager
def _open_file(path: Path, *, is_read_only: bool) -> Iterator[Threads]:
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        raise InputError(
            'saving conversations needs the package langgraph-checkpoint-sqlite: pip install "arq_graph[cli]"'
        ) from None
    from arq_graph.cli.strict_serializer import StrictSerializer

    connect = _connect_to_read if is_read_only else _connect
    with _convert_database_errors(path), closing(connect(path)) as connection:
        _refuse_statements(connection)
        if is_read_only:
            _require_checkpoints(connection)
        saver = SqliteSaver(connection, serde=StrictSerializer())
        saver.setup()
        yield saver


@contextmanager
def _convert_database_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _make_file_error(path, error) from error


def _make_file_error(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be used as a file of threads: {error}; name another one with --db")


def _connect(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ignore_file = DEFAULT_FILE.with_name(".gitignore")
        if path == DEFAULT_FILE and not ignore_file.exists():
            ignore_file.write_text("*\n", encoding="utf-8")  # what customers write is not for a repository
        require_regular_file(path)
        # The saver has a lock of its own; nodes that run at the same time write from their threads.
        connection = sqlite3.connect(str(path), check_same_thread=False)
    except OSError as error:
        raise _make_file_error(path, error) from error
    return connection


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Connect to a file that stays as it is."""
    # While there is a log of writes, they are in it. Without one, SQLite would make a log to read the file.
    has_log = path.with_name(f"{path.name}-wal").exists()
    access = "mode=ro" if has_log else "immutable=1"
    return sqlite3.connect(f"{path.resolve().as_uri()}?{access}", uri=True, check_same_thread=False)


def _require_checkpoints(connection: sqlite3.Connection) -> None:
    query = "SELECT name FROM sqlite_master WHERE name = 'checkpoints'"
    if connection.execute(query).fetchone() is None:
        raise sqlite3.DatabaseError("no LangGraph thread was ever saved in it")


def _refuse_statements(connection: sqlite3.Connection) -> None:
    """Refuse a database in which a query or a write would run statements of the file, perhaps without end."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    query = "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%'"
    row = connection.execute(query).fetchone()
    if row is not None:
        raise sqlite3.DatabaseError(f"{row[0]!r} in it is a view, a trigger or a virtual table")


def list_threads(threads: Threads) -> list[str]:
    """Return the ids of the threads, that of the last checkpoint first."""
    query = (
        "SELECT thread_id FROM checkpoints WHERE checkpoint_ns = '' "
        "GROUP BY thread_id ORDER BY MAX(checkpoint_id) DESC"
    )
    saver: Any = threads
    with saver.cursor(transaction=False) as cursor:
        return [str(row[0]) for row in cursor.execute(query)]


def find_latest_thread(threads: Threads) -> str:
    """Return the id of the thread that was used last.

    Raises:
        InputError: There is no thread.
    """
    thread_ids = list_threads(threads)
    if not thread_ids:
        raise InputError("no conversation is saved yet: run one first with `arq-graph chat AGENT.yaml`")
    return thread_ids[0]


def load_last_turn(thread: str, threads: Threads, agent: str | None = None) -> Turn:
    """Return the last turn of a thread; with the records of one agent only, if it is named.

    Raises:
        InputError: There is no such thread, or no turn in it.
    """
    checkpoint = threads.get_tuple({"configurable": {"thread_id": thread}})
    turn = read_last_turn(checkpoint.checkpoint["channel_values"], agent) if checkpoint else None
    if turn is None:
        latest = find_latest_thread(threads)
        raise InputError(
            f"no thread {thread!r} is saved here; the latest is {latest!r}: name one with --thread, or start one"
        )
    return turn


def read_threads(file: Path) -> Iterator[Transcript | BrokenRecord]:
    """Yield the conversations in a file of threads, the newest first."""
    with open_existing_threads(file) as threads:
        for index, thread in enumerate(list_threads(threads)):
            try:
                yield replace(_read_transcript(thread, threads), source=str(file), record=index)
            except InputError as error:
                yield BrokenRecord(index, InputError(f"thread {thread!r}: {error}"), str(file))


def _read_transcript(thread: str, threads: Threads) -> Transcript:
    checkpoint = threads.get_tuple({"configurable": {"thread_id": thread}})
    assert checkpoint is not None  # it was listed
    messages = checkpoint.checkpoint["channel_values"].get("messages", ())
    transcript = read_transcript(messages, id=thread)
    thread_note = ThreadNote.load(thread, threads)
    if thread_note and is_offline(thread_note.model):
        return replace(transcript, stand_ins=("the agent's model",))
    return transcript
