"""Chat messages, the form into which every format is brought, and the events in them.

They may be LangChain's objects (anything with `type` and `content`), or their serialized form from `model_dump()`,
`messages_to_dict()`, `dumpd()` or LangGraph's API; or messages with a `role`, as the APIs and tools of many providers
take and return them. What a message says and does stands in content blocks (`parts.py`), or in fields of its own. The
arguments of a call may be an object or the text that a model wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Call, Caller, Event, Message, Result
from arq_graph.milestones.transcripts.parts import (
    MISSING,
    CallPart,
    Part,
    ResultPart,
    as_fields,
    format_result,
    get_first,
    has_result,
    may_hold_call,
    read_block,
    read_result,
)
from arq_graph.milestones.transcripts.speakers import SPEAKERS, get_speaker, is_of_langchain, read_done_steps
from arq_graph.milestones.turn_note import read_turn_notes
from arq_graph.milestones.values import parse_json
from arq_graph.reasoning.tool_calls import UnansweredCalls

_CALL_IDS = ("tool_call_id", "toolCallId", "call_id")
_CALL_KEYS = ("tool_calls", "toolCalls", "invalid_tool_calls", "function_call")
_BODY_KEYS = ("parts", "content", "message", "text", "refusal")
_TEXT_ALONE = {"role", "content"}
_TEXT_RESULT = {"role", "content", "tool_call_id", "name"}
_TALKING_ROLES = tuple(role for role, speaker in SPEAKERS.items() if speaker in ("user", "agent"))
_OTHER_KEYS = """
additional_kwargs response_metadata metadata artifact raw_data providerOptions providerMetadata result error
toolInvocations tool_messages tool_call_chunks
"""
_KNOWN_KEYS = frozenset(_OTHER_KEYS.split()).union(_CALL_KEYS, _BODY_KEYS)
"""Keys that are read, or that hold no call that stands nowhere else."""


def is_message(value: Any) -> bool:
    """Return whether this is a chat message, as an object or serialized; its role may be one that isn't known."""
    fields = _get_fields(value)
    return get_speaker(fields) is not None or isinstance(fields.get("role"), str)


def get_message_list(record: Any) -> Sequence[Any] | None:
    """Return the list that a record is, or has under `messages`; None if there is none.

    Gemini has it under `contents`, and Vapi in the `artifact` of a call.
    """
    if isinstance(record, Mapping):
        messages = get_first(record, ("messages", "contents"))
        record = as_fields(record.get("artifact")).get("messages") if messages is None else messages
    return record if isinstance(record, list | tuple) else None


def can_read(record: Any) -> bool:
    """Return whether a record is a list of chat messages, or an object that has one."""
    messages = get_message_list(record)
    return messages is not None and len(messages) > 0 and is_message(messages[0])


def read(record: Any) -> dict[str, Any]:
    """Return the record itself; a list alone becomes its `messages`."""
    if not isinstance(record, Mapping):
        return {"messages": record}
    return dict(record) | {"messages": get_message_list(record)}


def parse_messages(messages: Iterable[Any]) -> tuple[list[Event], str]:
    """Return the events in chat messages, and the agent's instructions: the system messages before the first event.

    Raises:
        InputError: An item isn't a chat message, or is broken, or has a part that isn't known and may hold a call.
    """
    parser = _Parser()
    for index, message in enumerate(messages):
        parser.add(index, message)
    return parser.events, "\n\n".join(filter(None, parser.instructions))


class _Parser:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.instructions: list[str] = []
        self._unanswered: UnansweredCalls[tuple[int | None, str]] = UnansweredCalls()
        self._index = 0

    def add(self, index: int, message: Any) -> None:
        if _is_text_alone(message):
            self.events.append(Message(SPEAKERS[message["role"]], message["content"], index))
            return
        fields = _get_fields(message)
        speaker = get_speaker(fields)
        step = fields.get("step", index)
        if speaker is None:
            known_names = ", ".join(SPEAKERS)
            name = get_first(fields, ("role", "type"))
            raise InputError(
                f"message {index} is not a chat message: its `type` or `role`, {name!r}, is none of {known_names}"
            )
        self._index = index
        place = f"message {step}"
        if isinstance(message, Mapping):
            _check_keys(fields, place)
        if speaker == "tool":
            parts = _read_tool_message(fields, place)
        else:
            parts = _read_message(fields, place)
        if speaker == "system":
            if any(isinstance(part, CallPart) for part in parts):
                raise InputError(f"message {step}: a tool call in a system message")
            if not self.events:
                self.instructions.append("\n".join(part for part in parts if isinstance(part, str)))
                return
        event_count = len(self.events)
        texts: list[str] = []
        calls: list[Call] = []
        for part in parts:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, CallPart):
                calls.append(_parse_call(part, step, "user" if speaker == "user" else "agent"))
            else:
                if texts or calls:
                    self._add_texts_and_calls(texts, calls, speaker, step)
                    texts, calls = [], []
                self._add_result(part, step)
        if texts or calls:
            self._add_texts_and_calls(texts, calls, speaker, step)
        if len(self.events) == event_count:
            self.events.append(Message(speaker, "", step))
        if speaker == "agent" and "response_metadata" in fields:
            self._add_notes(event_count, fields)

    def _add_notes(self, first: int, fields: Mapping[str, Any]) -> None:
        """Write what an agent of this library noted in a message to the first of its events."""
        event = self.events[first]
        done_steps = read_done_steps(fields)
        if done_steps is not None and not isinstance(event, Result):
            event = event._replace(done_steps=done_steps)
        if isinstance(event, Message):
            event = event._replace(turn_notes=read_turn_notes(as_fields(fields["response_metadata"])))
        self.events[first] = event

    def _add_texts_and_calls(
        self, texts: Sequence[str], calls: Sequence[Call], speaker: Any, step: Any
    ) -> None:
        """Add the text of a message, or what stands between two results in it, and then its calls."""
        if speaker not in ("agent", "user") and calls:
            texts = [*texts, *(call.text for call in calls)]
        text = "\n".join(filter(None, texts))
        if text:
            self.events.append(Message(speaker, text, step))
        for call in calls:
            number = None
            if speaker in ("agent", "user"):
                self.events.append(call)
                number = len(self.events)
            self._unanswered.add((number, call.tool), self._index, call.id or "", call.tool)

    def _add_result(self, part: ResultPart, step: Any) -> None:
        tool = part.tool if isinstance(part.tool, str) else ""
        id = "" if part.id is None else str(part.id)
        answered_call = self._unanswered.pop(id) if id else None
        if answered_call is None:
            # Recordings without ids, or in which only the results have some.
            answered_call = self._unanswered.pop_first(tool, without_id=bool(id))
        number = None
        if answered_call is not None:
            number, tool = answered_call
        try:
            text = format_result(part.content)
        except (ValueError, RecursionError):
            raise InputError(
                f"message {step}: what a tool returned is nested too deep, or contains itself"
            ) from None
        self.events.append(Result(number, tool, text, part.failed, step))


def _is_text_alone(message: Any) -> bool:
    """Return whether a message of the user or the agent has nothing but its role and a text, as most have."""
    if type(message) is not dict or message.keys() != _TEXT_ALONE or not isinstance(message["content"], str):
        return False
    return message["role"] in _TALKING_ROLES


def _get_fields(message: Any) -> Mapping[str, Any]:
    fields = as_fields(message)
    if "kwargs" in fields and fields.get("lc") is not None and isinstance(fields["kwargs"], Mapping):
        class_path = fields.get("id") or [""]
        return {"type": class_path[-1], **fields["kwargs"]}
    if "data" in fields and "role" not in fields and isinstance(fields["data"], Mapping):
        return {**fields["data"], "type": fields.get("type")}
    return fields


def _read_message(fields: Mapping[str, Any], place: str) -> list[Part]:
    """Return the parts of a message in their order."""
    listed_calls = [_read_listed_call(call, place) for call in _list_calls(fields)]
    from_langchain = is_of_langchain(fields)
    body = get_first(fields, _BODY_KEYS) or fields.get("refusal")
    if body is None and not listed_calls and not any(key in fields for key in _BODY_KEYS):
        raise InputError(f"{place} says nothing: it has none of the keys {', '.join(_BODY_KEYS)}")
    parts: list[Part] = []
    for part in _read_body(body, place, from_langchain):
        if not isinstance(part, CallPart) or not _is_listed(part, listed_calls):
            parts.append(part)
    parts.extend(listed_calls)
    if isinstance(fields.get("toolInvocations"), list) and "parts" not in fields:  # version 4 of the AI SDK
        calls = [{"type": "tool-invocation", "toolInvocation": call} for call in fields["toolInvocations"]]
        parts.extend(_read_body(calls, place, from_langchain))
    return parts


def _check_keys(fields: Mapping[str, Any], place: str) -> None:
    for key, value in fields.items():
        if key not in _KNOWN_KEYS and not isinstance(value, str) and may_hold_call(value):
            raise InputError(
                f"{place}: the key {key!r} isn't known and may hold a tool call. Remove it if it holds none; "
                f"else bring the calls into `tool_calls`"
            )


def _read_tool_message(fields: Mapping[str, Any], place: str) -> list[Part]:
    if fields.get("tool_messages"):  # tau2-bench
        return [read_result(message) for message in fields["tool_messages"]]
    if fields.keys() <= _TEXT_RESULT and isinstance(fields.get("content"), str):  # as most are
        return [ResultPart(fields["content"], fields.get("tool_call_id"), fields.get("name"))]
    # Either the message is a result, whose own `id` is not the call's, or it has some among its parts.
    body = get_first(fields, ("parts", "content"))
    results: list[Part] = []
    if isinstance(body, list | tuple) and get_first(fields, _CALL_IDS) is None:
        for index, block in enumerate(body):
            parts = read_block(block)
            if parts is None and ("parts" in fields or may_hold_call(block)):
                raise InputError(f"{place}, part {index}: {_describe_unknown_block(block)}")
            results.extend(part for part in parts or () if isinstance(part, ResultPart))
    if not results:
        if not has_result(fields):
            raise InputError(f"{place} has no result: it has none of the keys content, parts, output, result")
        result = read_result(fields)
        result.id = get_first(fields, _CALL_IDS)
        result.tool = get_first(fields, ("name", "function"))
        results.append(result)
    return results


def _list_calls(fields: Mapping[str, Any]) -> list[Any]:
    """Return the calls that stand beside the content, in `additional_kwargs` in older recordings of LangChain."""
    if fields.get("role") == "tool_call_invocation":
        return [fields]
    calls: list[Any] = []
    for source in (fields, as_fields(fields.get("additional_kwargs") or {})):
        for key in _CALL_KEYS:
            if value := source.get(key):
                calls.extend(value if isinstance(value, list | tuple) else [value])
        if calls:
            break
    return calls


def _read_listed_call(call: Any, place: str) -> CallPart:
    fields = as_fields(call)
    if not fields:
        raise InputError(f"{place}: a tool call is not an object")
    # OpenAI has name and arguments in `function`, LangChain in the call itself, and inspect_ai the name in `function`.
    function = as_fields(fields.get("function")) or fields
    name = function.get("name", fields.get("function"))
    arguments = function.get("args", function.get("arguments", MISSING))
    id = get_first(fields, _CALL_IDS) or fields.get("id")
    return CallPart(name, fields.get("parse_error") or arguments, id)


def _is_listed(part: CallPart, calls: Sequence[CallPart]) -> bool:
    """Return whether a call in the content stands beside it, too, as LangChain has those of Anthropic."""
    return any(call.id == part.id and (call.id or call.tool == part.tool) for call in calls)


def _read_body(body: Any, place: str, is_of_langchain: bool) -> list[Part]:
    """Return the parts in the content of a message: a text, nothing, or a list of content blocks."""
    if not body:
        return []
    if isinstance(body, str):
        return [body]
    if not isinstance(body, list | tuple):
        raise InputError(f"{place}: the content is {type(body).__name__}, not text and not a list of blocks")
    parts: list[Part] = []
    for index, block in enumerate(body):
        block_parts = read_block(block)
        if block_parts is not None:
            parts.extend(block_parts)
        elif not is_of_langchain:  # LangChain lists the calls of every message
            raise InputError(f"{place}, part {index}: {_describe_unknown_block(block)}")
    return parts


def _describe_unknown_block(block: Any) -> str:
    description = f"with the keys {', '.join(map(repr, as_fields(block)))}"
    if "type" in as_fields(block):
        description = f"of the type {as_fields(block)['type']!r}"
    return f"a content block {description} isn't known and may hold a tool call. Remove it if it holds none"


def _parse_call(part: CallPart, step: Any, by: Caller) -> Call:
    tool, arguments = part.tool, part.arguments
    if not isinstance(tool, str) or not tool:
        raise InputError(f"message {step}: a tool call without a name")
    if arguments is MISSING:
        raise InputError(f"message {step}: the call of {tool!r} has no arguments; an empty object is {{}}")
    id = None if part.id is None else str(part.id)
    parsed = {} if arguments is None else arguments
    if isinstance(arguments, str):
        try:
            # Several providers write nothing at all for a tool without arguments.
            parsed = parse_json(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            parsed = None
    if isinstance(parsed, Mapping):
        return Call(tool, parsed, id, step=step, by=by)
    return Call(tool, {}, id, malformed=str(arguments), step=step, by=by)


def read_text(content: Any) -> str:
    """Return the text of a content: a text, blocks, or an object that has them."""
    if isinstance(content, Mapping):
        content = get_first(content, _BODY_KEYS)
    texts = [part for part in _read_body(content, "", is_of_langchain=True) if isinstance(part, str)]
    return "\n".join(texts)
