"""The offline chat model: deterministic, without state, from nothing but the messages and the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from arq_graph.models.in_process import InProcessChatModel, object_message, text_message
from arq_graph.models.offline.answering import answer, reply_text
from arq_graph.models.requested import requested_schema

_SCHEMA_START = re.compile(r"^\{", re.MULTILINE)


class OfflineChatModel(InProcessChatModel):
    """A chat model that works without network, key or weights.

    It answers any blueprint from the sections of its prompt: by word overlap (stems, everyday synonyms), by types
    and by rules. It is no language model. It understands plain customer-service English, finds values by their
    shape, writes replies from the texts that the prompt holds, and never makes a value up. The same prompt always
    gets the same answer. Asked without a schema it answers in words.
    """

    model_name: str = "offline"

    @property
    def _llm_type(self) -> str:
        return "arq-graph-offline"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"model_name": self.model_name}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_reply(messages, kwargs))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)


def _reply(messages: Sequence[BaseMessage], kwargs: Mapping[str, Any]) -> AIMessage:
    prompt = "\n\n".join(str(message.text) for message in messages)
    _, schema = requested_schema(kwargs)
    if schema is None and _wants_json(kwargs):
        schema = _schema_in(messages)
    if schema is None:
        return text_message(reply_text(messages), prompt)
    text = json.dumps(answer(messages, schema), ensure_ascii=False)
    # Half a surrogate pair, cut out of a customer's message, cannot be sent as UTF-8.
    return object_message(text.encode(errors="replace").decode(), prompt, kwargs)


def _wants_json(kwargs: Mapping[str, Any]) -> bool:
    wanted = kwargs.get("response_format")
    return isinstance(wanted, Mapping) and wanted.get("type") == "json_object"


def _schema_in(messages: Sequence[BaseMessage]) -> dict[str, Any] | None:
    """The JSON schema at the end of the first system message, where JSON mode has put it."""
    text = next((str(message.text) for message in messages if isinstance(message, SystemMessage)), "")
    for start in [match.start() for match in _SCHEMA_START.finditer(text)][::-1][:20]:
        try:
            found, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and ("properties" in found or "$defs" in found):
            return found
    return None
