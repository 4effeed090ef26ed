"""The threads of a LangGraph app, as its checkpointer holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord
from arq_graph.milestones.transcripts.messages import read_messages


def read_threads(checkpointer: Any) -> Iterator[Transcript | BrokenRecord]:
    """The conversations of all threads of a checkpointer, the newest first; a broken one does not stop the rest."""
    threads = dict.fromkeys(one.config["configurable"]["thread_id"] for one in checkpointer.list(None))
    for index, thread in enumerate(threads):
        held = checkpointer.get_tuple({"configurable": {"thread_id": thread}}).checkpoint["channel_values"]
        try:
            yield read_messages(held.get("messages", ()), id=thread)
        except InputError as error:
            yield BrokenRecord(index, InputError(f"thread {thread!r}: {error}"))
