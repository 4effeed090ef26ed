"""The messages of a thread as numbered lines, each with an id that never shifts.

`M1`, `M2`, … are messages of the customer, the agent, a colleague and the system; `T1`, `T2`, … are tool results, each
with the call that it answers. A message with nothing but tool calls has no line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy, deepcopy
from functools import lru_cache
from hashlib import blake2b
from operator import is_
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from arq_graph.reasoning.endpoints import Block
from arq_graph.reasoning.sections import COLLEAGUE, as_json, clean, make_id
from arq_graph.reasoning.tool_calls import UnansweredCalls

_ATTACHMENT_TYPES = frozenset({"image", "audio", "video", "file", "text-plain"})
_IMAGE_KEYS = ("type", "base64", "url", "mime_type")

Speaker = Literal["customer", "agent", "colleague", "tool", "system"]


class Line(NamedTuple):
    """One line of the conversation.

    Args:
        id: `M…` or `T…`.
        speaker: The author of the message.
        message: The message itself.
        text: Its text.
        call: The call that a tool result answers; if the messages don't have it, its tool alone, where that is known.
        attachments: Complete images as LangChain's standard blocks, and the kinds of all other attachments.
        earlier_images: How many images the lines before it have.
    """

    id: str
    speaker: Speaker
    message: BaseMessage
    text: str
    call: Mapping[str, Any] | None = None
    attachments: tuple[Block | str, ...] = ()
    earlier_images: int = 0

    @property
    def turn_id(self) -> str:
        """The id of the turn that this line begins, as records name it."""
        return self.message.id or self.id

    def list_images(self) -> list[Block]:
        """Return the images among the attachments."""
        return [attachment for attachment in self.attachments if isinstance(attachment, dict)]

    def list_unsupported(self, *, shows_images: bool) -> list[str]:
        """Return the kinds of the attachments that the line only names."""
        kinds: list[str] = []
        for attachment in self.attachments:
            if isinstance(attachment, str):
                kinds.append(attachment)
            elif not shows_images:
                kinds.append(attachment["type"])
        return kinds


class History:
    """The messages of a thread and their lines. Neither ever changes, so that any number of views can share them.

    Args:
        messages: The messages of a thread.
    """

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self.messages: tuple[BaseMessage, ...] = ()
        self.lines: tuple[Line, ...] = ()
        self._contents: list[Any] = []
        self._unanswered: UnansweredCalls[ToolCall] = UnansweredCalls()
        self._message_count = self._result_count = self._image_count = 0
        self._texts: dict[tuple[int, bool], dict[int, str]] = {}
        self._hashes: dict[int, str] = {}
        self._read(messages)

    @property
    def has_unanswered_calls(self) -> bool:
        """True if a tool call has no result."""
        return len(self._unanswered) > 0

    def extend(self, messages: Sequence[BaseMessage]) -> History | None:
        """Return the history of these messages, if they begin with its own; only the others are numbered. Else None."""
        count = len(self.messages)
        is_continued = count <= len(messages) and all(map(is_, self.messages, messages))
        # A node may have changed the content of a message in place.
        if not is_continued or self._contents != [message.content for message in messages[:count]]:
            return None
        if count == len(messages):
            return self
        extended = copy(self)
        extended._contents = self._contents.copy()
        extended._unanswered = self._unanswered.copy()
        # Another thread may render lines at the same time.
        extended._texts = {key: texts.copy() for key, texts in self._texts.copy().items()}
        extended._hashes = self._hashes.copy()
        extended._read(messages[count:])
        return extended

    def render(self, indices: Iterable[int], max_length: int, *, shows_images: bool) -> Mapping[int, str]:
        """Return at least these lines by their index, as a prompt shows them, each one JSON object.

        Args:
            indices: The indices of the lines.
            max_length: The most characters of a message; of a longer one only the beginning and the end are shown.
            shows_images: Whether the model takes images; if not, they are named like other attachments.
        """
        texts = self._texts.setdefault((max_length, shows_images), {})
        for index in indices:
            if index not in texts:
                texts[index] = _render_line(self.lines[index], max_length, shows_images)
        return texts

    def hash_lines(self, count: int) -> str:
        """Return a hash of the speakers and texts of the first lines; the ids of their messages don't matter."""
        if count not in self._hashes:
            digest = blake2b(digest_size=16)
            for line in self.lines[:count]:
                words = f"{line.speaker} {line.text}\0"
                digest.update(words.encode(errors="surrogatepass"))
            self._hashes[count] = digest.hexdigest()
        return self._hashes[count]

    def _read(self, messages: Sequence[BaseMessage]) -> None:
        lines: list[Line] = []
        message: Any
        for index, message in enumerate(messages, start=len(self.messages)):
            content = message.content
            if isinstance(content, str):
                self._contents.append(content)
                text = content
            else:
                self._contents.append(deepcopy(content))
                text = str(message.text)
            kind = _get_kind(message.__class__)
            if kind == "agent" and message.tool_calls:
                for call in message.tool_calls:
                    self._unanswered.add(call, index, call["id"] or "", call["name"])
                if not text:
                    continue
            lines.append(self._number(message, text, kind))
        self.messages += tuple(messages)
        self.lines += tuple(lines)

    def _number(self, message: Any, text: str, speaker: Speaker) -> Line:
        call: Mapping[str, Any] | None = None
        if speaker == "tool":
            self._result_count += 1
            id = make_id("T", self._result_count)
            call = self._unanswered.pop(message.tool_call_id)
            if call is None and message.name:
                call = {"name": message.name, "args": {}}
        else:
            if speaker == "agent" and message.response_metadata.get(COLLEAGUE):
                speaker = "colleague"
            self._message_count += 1
            id = make_id("M", self._message_count)
        attachments = () if message.content is text else _list_attachments(message)
        line = Line(id, speaker, message, text, call, attachments, self._image_count)
        if attachments:
            self._image_count += len(line.list_images())
        return line


def is_from_colleague(message: BaseMessage) -> bool:
    """Return True for a message of a person who had taken the conversation over."""
    return isinstance(message, AIMessage) and bool(message.response_metadata.get(COLLEAGUE))


@lru_cache(maxsize=64)
def _get_kind(message_class: type[BaseMessage]) -> Speaker:
    """Return who speaks in messages of a class; asking each message itself takes pydantic longer."""
    if issubclass(message_class, ToolMessage):
        return "tool"
    if issubclass(message_class, HumanMessage):
        return "customer"
    return "agent" if issubclass(message_class, AIMessage) else "system"


def _render_line(line: Line, max_length: int, shows_images: bool) -> str:
    message: Any = line.message
    # Written a member at a time: JSON's encoder takes much longer for an object than for a text.
    rendered = f'{{"id": "{line.id}", "from": "{line.speaker}"'
    text_key = "text"
    if line.speaker == "tool":
        text_key = "result"
        rendered += _render_member("tool", line.call["name"] if line.call else "")
        rendered += _render_member("arguments", line.call["args"] if line.call else {})
    elif line.speaker in ("customer", "colleague") and message.name:
        rendered += _render_member("name", message.name)
    if len(line.text) <= max_length:
        rendered += _render_member(text_key, line.text)
    else:
        half = max_length // 2
        rendered += _render_member(text_key, f"{line.text[:half]} … {line.text[-half:]}")
        rendered += _render_member("shortened_from_characters", len(line.text))
    if line.attachments:
        names: list[str] = []
        if shows_images:
            first = line.earlier_images + 1
            names = [f"image {number}" for number, _ in enumerate(line.list_images(), start=first)]
        names += line.list_unsupported(shows_images=shows_images)
        rendered += _render_member("attachments", names)
    if line.speaker == "tool" and message.status == "error":
        rendered += _render_member("error", True)
    return rendered + "}"


def _render_member(name: str, value: Any) -> str:
    return f', "{name}": {as_json(value)}'


def _list_attachments(message: BaseMessage) -> tuple[Block | str, ...]:
    """Return the images of a message, and the kinds of its other attachments, in their order."""
    if isinstance(message.content, str):
        return ()
    attachments: list[Block | str] = []
    for block in _get_standard_blocks(message, message.content):
        kind = block["type"]
        if kind == "non_standard" and not isinstance(message, AIMessage):
            original = block.get("value")
            original_type = original.get("type", "?") if isinstance(original, Mapping) else "?"
            attachments.append(clean(str(original_type)))
        elif kind in _ATTACHMENT_TYPES:
            attachments.append(_copy_image(block) or kind)
    return tuple(attachments)


def _get_standard_blocks(message: BaseMessage, content: list[Any]) -> list[Mapping[str, Any]]:
    if any(_is_bare_image(block) for block in content):
        content = [_complete_image(block) for block in content]
        message = message.model_copy(update={"content": content})
    try:
        return list(message.content_blocks)
    except Exception:  # LangChain fails on malformed blocks, which a client may send
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
