"""What chat models share that answer in this process: tools are bound as data, usage is estimated."""

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

from arq_graph.models.requested import forced_tool


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
    """The message for an answer that is a JSON object: a call where a tool is forced, else its text.

    Args:
        text: The object as JSON.
        prompt: The whole prompt, for the estimate of its tokens.
        kwargs: The keyword arguments of the call.
    """
    tool = forced_tool(kwargs)
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
