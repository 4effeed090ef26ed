"""Transcripts from files and from data in memory, in any format that is known; the format recognises itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args

from arq_graph.errors import InputError, ToolError
from arq_graph.milestones import glaive, langchain_messages, openai_chat, preact_steps
from arq_graph.milestones.recording import Recording
from arq_graph.milestones.records import Raw, read_records
from arq_graph.milestones.store import is_head
from arq_graph.milestones.tool_schemas import argument_schemas
from arq_graph.milestones.transcript import Transcript

Format = Literal["openai", "langchain", "tau-bench", "pre-act", "glaive"]


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
    authors, and the text of the Glaive function-calling dataset; as a JSON list of conversations, as JSON Lines,
    or as one conversation, the last one also as plain text. Memory holds one conversation, however large the file.

    Args:
        source: A file, or what such a file holds, already read.
        format: The format; None: each record is recognised by itself.

    Raises:
        InputError: The file cannot be read at all, or the format is none of those known.
    """
    if format is not None and format not in get_args(Format):
        raise InputError(f"the format {format!r} is not known; known are {', '.join(get_args(Format))}")
    if isinstance(source, str | Path):
        file: Path | None = Path(source)
        is_text = format in (None, "glaive") and glaive.is_text_file(Path(source))
        raws = (glaive.read_text if is_text else read_records)(Path(source))
    else:
        file = None
        whole = [source] if isinstance(source, Mapping) else source
        raws = (Raw(index, value, None, 0) for index, value in enumerate(whole))
    index = 0
    raws = (raw for raw in raws if not is_head(raw.value))
    for _, group in groupby(raws, key=lambda raw: raw.group):
        for raw in _conversations(group):
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
    return _READERS[format or _recognise(record)](record, id)


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
    messages: list[Any] = []
    for position, raw in enumerate(raws):
        is_message = raw.group is not None and not raw.error and _is_message(raw.value)
        if is_message and len(messages) == position:
            messages.append(raw.value)
        elif messages or is_message:
            # Half a conversation must not be scored as if it were a whole one.
            said = raw.error or "a list holds either the messages of one conversation or conversations"
            yield Raw(raw.index, None, f"element {position}: {said}")
            return
        else:
            yield raw
    if messages:
        yield Raw(0, messages)


def _is_message(value: Any) -> bool:
    return openai_chat.is_message(value) or langchain_messages.is_message(value)


def _recognise(record: Any) -> Format:
    messages = _messages(record)
    if messages:
        if openai_chat.is_message(messages[0]):
            return "openai"
        if langchain_messages.is_message(messages[0]):
            return "langchain"
    elif messages is not None:
        raise InputError("the conversation is empty: its list of messages holds none")
    held = type(record).__name__
    if glaive.is_glaive(record):
        return "glaive"
    if isinstance(record, Mapping):
        if "traj" in record:
            return "tau-bench"
        if "Conversation" in record or preact_steps.is_steps(record):
            return "pre-act"
        held = f"an object with the keys {', '.join(map(repr, list(record)[:8])) or '(none)'}"
    elif messages:
        held = f"a list of {type(messages[0]).__name__}"
    raise InputError(
        f"no known format: {held}; known are OpenAI chat and LangChain messages (a list, or an object with "
        "`messages`), tau-bench results (`traj`), Pre-Act steps (`Conversation`) and Glaive texts (`chat`)"
    )


def _messages(record: Any) -> Any:
    found = record.get("messages") if isinstance(record, Mapping) else record
    return found if isinstance(found, list | tuple) else None


def _from_messages(record_messages: Callable[[Iterable[Any]], Recording]) -> Callable[[Any, str], Transcript]:
    def read(record: Any, id: str) -> Transcript:
        messages = _messages(record)
        if messages is None:
            raise InputError("no list of messages, and no object with one under `messages`")
        return _transcript(record_messages(messages), record, id, but=("messages",))

    return read


def _from_tau_bench(record: Any, id: str) -> Transcript:
    if not isinstance(record, Mapping) or not isinstance(record.get("traj"), list):
        raise InputError("no tau-bench result: it has no list `traj`")
    info = record.get("info")
    task = info.get("task") if isinstance(info, Mapping) else None
    gold = {"actions": task["actions"]} if isinstance(task, Mapping) and "actions" in task else {}
    run = {"id": f"task {record['task_id']}, trial {record.get('trial', 0)}"} if "task_id" in record else {}
    return _transcript(
        openai_chat.record_messages(record["traj"]), {**record, **run, **gold}, id, but=("traj",)
    )


def _from_steps(record: Any, id: str) -> Transcript:
    steps = record.get("Conversation", record) if isinstance(record, Mapping) else record
    held = record if steps is not record else {}
    return _transcript(preact_steps.record_steps(steps), held, id, but=("Conversation",))


def _from_glaive(record: Any, id: str) -> Transcript:
    recording, tools = glaive.record_chat(record)
    held = record if isinstance(record, Mapping) else {}
    return _transcript(recording, {**held, "tools": tools}, id, but=("system", "chat", "sample"))


_READERS: Mapping[Format, Callable[[Any, str], Transcript]] = {
    "openai": _from_messages(openai_chat.record_messages),
    "langchain": _from_messages(langchain_messages.record_messages),
    "tau-bench": _from_tau_bench,
    "pre-act": _from_steps,
    "glaive": _from_glaive,
}


def _transcript(recording: Recording, record: Any, id: str, *, but: tuple[str, ...]) -> Transcript:
    held: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    named = held.get("id", held.get("conversation_id", held.get("thread_id")))
    task = held.get("task_id")
    use_case = held.get("use_case")
    return Transcript(
        tuple(recording.events),
        id=str(named) if named is not None else id,
        task=str(task) if task is not None else None,
        use_case=str(use_case) if use_case is not None else None,
        instructions="\n\n".join(recording.instructions),
        tools=_tools(held.get("tools")),
        extra={key: value for key, value in held.items() if key not in but},
    )


def _tools(tools: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        return {}
    try:
        return argument_schemas(tools)
    except ToolError as error:
        raise InputError(f"its `tools`: {error}") from None
