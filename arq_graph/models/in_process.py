"""The common base of chat models that answer in this process."""

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

_CHARACTERS_PER_TOKEN = 4


class InProcessChatModel(BaseChatModel):
    """A chat model that answers without any network."""

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; an answer that is an object becomes a call of the tool that `tool_choice` forces."""
        definitions = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=definitions, tool_choice=tool_choice, **kwargs)

    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        """Stream text a token at a time; tool calls come at the end."""
        yield from _split_into_chunks(self.invoke(input, config, **kwargs))

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """Stream text a token at a time, without blocking."""
        for chunk in _split_into_chunks(await self.ainvoke(input, config, **kwargs)):
            yield chunk


def _split_into_chunks(message: AIMessage) -> Iterator[AIMessageChunk]:
    text = message.content if isinstance(message.content, str) else ""
    for start in range(0, len(text), _CHARACTERS_PER_TOKEN):
        yield AIMessageChunk(content=text[start : start + _CHARACTERS_PER_TOKEN])
    yield AIMessageChunk(
        content="" if text else message.content,
        tool_calls=message.tool_calls,
        invalid_tool_calls=message.invalid_tool_calls,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        chunk_position="last",
    )


def make_message(text: str, prompt: str, tool: Mapping[str, Any] | None = None) -> AIMessage:
    """Return the message for an answer: a call of the tool with the JSON object in the text, or else the text.

    Four characters count as one token.
    """
    input_tokens = len(prompt) // _CHARACTERS_PER_TOKEN
    output_tokens = len(text) // _CHARACTERS_PER_TOKEN
    usage = UsageMetadata(
        input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=input_tokens + output_tokens
    )
    if tool is None:
        return AIMessage(text, usage_metadata=usage)
    call = tool_call(name=tool["name"], args=json.loads(text), id=f"call_{tool['name']}")
    return AIMessage("", tool_calls=[call], usage_metadata=usage)


def get_requested_schema(kwargs: Mapping[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
    """Return name and JSON schema of the answer that a call asks for, by `response_format` or by a forced tool."""
    if response_format := kwargs.get("response_format"):
        json_schema = response_format.get("json_schema") or {}
        return json_schema.get("name"), json_schema.get("schema")
    tool = get_forced_tool(kwargs) or {}
    return tool.get("name"), tool.get("parameters")


def get_forced_tool(kwargs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the tool that a call must use, or None if it may answer in another way."""
    tools: Sequence[dict[str, dict[str, Any]]] = kwargs.get("tools") or ()
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    if kwargs.get("tool_choice") == "any" and len(functions) == 1:
        return next(iter(functions.values()))
    return functions.get(str(kwargs.get("tool_choice")))
