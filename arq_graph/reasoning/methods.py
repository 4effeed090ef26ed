"""The ways to make a model answer in a JSON schema, and which of them each endpoint is known to take."""

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
    """One way to ask for JSON: how a named schema is bound to a model.

    `schema_in_prompt`: the schema must stand in the prompt, because nothing else carries it.
    """

    name: str
    bind: Callable[..., Called]
    schema_in_prompt: bool = False

    def messages(self, messages: Sequence[BaseMessage], schema: Schema) -> list[BaseMessage]:
        """The prompt as this method needs it: the schema may stand at the end of the first system message."""
        if not self.schema_in_prompt:
            return list(messages)
        text = _SCHEMA_FOLLOWS + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
        for index, message in enumerate(messages):
            if isinstance(message, SystemMessage):
                whole = message.model_copy(update={"content": f"{message.text}\n\n{text}"})
                return [*messages[:index], whole, *messages[index + 1 :]]
        return [SystemMessage(text), *messages]


def _bind_json_schema(model: BaseChatModel, name: str, schema: Schema) -> Called:
    wanted = {"name": name, "schema": schema, "strict": True}
    return model.bind(response_format={"type": "json_schema", "json_schema": wanted})


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
"""Every method, the most exact first."""


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

    `methods` has those to try, in this order: one alone, once it has led to a valid answer. `takes_temperature` is
    False once the endpoint has refused a temperature, `takes_marks` once it has refused marks for its cache, and
    `streams` once it has refused to stream.
    `rests_until`: the time of the monotonic clock up to which other models are asked before it, as it was out of reach.
    """

    methods: tuple[Method, ...] = METHODS
    takes_temperature: bool = True
    takes_marks: bool = True
    rests_until: float = 0.0
    streams: bool = True


@lru_cache(maxsize=1_000)
def _remembered(_kind: type[BaseChatModel], _settings: str) -> Endpoint:
    return Endpoint()


def get_endpoint(bare: Bare) -> Endpoint:
    """What this process knows of a model's endpoint; models of one class and the same settings, keys too, share it."""
    fields = type(bare.model).model_fields
    names = [name for name, field in fields.items() if not field.exclude]
    if set(names) <= BaseChatModel.model_fields.keys():
        return Endpoint()  # nothing that can be seen tells it from another one of its class
    values = [getattr(bare.model, name) for name in names]
    plain = [value.get_secret_value() if isinstance(value, SecretStr) else value for value in values]
    settings = repr([plain, *(getattr(binding, "kwargs", {}) for binding in bare.bindings)])
    return _remembered(type(bare.model), sha256(settings.encode()).hexdigest())  # which holds no key
