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

_CHOICES_WITHOUT_NAME = ("auto", "none", "any", "required")


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
    tool = _forced_tool(kwargs)
    message = text_message(text, prompt)
    if tool is None:
        return message
    call = tool_call(name=tool, args=json.loads(text), id=f"call_{tool}")
    return message.model_copy(update={"content": "", "tool_calls": [call]})


def text_message(text: str, prompt: str) -> AIMessage:
    """The message for an answer in words; four characters count as a token."""
    read, written = len(prompt) // 4, len(text) // 4
    usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    return AIMessage(content=text, usage_metadata=usage)


def requested_schema(kwargs: Mapping[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
    """Name and JSON schema that a call asks for, by `response_format` or a forced tool; None for what is absent."""
    response_format = kwargs.get("response_format")
    if isinstance(response_format, Mapping):
        wanted = response_format.get("json_schema")
        if isinstance(wanted, Mapping):
            return wanted.get("name"), wanted.get("schema")
        return None, response_format.get("schema")  # json_object with a schema, as llama.cpp takes it
    name = _forced_tool(kwargs)
    for function in _functions(kwargs):
        if function.get("name") == name:
            return name, function.get("parameters")
    return None, None


def _forced_tool(kwargs: Mapping[str, Any]) -> str | None:
    """Name of the one tool that the call must use, or None if it may answer in another way."""
    choice = kwargs.get("tool_choice")
    if isinstance(choice, Mapping):
        return (choice.get("function") or choice).get("name")
    names = [function.get("name") for function in _functions(kwargs)]
    if choice in ("any", "required", True):
        return names[0] if len(names) == 1 else None
    return choice if isinstance(choice, str) and choice not in _CHOICES_WITHOUT_NAME else None


def _functions(kwargs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [tool.get("function", tool) for tool in kwargs.get("tools") or ()]
