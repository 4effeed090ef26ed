"""Reading a prompt: its named sections of JSON, and the conversation in it.

Only a tag at the beginning of a line opens a section, and only in the first system and the first human message. What
customers and tools wrote stands inside JSON with its angle brackets escaped, so it can open none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from arq_graph.models.offline.stems import words

_SECTION = re.compile(r"^<([a-z_]+)>(.*?)</\1>[ \t\r]*$", re.MULTILINE | re.DOTALL)
_COMPLAINT = re.compile(r"^- ([\w$.\[\]-]+)(?=:)", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """What the `customer`, the `agent` or the `system` said, or what a `tool` told, with the call that it answers."""

    id: str
    speaker: str
    text: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False

    @cached_property
    def result(self) -> Any:
        """A tool's result as data; the text itself where it is no JSON."""
        return _json(self.text, self.text)

    @property
    def told(self) -> dict[str, Any]:
        """The fields of a result that hold something."""
        fields = self.result if isinstance(self.result, dict) else {}
        return {name: value for name, value in fields.items() if value}

    @property
    def words(self) -> str:
        """What a result says, as one text with its call and the names of its fields."""
        told = self.told if isinstance(self.result, dict) else self.text
        return f"{self.tool} {_flat(self.arguments)} {_flat(told)}"


class Prompt:
    """A prompt, read: its sections, the conversation, and the places complained about in earlier answers.

    Its `request` is what the `customer` said last, `answered` what the agent had said before, `results` what tools
    told since, `said` all that the agent has said, `now` what the tail says about this turn, and `waiting` the calls
    that were put to the customer.
    """

    def __init__(self, sections: Mapping[str, Any], lines: Sequence[Line], complaints: Sequence[str]) -> None:
        self.sections = sections
        self.lines = lines
        self.complaints = complaints
        turn = max((at for at, line in enumerate(lines) if line.speaker == "customer"), default=-1)
        self.customer = lines[turn] if turn >= 0 else None
        self.request = self.customer.text if self.customer else ""
        self.said = [line.text for line in lines if line.speaker == "agent"]
        self.answered = next((line.text for line in lines[:turn][::-1] if line.speaker == "agent"), "")
        self.results = [line for line in lines[turn + 1 :] if line.speaker == "tool"]
        now = sections.get("now")
        self.now: Mapping[str, Any] = now if isinstance(now, dict) else {}
        self.waiting = [each for each in self.listed("awaiting_confirmation") if isinstance(each, dict)]
        self.says_no = bool({"no", "not", "don't", "don’t"} & set(words(self.request)))

    def entries(self, name: str) -> list[dict[str, Any]]:
        """The objects that a section lists; none where it is absent or holds something else."""
        value = self.sections.get(name)
        return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []

    def listed(self, name: str) -> list[Any]:
        """What the tail lists under a name."""
        value = self.now.get(name)
        return value if isinstance(value, list) else []


def read_prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Read a prompt; where it holds no `<conversation>`, the messages themselves are the conversation."""
    head = next((str(message.text) for message in messages if isinstance(message, SystemMessage)), "")
    spoken: list[BaseMessage] = [each for each in messages if isinstance(each, HumanMessage | AIMessage)]
    body = next((str(message.text) for message in spoken if isinstance(message, HumanMessage)), "")
    raw = {match[1]: match[2] for match in [*_SECTION.finditer(body), *_SECTION.finditer(head)]}
    spoken, complaints = _without_complaints(spoken)
    lines = _lines(raw.pop("conversation")) if "conversation" in raw else _lines_of(spoken)
    return Prompt({name: _json(text) for name, text in raw.items()}, tuple(lines), complaints)


def _without_complaints(spoken: Sequence[BaseMessage]) -> tuple[list[BaseMessage], tuple[str, ...]]:
    """The messages without answers that were refused, and the places that were complained about in them."""
    kept, places = list(spoken), []
    while len(kept) > 2 and isinstance(kept[-2], AIMessage) and isinstance(kept[-1], HumanMessage):
        if not (found := _COMPLAINT.findall(str(kept[-1].text))):
            break
        places += found
        del kept[-2:]
    return kept, tuple(places)


def _json(text: str, otherwise: Any = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_flat(each)}" for name, each in value.items() if each)
    return " ".join(map(_flat, value)) if isinstance(value, list) else str(value)


def _lines(text: str) -> Iterator[Line]:
    for row in text.splitlines():
        record = _json(row)
        if not isinstance(record, dict) or "from" not in record:
            continue
        is_tool = record["from"] == "tool"
        said, arguments = record.get("result" if is_tool else "text"), record.get("arguments")
        yield Line(
            str(record.get("id")),
            str(record["from"]),
            str(said or ""),
            str(record.get("tool") or ""),
            arguments if isinstance(arguments, dict) else {},
            record.get("error") is True,
        )


def _lines_of(messages: Iterable[BaseMessage]) -> Iterator[Line]:
    for number, message in enumerate(messages, start=1):
        speaker = "agent" if isinstance(message, AIMessage) else "customer"
        yield Line(f"M{number}", speaker, str(message.text))
