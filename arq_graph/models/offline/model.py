"""The offline chat model: deterministic, without state, from nothing but the messages and the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import ModelProfile
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from arq_graph.models.in_process import (
    InProcessChatModel,
    get_forced_tool,
    get_requested_schema,
    make_message,
)
from arq_graph.models.offline.answers import suggest_answers, write_reply
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.schema_filler import SchemaFiller


class OfflineChatModel(InProcessChatModel):
    """A fake chat model that works without network, key or weights.

    It shows how a graph runs; it understands nothing. It reads the sections of the prompt and fills any schema with a
    valid instance. A guideline is active if most words of its condition were just said, a tool is called as soon as it
    is unlocked and its arguments are found by their shape, and a reply has the quotes in the guidelines' actions and
    the results of tools. Equal prompts get equal answers. If nothing matches, and for calls without a schema, the
    answer is `NOT_UNDERSTOOD`.
    """

    model_name: str = "offline"
    profile: ModelProfile | None = Field(default=ModelProfile(image_inputs=False), exclude=True)

    @property
    def _llm_type(self) -> str:
        return "arq-graph-offline"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        text = "\n\n".join(str(message.text) for message in messages)
        prompt = Prompt(messages)
        _, schema = get_requested_schema(kwargs)
        if schema is None:
            message = make_message(write_reply(prompt), text)
        else:
            message = make_message(_answer(prompt, schema), text, get_forced_tool(kwargs))
        return ChatResult(generations=[ChatGeneration(message=message)])


def _answer(prompt: Prompt, schema: Mapping[str, Any]) -> str:
    suggestion = suggest_answers(prompt, schema.get("properties") or {})
    if not prompt.says_no:
        suggestion["still_wanted"] = [call.get("id") for call in prompt.pending_calls]
    instance = SchemaFiller(schema, prompt).fill(schema, suggestion)
    # Half of a surrogate pair, cut out of a customer's message, can't be sent as UTF-8.
    return json.dumps(instance, ensure_ascii=False).encode(errors="replace").decode()
