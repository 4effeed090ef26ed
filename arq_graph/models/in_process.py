"""What chat models share that answer in this process: which schema a call asks for, and the message that answers it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import Runnable, RunnableConfig
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

    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        """Answer in words a token at a time; calls come at the end."""
        yield from _tokens(self.invoke(input, config, **kwargs))

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """Answer a token at a time, without blocking."""
        for token in _tokens(await self.ainvoke(input, config, **kwargs)):
            yield token


def _tokens(message: AIMessage) -> Iterator[AIMessageChunk]:
    text = message.content if isinstance(message.content, str) else ""
    yield from (AIMessageChunk(content=text[at : at + 4]) for at in range(0, len(text), 4))
    yield AIMessageChunk(
        content="" if text else message.content,
        tool_calls=message.tool_calls,
        invalid_tool_calls=message.invalid_tool_calls,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        chunk_position="last",
    )


def message_of(text: str, prompt: str, tool: Mapping[str, Any] | None = None) -> AIMessage:
    """The message for an answer: a call of a tool with the object that the text holds, or else the text itself.

    Four characters count as a token.
    """
    read, written = len(prompt) // 4, len(text) // 4
    usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    if tool is None:
        return AIMessage(text, usage_metadata=usage)
    call = tool_call(name=tool["name"], args=json.loads(text), id=f"call_{tool['name']}")
    return AIMessage("", tool_calls=[call], usage_metadata=usage)


def requested_schema(kwargs: Mapping[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
    """Name and JSON schema that a call asks for, by `response_format` or a forced tool; None for what is absent."""
    if response_format := kwargs.get("response_format"):
        wanted = response_format.get("json_schema") or {}
        return wanted.get("name"), wanted.get("schema")
    tool = forced_tool(kwargs) or {}
    return tool.get("name"), tool.get("parameters")


def forced_tool(kwargs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The one tool that a call must use, or None if it may answer in another way."""
    tools: Sequence[dict[str, dict[str, Any]]] = kwargs.get("tools") or ()
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    if kwargs.get("tool_choice") == "any" and len(functions) == 1:
        return next(iter(functions.values()))
    return functions.get(str(kwargs.get("tool_choice")))
