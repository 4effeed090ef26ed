"""The sections of a prompt, and the conversation in it.

Only a tag at the beginning of a line opens a section, and only in the first system and the first human message. What
customers and tools wrote is inside JSON with its angle brackets escaped, so it can't open one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from arq_graph.models.offline.words import NEGATIONS, split_words

_SECTION = re.compile(r"^<([a-z_]+)>(.*?)</\1>[ \t\r]*$", re.MULTILINE | re.DOTALL)
_COMPLAINT = re.compile(r"^- ([\w$.\[\]-]+)(?=:)", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """A line of the conversation, from the `customer`, the `agent`, the `system`, or a `tool` with its call."""

    id: str
    speaker: str
    text: str
    tool: str
    arguments: Mapping[str, Any]
    failed: bool

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

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        systems = [str(message.text) for message in messages if isinstance(message, SystemMessage)]
        humans = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
        texts: dict[str, str] = {}
        for text in (*humans[:1], *systems[:1]):
            texts |= dict(_SECTION.findall(text))
        self.lines = _read_lines(texts.pop("conversation", ""))
        self.sections = {name: _parse_json(text) for name, text in texts.items()}
        self.complaints: list[str] = _COMPLAINT.findall("\n".join(humans[1:]))
        self.request, self.request_id, self.last_reply = "", "", ""
        self.earlier_replies: list[str] = []
        self.results: list[Line] = []
        for line in self.lines:
            if line.speaker == "agent":
                self.earlier_replies.append(line.text)
            elif line.speaker == "tool":
                self.results.append(line)
            elif line.speaker == "customer":
                self.request, self.request_id = line.text, line.id
                self.last_reply = "".join(self.earlier_replies[-1:])
                self.results = []
        self.pending_calls: list[dict[str, Any]] = self.now.get("awaiting_confirmation", [])
        self.says_no = bool(NEGATIONS & set(split_words(self.request)))

    @property
    def now(self) -> dict[str, Any]:
        """The section `now`."""
        section = self.sections.get("now")
        return section if isinstance(section, dict) else {}

    def get_entries(self, section: str) -> list[dict[str, Any]]:
        """Return the objects that a section lists."""
        entries = self.sections.get(section)
        if not isinstance(entries, list):
            return []
        return [entry for entry in entries if isinstance(entry, dict)]


def _read_lines(text: str) -> list[Line]:
    lines = []
    for row in text.splitlines():
        record = _parse_json(row)
        if isinstance(record, dict) and "from" in record:
            line = Line(
                id=str(record.get("id")),
                speaker=record["from"],
                text=str(record.get("text") or record.get("result") or ""),
                tool=record.get("tool", ""),
                arguments=record.get("arguments") or {},
                failed=record.get("error") is True,
            )
            lines.append(line)
    return lines


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
