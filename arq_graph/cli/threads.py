"""The file that keeps conversations, so that they can be gone on with and explained."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from arq_graph.agent.spec import Agent
from arq_graph.cli.screen import warn
from arq_graph.errors import InputError
from arq_graph.nodes.spec_sections import condition_text

DEFAULT_FILE = Path(".arq_graph") / "threads.sqlite"
_INSTALL = 'pip install "arq_graph[sqlite]"'
_NOTE = "arq_graph"


class ThreadNote(BaseModel):
    """What is kept about a thread beside its messages, with each checkpoint: what they were made with."""

    agent: str
    file: str | None
    model: str
    mode: str
    guidelines: dict[str, tuple[str | None, str | None]]

    @classmethod
    def of(cls, agent: Agent, model: str, mode: str) -> ThreadNote:
        """What to note about a thread of this agent."""
        rules = {rule.id: (condition_text(rule), rule.action) for rule in agent.guidelines}
        file = str(agent.file) if agent.file else None
        return cls(agent=agent.name, file=file, model=model, mode=mode, guidelines=rules)

    @classmethod
    def in_checkpoint(cls, found: CheckpointTuple | None) -> ThreadNote | None:
        """What is noted in a checkpoint; None in one of another program."""
        text = found.metadata.get(_NOTE) if found else None
        return cls.model_validate_json(str(text)) if text else None

    def config(self, thread: str) -> RunnableConfig:
        """The configuration of a run that keeps the note."""
        return {"configurable": {"thread_id": thread}, "metadata": {_NOTE: self.model_dump_json()}}


@contextmanager
def opened_threads(file: Path | None) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open the file of threads, which is made if it does not exist; without its package, keep them in memory."""
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        if file is not None:
            raise InputError(f"keeping threads in {file} needs another package: {_INSTALL}") from None
        warn(f"this thread is gone when the program ends; to keep threads: {_INSTALL}")
        yield InMemorySaver()
        return
    path = file or DEFAULT_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ignore = path.parent / ".gitignore"
        if file is None and not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")  # what customers write is not for a repository
        # The saver has a lock of its own; nodes that run at the same time write from their threads.
        connection = sqlite3.connect(str(path), check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{path} cannot be used as a file of threads: {error}; give another with --db"
        ) from error
    with closing(connection):
        yield saver


@contextmanager
def existing_threads(file: Path | None) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open a file of threads to read it."""
    path = file or DEFAULT_FILE
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
        name = re.sub("[^a-z0-9]+", "-", agent.name.lower()).strip("-")[:40]
        return f"{name or 'thread'}-{secrets.token_hex(3)}"
    if not given.strip() or not given.isprintable():
        raise InputError(f"{given!r} cannot name a thread: give printable characters that are not all spaces")
    return given
