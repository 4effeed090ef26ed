"""The threads of a LangGraph app, as its checkpointer holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord
from arq_graph.milestones.transcripts.messages import read_messages


def read_thread(checkpointer: Any, thread_id: str, *, messages_key: str = "messages") -> Transcript:
    """The conversation of a LangGraph thread.

    Args:
        checkpointer: Any LangGraph checkpointer: in memory, of a SQLite file, of Postgres.
        thread_id: The thread.
        messages_key: The channel that holds the messages.

    Raises:
        InputError: The checkpointer knows no such thread, or the thread has no messages there.
    """
    found = checkpointer.get_tuple({"configurable": {"thread_id": thread_id}})
    if found is None:
        raise InputError(
            f"the checkpointer holds no thread {thread_id!r}; is the id right, and the database?"
        )
    channels = found.checkpoint["channel_values"]
    if messages_key not in channels:
        names = ", ".join(sorted(map(repr, channels))) or "none"
        raise InputError(
            f"thread {thread_id!r} has no channel {messages_key!r}; its channels are {names}: name the one that "
            "holds the messages"
        )
    return read_messages(channels[messages_key], id=thread_id)


def read_threads(checkpointer: Any, *, messages_key: str = "messages") -> Iterator[Transcript | BrokenRecord]:
    """The conversations of all threads of a checkpointer, the newest first; a broken one does not stop the rest.

    Args:
        checkpointer: Any LangGraph checkpointer.
        messages_key: The channel that holds the messages.
    """
    threads = dict.fromkeys(one.config["configurable"]["thread_id"] for one in checkpointer.list(None))
    for index, thread in enumerate(threads):
        try:
            yield read_thread(checkpointer, thread, messages_key=messages_key)
        except InputError as error:
            yield BrokenRecord(index, InputError(f"thread {thread!r}: {error}"))
