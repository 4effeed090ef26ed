"""The offline chat model: deterministic, without state, from nothing but the messages and the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import ModelProfile
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from arq_graph.models.in_process import (
    InProcessChatModel,
    get_forced_tool,
    get_requested_schema,
    make_message,
)
from arq_graph.models.offline.activation import judge_guidelines
from arq_graph.models.offline.prompt import Prompt, read_prompt
from arq_graph.models.offline.reply import NOT_UNDERSTOOD, answer_reviser, write_reply
from arq_graph.models.offline.schema_filler import SchemaFiller
from arq_graph.models.offline.tool_choice import answer_planner, answer_speaker, answer_tool_caller


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
        return ChatResult(generations=[ChatGeneration(message=_answer(messages, kwargs))])


def _answer(messages: Sequence[BaseMessage], kwargs: Mapping[str, Any]) -> AIMessage:
    text = "\n\n".join(str(message.text) for message in messages)
    prompt = read_prompt(messages)
    _, schema = get_requested_schema(kwargs)
    if schema is None:
        return make_message(write_reply(prompt), text)
    default = "-" if prompt.sections else NOT_UNDERSTOOD
    confirmed = [place.rpartition(".")[2] for place in prompt.complaints]
    filler = SchemaFiller(schema, default, confirmed)
    suggestion = _answer_queries(prompt, filler)
    if not prompt.says_no:
        suggestion["still_wanted"] = [call.get("id") for call in prompt.pending_calls]
    answer = json.dumps(filler.fill(suggestion), ensure_ascii=False)
    # Half of a surrogate pair, cut out of a customer's message, can't be sent as UTF-8.
    return make_message(answer.encode(errors="replace").decode(), text, get_forced_tool(kwargs))


def _answer_queries(prompt: Prompt, filler: SchemaFiller) -> dict[str, Any]:
    properties = filler.properties
    if "move" in properties:
        return answer_speaker(prompt, filler)
    if "action" in properties and properties.keys() & {"next_steps", "thought"}:
        return answer_planner(prompt, filler)
    if "revisions" in properties:
        return answer_reviser(prompt)
    if "guidelines" in prompt.sections:
        return judge_guidelines(prompt, filler)
    if "tools" in prompt.sections:
        return answer_tool_caller(prompt, filler)
    return {}
