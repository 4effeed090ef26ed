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
        self._unanswered: dict[int, Call] = {}
        # The calls by their id, those that one message makes together in one group; and those that a result
        # without an id may answer, by (whether calls with an id are among them, the tool or any). Answered
        # ones are dropped where they are met, so that many results cost no more than many calls.
        self._by_id: dict[str, list[deque[int]]] = {}
        self._in_order: dict[tuple[bool, str], deque[int]] = {}
        self._first_of_message = 1

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
        """A tool is called.

        Args:
            tool: Its name.
            arguments: A mapping, or the JSON text of one. What a model wrote that is neither makes a malformed
                call, which never counts.
            id: The provider's id of the call, if any.
            step: Where it stands in the record.

        Raises:
            InputError: The call has no name, or no arguments at all: the record is broken, not the call.
        """
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
        together = bool(self.events) and isinstance(self.events[-1], Call) and self.events[-1].step == step
        self.events.append(call)
        if not together:
            self._first_of_message = len(self.events)
        self._open(len(self.events), call)

    def answer(self, id: Any, tool: Any, text: str, step: Step, *, failed: bool = False) -> None:
        """A tool gives something back.

        Args:
            id: The id of the call that it answers. Where an id is used again, the newest open call has it (of
                several that one message makes, the first). Without an id, it answers the first open call of
                the tool.
            tool: The tool's name, if the record has it.
            text: What it gives back.
            step: Where it stands in the record.
            failed: The record marks it as an error.
        """
        known = str(id) if id is not None else None
        name = tool if isinstance(tool, str) else ""
        number = self._newest(known) if known else None
        if number is None:
            number = self._first(self._in_order.get((known is None, name)))
        if number is None:
            self.events.append(Result(None, name, text, failed, step))
        else:
            self.events.append(Result(number, self._unanswered.pop(number).tool, text, failed, step))

    def _open(self, number: int, call: Call) -> None:
        self._unanswered[number] = call
        for any_id in (True,) if call.id is not None else (True, False):
            for tool in ("", call.tool):
                self._in_order.setdefault((any_id, tool), deque()).append(number)
        if call.id is not None:
            groups = self._by_id.setdefault(call.id, [])
            if groups and groups[-1] and groups[-1][-1] >= self._first_of_message:
                groups[-1].append(number)
            else:
                groups.append(deque((number,)))

    def _newest(self, id: str) -> int | None:
        groups = self._by_id.get(id, [])
        while groups:
            if (number := self._first(groups[-1])) is not None:
                return number
            groups.pop()
        return None

    def _first(self, numbers: deque[int] | None) -> int | None:
        while numbers:
            if numbers[0] in self._unanswered:
                return numbers[0]
            numbers.popleft()
        return None


def text_of(content: Any, step: Step) -> str:
    """The text of a message's content: a text, nothing, or a list of content blocks.

    Raises:
        InputError: It is none of these.
    """
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
    """What a tool gave back, as text; what is no text, as JSON.

    Raises:
        InputError: It is nested too deep to be written.
    """
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
