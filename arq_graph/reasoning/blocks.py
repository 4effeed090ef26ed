"""Content blocks of a prompt: joined into texts, or marked for the provider's cache.

Most providers cache by themselves what a prompt has in common with earlier ones. Anthropic and Bedrock do it only up to
the places that a request marks, four at most, and a later request reads up to a place where one before it was marked.
So the blocks of a human message are its parts: the last of them changes from call to call, and each of the others
ends where an earlier call may have ended. The first system message and the last three of these ends are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage

Block: TypeAlias = dict[str, Any]
Marker: TypeAlias = Callable[[Block], list[Block]]
"""Returns what stands in the place of a block up to which the provider's cache shall store the prompt."""

_MARK_KEYS = frozenset({"cache_control", "cachePoint"})
_MARKED_PARTS = 3  # with the system message: as many marks as providers take


def text_block(text: str) -> Block:
    """Return a text as a block of a message's content."""
    return {"type": "text", "text": text}


def get_cache_marker(model: BaseChatModel) -> Marker | None:
    """Return how a model's class wants a place in the prompt marked for the provider's cache; None: not at all."""
    if make_cache_point := getattr(type(model), "create_cache_point", None):  # ChatBedrockConverse
        return lambda block: [block, make_cache_point()]
    if any(cls.__name__ == "ChatAnthropic" for cls in type(model).__mro__):
        return lambda block: [{**block, "cache_control": {"type": "ephemeral"}}]
    return None


def mark_for_cache(messages: Sequence[BaseMessage], marker: Marker) -> list[BaseMessage]:
    """Return messages with marks for the provider's cache, unless they already carry some."""
    if any(_has_marks(message) for message in messages):
        return join_text_blocks(messages)
    marked = [_with_content(message, _mark(message, marker)) for message in messages[:2]]
    return marked + list(messages[2:])


def _has_marks(message: BaseMessage) -> bool:
    if isinstance(message.content, str):
        return False
    return any(not _MARK_KEYS.isdisjoint(block) for block in message.content)


def _mark(message: BaseMessage, marker: Marker) -> str | list[Any]:
    content = message.content
    if isinstance(content, str):
        is_marked = isinstance(message, SystemMessage) and bool(content)
        return marker(text_block(content)) if is_marked else content
    marked: list[Any] = []
    last = len(content) - 1
    for index, block in enumerate(content):
        if last - _MARKED_PARTS <= index < last and isinstance(block, dict):
            marked.extend(marker(block))
        else:
            marked.append(block)
    return marked


def join_text_blocks(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages whose neighbouring text blocks are joined; content that is all text becomes a string."""
    return [_with_content(message, _join(message.content)) for message in messages]


def _join(content: str | list[Any]) -> str | list[Any]:
    if isinstance(content, str):
        return content
    blocks: list[Any] = []
    for is_text, group in groupby(content, key=_is_text):
        if is_text:
            blocks.append(text_block("".join(block["text"] for block in group)))
        else:
            blocks.extend(group)
    is_all_text = len(blocks) == 1 and _is_text(blocks[0])
    return blocks[0]["text"] if is_all_text else blocks


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"type", "text"}


def _with_content(message: BaseMessage, content: str | list[Any]) -> BaseMessage:
    return message if content is message.content else message.model_copy(update={"content": content})
