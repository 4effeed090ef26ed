"""The sections of a prompt, and the conversation in it.

Only a tag at the beginning of a line opens a section, and only in the first system and the first human message. What
customers and tools wrote is inside JSON with its angle brackets escaped, so it can't open one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from arq_graph.models.offline.words import split_words

_SECTION = re.compile(r"^<([a-z_]+)>(.*?)</\1>[ \t\r]*$", re.MULTILINE | re.DOTALL)
_COMPLAINT = re.compile(r"^- ([\w$.\[\]-]+)(?=:)", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """A line of the conversation, from the `customer`, the `agent`, the `system`, or a `tool` with its call."""

    id: str
    speaker: str
    text: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a tool's result that aren't empty."""
        result = _parse_json(self.text)
        if not isinstance(result, dict):
            return {}
        return {name: value for name, value in result.items() if value}


class Prompt:
    """A prompt.

    Attributes:
        sections: The JSON of its sections, by name.
        lines: The conversation.
        complaints: The places that complaints about earlier answers name.
        request: The customer's last message, and `request_id` its id.
        earlier_replies: The agent's messages.
        last_reply: The agent's last message before the customer's.
        results: This turn's tool results.
        pending_calls: The calls that the customer was asked to confirm.
        says_no: True if the customer's last message has a word that says no.
    """

    def __init__(self, sections: Mapping[str, Any], lines: Sequence[Line], complaints: Sequence[str]) -> None:
        self.sections = sections
        self.lines = lines
        self.complaints = complaints
        self.request, self.request_id, self.last_reply = "", "", ""
        self.earlier_replies: list[str] = []
        self.results: list[Line] = []
        for line in lines:
            if line.speaker == "agent":
                self.earlier_replies.append(line.text)
            elif line.speaker == "tool":
                self.results.append(line)
            elif line.speaker == "customer":
                self.request, self.request_id = line.text, line.id
                self.last_reply = "".join(self.earlier_replies[-1:])
                self.results = []
        self.pending_calls = self.get_from_tail("awaiting_confirmation")
        self.says_no = bool({"no", "not", "don't", "don’t"} & set(split_words(self.request)))

    def get_entries(self, section: str) -> list[dict[str, Any]]:
        """Return the objects that a section lists."""
        return [entry for entry in _as_list(self.sections.get(section)) if isinstance(entry, dict)]

    def get_from_tail(self, name: str) -> list[Any]:
        """Return a list of the section `now`."""
        now = self.sections.get("now")
        return _as_list(now.get(name)) if isinstance(now, dict) else []


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def read_prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Read a prompt: its sections, the conversation, and complaints about answers in further human messages."""
    systems = [str(message.text) for message in messages if isinstance(message, SystemMessage)]
    humans = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
    texts: dict[str, str] = {}
    for text in (*humans[:1], *systems[:1]):
        texts |= dict(_SECTION.findall(text))
    lines = list(_read_lines(texts.pop("conversation", "")))
    complaints = _COMPLAINT.findall("\n".join(humans[1:]))
    return Prompt({name: _parse_json(text) for name, text in texts.items()}, lines, complaints)


def _read_lines(text: str) -> Iterator[Line]:
    for row in text.splitlines():
        record = _parse_json(row)
        if not isinstance(record, dict) or "from" not in record:
            continue
        arguments = record.get("arguments")
        yield Line(
            id=str(record.get("id")),
            speaker=str(record["from"]),
            text=str(record.get("text") or record.get("result") or ""),
            tool=str(record.get("tool") or ""),
            arguments=arguments if isinstance(arguments, dict) else {},
            failed=record.get("error") is True,
        )


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
