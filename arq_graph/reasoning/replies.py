"""What a model's message says: an answer in its text, whatever stands around it; a refusal; how it ended; its cost.

And how a model is asked again whose answer could not be taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import islice
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata, add_ai_message_chunks, add_usage
from pydantic import ValidationError
from pydantic_core import from_json

from arq_graph.reasoning.sections import clean, escaped

T = TypeVar("T")
Read = Callable[[str], T]
"""Reads a value from JSON, or raises Pydantic's ValidationError."""

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_OBJECT_START = re.compile(r'\{(?=\s*["}])')
# Local models write line breaks inside strings as they are, which JSON forbids.
_DECODER = json.JSONDecoder(strict=False)
# After what is no object Python counts the lines before it: without a bound the time would be quadratic.
_MAX_FOUND = 2_000
_MAX_VALIDATED = 50
_MAX_ERRORS_TOLD = 20
_MAX_REPEATED = 6_000
_MAX_QUOTED = 500
# How far from the end of a text that is cut anywhere a decoder finds fault with it: two halves of a surrogate pair.
_MAX_CUT = 12

_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "safety", "prohibited_content", "guardrail_intervened"})
_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
ANSWER_METADATA = (*_REASON_KEYS, "incomplete_details", "prompt_feedback", "model_name")
"""What of an answer's metadata anything here reads."""


def parse_answer(read: Read[T], text: str, name: str) -> tuple[T | None, list[str]]:
    """Read an answer from a text: from the whole of it, or else from the last object that validates.

    A code fence, chatter or thinking around the object is ignored. Never fails for any text.

    Returns:
        The answer; or None, and a line for each error of the last object, with the path of its query. There are no
        errors where the text holds no object at all.
    """
    try:
        return read(text.strip()), []
    except ValidationError:
        found_any = islice(_found(text, 0), _MAX_FOUND)
        objects = [found for found, _, _ in found_any if isinstance(found, str)]
    errors: list[str] = []
    for found in reversed(objects[-_MAX_VALIDATED:]):
        try:
            return read(found), []
        except ValidationError as error:
            errors = errors or list(_lines(error, name))
    return None, errors


class GrowingAnswer:
    """Tells of the last JSON object of an answer while it is written, and of an empty one where another begins."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._tell = tell

    def begin(self) -> None:
        """Begin anew, with an empty answer."""
        self._text, self._position, self._start = "", 0, 0
        self._pieces: list[Any] = []
        self._tell({})

    def add(self, message: AIMessage) -> None:
        """Add a piece of the answer: of the text, or of what a forced tool is called with."""
        self._pieces.append(message)
        piece = "".join([message.text, *_arguments(message)])
        self._text += piece
        if piece and (grown := self._grown()):
            self._tell(grown)

    def whole(self) -> AIMessage:
        """All pieces as one message."""
        first, *others = self._pieces
        return add_ai_message_chunks(first, *others) if isinstance(first, AIMessageChunk) else first

    def _grown(self) -> dict[str, Any]:
        grown: dict[str, Any] = {}
        for found, start, end in _found(self._text, self._position):
            if start != self._start:
                self._start = start
                self._tell({})
            if isinstance(found, str):
                grown = _begun(found)
            elif found.msg.startswith("Unterminated") or found.pos + _MAX_CUT >= len(self._text):
                return _begun(self._text[start:])
            self._position = end
        return grown


def _begun(text: str) -> dict[str, Any]:
    """The object that a text begins, without its last key or value where that is cut; a string is as long as it is."""
    read: Read[dict[str, Any]] = partial(from_json, allow_partial="trailing-strings")
    with suppress(ValueError, TypeError):
        return read(text)
    with suppress(ValueError, TypeError):  # half a surrogate pair cannot be read
        return read(_JSON_STRING.sub(lambda string: string[0].replace("\n", "\\n"), text))
    return {}


def asked_again(text: str, verdict: str, problems: Sequence[object]) -> list[BaseMessage]:
    """What follows the prompt when an answer has to be given anew: the answer, and what is wrong with it."""
    lines = "\n".join(f"- {str(problem)[:_MAX_QUOTED]}" for problem in problems)
    again = "Answer with the whole object, changed accordingly, and nothing else."
    correction = f"Your answer {verdict}:\n{escaped(lines)}\n{again}"
    own = clean(text).strip() or "(an empty answer)"  # some providers refuse an empty message
    own = own if len(own) <= _MAX_REPEATED else f"{own[:_MAX_REPEATED]} …"
    return [AIMessage(own), HumanMessage(correction)]


def text_of(message: AIMessage) -> str:
    """What a model answered: what it calls a tool with, some of them twice, or else the message's text."""
    invalid = (call["args"] or "" for call in message.invalid_tool_calls)
    return "\n".join(_arguments(message) or invalid) or str(message.text)


def _arguments(message: AIMessage) -> list[str]:
    if isinstance(message, AIMessageChunk):
        # Of a streamed answer LangChain closes what was cut off, which would make it look whole.
        return [call["args"] or "" for call in message.tool_call_chunks]
    return [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls]


def is_cut_off(message: BaseMessage) -> bool:
    """Whether the answer ended at the token limit."""
    return bool(_reasons(message) & _CUT_OFF)


def refusal_of(message: BaseMessage) -> str | None:
    """The words of a refusal, or None where the model did not refuse."""
    blocks = [block for block in message.content if isinstance(block, dict)]
    refusal = message.additional_kwargs.get("refusal")
    refusal = refusal or "".join(str(block["refusal"]) for block in blocks if block.get("refusal"))
    if refusal:
        return str(refusal)
    reasons, text = _reasons(message), str(message.text)
    if "refusal" in reasons:
        return text or "The model stopped with the reason: refusal."
    if reasons & _FILTERED and "{" not in text:  # a guardrail may say something in the place of the answer
        return text.strip() or "The provider's content filter kept the answer back."
    if blocked := (message.response_metadata.get("prompt_feedback") or {}).get("block_reason"):
        return f"The provider blocked the prompt: {getattr(blocked, 'name', blocked)}."
    return None


def sum_of(usages: Iterable[UsageMetadata | None]) -> UsageMetadata | None:
    """The tokens of several calls together; None if none reports any."""
    return reduce(add_usage, filter(None, usages), None)


def extract_message(error: BaseException) -> AIMessage | None:
    """The answer that some clients hide inside an exception; None if `error` is no such exception.

    OpenAI's client raises when an answer to `response_format` was cut off or filtered, and LangChain's
    when it was refused; text and usage are worth having all the same.
    """
    if type(error).__name__ in ("OpenAIRefusalError", "ContentFilterFinishReasonError"):
        return AIMessage(content="", additional_kwargs={"refusal": str(error) or "The model refused."})
    completion: Any = getattr(error, "completion", None)
    if completion is None:
        return None
    choice, tokens = completion.choices[0], completion.usage
    usage = tokens and UsageMetadata(
        input_tokens=tokens.prompt_tokens or 0,
        output_tokens=tokens.completion_tokens or 0,
        total_tokens=tokens.total_tokens or 0,
    )
    reason = {"finish_reason": choice.finish_reason}
    return AIMessage(choice.message.content or "", usage_metadata=usage, response_metadata=reason)


def _lines(error: ValidationError, name: str) -> Iterator[str]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    for detail in details[:_MAX_ERRORS_TOLD]:
        path = ".".join([name, *(str(part) for part in detail["loc"])])
        yield " ".join(f"{path}: {detail['msg']}".split())
    if len(details) > _MAX_ERRORS_TOLD:
        yield f"{name}: and {len(details) - _MAX_ERRORS_TOLD} more errors"


def _found(text: str, position: int) -> Iterator[tuple[str | json.JSONDecodeError, int, int]]:
    """Each object from a place on, as valid JSON, or why it is none; where it begins, and where the search goes on.

    Where decoding fails, the search goes on from the place of the error: what stands between is the
    inside of a broken object, and a part of it must not be taken for the answer.
    """
    while start := _OBJECT_START.search(text, position):
        found: str | json.JSONDecodeError
        try:
            value, position = _DECODER.raw_decode(text, start.start())
            found = json.dumps(value)
        except json.JSONDecodeError as error:
            found, position = error, max(error.pos, start.end())
        except (RecursionError, ValueError):
            return  # nested deeper, or with a longer number, than Python reads: no answer looks like that
        yield found, start.start(), position


def _reasons(message: BaseMessage) -> set[str]:
    metadata = message.response_metadata
    reasons: list[Any] = [metadata.get(key) for key in _REASON_KEYS]
    reasons.append((metadata.get("incomplete_details") or {}).get("reason"))  # OpenAI's Responses API
    return {str(reason).lower() for reason in reasons if reason}
