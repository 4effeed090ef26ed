"""Putting a transcript together: messages, calls, and each result with the call that it answers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Call, Event, Message, Result, Speaker
from arq_graph.milestones.values import as_text

Step = int | str | None

_TEXT_BLOCKS = ("text", "input_text", "output_text", "refusal")


class Recording:
    """The events of one conversation, in the order in which they are told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.instructions: list[str] = []
        # Calls without a result, by event number; and in which order they may be answered, by id and by tool.
        self._open: dict[int, Call] = {}
        self._by_id: dict[str, list[int]] = {}
        self._by_tool: dict[str, deque[int]] = {}

    def instruct(self, text: str, step: Step) -> None:
        """The system prompt; one that comes later, in the middle of the conversation, is an event."""
        if self.events:
            self.events.append(Message("system", text, step))
        elif text:
            self.instructions.append(text)

    def say(self, speaker: Speaker, text: str, step: Step) -> None:
        """Something is said."""
        self.events.append(Message(speaker, text, step))

    def call(self, tool: Any, arguments: Any, id: Any, step: Step) -> None:
        """A tool is called."""
        if not isinstance(tool, str) or not tool:
            raise InputError(f"message {step}: a tool call without a name")
        if arguments is None:
            raise InputError(
                f"message {step}: the call of {tool!r} has no arguments; an empty object is {{}}"
            )
        read: Any = arguments
        if isinstance(arguments, str):
            try:
                # Several providers write nothing at all for a tool without arguments.
                read = json.loads(arguments) if arguments.strip() else {}
            except (ValueError, RecursionError):
                read = None
        known = str(id) if id is not None else None
        if isinstance(read, Mapping):
            call = Call(tool, read, known, None, step)
        else:
            call = Call(tool, {}, known, str(arguments), step)
        self.events.append(call)
        number = len(self.events)
        self._open[number] = call
        if known is not None:
            self._by_id.setdefault(known, []).append(number)
        for name in ("", tool):
            self._by_tool.setdefault(name, deque()).append(number)

    def answer(self, id: Any, tool: Any, text: str, step: Step, *, failed: bool = False) -> None:
        """A tool gives something back."""
        name = tool if isinstance(tool, str) else ""
        waiting: Any = self._by_tool.get(name) if id is None else self._by_id.get(str(id))
        number = self._next(waiting, newest=id is not None)
        if number is None:
            self.events.append(Result(None, name, text, failed, step))
        else:
            self.events.append(Result(number, self._open.pop(number).tool, text, failed, step))

    def _next(self, waiting: Any, *, newest: bool) -> int | None:
        """The newest or the first of these calls that is open; what was answered is dropped on the way."""
        while waiting:
            number: int = waiting.pop() if newest else waiting.popleft()
            if number in self._open:
                return number
        return None


def text_of(content: Any, step: Step) -> str:
    """The text of a message's content: a text, nothing, or a list of content blocks."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list | tuple):
        return "\n".join(text for text in map(_block_text, content) if text)
    raise InputError(
        f"message {step}: the content is {type(content).__name__}, not text and not a list of blocks"
    )


def result_text(content: Any) -> str:
    """What a tool gave back, as text; what is no text, as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list | tuple) and content and all(_is_block(block) for block in content):
        return "\n".join(text for text in map(_block_text, content) if text)
    try:
        return as_text(content)
    except (ValueError, RecursionError):
        raise InputError("what a tool gave back is nested too deep, or holds itself") from None


def _is_block(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, Mapping) and isinstance(block.get("type"), str))


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping) or block.get("type") not in _TEXT_BLOCKS:
        return ""
    text = block.get("text", block.get("refusal"))
    return text if isinstance(text, str) else ""
