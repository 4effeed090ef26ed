"""The form of a request: methods of asking an endpoint for JSON, and blocks with marks for its cache.

Most providers cache by themselves what a prompt has in common with earlier ones. Anthropic, Bedrock and newer models of
OpenAI do it only up to the places that a request marks, four at most, and a later request reads up to a place where one
before it was marked.
So the blocks of a human message are its parts: the last of them changes from call to call, and each of the others
ends where an earlier call may have ended. The first system message and the last three of these ends are marked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from pydantic import SecretStr

from arq_graph.models.resolve import BoundModel, ModelRunnable
from arq_graph.reasoning.deadlines import DeadlineThreads

Schema = dict[str, Any]
_SCHEMA_FOLLOWS = (
    "Answer with one JSON object and nothing else. It must fit this JSON schema, with its keys in the"
    " schema's order:\n"
)
Block: TypeAlias = dict[str, Any]
Marker: TypeAlias = Callable[[Block], list[Block]]
"""Returns what stands in the place of a block up to which the provider's cache shall store the prompt."""

_TEXT_KEYS = frozenset({"type", "text"})
_MARK_KEYS = frozenset({"cache_control", "cachePoint", "prompt_cache_breakpoint"})
_MARKED_PARTS = 3  # with the system message: as many marks as providers take


@dataclass(frozen=True)
class Method:
    """One way to ask for JSON.

    Args:
        name: Its name in an `Attempt`.
        bind: Binds a schema to a model, given as `bind(model, name=…, schema=…)`.
        schema_in_prompt: Whether the schema must stand in the prompt, because nothing else carries it.
    """

    name: str
    bind: Callable[..., ModelRunnable]
    schema_in_prompt: bool = False

    def prepare_messages(self, messages: Sequence[BaseMessage], schema: Schema) -> list[BaseMessage]:
        """Return the prompt, with the schema at the end of the first system message if this method needs it there."""
        if not self.schema_in_prompt:
            return list(messages)
        text = _SCHEMA_FOLLOWS + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
        for index, message in enumerate(messages):
            if isinstance(message, SystemMessage):
                prepared = list(messages)
                prepared[index] = message.model_copy(update={"content": f"{message.text}\n\n{text}"})
                return prepared
        return [SystemMessage(text), *messages]


def _bind_json_schema(model: BaseChatModel, name: str, schema: Schema) -> ModelRunnable:
    json_schema = {"name": name, "schema": schema, "strict": True}
    return model.bind(response_format={"type": "json_schema", "json_schema": json_schema})


def _bind_function(model: BaseChatModel, name: str, schema: Schema) -> ModelRunnable:
    description = schema.get("description") or f"Give the answer as {name}."
    parameters = {key: value for key, value in schema.items() if key != "description"}
    function = {"name": name, "description": description, "parameters": parameters, "strict": True}
    return model.bind_tools([{"type": "function", "function": function}], tool_choice=name)


def _bind_json_mode(model: BaseChatModel, **_: Any) -> ModelRunnable:
    return model.bind(response_format={"type": "json_object"})


METHODS = (
    Method("json_schema", _bind_json_schema),
    Method("function_calling", _bind_function),
    Method("json_mode", _bind_json_mode, schema_in_prompt=True),
    Method("prompt", lambda model, **_: model, schema_in_prompt=True),
)
"""All methods, the most exact first."""


def read_request(
    messages: Sequence[BaseMessage], response_format: Mapping[str, Any], tools: Sequence[Schema]
) -> tuple[str, list[BaseMessage], Schema]:
    """Return which method a request uses, and the prompt and schema that are the same for all methods."""
    method = f"{response_format.get('type', '')} {len(tools)}"
    schemas: list[Schema | None] = [tool.get("parameters") for tool in tools]
    schemas.append(response_format.get("json_schema", {}).get("schema"))
    prompt: list[BaseMessage] = []
    for message in messages:
        text, separator, schema_text = str(message.text).partition(_SCHEMA_FOLLOWS)
        if separator and isinstance(message, SystemMessage):
            schemas.append(json.loads(schema_text))
            message = message.model_copy(update={"content": text.removesuffix("\n\n")})
        if message.text or not separator:
            prompt.append(message)
    schema = next(filter(None, schemas), {})
    return method, prompt, {key: value for key, value in schema.items() if key != "description"}


@dataclass
class Endpoint:
    """Knowledge about one endpoint, shared by all asks of this process, from any thread.

    Args:
        methods: The methods to try, in this order; a single one, once it has led to a valid answer.
        takes_temperature: False once the endpoint has refused a temperature.
        takes_cache_marks: False once it has refused marks for its cache.
        streams: False once it has refused to stream.
        rests_until: The time of the monotonic clock until which other models are asked first, because it was out of
            reach.
        threads: The threads of its sync calls.
    """

    methods: tuple[Method, ...] = METHODS
    takes_temperature: bool = True
    takes_cache_marks: bool = True
    streams: bool = True
    rests_until: float = 0.0
    threads: DeadlineThreads = field(default_factory=DeadlineThreads)


def get_endpoint(bound_model: BoundModel) -> Endpoint:
    """Return the knowledge about a model's endpoint, which models of a class with the same settings share."""
    cls = type(bound_model.model)
    names = [name for name, info in cls.model_fields.items() if not info.exclude]
    if set(names) <= BaseChatModel.model_fields.keys():
        # The fields of this class don't tell its models apart, so that they share nothing but the bound on threads.
        return Endpoint(threads=_get_shared_endpoint(cls, "").threads)
    values: list[Any] = []
    for name in names:
        value = getattr(bound_model.model, name)
        if isinstance(value, SecretStr):
            value = value.get_secret_value()
        values.append(value)
    for binding in bound_model.bindings:
        values.append(getattr(binding, "kwargs", {}))
    return _get_shared_endpoint(cls, sha256(repr(values).encode()).hexdigest())  # a hash doesn't show keys


@lru_cache(maxsize=1_000)
def _get_shared_endpoint(_cls: type[BaseChatModel], _settings_hash: str) -> Endpoint:
    return Endpoint()


def get_cache_marker(model: BaseChatModel) -> Marker | None:
    """Return how a model's class wants a place in the prompt marked for the provider's cache; None: not at all."""
    if make_cache_point := getattr(type(model), "create_cache_point", None):  # ChatBedrockConverse
        return lambda block: [block, make_cache_point()]
    if any(cls.__name__ == "ChatAnthropic" for cls in type(model).__mro__):
        return lambda block: [{**block, "cache_control": {"type": "ephemeral"}}]
    # OpenAI's older models refuse marks, as they refuse this option.
    if getattr(model, "prompt_cache_options", None):
        return lambda block: [{**block, "prompt_cache_breakpoint": {"mode": "explicit"}}]
    return None


def mark_for_cache(messages: Sequence[BaseMessage], marker: Marker) -> list[BaseMessage]:
    """Return messages with marks for the provider's cache, unless they already carry some."""
    for message in messages:
        if isinstance(message.content, str):
            continue
        for block in message.content:
            if not _MARK_KEYS.isdisjoint(block):
                return join_text_blocks(messages)
    marked = list(messages)
    for index, message in enumerate(messages[:2]):
        marked[index] = message.model_copy(update={"content": _mark(message, marker)})
    return marked


def _mark(message: BaseMessage, marker: Marker) -> str | list[Any]:
    content = message.content
    if isinstance(content, str):
        if content and isinstance(message, SystemMessage):
            return marker({"type": "text", "text": content})
        return content
    blocks: list[Any] = []
    last = len(content) - 1
    for index, block in enumerate(content):
        if last - _MARKED_PARTS <= index < last and isinstance(block, dict):
            blocks.extend(marker(block))
        else:
            blocks.append(copy(block))  # several prompts share it, and what sends it may change it
    return blocks


def join_text_blocks(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages whose neighbouring text blocks are joined; content that is all text becomes a string."""
    joined: list[BaseMessage] = []
    for message in messages:
        if not isinstance(message.content, str):
            message = message.model_copy(update={"content": _join(message.content)})
        joined.append(message)
    return joined


def _join(content: list[Any]) -> str | list[Any]:
    blocks: list[Any] = []
    for is_text, group in groupby(content, _is_text):
        if is_text:
            blocks.append({"type": "text", "text": "".join(block["text"] for block in group)})
        else:
            blocks.extend(group)
    if len(blocks) == 1 and _is_text(blocks[0]):
        return str(blocks[0]["text"])
    return blocks


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == _TEXT_KEYS
