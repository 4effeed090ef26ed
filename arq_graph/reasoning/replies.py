"""Read a model's reply: the JSON object of its answer, a refusal, how it ended and what it cost; and ask again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata, add_ai_message_chunks, add_usage
from pydantic import ValidationError
from pydantic_core import from_json

from arq_graph.reasoning.answer import NEW_ANSWER
from arq_graph.reasoning.sections import clean, escaped

T = TypeVar("T")
Read = Callable[[str], T]
"""Reads a value from JSON, or raises Pydantic's ValidationError."""
OnPartial = Callable[[Mapping[str, Any]], None]
"""Is called with an answer's JSON as far as it is written."""

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_OBJECT_START = re.compile(r'\{(?=\s*["}])')
# Local models write line breaks inside strings as they are, which JSON forbids.
_DECODER = json.JSONDecoder(strict=False)
# To report an error, Python counts the lines before it: without a bound the time would be quadratic.
_MAX_SCANNED = 2_000
_MAX_VALIDATED = 50
_MAX_ERRORS_REPORTED = 20
# Where a text is cut off, a decoder reports its error at most this far from the end: in the middle of a surrogate pair.
_MAX_CUT = 12
_MAX_REPEATED_ANSWER = 6_000
MAX_ANSWER = 400_000
"""Characters of an answer: about as many as the fastest models write in a minute."""
# A chunk takes memory, whatever it holds.
_MIN_CHUNK = 4
_MAX_PROBLEM = 500

_CUT_OFF_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTER_REASONS = frozenset({"content_filter", "safety", "prohibited_content", "guardrail_intervened"})
_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")


def parse_answer(read: Read[T], text: str, name: str) -> tuple[T | None, list[str]]:
    """Read an answer from the whole text, or else from the last object in it that validates.

    A code fence, chatter or thinking around the object is ignored. Never fails for any text.

    Returns:
        The answer and []; or None and a line for each error of the last object, with the path of its query. There are
        no errors if the text doesn't hold an object at all.
    """
    try:
        return read(text.strip()), []
    except ValidationError:
        scanned = islice(_scan_objects(text, 0), _MAX_SCANNED)
        objects = [item.valid_json for item in scanned if item.valid_json is not None]
    errors: list[str] = []
    for candidate in reversed(objects[-_MAX_VALIDATED:]):
        try:
            return read(candidate), []
        except ValidationError as error:
            errors = errors or _format_errors(error, name)
    return None, errors


class AnswerTooLongError(Exception):
    """A model's answer doesn't end within the limit; `beginning` is what it begins with."""

    def __init__(self, beginning: str) -> None:
        self.beginning = beginning[:_MAX_REPEATED_ANSWER]
        super().__init__(
            f"the answer is longer than {MAX_ANSWER:,} characters, reasoning included; set max_tokens on the model"
        )


class PartialAnswer:
    """Reports the last JSON object of an answer while it is written, and {} where an object begins.

    Chunks may come from another thread, until the answer is closed.
    """

    def __init__(self, on_partial: OnPartial) -> None:
        self._on_partial = on_partial
        self._lock = Lock()
        self._is_closed = False
        self._chunks: list[Any] = []
        self._length = 0
        self._text = ""
        self._position = 0
        self._object_start = 0
        self._on_partial(NEW_ANSWER)

    def add(self, chunk: AIMessage) -> None:
        """Add a chunk of the message; an answer stands in its text or in the arguments of a forced tool call.

        Raises:
            TimeoutError: The answer was closed, because its time was up.
            AnswerTooLongError: It is longer than an answer may be.
        """
        with self._lock:
            if self._is_closed:
                raise TimeoutError("the answer was still being written")
            self._chunks.append(chunk)
            added_text = str(chunk.text) + "".join(_get_arguments(chunk))
            self._text += added_text
            self._length += max(_measure_length(chunk), _MIN_CHUNK)
            if self._length > MAX_ANSWER:
                raise AnswerTooLongError(self._text)
            if added_text and (partial_object := self._read_last_object()):
                self._on_partial(partial_object)

    def close(self) -> None:
        """Take and report no more chunks."""
        with self._lock:
            self._is_closed = True

    def join_chunks(self) -> AIMessage:
        """Return all chunks as one message."""
        first, *others = self._chunks
        return add_ai_message_chunks(first, *others) if isinstance(first, AIMessageChunk) else first

    def _read_last_object(self) -> dict[str, Any]:
        last_object: dict[str, Any] = {}
        for item in _scan_objects(self._text, self._position):
            if item.start != self._object_start:
                self._object_start = item.start
                self._on_partial(NEW_ANSWER)
            if item.valid_json is not None:
                last_object = _read_beginning(item.valid_json)
            elif item.is_unfinished(self._text):
                return _read_beginning(self._text[item.start :])
            self._position = item.end
        return last_object


class _ScannedObject(NamedTuple):
    """A place in a text where an object begins: the object as valid JSON, or why it can't be decoded."""

    start: int
    end: int
    valid_json: str | None
    error: json.JSONDecodeError | None

    def is_unfinished(self, text: str) -> bool:
        """Return whether more text could complete the object."""
        error = self.error
        return error is not None and (
            error.msg.startswith("Unterminated") or error.pos + _MAX_CUT >= len(text)
        )


def _scan_objects(text: str, position: int) -> Iterator[_ScannedObject]:
    """Yield each object of a text from a position on.

    After an object that can't be decoded the search continues at the error: what stands before it is the inside of the
    broken object, a part of which must not be taken for the answer.
    """
    while match := _OBJECT_START.search(text, position):
        start = match.start()
        try:
            value, position = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            position = max(error.pos, match.end())
            yield _ScannedObject(start, position, None, error)
        except (RecursionError, ValueError):
            return  # nested too deeply, or with too long a number, for Python: not an answer
        else:
            yield _ScannedObject(start, position, json.dumps(value), None)


def _read_beginning(text: str) -> dict[str, Any]:
    """Return the object that a text begins with, without a last key or value that is cut, except for strings."""
    read: Read[dict[str, Any]] = partial(from_json, allow_partial="trailing-strings")
    with suppress(ValueError, TypeError):
        return read(text)
    with suppress(ValueError, TypeError):  # half a surrogate pair cannot be read
        return read(_JSON_STRING.sub(lambda string: string[0].replace("\n", "\\n"), text))
    return {}


def _format_errors(error: ValidationError, name: str) -> list[str]:
    messages: list[str] = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        path = ".".join(map(str, (name,) + detail["loc"]))
        messages.append(" ".join(f"{path}: {detail['msg']}".split()))
    if len(messages) > _MAX_ERRORS_REPORTED:
        count = len(messages) - _MAX_ERRORS_REPORTED
        messages[_MAX_ERRORS_REPORTED:] = [f"{name}: and {count} more errors"]
    return messages


def require_limited_length(message: AIMessage) -> None:
    """Raise AnswerTooLongError if a message is longer than an answer may be."""
    if _measure_length(message) > MAX_ANSWER:
        raise AnswerTooLongError(get_answer_text(message))


def _measure_length(message: AIMessage) -> int:
    """Return how many characters a message holds: words, reasoning and arguments; other values count as one."""
    pending: list[Any] = [message.content, message.additional_kwargs]
    if isinstance(message, AIMessageChunk):
        pending.append(message.tool_call_chunks)
    else:
        pending += [message.tool_calls, message.invalid_tool_calls]
    length = 0
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
        else:
            length += len(value) if isinstance(value, str) else 1
    return length


def get_answer_text(message: AIMessage) -> str:
    """Return what a model answered: the arguments of its tool calls (some models repeat them), or else its text."""
    arguments = _get_arguments(message)
    if not arguments:
        arguments = [call["args"] or "" for call in message.invalid_tool_calls]
    return "\n".join(arguments) or str(message.text)


def _get_arguments(message: AIMessage) -> list[str]:
    """Return the arguments of a message's tool calls as JSON, as far as they are written."""
    if isinstance(message, AIMessageChunk):
        # In a streamed message LangChain completes arguments that were cut off, so that they would look whole.
        return [call["args"] or "" for call in message.tool_call_chunks]
    return [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls]


def is_cut_off(message: BaseMessage) -> bool:
    """Return whether the answer ended at the token limit."""
    return not _CUT_OFF_REASONS.isdisjoint(_get_finish_reasons(message))


def find_refusal(message: BaseMessage) -> str | None:
    """Return the words of a refusal; None if the model didn't refuse."""
    refusal = message.additional_kwargs.get("refusal")
    if not refusal and isinstance(message.content, list):
        blocks = [block for block in message.content if isinstance(block, dict)]
        refusal = "".join(str(block["refusal"]) for block in blocks if block.get("refusal"))
    if refusal:
        return str(refusal)
    reasons, text = _get_finish_reasons(message), str(message.text)
    if "refusal" in reasons:
        return text or "The model stopped with the reason: refusal."
    is_filtered = not _FILTER_REASONS.isdisjoint(reasons)
    if is_filtered and "{" not in text:  # a guardrail may write something in the place of the answer
        return text.strip() or "The provider's content filter kept the answer back."
    if blocked := (message.response_metadata.get("prompt_feedback") or {}).get("block_reason"):
        return f"The provider blocked the prompt: {getattr(blocked, 'name', blocked)}."
    return None


def _get_finish_reasons(message: BaseMessage) -> set[str]:
    metadata = message.response_metadata
    reasons: list[Any] = [metadata.get(key) for key in _REASON_KEYS]
    reasons.append((metadata.get("incomplete_details") or {}).get("reason"))  # OpenAI's Responses API
    return {str(reason).lower() for reason in reasons if reason}


def extract_message(error: BaseException) -> AIMessage | None:
    """Return the answer that some clients hide inside an exception, or None.

    OpenAI's client raises if an answer to `response_format` was cut off or filtered, and LangChain's if it was refused;
    its text and usage are needed all the same.
    """
    if type(error).__name__ in ("OpenAIRefusalError", "ContentFilterFinishReasonError"):
        return AIMessage(content="", additional_kwargs={"refusal": str(error) or "The model refused."})
    completion: Any = getattr(error, "completion", None)
    if completion is None:
        return None
    choice, tokens = completion.choices[0], completion.usage
    usage = None
    if tokens:
        usage = UsageMetadata(
            input_tokens=tokens.prompt_tokens or 0,
            output_tokens=tokens.completion_tokens or 0,
            total_tokens=tokens.total_tokens or 0,
        )
    reason = {"finish_reason": choice.finish_reason}
    return AIMessage(choice.message.content or "", usage_metadata=usage, response_metadata=reason)


def sum_usage(usages: Iterable[UsageMetadata | None]) -> UsageMetadata | None:
    """Return the tokens of several calls together; None if none of them is known."""
    return reduce(add_usage, filter(None, usages), None)


def build_retry_messages(text: str, verdict: str, problems: Sequence[object]) -> list[BaseMessage]:
    """Return what follows the prompt when a model is asked again: its answer, and what is wrong with it."""
    problem_list = "\n".join(f"- {str(problem)[:_MAX_PROBLEM]}" for problem in problems)
    request = "Answer with the whole object, changed accordingly, and nothing else."
    correction = f"Your answer {verdict}:\n{escaped(problem_list)}\n{request}"
    answer = clean(text).strip() or "(an empty answer)"  # some providers refuse an empty message
    if len(answer) > _MAX_REPEATED_ANSWER:
        answer = f"{answer[:_MAX_REPEATED_ANSWER]} …"
    return [AIMessage(answer), HumanMessage(correction)]
