"""What a model's message says: an answer in its text, whatever stands around it; a refusal; how it ended; its cost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from pydantic import ValidationError

T = TypeVar("T")
Read = Callable[[str], T]
"""Reads a value from JSON, or raises Pydantic's ValidationError."""

_OBJECT_START = re.compile(r'\{(?=\s*["}])')
_DECODER = json.JSONDecoder(strict=False)
_CONTROL = re.compile(r"[\x00-\x1f]")
# After each failure Python counts the lines before it: without a bound the time would be quadratic.
_MAX_FAILURES = 2_000
_MAX_VALIDATED = 50
_MAX_ERRORS_TOLD = 20
_MAX_ERROR_LENGTH = 300

_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "safety", "prohibited_content", "guardrail_intervened"})
_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """The last JSON object of a text that validates, or else one line per error, each with the path of its query."""

    value: T | None
    errors: tuple[str, ...]
    has_object: bool
    """Whether the text holds a JSON object at all."""


def parse_answer(read: Read[T], text: str, name: str) -> Parsed[T]:
    """Read an answer from a text: from the whole of it, or else from the last object that validates.

    A code fence, chatter or thinking around the object is ignored. Never raises for any text.
    """
    value, errors = _validated(read, text.strip(), name)
    if value is not None:
        return Parsed(value, (), has_object=True)
    objects = _objects(text)
    if not objects:
        return Parsed(None, (f"{name}: the answer holds no complete JSON object", *errors), has_object=False)
    _, errors = _validated(read, objects[-1], name)
    for found in objects[: -_MAX_VALIDATED - 1 : -1]:
        value, _ = _validated(read, found, name)
        if value is not None:
            return Parsed(value, (), has_object=True)
    return Parsed(None, errors, has_object=True)


def is_cut_off(message: BaseMessage) -> bool:
    """Whether the answer ended at the token limit."""
    return bool(_reasons(message) & _CUT_OFF)


def refusal_of(message: BaseMessage) -> str | None:
    """The words of a refusal, or None where the model did not refuse."""
    refusal = message.additional_kwargs.get("refusal")
    if not refusal and isinstance(message.content, list):
        refusal = "".join(
            str(block.get("refusal") or "")
            for block in map(_block, message.content)
            if block.get("type") == "refusal"
        )
    if refusal:
        return str(refusal)
    reasons = _reasons(message)
    text = str(message.text)
    if "refusal" in reasons:
        return text or "The model stopped with the reason: refusal."
    if reasons & _FILTERED and not text.strip():
        return "The provider's content filter kept the answer back."
    return None


def usage_of(message: BaseMessage) -> UsageMetadata | None:
    """The tokens that the model reports for this message."""
    return message.usage_metadata if isinstance(message, AIMessage) else None


def sum_of(usages: Iterable[UsageMetadata | None]) -> UsageMetadata | None:
    """The tokens of several calls together; None if none reports any."""
    total: UsageMetadata | None = None
    for usage in usages:
        total = add_usage(total, usage) if total and usage else total or usage
    return total


def message_from(error: Exception) -> AIMessage | None:
    """The answer that some clients hide inside an exception; None if `error` is no such exception.

    OpenAI's client raises when an answer to `response_format` was cut off or filtered, and LangChain's
    when it was refused; text and usage are worth having all the same.
    """
    names = {cls.__name__ for cls in type(error).__mro__}
    if "OpenAIRefusalError" in names:
        return AIMessage(content="", additional_kwargs={"refusal": str(error) or "The model refused."})
    if "LengthFinishReasonError" in names:
        return _completion(error, "length")
    if "ContentFilterFinishReasonError" in names:
        filtered = _completion(error, "content_filter")
        filtered.additional_kwargs["refusal"] = str(filtered.text) or str(error)
        return filtered
    return None


def _validated(read: Read[T], text: str, name: str) -> tuple[T | None, tuple[str, ...]]:
    try:
        return read(text), ()
    except ValidationError as error:
        escaped = _with_controls_escaped(text) if error.errors()[0]["type"] == "json_invalid" else None
        if escaped is not None:
            return _validated(read, escaped, name)
        return None, tuple(_lines(error, name))


def _with_controls_escaped(text: str) -> str | None:
    """The same JSON with line breaks and the like inside strings escaped; None if that is not what is wrong.

    Local models write them as they are, which JSON forbids.
    """
    if not _CONTROL.search(text):
        return None
    try:
        return json.dumps(_DECODER.decode(text))
    except (ValueError, RecursionError):
        return None


def _lines(error: ValidationError, name: str) -> Iterator[str]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    for detail in details[:_MAX_ERRORS_TOLD]:
        path = ".".join([name, *(str(part) for part in detail["loc"])])
        yield " ".join(f"{path}: {detail['msg']}".split())[:_MAX_ERROR_LENGTH]
    if len(details) > _MAX_ERRORS_TOLD:
        yield f"{name}: and {len(details) - _MAX_ERRORS_TOLD} more errors"


def _objects(text: str) -> list[str]:
    """The top-level JSON objects of a text, from left to right.

    Where decoding fails, the search goes on from the place of the error: what stands between is the
    inside of a broken object, and a part of it must not be taken for the answer.
    """
    found: list[str] = []
    position = failures = 0
    while failures < _MAX_FAILURES and (start := _OBJECT_START.search(text, position)):
        try:
            _, position = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string"):
                break  # no quote follows, so no object does
            position = max(error.pos, start.end())
            failures += 1
        except (RecursionError, ValueError):
            break  # nested deeper, or with a longer number, than Python reads: no answer looks like that
        else:
            found.append(text[start.start() : position])
    return found


def _completion(error: Exception, reason: str) -> AIMessage:
    completion = getattr(error, "completion", None)
    choices = getattr(completion, "choices", None) or [None]
    text = getattr(getattr(choices[0], "message", None), "content", None) or ""
    tokens = getattr(completion, "usage", None)
    usage = None
    if tokens is not None:
        usage = UsageMetadata(
            input_tokens=tokens.prompt_tokens or 0,
            output_tokens=tokens.completion_tokens or 0,
            total_tokens=tokens.total_tokens or 0,
        )
    return AIMessage(content=text, usage_metadata=usage, response_metadata={"finish_reason": reason})


def _reasons(message: BaseMessage) -> set[str]:
    metadata = message.response_metadata
    reasons: list[Any] = [metadata.get(key) for key in _REASON_KEYS]
    incomplete = metadata.get("incomplete_details")  # OpenAI's Responses API
    if isinstance(incomplete, dict):
        reasons.append(incomplete.get("reason"))
    return {str(reason).lower() for reason in reasons if reason}


def _block(block: Any) -> dict[str, Any]:
    """A content block; LangChain's v1 blocks keep what it does not know under "non_standard"."""
    if not isinstance(block, dict):
        return {}
    value = block.get("value")
    return value if block.get("type") == "non_standard" and isinstance(value, dict) else block
