"""The parts of a message: texts, tool calls and results, as the content blocks of many providers hold them.

The names of the block types and of their fields don't conflict, so one table reads the blocks of Anthropic, Bedrock
Converse, Gemini, OpenAI's two APIs, LangChain, the AI SDK (its model and its UI messages), inspect_ai and
OpenTelemetry's GenAI messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from arq_graph.milestones.values import as_text


@dataclass(slots=True)
class CallPart:
    """A call in a message; the arguments are as the record has them, or `MISSING`."""

    tool: Any
    arguments: Any
    id: Any = None


@dataclass(slots=True)
class ResultPart:
    """The result of a call in a message."""

    content: Any
    id: Any = None
    tool: Any = None
    failed: bool = False


Part = str | CallPart | ResultPart
MISSING = object()

_TEXT_TYPES = ("text", "input_text", "output_text", "refusal")
_CALL_ENDINGS = ("_call", "_use", "-call")
_RESULT_ENDINGS = ("_result", "_output", "_response", "-result", "-error")
_MEDIA_TYPES = ("image", "image_url", "input_image", "image-data", "image-url", "media", "audio", "video")
_WITHOUT_CALLS = """
thinking redacted_thinking reasoning reasoning_content redacted-reasoning reasoning-file input_audio output_audio
video_url blob uri file input_file file_data document text-plain container_upload citation search_result source
source-url source-document step-start data custom cache_point guard_content fallback additional_tools
tool-approval-request tool-approval-response mcp_list_tools mcp_approval_request mcp_approval_response
"""
_TYPES_WITHOUT_CALLS = frozenset(_WITHOUT_CALLS.split()).union(_MEDIA_TYPES)
_KEYS_WITHOUT_CALLS = """
image document video audio cachePoint guardContent reasoningContent searchResult inlineData inline_data fileData
file_data
"""
_TYPES_BY_KEY = dict.fromkeys(_KEYS_WITHOUT_CALLS.split(), "data") | {
    "text": "text",
    "toolUse": "tool_use",
    "functionCall": "tool_call",
    "function_call": "tool_call",
    "toolResult": "tool_result",
    "functionResponse": "tool_result",
    "function_response": "tool_result",
}
"""The types of blocks that have none: those of Bedrock and Gemini have one key that says it."""

_IDS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "id")
_NAMES = ("name", "toolName")
_ARGUMENTS = ("input", "args", "arguments", "server_tool_call", "rawInput")
_RESULTS = (
    "output",
    "outputs",
    "result",
    "results",
    "response",
    "server_tool_call_response",
    "content",
    "tools",
)
_ERRORS = ("errorText", "error")
_RESULT_KEYS = frozenset(_RESULTS + _ERRORS)
_CALL_FIELDS = frozenset(_IDS + _NAMES + _ARGUMENTS).union(("type",))
_OWN_FIELDS = frozenset(_IDS + _RESULTS + _ERRORS).union(
    ("type", "status", "caller", "created_by", "index", "extras")
)
_MAY_STAND_ALONE = frozenset(_IDS + _NAMES).union(("type", "role", "status", "is_error", "cache_control"))
"""The fields of a result that returned nothing."""
_CALLS_WITH_NAMES = ("tool", "function", "mcp", "custom_tool", "invalid_tool", "server_tool")
"""The beginnings of types such as `function_call`; in others, such as `web_search_call`, they are the tool's name."""
_FINAL = ("output-available", "output-error", "output-denied", "result")
_FAILED = ("error", "failed", "output-error", "output-denied", "tool-error")
_OUTPUT_TYPES = ("text", "json", "content", "error-text", "error-json")
"""The types of the outputs of the AI SDK, which have a `value`."""
_MAX_DEPTH = 20


def as_fields(value: Any) -> Mapping[str, Any]:
    """Return a mapping itself, or the attributes of an object, such as those of the providers' packages."""
    fields: Mapping[str, Any] = value
    if type(value) is not dict and not isinstance(value, Mapping):
        fields = getattr(value, "__dict__", {})
    return fields


def get_first(fields: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the value of the first of several keys that has one."""
    for key in keys:
        if key in fields and fields[key] is not None:
            return fields[key]
    return None


def read_block(block: Any) -> list[Part] | None:
    """Return the parts in a content block, none if it holds neither text nor calls; None if its type isn't known."""
    if isinstance(block, str):
        return [block]
    fields = as_fields(block)
    if "type" in fields:
        return _read_typed(str(fields["type"]), fields)
    keys = [key for key in _TYPES_BY_KEY if fields.get(key) is not None]
    if len(keys) != 1 or any(may_hold_call(fields[key]) for key in fields if key != keys[0]):
        return None
    content = fields[keys[0]]
    if not isinstance(content, Mapping):
        # Gemini marks a thought beside its text.
        content = {"text": None if fields.get("thought") is True else content}
    return _read_typed(_TYPES_BY_KEY[keys[0]], content)


def _read_typed(type: str, fields: Mapping[str, Any]) -> list[Part] | None:
    if type in _TEXT_TYPES:
        text = get_first(fields, ("text", "content", "refusal"))
        return [text] if isinstance(text, str) else []
    if type in _TYPES_WITHOUT_CALLS or type.startswith("data-"):
        return []
    if type == "tool-invocation":
        return _read_ui_tool("", fields.get("toolInvocation"))
    if type == "dynamic-tool" or (type.startswith("tool-") and "state" in fields):
        return _read_ui_tool(type.removeprefix("tool-"), fields)
    if type.endswith(_CALL_ENDINGS):
        return list(_read_call(type, fields))
    return [read_result(fields)] if type.endswith(_RESULT_ENDINGS) and has_result(fields) else None


def _read_ui_tool(tool: str, part: Any) -> list[Part]:
    """Return the call and the result in a tool part of the AI SDK's UI messages."""
    fields = as_fields(part)
    state = fields.get("state")
    arguments = get_first(fields, _ARGUMENTS)
    if arguments is None and state not in ("input-streaming", "partial-call", "output-error"):
        arguments = MISSING
    call = CallPart(get_first(fields, _NAMES) or tool, arguments, get_first(fields, _IDS))
    has_ended = state in _FINAL or get_first(fields, _RESULTS + _ERRORS) is not None
    return [call, read_result(fields)] if has_ended else [call]


def _read_call(type: str, fields: Mapping[str, Any]) -> Iterator[Part]:
    tool, arguments = get_first(fields, _NAMES), get_first(fields, _ARGUMENTS)
    beginning = type.removesuffix("_call")
    is_of_provider = tool is None and beginning != type and beginning not in _CALLS_WITH_NAMES
    if is_of_provider:  # the arguments are fields of the block
        tool = beginning
        arguments = {name: value for name, value in fields.items() if name not in _OWN_FIELDS}
    elif type == "custom_tool_call":  # the input is free text
        arguments = {"input": arguments}
    elif arguments is None and not fields.keys() <= _CALL_FIELDS:
        arguments = MISSING
    yield CallPart(tool, arguments, get_first(fields, _IDS))
    # What the provider itself ran has its result in the same block.
    has_own_result = get_first(fields, _RESULTS + _ERRORS) is not None and type != "invalid_tool_call"
    has_ended = is_of_provider and "call_id" not in fields and fields.get("status") in ("completed", "failed")
    if has_own_result or has_ended:
        yield read_result(fields)


def has_result(fields: Mapping[str, Any]) -> bool:
    """Return whether a block or a tool's message has a result, be it empty."""
    return not _RESULT_KEYS.isdisjoint(fields) or fields.keys() <= _MAY_STAND_ALONE


def read_result(block: Any) -> ResultPart:
    """Return the result in a block or in a tool's message."""
    fields = as_fields(block)
    content, failed = get_first(fields, _RESULTS), _is_failed(fields)
    if isinstance(content, Mapping):
        type = str(content.get("type", ""))
        is_of_server_tool = str(fields.get("type", "")).endswith("_tool_result")
        failed = failed or content.get("isError") is True or (is_of_server_tool and type.endswith("_error"))
        if type == "execution-denied" or (type in _OUTPUT_TYPES and "value" in content):
            failed = failed or type.startswith("e")
            content = content.get("value", content.get("reason"))
    if content in (None, "") and failed:
        content = get_first(fields, _ERRORS)
    return ResultPart(content, get_first(fields, _IDS), get_first(fields, _NAMES), failed)


def _is_failed(fields: Mapping[str, Any]) -> bool:
    """Return whether a result's own fields mark it as an error: a status, a flag, or an error's text or object."""
    for key in ("status", "state", "type"):
        if key in fields and fields[key] in _FAILED:
            return True
    if fields.get("is_error") is True or fields.get("isError") is True or fields.get("successful") is False:
        return True
    return bool(get_first(fields, _ERRORS))


def may_hold_call(value: Any, depth: int = 0) -> bool:
    """Return whether a value that nothing reads may hold a call or a result: a name with arguments, or a call's id."""
    if value is None or isinstance(value, str | int | float):
        return False
    if depth > _MAX_DEPTH:
        return True
    if isinstance(value, list | tuple):
        return any(may_hold_call(item, depth + 1) for item in value)
    if not isinstance(value, Mapping):
        return False
    has_name = not value.keys().isdisjoint(_NAMES)
    has_arguments = "parameters" in value or not value.keys().isdisjoint(_ARGUMENTS)
    if "function" in value or (has_name and has_arguments) or not value.keys().isdisjoint(_IDS[:-1]):
        return True
    return any(may_hold_call(item, depth + 1) for item in value.values())


def format_result(content: Any) -> str:
    """Return the content of a result as text: the texts of content blocks, anything else as JSON."""
    if content is None:
        return ""
    if isinstance(content, list | tuple) and content:
        texts = [_get_text_in_result(block) for block in content]
        if None not in texts:
            return "\n".join(filter(None, texts))
    return as_text(content)


def _get_text_in_result(block: Any) -> str | None:
    """Return the text of a content block, none for pictures and sound; None if it is data of the tool itself."""
    if isinstance(block, str):
        return block
    fields = as_fields(block)
    type = fields.get("type")
    if type is None and len(fields) == 1:  # Bedrock
        type, content = next(iter(fields.items()))
        if type == "json":
            return as_text(content)
    if type in _TEXT_TYPES:
        text = get_first(fields, ("text", "content", "refusal"))
        return text if isinstance(text, str) else None
    return "" if type in _MEDIA_TYPES else None
