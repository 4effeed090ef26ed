"""A conversation as a model reads it: one JSON object a line, each with an id that never shifts.

`M1`, `M2`, … are messages of the customer, the agent and the system; `T1`, `T2`, … are tool results, each with
the call that it answers. A call without a result is not shown. Lines are only ever appended, so the prompt of
the next turn begins with the prompt of this one. Images follow the line that names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from arq_graph.reasoning.blocks import Block, text_block
from arq_graph.reasoning.sections import as_json, clean

_CHARACTERS_A_TOKEN = 4  # which any tokenizer stays near enough to, for a bound
_TOKENS_AN_IMAGE = 1_000  # about what providers count for one of ordinary size
_ATTACHED = frozenset({"image", "audio", "video", "file", "text-plain"})
_IMAGE_KEYS = ("type", "base64", "url", "mime_type")


@dataclass(frozen=True)
class Line:
    """One line of the conversation: `M…` or `T…`, said by the customer, the agent, a tool or the system.

    `text` is the line as the prompt has it; `call` is the call that a tool result answers. `images` follow the line
    in the prompt, as LangChain's standard blocks; `unsupported_attachments` has the kinds of attachments that are only
    named there.
    """

    id: str
    speaker: str
    message: BaseMessage
    text: str
    call: Mapping[str, Any] | None = None
    images: tuple[Block, ...] = ()
    unsupported_attachments: tuple[str, ...] = ()

    @property
    def turn(self) -> str:
        """What records of the turn that this line opens carry."""
        return self.message.id or self.id

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in the prompt."""
        return -(-len(self.text) // _CHARACTERS_A_TOKEN) + _TOKENS_AN_IMAGE * len(self.images)


@dataclass(frozen=True)
class Conversation:
    """Messages as numbered lines, cut to half where they exceed a budget; images only if `shows_images`."""

    messages: Sequence[BaseMessage]
    max_tokens: int = 16_000
    shows_images: bool = True

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines, those included that the prompt leaves out."""
        return tuple(self._number())

    def _number(self) -> Iterator[Line]:
        calls: dict[str | None, Mapping[str, Any]] = {}
        spoken = results = pictures = 0
        for message in self.messages:
            attached = [*_attachments(message)]
            images = tuple(block for _, block in attached if block and self.shows_images)
            unsupported_attachments = tuple(
                kind for kind, block in attached if not block or not self.shows_images
            )
            names = [f"image {number}" for number in range(pictures + 1, pictures + len(images) + 1)]
            attachments = {"attachments": [*names, *unsupported_attachments]} if attached else {}
            if isinstance(message, ToolMessage):
                results += 1
                call = calls.get(message.tool_call_id) or {"name": message.name or "", "args": {}}
                record: dict[str, Any] = {"id": f"T{results}", "from": "tool"}
                record |= {"tool": call["name"], "arguments": call["args"]}
                record |= {**self._shortened("result", message.text), **attachments}
                record |= {"error": True} if message.status == "error" else {}
                yield Line(
                    record["id"], "tool", message, as_json(record), call, images, unsupported_attachments
                )
            else:
                if isinstance(message, AIMessage) and message.tool_calls:
                    calls |= {call["id"]: call for call in message.tool_calls}
                    if not message.text:
                        continue
                spoken += 1
                speaker = "agent" if isinstance(message, AIMessage) else "system"
                speaker = "customer" if isinstance(message, HumanMessage) else speaker
                record = {"id": f"M{spoken}", "from": speaker}
                record |= {**self._shortened("text", message.text), **attachments}
                yield Line(
                    record["id"], speaker, message, as_json(record), None, images, unsupported_attachments
                )
            pictures += len(images)

    def _shortened(self, key: str, text: str) -> dict[str, Any]:
        if len(text) <= self.max_tokens:
            return {key: text}
        half = self.max_tokens // 2
        return {key: f"{text[:half]} … {text[-half:]}", "shortened_from_characters": len(text)}

    @cached_property
    def first_shown(self) -> int:
        """Index of the first line that the prompt shows; a turn is shown whole or not at all."""
        counts = [line.tokens for line in self.lines]
        start = shown = 0
        later_turns: list[int] = []
        for index, line in enumerate(self.lines):
            shown += counts[index]
            if line.speaker == "customer" and index:
                later_turns.append(index)
            if shown > self.max_tokens:
                while later_turns and shown > self.max_tokens // 2:
                    shown -= sum(counts[start : later_turns[0]])
                    start = later_turns.pop(0)
        return start

    @cached_property
    def blocks(self) -> list[Block]:
        """The lines that the prompt shows, with a note where earlier ones were left out, and images behind their lines.

        A text ends with a customer's line, up to which calls were made, or where an image follows.
        """
        blocks: list[Block] = []
        text = ""
        if self.first_shown:
            last = self.lines[self.first_shown - 1].id
            text = as_json({"note": f"everything up to {last} is left out: the conversation is long"})
        for line in self.lines[self.first_shown :]:
            text += f"\n{line.text}" if text or blocks else line.text
            if line.speaker == "customer" or line.images:
                blocks += [text_block(text), *line.images]
                text = ""
        return [*blocks, text_block(text)] if text else blocks

    @cached_property
    def lines_by_id(self) -> dict[str, Line]:
        """Each line that the prompt shows by its id."""
        return {line.id: line for line in self.lines[self.first_shown :]}

    def find_line_id(self, message_id: str | None) -> str | None:
        """The line id of the message with this id; None where the prompt does not show it."""
        shown = self.lines_by_id.values()
        return next((line.id for line in shown if message_id and line.message.id == message_id), None)

    @cached_property
    def last_customer_line(self) -> Line | None:
        """The last thing the customer said."""
        return next((line for line in reversed(self.lines) if line.speaker == "customer"), None)

    @property
    def turn(self) -> str:
        """What records of this turn carry: the id of the last customer message ("" before the first)."""
        return self.last_customer_line.turn if self.last_customer_line else ""

    @cached_property
    def answered_turn(self) -> str | None:
        """The turn of the agent's last reply before the latest customer message: what that message may answer."""
        answered = replied = opened = None
        for line in self.lines:
            if line.speaker == "customer":
                answered, opened = replied, line.turn
            elif line.speaker == "agent":
                replied = opened
        return answered

    @cached_property
    def current_turn_results(self) -> tuple[Line, ...]:
        """The tool results of this turn: those after the last customer message."""
        line = self.last_customer_line
        since = self.lines.index(line) + 1 if line else 0
        return tuple(line for line in self.lines[since:] if line.speaker == "tool")


def _attachments(message: BaseMessage) -> Iterator[tuple[str, Block | None]]:
    """The kind of each attachment of a message, and an image's block with nothing in it but the image."""
    for block in _standard_blocks(message):
        kind, told = block["type"], block.get("value")
        if kind == "non_standard" and not isinstance(message, AIMessage):
            yield clean(str(told.get("type", "?") if isinstance(told, Mapping) else "?")), None
        elif kind in _ATTACHED:
            image = {key: block[key] for key in _IMAGE_KEYS if block.get(key) and isinstance(block[key], str)}
            is_whole = "url" in image or image.keys() >= {"base64", "mime_type"}
            yield kind, image if kind == "image" and is_whole else None


def _standard_blocks(message: BaseMessage) -> list[Mapping[str, Any]]:
    content = message.content
    try:
        return [] if isinstance(content, str) else [*message.content_blocks]
    except Exception:  # LangChain stumbles over blocks that lack what they need, and anybody may write those
        odd = (block for block in content if isinstance(block, dict) and block.get("type") != "text")
        return [{"type": "non_standard", "value": block} for block in odd]
