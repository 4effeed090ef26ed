"""A conversation as a model reads it: one JSON object a line, each with an id that never shifts.

`M1`, `M2`, … are messages of the customer, the agent and the system; `T1`, `T2`, … are tool results, each with the call
that it answers. A call without a result is not shown. Lines are only ever appended, so that the prompt of the next turn
begins with the prompt of this one. Images follow the line that names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from arq_graph.reasoning.endpoints import Block
from arq_graph.reasoning.sections import as_json, clean
from arq_graph.reasoning.tool_calls import pair_calls

_CHARACTERS_PER_TOKEN = 4  # close enough to any tokenizer for a limit
_TOKENS_PER_IMAGE = 1_000  # about what providers count for one of ordinary size
_ATTACHMENT_TYPES = frozenset({"image", "audio", "video", "file", "text-plain"})
_IMAGE_KEYS = ("type", "base64", "url", "mime_type")

Speaker = Literal["customer", "agent", "tool", "system"]


@dataclass(frozen=True)
class Line:
    """One line of the conversation.

    Args:
        id: `M…` or `T…`.
        speaker: The author of the message.
        message: The message itself.
        text: The line as the prompt shows it.
        call: The call that a tool result answers; without it in the messages, its tool alone, if that is known.
        images: Images of the message, as LangChain's standard blocks; in the prompt they follow the line.
        unsupported_attachments: The kinds of attachments that the line only names.
    """

    id: str
    speaker: Speaker
    message: BaseMessage
    text: str
    call: Mapping[str, Any] | None = None
    images: tuple[Block, ...] = ()
    unsupported_attachments: tuple[str, ...] = ()

    @property
    def turn_id(self) -> str:
        """The id of the turn that this line begins, as records name it."""
        return self.message.id or self.id


@dataclass(frozen=True)
class Conversation:
    """Messages as numbered lines.

    Args:
        messages: The history.
        max_tokens: Over it, the prompt shows only the last turns, up to half as many tokens.
        shows_images: Whether the model takes images.
    """

    messages: Sequence[BaseMessage]
    max_tokens: int = 16_000
    shows_images: bool = True

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines, including those that the prompt leaves out; a message with nothing but tool calls has none."""
        lines: list[Line] = []
        calls_by_result = {id(call.result): call.call for call in pair_calls(self.messages)}
        message_count = result_count = image_count = 0
        for message in self.messages:
            if isinstance(message, AIMessage) and message.tool_calls and not message.text:
                continue
            call: Mapping[str, Any] | None = None
            if isinstance(message, ToolMessage):
                speaker: Speaker = "tool"
                result_count += 1
                call = calls_by_result.get(id(message))
                if call is None and message.name:
                    call = {"name": message.name, "args": {}}
                record: dict[str, Any] = {"id": f"T{result_count}", "from": speaker}
                record["tool"] = call["name"] if call else ""
                record["arguments"] = call["args"] if call else {}
                record |= self._shorten("result", message.text)
            else:
                speaker = "agent" if isinstance(message, AIMessage) else "system"
                if isinstance(message, HumanMessage):
                    speaker = "customer"
                message_count += 1
                record = {"id": f"M{message_count}", "from": speaker}
                if speaker == "customer" and message.name:
                    record["name"] = clean(message.name)
                record |= self._shorten("text", message.text)
            images, unsupported = _split_attachments(message, self.shows_images)
            attachments: list[str] = []
            for _ in images:
                image_count += 1
                attachments.append(f"image {image_count}")
            if attachments or unsupported:
                record["attachments"] = attachments + unsupported
            if isinstance(message, ToolMessage) and message.status == "error":
                record["error"] = True
            text = as_json(record)
            line = Line(record["id"], speaker, message, text, call, tuple(images), tuple(unsupported))
            lines.append(line)
        return tuple(lines)

    def _shorten(self, key: str, text: str) -> dict[str, Any]:
        if len(text) <= self.max_tokens:
            return {key: text}
        half = self.max_tokens // 2
        return {key: f"{text[:half]} … {text[-half:]}", "shortened_from_characters": len(text)}

    @cached_property
    def first_shown(self) -> int:
        """The index of the first line that the prompt shows; a turn is shown whole or not at all."""
        counts: list[int] = []
        for line in self.lines:
            text_tokens = -(-len(line.text) // _CHARACTERS_PER_TOKEN)  # rounded up
            counts.append(text_tokens + _TOKENS_PER_IMAGE * len(line.images))
        start = shown_tokens = 0
        later_turns: list[int] = []
        for index, line in enumerate(self.lines):
            shown_tokens += counts[index]
            if line.speaker == "customer" and index:
                later_turns.append(index)
            if shown_tokens > self.max_tokens:
                while later_turns and shown_tokens > self.max_tokens // 2:
                    shown_tokens -= sum(counts[start : later_turns[0]])
                    start = later_turns.pop(0)
        return start

    @cached_property
    def blocks(self) -> list[Block]:
        """The lines that the prompt shows, after a note if earlier ones are left out, and images behind their lines.

        A text block ends with a customer's line, up to which earlier calls were made, or where an image follows.
        """
        blocks: list[Block] = []
        text = ""
        if self.first_shown:
            last = self.lines[self.first_shown - 1].id
            text = as_json({"note": f"everything up to {last} is left out: the conversation is long"})
        for line in self.lines[self.first_shown :]:
            text += f"\n{line.text}" if text or blocks else line.text
            if line.speaker == "customer" or line.images:
                blocks.append({"type": "text", "text": text})
                blocks.extend(line.images)
                text = ""
        if text:
            blocks.append({"type": "text", "text": text})
        return blocks

    @cached_property
    def lines_by_id(self) -> dict[str, Line]:
        """The lines that the prompt shows, by id."""
        return {line.id: line for line in self.lines[self.first_shown :]}

    def find_line_id(self, message_id: str | None) -> str | None:
        """Return the line id of a message; None if the prompt doesn't show it."""
        for line in self.lines_by_id.values():
            if message_id and line.message.id == message_id:
                return line.id
        return None

    @cached_property
    def last_customer_line(self) -> Line | None:
        """The customer's last message."""
        customer_lines = (line for line in reversed(self.lines) if line.speaker == "customer")
        return next(customer_lines, None)

    @property
    def turn_id(self) -> str:
        """The id of the current turn, that of the last customer message; "" before the first."""
        return self.last_customer_line.turn_id if self.last_customer_line else ""

    @cached_property
    def answered_turn_id(self) -> str | None:
        """The turn of the agent's last reply before the last customer message, which may answer that reply."""
        current_turn_id = replied_turn_id = answered_turn_id = None
        for line in self.lines:
            if line.speaker == "customer":
                answered_turn_id, current_turn_id = replied_turn_id, line.turn_id
            elif line.speaker == "agent":
                replied_turn_id = current_turn_id
        return answered_turn_id

    @cached_property
    def unreadable_line(self) -> Line | None:
        """The customer's message that waits for a reply, if it has an attachment that the model can't be shown."""
        for line in reversed(self.lines):
            if line.speaker in ("customer", "agent"):
                is_unreadable = line.speaker == "customer" and line.unsupported_attachments
                return line if is_unreadable else None
        return None

    @cached_property
    def current_turn_results(self) -> tuple[Line, ...]:
        """The tool results after the last customer message."""
        start = 0
        if self.last_customer_line:
            start = self.lines.index(self.last_customer_line) + 1
        return tuple(line for line in self.lines[start:] if line.speaker == "tool")


def _split_attachments(message: BaseMessage, shows_images: bool) -> tuple[list[Block], list[str]]:
    """Return the images that the prompt shows, and the kinds of all other attachments."""
    images: list[Block] = []
    unsupported: list[str] = []
    if isinstance(message.content, str):
        return images, unsupported
    for block in _get_standard_blocks(message, message.content):
        kind = block["type"]
        if kind == "non_standard" and not isinstance(message, AIMessage):
            original = block.get("value")
            original_type = original.get("type", "?") if isinstance(original, Mapping) else "?"
            unsupported.append(clean(str(original_type)))
        elif kind in _ATTACHMENT_TYPES:
            image = _copy_image(block)
            if image and shows_images:
                images.append(image)
            else:
                unsupported.append(kind)
    return images, unsupported


def _get_standard_blocks(message: BaseMessage, content: list[Any]) -> list[Mapping[str, Any]]:
    if any(_is_bare_image(block) for block in content):
        content = [_complete_image(block) for block in content]
        message = message.model_copy(update={"content": content})
    try:
        return list(message.content_blocks)
    except Exception:  # LangChain fails on blocks that lack what they need, and anybody may write those
        blocks = [block for block in content if isinstance(block, dict)]
        return [{"type": "non_standard", "value": block} for block in blocks if block.get("type") != "text"]


def _is_bare_image(block: Any) -> bool:
    """Return True if a block has an image's address as a plain string, as many clients write it."""
    return isinstance(block, Mapping) and isinstance(block.get("image_url"), str)


def _complete_image(block: Any) -> Any:
    """Return a block in the form that LangChain reads; one that isn't a bare image unchanged."""
    if not _is_bare_image(block):
        return block
    return {"type": "image_url", "image_url": {"url": block["image_url"]}}


def _copy_image(block: Mapping[str, Any]) -> Block | None:
    """Return a block with nothing but the image; None if the block doesn't hold a complete image."""
    if block["type"] != "image":
        return None
    image: Block = {}
    for key in _IMAGE_KEYS:
        value = block.get(key)
        if value and isinstance(value, str):
            image[key] = value
    is_complete = "url" in image or image.keys() >= {"base64", "mime_type"}
    return image if is_complete else None
