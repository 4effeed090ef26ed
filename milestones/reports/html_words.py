"""Any text and any value as a page may show them."""

from __future__ import annotations

import json
import re
from typing import Any

from arq_graph.milestones.transcript import Call, Event, Message, Transcript
from arq_graph.reasoning.sections import clean

MAX_CHARACTERS = 4_000
"""So much of each text is shown."""

# Control characters, and those that turn the direction of a line: shown by their number, they cannot hide a text.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# What could end a script element or begin another, and line ends that older JavaScript does not take in a text.
_IN_A_SCRIPT = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def shown(text: str) -> str:
    """A text in which nothing is hidden, and which can be written as UTF-8."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", clean(text))


def embedded(value: Any) -> str:
    """A value as JSON that can stand in a script element: its texts are `shown`, and none can end the element."""
    text = json.dumps(_shown(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_IN_A_SCRIPT)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(str(name)): _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value


class Words:
    """Transcripts as the page reads them, and a count of the texts that had to be cut."""

    def __init__(self) -> None:
        self.cut = 0
        self.instructions: dict[str, int] = {}

    def of(self, transcript: Transcript) -> dict[str, Any]:
        """A transcript: its events, and the number of its instructions, which many conversations share."""
        found: dict[str, Any] = {"events": [self._event(event) for event in transcript.events]}
        if transcript.instructions:
            instructions = transcript.instructions
            found["instructions"] = self.instructions.setdefault(instructions, len(self.instructions))
        return found

    def text(self, text: str) -> str | list[Any]:
        """A text, or its beginning and the number of the characters that were left out."""
        rest = len(text) - MAX_CHARACTERS
        if rest <= 0:
            return text
        self.cut += 1
        return [text[:MAX_CHARACTERS], rest]

    def _event(self, event: Event) -> dict[str, Any]:
        if isinstance(event, Message):
            return {"speaker": event.speaker, "text": self.text(event.text)}
        if isinstance(event, Call):
            if event.malformed is not None:
                return {"tool": event.tool, "malformed": self.text(event.malformed)}
            arguments = [[str(name), self.text(_as_text(value))] for name, value in event.arguments.items()]
            return {"tool": event.tool, "arguments": arguments}
        known = {"call": event.call, "failed": event.failed or None}
        return {"result": event.tool, "text": self.text(event.text)} | {
            name: value for name, value in known.items() if value is not None
        }


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (TypeError, ValueError, RecursionError):  # keys of several types, a value that holds itself
        return str(value)
