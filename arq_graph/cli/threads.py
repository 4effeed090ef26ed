"""The file that keeps conversations, so that they can be gone on with and explained."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arq_graph.cli.failures import warn
from arq_graph.errors import InputError
from arq_graph.nodes.spec_sections import condition_text

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from arq_graph.agent.spec import Agent

DEFAULT_FILE = Path(".arq_graph") / "threads.sqlite"
INSTALL = 'pip install "arq_graph[sqlite]"'
MAX_ID = 200

_NOTES = (
    "CREATE TABLE IF NOT EXISTS arq_graph_threads "
    "(thread_id TEXT PRIMARY KEY, used_at TEXT NOT NULL, note TEXT NOT NULL)"
)


@dataclass(frozen=True)
class ThreadNote:
    """What is kept about a thread beside its messages."""

    agent: str
    file: str | None
    model: str
    mode: str
    guidelines: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)


class ThreadStore:
    """Where threads are kept: a SQLite file, or memory where its package is not installed."""

    def __init__(self, checkpointer: BaseCheckpointSaver[Any], file: Path | None) -> None:
        self.checkpointer = checkpointer
        self.file = file

    def note(self, thread: str, about: ThreadNote) -> None:
        """Note what a thread is about, and that it is used now."""
        if self.file is not None:
            with self._notes() as notes:
                row = (thread, datetime.now(UTC).isoformat(), json.dumps(asdict(about)))
                notes.execute("INSERT OR REPLACE INTO arq_graph_threads VALUES (?, ?, ?)", row)

    def about(self, thread: str) -> ThreadNote | None:
        """What is noted about a thread; None for one of another program."""
        if self.file is None:
            return None
        with self._notes() as notes:
            row = notes.execute(
                "SELECT note FROM arq_graph_threads WHERE thread_id = ?", (thread,)
            ).fetchone()
        return ThreadNote(**json.loads(row[0])) if row else None

    def latest(self, count: int = 5) -> list[str]:
        """The threads used last, the latest first."""
        if self.file is None:
            return []
        with self._notes() as notes:
            rows = notes.execute(
                "SELECT thread_id FROM arq_graph_threads ORDER BY used_at DESC LIMIT ?", (count,)
            ).fetchall()
        if rows:
            return [row[0] for row in rows]
        newest = next(self.checkpointer.list(None, limit=1), None)
        return [newest.config["configurable"]["thread_id"]] if newest else []

    @contextmanager
    def _notes(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(str(self.file))) as connection, connection:
            connection.execute(_NOTES)
            yield connection


@contextmanager
def opened_threads(file: Path | None) -> Iterator[ThreadStore]:
    """Open the file of threads, which is made if it does not exist; without its package, keep them in memory."""
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        from langgraph.checkpoint.memory import InMemorySaver

        if file is not None:
            raise InputError(f"keeping threads in {file} needs another package: {INSTALL}") from None
        warn(f"this thread is gone when the program ends; to keep threads: {INSTALL}")
        yield ThreadStore(InMemorySaver(), None)
        return
    path = file or DEFAULT_FILE
    with closing(_connected(path)) as connection:
        saver = SqliteSaver(connection)
        try:
            saver.setup()
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        yield ThreadStore(saver, path)


@contextmanager
def existing_threads(file: Path | None) -> Iterator[ThreadStore]:
    """Open a file of threads to read it."""
    path = file or DEFAULT_FILE
    try:
        import langgraph.checkpoint.sqlite  # noqa: F401
    except ImportError:
        raise InputError(f"threads are kept and read with another package: {INSTALL}") from None
    if not path.is_file():
        raise InputError(
            f"there is no file of threads {path}: hold a conversation first with `arq-graph demo` or `arq-graph "
            "chat AGENT.yaml` in this folder, or name the file with --db"
        )
    with opened_threads(path) as threads:
        yield threads


def thread_id(given: str | None, agent: Agent) -> str:
    """The thread that was asked for, or a new one."""
    if given is None:
        name = "".join(c if c.isascii() and c.isalnum() else "-" for c in agent.name.lower())
        name = "-".join(part for part in name.split("-") if part)[:40]
        return f"{name or 'thread'}-{secrets.token_hex(3)}"
    if not given.strip() or len(given) > MAX_ID or not given.isprintable():
        raise InputError(
            f"{given[:40]!r} cannot name a thread: give 1 to {MAX_ID} printable characters that are not all spaces"
        )
    return given


def note_of(agent: Agent, model: str, mode: str) -> ThreadNote:
    """What to note about a thread of this agent."""
    return ThreadNote(
        agent=agent.name,
        file=str(agent.file) if agent.file else None,
        model=model,
        mode=mode,
        guidelines={g.id: (condition_text(g), g.action or "") for g in agent.guidelines},
    )


def when(condition: str | None) -> str:
    """A guideline's condition as people read it."""
    return "always" if condition is None else f"when {condition}"


def _connected(path: Path) -> sqlite3.Connection:
    """The file of threads, made if it does not exist."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; --db takes a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ignore = path.parent / ".gitignore"
        if path == DEFAULT_FILE and not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")  # what customers write is not for a repository
        # The saver has a lock of its own; nodes that run at the same time write from their threads.
        return sqlite3.connect(str(path), check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be used as a file of threads: {error}; give another with --db")
