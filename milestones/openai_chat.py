"""Transcripts from OpenAI chat messages, as the chat completions API takes and gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.recording import Recording, result_text, text_of


def is_message(value: Any) -> bool:
    """Whether this looks like an OpenAI chat message."""
    return isinstance(value, Mapping) and isinstance(value.get("role"), str)


def record_messages(messages: Iterable[Any]) -> Recording:
    """What happened in a list of OpenAI chat messages.

    Tool calls may stand in `tool_calls` or in the older `function_call`, their arguments as JSON text or as an
    object; results in messages of the role `tool` or the older `function`.

    Raises:
        InputError: A message is none, or a tool call has no name or no arguments; its index is named.
    """
    recording = Recording()
    for index, message in enumerate(messages):
        if not is_message(message):
            raise InputError(f"message {index} is no chat message: it has no `role`")
        role = message["role"]
        content = message.get("content")
        if role == "assistant":
            _assistant(recording, message, index)
        elif role == "user":
            recording.say("user", text_of(content, index), index)
        elif role == "tool":
            recording.answer(message.get("tool_call_id"), message.get("name"), result_text(content), index)
        elif role == "function":
            recording.answer(None, message.get("name"), result_text(content), index)
        elif role in ("system", "developer"):
            recording.instruct(text_of(content, index), index)
        else:
            raise InputError(
                f"message {index} has the role {role!r}; known are system, developer, user, assistant, tool, function"
            )
    return recording


def record_calls(recording: Recording, calls: Any, index: int) -> None:
    """The tool calls of one message.

    Raises:
        InputError: They are no list of calls, or a call has no name or no arguments.
    """
    if not isinstance(calls, list | tuple):
        raise InputError(f"message {index}: `tool_calls` is no list")
    for call in calls:
        # Some recorders keep name and arguments in the call itself.
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise InputError(f"message {index}: a tool call is no object with a `function`")
        recording.call(function.get("name"), function.get("arguments"), call.get("id"), index)


def _assistant(recording: Recording, message: Mapping[str, Any], index: int) -> None:
    text = text_of(message.get("content"), index) or text_of(message.get("refusal"), index)
    calls = message.get("tool_calls")
    function = message.get("function_call")
    if text or not (calls or function):
        recording.say("agent", text, index)
    if calls:
        record_calls(recording, calls, index)
    if function:
        record_calls(recording, [{"function": function}], index)
