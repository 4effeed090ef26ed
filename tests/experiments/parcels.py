"""Recorded conversations with a post office's agent, in the two formats that data sets have."""

import json
from typing import Any

SYSTEM = """SYSTEM: You run the post office of a small town.
{"name": "find_parcel", "description": "Find a parcel", "parameters": {"type": "object", "properties":
{"number": {"type": "string", "description": "Its number"}}, "required": ["number"]}}
{"name": "open_case", "description": "Open a case", "parameters": {"type": "object", "properties":
{"number": {"type": "string"}, "urgent": {"type": "boolean"}}, "required": ["number"]}}
{"name": "office_hours", "description": "Tell the hours", "parameters": {"type": "object", "properties": {}}}"""


def record_call(tool: str, result: Any, **arguments: Any) -> str:
    """Return a call and its result in the format of the function-calling data set."""
    call = f'{{"name": "{tool}", "arguments": \'{json.dumps(arguments)}\'}}'
    return f"ASSISTANT: <functioncall> {call} <|endoftext|>\n\nFUNCTION RESPONSE: {json.dumps(result)}"


def record_reply(text: str) -> str:
    return f"ASSISTANT: {text} <|endoftext|>"


def record_conversation(*parts: str) -> dict[str, Any]:
    """Return a conversation in the format of the function-calling data set."""
    return {"system": SYSTEM, "chat": "\n\n".join(parts)}


QUESTION = "USER: Where is my parcel P-7?"
FIND = record_call("find_parcel", {"at": "the depot"}, number="P-7")
OPEN_CASE = record_call("open_case", {"case": 12}, number="P-7")
REPLY = record_reply("At the depot.")
FOUND = record_conversation(QUESTION, FIND, REPLY)
GREETING = record_conversation("USER: Hello", record_reply("Good morning!"))


def make_messages(*texts: str) -> list[dict[str, Any]]:
    """Return messages in OpenAI's format; each text is a role and a content."""
    messages = []
    for text in texts:
        role, content = text.split(" ", 1)
        messages.append({"role": role, "content": content})
    return messages


def make_call_message(*calls: tuple[str, str], content: str = "") -> dict[str, Any]:
    """Return an agent's message with calls, each a tool and its arguments as JSON; the tool's name is the id."""
    tool_calls = [{"id": name, "function": {"name": name, "arguments": text}} for name, text in calls]
    return {"role": "assistant", "content": content, "tool_calls": tool_calls}


def make_result_message(tool: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": tool, "content": text}
