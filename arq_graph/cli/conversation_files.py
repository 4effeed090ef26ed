"""Read recorded conversations from files of transcripts and from files of threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from arq_graph.cli.threads import ThreadNote, Threads, open_existing_threads
from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcript, read_transcripts
from arq_graph.models.resolve import is_offline

_SQLITE_HEADER = b"SQLite format 3\0"


def read_conversations(files: Sequence[Path]) -> Iterator[Transcript | BrokenRecord]:
    """Yield the conversations of several files; a file that can't be read to its end yields a broken record."""
    for file in files:
        try:
            if _is_database(file):
                yield from _read_threads(file)
            else:
                yield from read_transcripts(file)
        except InputError as error:
            yield BrokenRecord(None, error, str(file))


def _is_database(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER


def _read_threads(file: Path) -> Iterator[Transcript | BrokenRecord]:
    """Yield the threads of a file, the newest first."""
    with open_existing_threads(file) as threads:
        for index, thread in enumerate(_list_threads(threads)):
            try:
                yield replace(_read_thread(thread, threads), source=str(file), record=index)
            except InputError as error:
                yield BrokenRecord(index, InputError(f"thread {thread!r}: {error}"), str(file))


def _list_threads(threads: Threads) -> list[str]:
    ids: dict[str, None] = {}
    for checkpoint in threads.list(None):
        config = checkpoint.config["configurable"]
        if not config["checkpoint_ns"]:
            ids[config["thread_id"]] = None
    return list(ids)


def _read_thread(thread: str, threads: Threads) -> Transcript:
    checkpoint = threads.get_tuple({"configurable": {"thread_id": thread}})
    assert checkpoint is not None  # it was listed
    messages = checkpoint.checkpoint["channel_values"].get("messages", ())
    transcript = read_transcript(messages, id=thread)
    thread_note = ThreadNote.load(thread, threads)
    if thread_note and is_offline(thread_note.model):
        return replace(transcript, stand_ins=("the agent's model",))
    return transcript
