"""Reading a prompt: its named sections of JSON, and the conversation in it.

Only a tag at the beginning of a line opens a section, and only in the first system and the first human message.
What customers and tools wrote stands inside JSON with its angle brackets escaped, so it can open none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from arq_graph.models.offline.persons import as_customer, roles_in

_SECTION = re.compile(r"^<([a-z_]+)>(.*?)</\1>[ \t\r]*$", re.MULTILINE | re.DOTALL)
_COMPLAINT = re.compile(r"^- [\w$-]+(?:[.\[][^\s:]*)?: ", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """One entry of the conversation.

    Args:
        id: `M…` for something said, `T…` for a tool's result.
        speaker: `customer`, `agent`, `tool` or `system`.
        text: What was said, or the result as text.
        tool: Name of the tool.
        arguments: What the tool was called with.
        error: Whether the result is an error.
    """

    id: str
    speaker: str
    text: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    error: bool = False

    @cached_property
    def result(self) -> Any:
        """A tool's result as data; the text itself where it is no JSON."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return self.text


@dataclass(frozen=True)
class Prompt:
    """A prompt, read.

    Args:
        head: The text of the system message.
        body: The text of the first human message.
        complaints: What the caller found wrong with earlier answers to this same prompt, oldest first.
        refused: The last of those answers.
        sections: The sections by name, as data.
        lines: The conversation.
    """

    head: str
    body: str
    complaints: tuple[str, ...]
    refused: str
    sections: Mapping[str, Any]
    lines: tuple[Line, ...]

    def entries(self, name: str) -> list[dict[str, Any]]:
        """The objects that a section lists; none where it is absent or holds something else."""
        value = self.sections.get(name)
        return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []

    def guidelines(self, name: str = "guidelines") -> list[dict[str, Any]]:
        """The guidelines that a section lists, with "the customer" for the skipper or the pupil that they speak of."""
        listed = self.entries(name)
        roles = roles_in(
            (str(entry.get("condition") or ""), str(entry.get("action") or "")) for entry in listed
        )
        told = ("condition", "action")
        return [
            {
                **entry,
                **{key: as_customer(entry[key], roles) for key in told if isinstance(entry.get(key), str)},
            }
            for entry in listed
        ]

    @property
    def now(self) -> Mapping[str, Any]:
        """What the tail says about this very turn."""
        value = self.sections.get("now")
        return value if isinstance(value, dict) else {}

    def ids(self, name: str) -> list[str]:
        """The ids that the tail lists under a name."""
        value = self.now.get(name)
        return [id for id in value if isinstance(id, str)] if isinstance(value, list) else []

    @property
    def profile(self) -> Mapping[str, Any]:
        """The agent's name and description."""
        value = self.sections.get("profile")
        return value if isinstance(value, dict) else {}


def read_prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Read a prompt from its messages.

    Where no human message holds a `<conversation>`, the messages themselves are the conversation.
    """
    head = "\n".join(str(message.text) for message in messages if isinstance(message, SystemMessage))
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    spoken, complaints, refused = _without_complaints(spoken)
    first = next((message for message in spoken if isinstance(message, HumanMessage)), None)
    body = str(first.text) if first is not None else ""
    raw = {**_sections(body), **_sections(head)}
    sections = {name: _json(text) for name, text in raw.items() if name != "conversation"}
    lines = _lines(raw["conversation"]) if "conversation" in raw else _lines_of_messages(spoken)
    return Prompt(head, body, complaints, refused, sections, tuple(lines))


def _without_complaints(spoken: Sequence[BaseMessage]) -> tuple[list[BaseMessage], tuple[str, ...], str]:
    """The messages without what follows an answer that was refused: the answer, and what was wrong with it."""
    kept = list(spoken)
    complaints: list[str] = []
    refused = ""
    while len(kept) > 2 and isinstance(kept[-2], AIMessage) and isinstance(kept[-1], HumanMessage):
        text = str(kept[-1].text)
        if not _COMPLAINT.search(text):
            break
        complaints.insert(0, text)
        refused = refused or str(kept[-2].text)
        del kept[-2:]
    return kept, tuple(complaints), refused


def _sections(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _SECTION.finditer(text):
        found.setdefault(match[1], match[2])
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _lines(text: str) -> Iterable[Line]:
    for number, row in enumerate(text.splitlines(), start=1):
        record = _json(row)
        if isinstance(record, dict) and isinstance(record.get("from"), str):
            yield _line(record, number)


def _line(record: Mapping[str, Any], number: int) -> Line:
    is_tool = record["from"] == "tool"
    text = record.get("result" if is_tool else "text", "")
    arguments = record.get("arguments")
    return Line(
        id=str(record.get("id") or f"M{number}"),
        speaker=record["from"],
        text=text if isinstance(text, str) else json.dumps(text, ensure_ascii=False),
        tool=str(record.get("tool") or "") if is_tool else "",
        arguments=arguments if isinstance(arguments, dict) else {},
        error=record.get("error") is True,
    )


def _lines_of_messages(messages: Iterable[BaseMessage]) -> Iterable[Line]:
    calls: dict[str, Mapping[str, Any]] = {}
    said = results = 0
    for message in messages:
        if isinstance(message, ToolMessage):
            results += 1
            call = calls.get(message.tool_call_id, {})
            name = str(call.get("name") or message.name or "")
            yield Line(
                f"T{results}",
                "tool",
                str(message.text),
                name,
                call.get("args") or {},
                message.status == "error",
            )
            continue
        if isinstance(message, AIMessage):
            calls.update({call["id"]: dict(call) for call in message.tool_calls if call["id"]})
            if not message.text:
                continue
        said += 1
        speaker = "agent" if isinstance(message, AIMessage) else "customer"
        yield Line(f"M{said}", speaker, str(message.text))
