"""The methods of asking for an answer in a JSON schema, and what is known of each endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from pydantic import SecretStr

from arq_graph.models.resolve import Bare, Called

Schema = dict[str, Any]
_SCHEMA_FOLLOWS = (
    "Answer with one JSON object and nothing else. It must fit this JSON schema, with its keys in the"
    " schema's order:\n"
)


@dataclass(frozen=True)
class Method:
    """One way to ask for JSON.

    Args:
        name: Its name in an `Attempt`.
        bind: Binds a schema to a model, given as `bind(model, name=…, schema=…)`.
        schema_in_prompt: Whether the schema must stand in the prompt, because nothing else carries it.
    """

    name: str
    bind: Callable[..., Called]
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


def _bind_json_schema(model: BaseChatModel, name: str, schema: Schema) -> Called:
    json_schema = {"name": name, "schema": schema, "strict": True}
    return model.bind(response_format={"type": "json_schema", "json_schema": json_schema})


def _bind_function(model: BaseChatModel, name: str, schema: Schema) -> Called:
    description = schema.get("description") or f"Give the answer as {name}."
    parameters = {key: value for key, value in schema.items() if key != "description"}
    function = {"name": name, "description": description, "parameters": parameters, "strict": True}
    return model.bind_tools([{"type": "function", "function": function}], tool_choice=name)


def _bind_json_mode(model: BaseChatModel, **_: Any) -> Called:
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
    """What tells a request's method from others, and what all of them ask alike: prompt and schema."""
    carried = [
        *(tool.get("parameters") for tool in tools),
        response_format.get("json_schema", {}).get("schema"),
    ]
    found: list[BaseMessage] = []
    for message in messages:
        said, follows, schema = str(message.text).partition(_SCHEMA_FOLLOWS)
        if follows and isinstance(message, SystemMessage):
            carried.append(json.loads(schema))
            message = message.model_copy(update={"content": said.removesuffix("\n\n")})
        if not follows or message.text:
            found.append(message)
    schema_asked: Schema = next(filter(None, carried), {})
    method = f"{response_format.get('type', '')} {len(tools)}"
    return method, found, {key: value for key, value in schema_asked.items() if key != "description"}


@dataclass
class Endpoint:
    """What this process knows of one endpoint; shared by all asks, from any thread.

    Args:
        methods: The methods to try, in this order; a single one, once it has led to a valid answer.
        takes_temperature: False once the endpoint has refused a temperature.
        takes_cache_marks: False once it has refused marks for its cache.
        streams: False once it has refused to stream.
        rests_until: The time of the monotonic clock until which other models are asked first, because it was out of
            reach.
    """

    methods: tuple[Method, ...] = METHODS
    takes_temperature: bool = True
    takes_cache_marks: bool = True
    streams: bool = True
    rests_until: float = 0.0


def get_endpoint(bare: Bare) -> Endpoint:
    """Return what is known of a model's endpoint: one object for all models of a class with the same settings."""
    cls = type(bare.model)
    names = [name for name, field in cls.model_fields.items() if not field.exclude]
    if set(names) <= BaseChatModel.model_fields.keys():
        return Endpoint()  # the fields of this class don't tell its models apart
    values: list[Any] = []
    for name in names:
        value = getattr(bare.model, name)
        values.append(value.get_secret_value() if isinstance(value, SecretStr) else value)
    for binding in bare.bindings:
        values.append(getattr(binding, "kwargs", {}))
    return _get_shared_endpoint(cls, sha256(repr(values).encode()).hexdigest())  # a hash doesn't show keys


@lru_cache(maxsize=1_000)
def _get_shared_endpoint(_cls: type[BaseChatModel], _settings_hash: str) -> Endpoint:
    return Endpoint()
