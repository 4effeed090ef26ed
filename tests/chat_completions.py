"""Answers of OpenAI's chat completions, whole and streamed."""

import json
from typing import Any


def make_completion(
    message: dict[str, Any],
    *,
    model: str,
    finish_reason: str = "stop",
    input_tokens: int,
    cached_tokens: int = 0,
    output_tokens: int,
) -> dict[str, Any]:
    usage = {
        "prompt_tokens": input_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    fields = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
    return fields | {"choices": [choice], "usage": usage}


def make_tool_call(name: str, arguments: str) -> dict[str, Any]:
    """Return a message that calls a tool with this text as arguments, valid or not."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}


def make_events(completion: dict[str, Any], *, with_usage: bool) -> list[str]:
    """Return a completion as server-sent events of a few characters each."""
    (choice,) = completion["choices"]
    base = {key: completion[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks = []
    for delta in split_message(choice["message"]):
        chunks.append({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    chunks.append({**base, "choices": [end]})
    if with_usage:
        chunks.append({**base, "choices": [], "usage": completion["usage"]})
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return [*events, "data: [DONE]\n\n"]


def split_message(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the deltas of a message's content, its refusal, or the arguments of its call."""
    calls = message.get("tool_calls")
    if not calls:
        field = "refusal" if message.get("refusal") else "content"
        pieces = [{field: piece} for piece in split_text(message[field] or "")]
        return [{"role": "assistant", "content": ""}, *pieces]
    (call,) = calls
    deltas: list[dict[str, Any]] = []
    for piece in split_text(call["function"]["arguments"]):
        deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    start = {**call, "index": 0, "function": {**call["function"], "arguments": ""}}
    return [{"role": "assistant", "content": None, "tool_calls": [start]}, *deltas]


def split_text(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]
