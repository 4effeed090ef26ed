"""Open the file in which `chat`, `run` and `demo` save their threads, with a note of what each thread was made with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from pydantic import BaseModel

from arq_graph.errors import InputError

DEFAULT_FILE = Path(".arq_graph") / "threads.sqlite"
_NAMESPACE = "arq_graph"

Threads = BaseCheckpointSaver[Any]


class ThreadNote(BaseModel):
    """The agent, model and mode that a thread's last turn was made with, stored beside its checkpoints.

    Attributes:
        agent: The agent's name.
        file: The agent's file.
        model: The model as it is shown.
        mode: How much the model reasons.
        guidelines: The condition and the action of each guideline by its id.
    """

    agent: str
    file: str
    model: str
    mode: str
    guidelines: dict[str, tuple[str | None, str | None]]

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


@contextmanager
def open_threads(file: Path | None) -> Iterator[Threads]:
    """Open a file of threads, or create it; None opens the default file."""
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        raise InputError(
            'saving conversations needs the package langgraph-checkpoint-sqlite: pip install "arq_graph[cli]"'
        ) from None
    path = file or DEFAULT_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if file is None:
            _exclude_from_git(path.parent)
        # The saver has a lock of its own; nodes that run at the same time write from their threads.
        connection = sqlite3.connect(str(path), check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{path} cannot be used as a file of threads: {error}; name another one with --db"
        ) from error
    with closing(connection):
        yield saver


@contextmanager
def open_existing_threads(file: Path | None) -> Iterator[Threads]:
    """Open a file of threads to read it; None opens the default file."""
    path = file or DEFAULT_FILE
    if not path.is_file():
        raise InputError(
            f"there is no file of threads {path}: run a conversation first with `arq-graph demo` or `arq-graph chat "
            "AGENT.yaml` in this folder, or name the file with --db"
        )
    with open_threads(path) as threads:
        yield threads


def _exclude_from_git(folder: Path) -> None:
    ignore_file = folder / ".gitignore"
    if not ignore_file.exists():
        ignore_file.write_text("*\n", encoding="utf-8")  # what customers write is not for a repository
