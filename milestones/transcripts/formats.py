"""Reading transcripts from files and from data in memory; the format of each record is recognized."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

from arq_graph.agent.regular_file import MAX_DATA_BYTES, read_limited, read_lines
from arq_graph.errors import InputError, ToolError
from arq_graph.milestones.store import convert_file_errors, is_header, open_lines
from arq_graph.milestones.tool_schemas import get_argument_schemas
from arq_graph.milestones.transcript import MODEL_ROLES, Transcript
from arq_graph.milestones.transcripts import (
    glaive,
    inspect_ai,
    messages,
    openai_responses,
    preact,
    sharegpt,
    tau2_bench,
    tau_bench,
    telemetry,
)
from arq_graph.milestones.values import parse_json

FORMATS: tuple[Any, ...] = (
    tau2_bench,
    inspect_ai,
    telemetry,
    sharegpt,
    openai_responses,
    messages,
    glaive,
    tau_bench,
    preact,
)
"""Every format: a module with two functions, `can_read(record)` and `read(record)`.

A record is read by the first format that can. `read` returns an object with chat messages under `messages`, each
perhaps with its own `step`. Of the other keys `id`, `task_id`, `use_case`, `tools` and `instructions` are known; the
rest becomes `Transcript.extra`. It raises `InputError` if the record is broken.
"""

FORMATS_WITH_MANY = (tau2_bench, inspect_ai)
"""Formats whose files are one object with many records, which their function `split(record)` returns."""

_INSTRUCTIONS = ("instructions", "system", "systemInstruction", "system_instruction")

MAX_KEYS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record from which no transcript can be read, with its index from 0; None: the rest of the file can't be read.

    The error names file and index; `source` is the file that it was read from, if any.
    """

    index: int | None
    error: InputError
    source: str | None = None


ReadRecord = Callable[[], Transcript | BrokenRecord]


def read_transcripts(source: str | Path | Iterable[Any]) -> Iterator[Transcript | BrokenRecord]:
    """Yield the conversations of a file, one at a time; a broken one becomes a `BrokenRecord`, and the rest follow.

    `docs/milestones.md` lists the formats that are known: the messages of many providers, tools and benchmarks; as a
    JSON list of conversations, as JSON Lines, or as one conversation. Of JSON Lines, memory holds one conversation at
    a time. A part of a message that isn't known and may hold a tool call makes its record a broken one.

    Args:
        source: A file, or the content of such a file, already parsed.

    Raises:
        InputError: The file cannot be read at all.
    """
    for read in iterate_records(source):
        yield read()


def iterate_records(source: str | Path | Iterable[Any]) -> Iterator[ReadRecord]:
    """Yield a function for each conversation of a file that reads it; see `read_transcripts`."""
    file_name = None
    if isinstance(source, str | Path):
        file_name = str(source)
        records = _read_records(Path(source))
    elif isinstance(source, Mapping):
        records = iter([source])
    else:
        records = iter(source)
    stand_ins: tuple[str, ...] = ()
    index = 0
    for record in chain.from_iterable(map(_split_record, records)):
        if is_header(record):
            stand_ins = _find_stand_ins(record)
            continue
        if index == 0 and (messages.is_message(record) or openai_responses.is_item(record)):
            record = list(chain([record], records))  # chat messages alone are one conversation
        yield partial(_try_to_read, record, index, stand_ins, file_name)
        index += 1


def _try_to_read(
    record: Any, index: int, stand_ins: tuple[str, ...], file_name: str | None
) -> Transcript | BrokenRecord:
    try:
        if isinstance(record, InputError):
            raise record
        return _read_record(record, str(index), stand_ins=stand_ins, source=file_name, record=index)
    except InputError as error:
        place = f"{file_name}: " if file_name else ""
        return BrokenRecord(index, InputError(f"{place}record {index}: {error}"), file_name)


def _split_record(record: Any) -> Iterable[Any]:
    """Return the records in a record that holds many, or else itself."""
    if isinstance(record, Mapping):
        for format in FORMATS_WITH_MANY:
            records: Iterable[Any] | None = format.split(record)
            if records is not None:
                return records
    return (record,)


def _find_stand_ins(header: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the models that were fakes, as the header of a run's file says."""
    models = header.get("of")
    if not isinstance(models, Mapping):
        return ()
    from arq_graph.models.resolve import is_offline  # most files do not need it

    return tuple(role for role in MODEL_ROLES.values() if is_offline(models.get(role)))


def _read_records(path: Path) -> Iterator[Any]:
    """Yield the records of a UTF-8 file: its lines, the elements of its JSON list, or its one JSON value.

    A line that can't be parsed becomes an `InputError` in its place, and the rest follow.
    """
    try:
        with (
            convert_file_errors(f"{path} cannot be read"),
            TextIOWrapper(open_lines(path), encoding="utf-8-sig") as stream,
        ):
            lines = filter(str.strip, read_lines(stream))
            first_lines = list(islice(lines, 2))
            if not first_lines:
                raise InputError(f"{path} is empty: it holds no conversation")
            if _is_json_lines(path, first_lines):
                yield from map(_parse_json, chain(first_lines, lines))
                return
            data = _parse_json("".join(first_lines) + read_limited(stream, MAX_DATA_BYTES))
            if isinstance(data, list):
                yield from data
            else:
                yield data
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start} of a part): conversations are read as JSON or JSON Lines; a "
            "file of threads only by `arq-graph score` and `finetune-data`"
        ) from None


def _is_json_lines(path: Path, first_lines: list[str]) -> bool:
    if Path(path.name.removesuffix(".gz")).suffix.lower() in (".jsonl", ".ndjson"):
        return True
    return len(first_lines) > 1 and not isinstance(_parse_json(first_lines[0]), InputError)


def _parse_json(text: str) -> Any:
    try:
        return parse_json(text)
    except RecursionError:
        return InputError("nested too deeply to be a conversation")
    except ValueError as error:
        return InputError(f"not JSON: {error}")


def read_transcript(record: Any, *, id: str = "") -> Transcript:
    """Read the conversation of one record, in whichever format it is.

    Args:
        record: A list of messages, or an object that holds one.
        id: The conversation's id if the record has none.

    Raises:
        InputError: The format is not recognized, or the record is broken; the message says what and where.
    """
    return _read_record(record, id)


def _read_record(data: Any, default_id: str, **source: Any) -> Transcript:
    record_format = next((format for format in FORMATS if format.can_read(data)), None)
    if record_format is None:
        raise InputError(_describe_unknown_format(data))
    fields = record_format.read(data)
    chat = list(fields.pop("messages"))
    events, instructions = messages.parse_messages(chat)
    record_id = _get_text(fields, "id", "conversation_id", "thread_id")
    return Transcript(
        tuple(events),
        id=default_id if record_id is None else record_id,
        has_own_id=record_id is not None,
        task=_get_text(fields, "task_id"),
        use_case=_get_text(fields, "use_case"),
        instructions=instructions or _get_instructions(fields),
        tools=_parse_tools(fields.get("tools")),
        extra=fields,
        history_length=_count_history(chat, fields.get("history")),
        **source,
    )


def _get_text(fields: Mapping[str, Any], *keys: str) -> str | None:
    """Return the value of the first key that is there, as text."""
    for key in keys:
        if key in fields:
            return None if fields[key] is None else str(fields[key])
    return None


def _get_instructions(fields: Mapping[str, Any]) -> str:
    """Return the system prompt that a recording gives outside of its messages."""
    for key in _INSTRUCTIONS:
        if isinstance(fields.get(key), str | list | Mapping):
            return messages.read_text(fields[key])
    return ""


def _count_history(chat: list[Any], message_count: Any) -> int:
    """Return how many events an evaluation found in the conversation when it began, given the number of messages."""
    if not isinstance(message_count, int):
        return 0
    events, _ = messages.parse_messages(chat[:message_count])
    return len(events)


def _describe_unknown_format(record: Any) -> str:
    items = messages.get_message_list(record)
    if items is not None and not items:
        return "the conversation is empty: its list of messages holds none"
    description = type(record).__name__
    if isinstance(record, Mapping):
        keys = ", ".join(map(repr, list(record)[:MAX_KEYS_SHOWN])) or "(none)"
        description = f"an object with the keys {keys}"
    elif items:
        description = f"a list of {type(items[0]).__name__}"
    return (
        f"unknown format: {description}; known are chat messages of many providers (a list, or an object with "
        "`messages`, `contents`, `conversations`, or `input` and `output`), spans with `gen_ai.input.messages`, "
        "tau-bench results (`traj`), Pre-Act steps (`Conversation`), and Glaive texts (`chat`)"
    )


def _parse_tools(tools: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        return {}
    # A provider's own tools have no schema, and often no name.
    described_tools = [tool for tool in tools if "name" in tool or tool.get("type", "function") == "function"]
    try:
        return get_argument_schemas(described_tools)
    except ToolError as error:
        raise InputError(f"its `tools`: {error}") from None
