"""The offline chat model: deterministic, without state, from nothing but the messages and the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import ModelProfile
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from arq_graph.models.in_process import InProcessChatModel, forced_tool, message_of, requested_schema
from arq_graph.models.offline.activation import judge_guidelines
from arq_graph.models.offline.instance import UNSAID, Instances
from arq_graph.models.offline.prompt import Prompt, read_prompt
from arq_graph.models.offline.reply import NOT_UNDERSTOOD, Reply, revise
from arq_graph.models.offline.tool_choice import candidate_answers, move, plan
from arq_graph.models.resolve import model_name, models_in


class OfflineChatModel(InProcessChatModel):
    """A stand-in for a chat model that works without network, key or weights.

    It shows how a graph runs; it understands nothing. It reads the sections of the prompt and fills whatever schema
    it is asked for with a valid instance: a guideline is active where the stems of its condition were just said, an
    argument is what has the type, the format or the shape that is wanted, and a reply is what the guidelines' actions
    say between quotes and what the tools told. The same prompt always gets the same answer. What matches nothing is
    answered with `NOT_UNDERSTOOD`; so is a call without a schema.
    """

    model_name: str = "offline"
    profile: ModelProfile | None = Field(default=ModelProfile(image_inputs=False), exclude=True)

    @property
    def _llm_type(self) -> str:
        return "arq-graph-offline"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer_message(messages, kwargs))])


_NAMES = ("offline", "offline model")  # in Python, and in the terminal


def is_offline(model: object) -> bool:
    """Whether what a model says, or one of several by module, is evidence of nothing: the offline model says it."""
    if isinstance(model, Mapping):
        return any(map(is_offline, model.values()))
    if isinstance(model, str):
        return model in _NAMES
    # What is replayed is as good as what was recorded.
    return any(isinstance(each, OfflineChatModel) or model_name(each) in _NAMES for each in models_in(model))


def _answer_message(messages: Sequence[BaseMessage], kwargs: Mapping[str, Any]) -> AIMessage:
    text = "\n\n".join(str(message.text) for message in messages)
    _, schema = requested_schema(kwargs)
    prompt = read_prompt(messages)
    if schema is None:
        return message_of(Reply(prompt).text, text)
    answer = json.dumps(_answer(prompt, schema), ensure_ascii=False)
    # Half a surrogate pair, cut out of a customer's message, cannot be sent as UTF-8.
    return message_of(answer.encode(errors="replace").decode(), text, forced_tool(kwargs))


def _answer(prompt: Prompt, schema: Mapping[str, Any]) -> Any:
    confirmed = {place.rpartition(".")[2] for place in prompt.complaints}
    kinds = Instances(schema, NOT_UNDERSTOOD if not prompt.sections else "-", confirmed)
    suggested = _suggested(prompt, kinds, kinds.asked(schema))
    if prompt.waiting and isinstance(suggested, dict):
        suggested["still_wanted"] = [] if prompt.says_no else [each.get("id") for each in prompt.waiting]
    return kinds.of(suggested)


def _suggested(prompt: Prompt, kinds: Instances, properties: Mapping[str, Any]) -> Any:
    sections = prompt.sections
    if "move" in properties:
        return move(prompt, properties["move"], kinds)
    if "action" in properties and properties.keys() & {"next_steps", "thought"}:
        return plan(prompt, properties["action"], kinds)
    if "revisions" in properties:
        return revise(prompt)
    if "guidelines" in sections:
        return judge_guidelines(prompt, properties, kinds)
    return candidate_answers(prompt, properties, kinds) if "tools" in sections else UNSAID
