"""The sections of a prompt, the conversation in it, and the words of texts, all that the model knows of language.

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

QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")
_SECTION = re.compile(r"^<([a-z_]+)>(.*?)</\1>[ \t\r]*$", re.MULTILINE | re.DOTALL)
_COMPLAINT = re.compile(r"^- ([\w$.\[\]-]+)(?=:)", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_PREFIX_LENGTH = 4

ASKING = "Could you please tell me"
"""The beginning of the offline model's question for an argument."""
WAITING = "I can't go on without"
"""The beginning of what it says in place of the question if the last reply asked it."""
_NEGATIONS = frozenset({"no", "not", "without", "don't", "don’t"})


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
        sections: The JSON of its sections, by name; `now` is the one of that name.
        lines: The conversation.
        complaints: The places that complaints about earlier answers name.
        request: The customer's last message, and `request_id` its id.
        open_request: The one before the agent began to ask for arguments, and `open_request_id` its id; empty if the
            last reply didn't ask for any.
        earlier_replies: The agent's messages.
        last_reply: The agent's last message before the customer's.
        results: This turn's tool results.
        pending_calls: The calls that the customer was asked to confirm.
        says_no: True if the customer's last message has a word that says no.
    """

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        humans = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
        systems = [str(message.text) for message in messages if isinstance(message, SystemMessage)]
        texts: dict[str, str] = {}
        for text in humans[:1] + systems[:1]:
            texts |= dict(_SECTION.findall(text))
        self.lines = _read_lines(texts.pop("conversation", ""))
        self.sections = {name: _parse_json(text) for name, text in texts.items()}
        self.now: dict[str, Any] = self.sections.get("now") or {}
        self.complaints: list[str] = _COMPLAINT.findall("\n".join(humans[1:]))
        self.request, self.request_id, self.last_reply = "", "", ""
        self.open_request, self.open_request_id = "", ""
        self.earlier_replies: list[str] = []
        self.results: list[Line] = []
        for line in self.lines:
            if line.speaker == "agent":
                self.earlier_replies.append(line.text)
            elif line.speaker == "tool":
                self.results.append(line)
            elif line.speaker == "customer":
                self.last_reply = "".join(self.earlier_replies[-1:])
                if ASKING not in self.last_reply and WAITING not in self.last_reply:
                    self.open_request, self.open_request_id = "", ""
                elif not self.open_request:
                    self.open_request, self.open_request_id = self.request, self.request_id
                self.request, self.request_id = line.text, line.id
                self.results = []
        self.pending_calls: list[dict[str, Any]] = self.now.get("awaiting_confirmation", [])
        self.says_no = has_negation(self.request)

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


def split_words(text: object) -> list[str]:
    """Return the words of a text in lower case; `order_id` is two words."""
    return [word.casefold() for word in _WORD.findall(str(text))]


def to_phrase(name: str) -> str:
    """Return a name in code as words: `order_id` and `orderId` are "order id"."""
    return " ".join(split_words(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)))


def has_negation(text: str) -> bool:
    """Return True if a word of the text says no."""
    return not _NEGATIONS.isdisjoint(split_words(text))


_STOP_WORDS = frozenset(
    split_words(
        """
        a an the this that it its is are was be been has have had do does did can could will would may shall should
        i me my we us our you your he she they their them there here and or but if as at by for from in into of on out
        to up with about what which who where so please just any some customer user agent wants want asks ask says say
        said tells tell needs need like get
        """
    )
)


def find_common(text: str, other: str) -> list[str]:
    """Return the words of a text that begin like a word of the other one, without words that say little."""
    prefixes = {word[:_PREFIX_LENGTH] for word in split_content_words(other)}
    return [word for word in split_content_words(text) if word[:_PREFIX_LENGTH] in prefixes]


def split_content_words(text: str) -> list[str]:
    """Return the words of a text, each once, without those that say little."""
    return [word for word in dict.fromkeys(split_words(text)) if word not in _STOP_WORDS]
