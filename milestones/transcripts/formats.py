"""Transcripts from files and from data in memory, in any format that is known; the format recognises itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

from arq_graph.errors import InputError, ToolError
from arq_graph.milestones.store import MODEL_ROLES, convert_file_errors, is_header, open_lines
from arq_graph.milestones.tool_schemas import get_argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts import glaive, messages, preact, tau_bench

READERS = (messages, glaive, tau_bench, preact)
"""Every format, a module with two functions: `fits(record)`, and `read(record)` where that is true.

The first that fits a record reads it: it gives an object with what was said as chat messages under `messages`, each
perhaps with its own `step`. Of the other keys `id`, `task_id`, `use_case` and `tools` are known; the rest is kept
beside them. It raises `InputError` where the record is broken.
"""


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record out of which no transcript can be read.

    Args:
        index: Its position, from 0; None where the file itself cannot be read on.
        error: What is wrong with it, with file and index.
        source: The file that it was read from, if any.
    """

    index: int | None
    error: InputError
    source: str | None = None


def read_transcripts(source: str | Path | Iterable[Any]) -> Iterator[Transcript | BrokenRecord]:
    """The conversations of a file, one at a time; a broken one is given as such and does not stop the rest.

    Known are chat messages of OpenAI and LangChain, tau-bench result files, the step format of the Pre-Act authors, and
    the texts of the Glaive function-calling dataset; as a JSON list of conversations, as JSON Lines, or as one
    conversation. Of JSON Lines, memory holds one conversation at a time.

    Args:
        source: A file, or what such a file holds, already read.

    Raises:
        InputError: The file cannot be read at all.
    """
    file = Path(source) if isinstance(source, str | Path) else None
    named = str(source) if file else None
    whole = [source] if isinstance(source, Mapping) else source
    stand_ins: tuple[str, ...] = ()

    def entries() -> Iterator[Any]:
        nonlocal stand_ins
        record: Any
        for record in _records_in(file) if file else whole:  # type: ignore[union-attr]
            if not is_header(record):
                yield record
            elif isinstance(of := record.get("of"), Mapping):
                from arq_graph.models.resolve import is_offline  # most files do not need it

                stand_ins = tuple(what for what in MODEL_ROLES.values() if is_offline(of.get(what)))

    records = entries()
    first = list(islice(records, 1))
    # A list of messages is one conversation.
    found = [[*first, *records]] if any(map(messages.is_message, first)) else chain(first, records)
    for index, record in enumerate(found):
        try:
            if isinstance(record, InputError):
                raise record
            read = read_transcript(record, id=str(index))
            yield replace(read, stand_ins=stand_ins, source=named, record=index)
        except InputError as error:
            place = f"{file}: record {index}" if file else f"record {index}"
            yield BrokenRecord(index, InputError(f"{place}: {error}"), named)


def _records_in(path: Path) -> Iterator[Any]:
    """The records of a UTF-8 file: its lines, the elements of its JSON list, or its one JSON value.

    What cannot be read is given as an `InputError` in its place: a broken line does not stop the rest.
    """
    try:
        with (
            convert_file_errors(f"{path} cannot be read"),
            TextIOWrapper(open_lines(path), encoding="utf-8-sig") as stream,
        ):
            lines = filter(str.strip, stream)
            begins = [*islice(lines, 2)]
            if not begins:
                raise InputError(f"{path} is empty: it holds no conversation")
            is_json = len(begins) == 1 or isinstance(_load(begins[0]), InputError)
            suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
            if suffix.lower() not in (".jsonl", ".ndjson") and is_json:
                whole = _load("".join([*begins, stream.read()]))
                yield from whole if isinstance(whole, list) else [whole]
            else:
                yield from map(_load, chain(begins, lines))
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is no UTF-8 text (byte {error.start} of a part): conversations are read as JSON or JSON Lines; a "
            "file of threads only by `arq-graph score` and `finetune-data`"
        ) from None


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        return InputError("nested too deeply to be a conversation")
    except ValueError as error:
        return InputError(f"no JSON: {error}")


def read_transcript(record: Any, *, id: str = "") -> Transcript:
    """The conversation of one record, in whichever format it is.

    Args:
        record: What was recorded: a list of messages, or an object that holds one.
        id: The conversation's id where the record has none.

    Raises:
        InputError: The format is not recognised, or the record is broken; what and where is said.
    """
    reader = next((reader for reader in READERS if reader.fits(record)), None)
    if reader is None:
        raise InputError(_unknown(record))
    held = reader.read(record)
    said = list(held.pop("messages"))
    events, instructions = messages.parse_messages(said)
    # The results of an evaluation say how many messages were there before it began.
    before = held.get("history")
    history = len(messages.parse_messages(said[:before])[0]) if isinstance(before, int) else 0
    named = held.get("id", held.get("conversation_id", held.get("thread_id")))
    task, use_case = held.get("task_id"), held.get("use_case")
    return Transcript(
        tuple(events),
        id=str(named) if named is not None else id,
        task=str(task) if task is not None else None,
        use_case=str(use_case) if use_case is not None else None,
        instructions=instructions,
        tools=_tools(held.get("tools")),
        extra=held,
        history=history,
    )


def _unknown(record: Any) -> str:
    found = messages.listed(record)
    if found is not None and not found:
        return "the conversation is empty: its list of messages holds none"
    held = f"a list of {type(found[0]).__name__}" if found else type(record).__name__
    if isinstance(record, Mapping):
        held = f"an object with the keys {', '.join(map(repr, list(record)[:8])) or '(none)'}"
    return (
        f"no known format: {held}; known are chat messages of OpenAI and LangChain (a list, or an object with "
        "`messages`), tau-bench results (`traj`), Pre-Act steps (`Conversation`), and Glaive texts (`chat`)"
    )


def _tools(tools: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        return {}
    try:
        return get_argument_schemas(tools)
    except ToolError as error:
        raise InputError(f"its `tools`: {error}") from None
