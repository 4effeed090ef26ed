"""What chat models share that answer in this process: which schema a call asks for, and the message that answers it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool


class InProcessChatModel(BaseChatModel):
    """A chat model that answers without any network."""

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; an object as the answer becomes a call of the tool that `tool_choice` forces."""
        described = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=described, tool_choice=tool_choice, **kwargs)


def object_message(text: str, prompt: str, kwargs: Mapping[str, Any]) -> AIMessage:
    """The message for an answer that is a JSON object: a call where a tool is forced, else its text."""
    message = text_message(text, prompt)
    if tool := _forced_tool(kwargs):
        call = tool_call(name=tool["name"], args=json.loads(text), id=f"call_{tool['name']}")
        message = message.model_copy(update={"content": "", "tool_calls": [call]})
    return message


def text_message(text: str, prompt: str) -> AIMessage:
    """The message for an answer in words; four characters count as a token."""
    read, written = len(prompt) // 4, len(text) // 4
    usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    return AIMessage(content=text, usage_metadata=usage)


def requested_schema(kwargs: Mapping[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
    """Name and JSON schema that a call asks for, by `response_format` or a forced tool; None for what is absent."""
    if response_format := kwargs.get("response_format"):
        wanted = response_format.get("json_schema") or {}
        return wanted.get("name"), wanted.get("schema")
    tool = _forced_tool(kwargs) or {}
    return tool.get("name"), tool.get("parameters")


def _forced_tool(kwargs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The one tool that the call must use, or None if it may answer in another way."""
    choice = kwargs.get("tool_choice")
    choice = choice["function"]["name"] if isinstance(choice, Mapping) else choice
    tools: Sequence[Mapping[str, Any]] = kwargs.get("tools") or ()
    functions: dict[str, Mapping[str, Any]] = {tool["function"]["name"]: tool["function"] for tool in tools}
    if choice in ("any", "required", True) and len(functions) == 1:
        return next(iter(functions.values()))
    return functions.get(str(choice))
