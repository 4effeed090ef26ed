"""Transcripts from files and from data in memory, in any format that is known; the format recognises itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from arq_graph.errors import InputError, ToolError
from arq_graph.milestones.store import is_head
from arq_graph.milestones.tool_schemas import argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts import glaive, messages, openai, preact, run_output, tau_bench
from arq_graph.milestones.transcripts.messages import Recorded
from arq_graph.milestones.transcripts.records import Raw, read_records

Format = str


class Reader(Protocol):
    """One format: a module with two functions."""

    def fits(self, record: Any, /) -> bool:
        """Whether a record looks like it."""

    def read(self, record: Any, /) -> Recorded:
        """The record as LangChain messages; raises `InputError` where it is broken."""


# In this order a record is compared with them.
_READERS: dict[Format, Reader] = {
    "openai": openai,
    "langchain": messages,
    "glaive": glaive,
    "tau-bench": tau_bench,
    "pre-act": preact,
    "arq-graph": run_output,
}
FORMATS = tuple(_READERS)
"""The names of the formats."""


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record out of which no transcript can be read.

    Args:
        index: Its position, from 0.
        error: What is wrong with it, with file and index.
    """

    index: int
    error: InputError


def read_transcripts(
    source: str | Path | Iterable[Any], *, format: Format | None = None
) -> Iterator[Transcript | BrokenRecord]:
    """The conversations of a file, one at a time; a broken one is given as such and does not stop the rest.

    Known are OpenAI chat messages, LangChain messages, tau-bench result files, the step format of the Pre-Act
    authors, the text of the Glaive function-calling dataset, and what `arq-graph run` prints; as a JSON list of
    conversations, as JSON Lines, or as one conversation. Of JSON Lines, memory holds one conversation at a time.

    Args:
        source: A file, or what such a file holds, already read.
        format: The format; None: each record is recognised by itself.

    Raises:
        InputError: The file cannot be read at all, or the format is none of those known.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"the format {format!r} is not known; known are {', '.join(FORMATS)}")
    if isinstance(source, str | Path):
        file: Path | None = Path(source)
        raws = read_records(Path(source))
    else:
        file = None
        whole = [source] if isinstance(source, Mapping) else source
        raws = (Raw(index, value, None, 0) for index, value in enumerate(whole))
    index = 0
    raws = (raw for raw in raws if not is_head(raw.value))
    for _, group in groupby(raws, key=lambda raw: raw.group):
        for raw in run_output.joined(_conversations(group)):
            yield _read(raw, index, file, format)
            index += 1


def read_transcript(record: Any, *, format: Format | None = None, id: str = "") -> Transcript:
    """The conversation of one record.

    Args:
        record: What was recorded: a list of messages, or an object that holds one.
        format: The format; None: it is recognised.
        id: The conversation's id where the record has none.

    Raises:
        InputError: The format is not recognised, or the record is broken; what and where is said.
    """
    return _transcript(_READERS[format or _recognise(record)].read(record), id)


def _read(raw: Raw, index: int, file: Path | None, format: Format | None) -> Transcript | BrokenRecord:
    error = raw.error
    if not error:
        try:
            return read_transcript(raw.value, format=format, id=str(index))
        except InputError as broken:
            error = str(broken)
    place = f"{file}: record {index}" if file else f"record {index}"
    return BrokenRecord(index, InputError(f"{place}: {error}"))


def _conversations(raws: Iterable[Raw]) -> Iterator[Raw]:
    """The records of one top-level list; where its elements are messages, the list is one conversation."""
    said: list[Any] = []
    for position, raw in enumerate(raws):
        is_message = raw.group is not None and not raw.error and _is_message(raw.value)
        if is_message and len(said) == position:
            said.append(raw.value)
        elif said or is_message:
            # Half a conversation must not be scored as if it were a whole one.
            why = raw.error or "a list holds either the messages of one conversation or conversations"
            yield Raw(raw.index, None, f"element {position}: {why}")
            return
        else:
            yield raw
    if said:
        yield Raw(0, said)


def _is_message(value: Any) -> bool:
    return openai.is_message(value) or messages.is_message(value)


def _recognise(record: Any) -> Format:
    known = next((name for name, reader in _READERS.items() if reader.fits(record)), None)
    if known is not None:
        return known
    found = messages.listed(record)
    if found is not None and not found:
        raise InputError("the conversation is empty: its list of messages holds none")
    held = f"a list of {type(found[0]).__name__}" if found else type(record).__name__
    if isinstance(record, Mapping):
        held = f"an object with the keys {', '.join(map(repr, list(record)[:8])) or '(none)'}"
    raise InputError(
        f"no known format: {held}; known are OpenAI chat and LangChain messages (a list, or an object with "
        "`messages`), tau-bench results (`traj`), Pre-Act steps (`Conversation`), Glaive texts (`chat`), and what "
        "`arq-graph run` prints"
    )


def _transcript(recorded: Recorded, id: str) -> Transcript:
    events, instructions = messages.events_of(recorded.messages)
    held = recorded.held
    named = held.get("id", held.get("conversation_id", held.get("thread_id")))
    task, use_case = held.get("task_id"), held.get("use_case")
    return Transcript(
        tuple(events),
        id=str(named) if named is not None else id,
        task=str(task) if task is not None else None,
        use_case=str(use_case) if use_case is not None else None,
        instructions=instructions,
        tools=_tools(held.get("tools")),
        extra={key: value for key, value in held.items() if key not in recorded.but},
    )


def _tools(tools: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        return {}
    try:
        return argument_schemas(tools)
    except ToolError as error:
        raise InputError(f"its `tools`: {error}") from None
