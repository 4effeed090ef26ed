"""The ways to make a model answer in a JSON schema, in the order in which they are tried."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import Runnable

from arq_graph.reasoning.blueprint import ARQ, Mode

Schema = dict[str, Any]
Bound = Runnable[LanguageModelInput, BaseMessage]
"""A chat model with its answer's schema bound to it."""


@dataclass(frozen=True)
class Method:
    """One way to ask for JSON.

    Args:
        name: "json_schema", "function_calling" or "json_mode".
        bind: Binds a schema of a given name to a chat model.
        read: Reads the answer's text off the model's message.
        schema_in_prompt: Whether the schema must stand in the prompt, because nothing else carries it.
    """

    name: str
    bind: Callable[[BaseChatModel, str, Schema], Bound]
    read: Callable[[BaseMessage], str]
    schema_in_prompt: bool = False


@dataclass(frozen=True)
class Prepared:
    """A blueprint made ready to be asked with one method.

    Args:
        bound: The chat model with the schema bound to it.
        schema_text: What the system message must say about the schema; None if it need not.
    """

    bound: Bound
    schema_text: str | None

    def messages(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The prompt as this method needs it: the schema stands at the end of the first system message."""
        if self.schema_text is None:
            return list(messages)
        for index, message in enumerate(messages):
            if isinstance(message, SystemMessage):
                extended = _appended(message, self.schema_text)
                return [*messages[:index], extended, *messages[index + 1 :]]
        return [SystemMessage(self.schema_text), *messages]


def prepare(model: BaseChatModel, blueprint: type[ARQ], mode: Mode, method: Method) -> Prepared:
    """Bind a blueprint's schema to a chat model with one method.

    Raises:
        NotImplementedError: If the model's class does not know the method.
    """
    schema = blueprint.response_schema(mode)
    text = None
    if method.schema_in_prompt:
        text = (
            "Answer with one JSON object and nothing else. It must fit this JSON schema, with its keys in"
            " the schema's order:\n" + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
        )
    return Prepared(method.bind(model, schema_name(blueprint), schema), text)


def schema_name(blueprint: type[ARQ]) -> str:
    """The blueprint's name in the characters that providers allow: letters, digits, `_` and `-`, up to 64."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", blueprint.__name__)[:64]


def _bind_json_schema(model: BaseChatModel, name: str, schema: Schema) -> Bound:
    wanted = {"name": name, "schema": schema, "strict": True}
    return model.bind(response_format={"type": "json_schema", "json_schema": wanted})


def _bind_function(model: BaseChatModel, name: str, schema: Schema) -> Bound:
    description = schema.get("description") or f"Give the answer as {name}."
    parameters = {key: value for key, value in schema.items() if key != "description"}
    function = {"name": name, "description": description, "parameters": parameters, "strict": True}
    return model.bind_tools([{"type": "function", "function": function}], tool_choice=name)


def _bind_json_object(model: BaseChatModel, name: str, schema: Schema) -> Bound:  # noqa: ARG001
    return model.bind(response_format={"type": "json_object"})


def _read_text(message: BaseMessage) -> str:
    return str(message.text)


def _read_arguments(message: BaseMessage) -> str:
    """The arguments of the forced call; some models call it twice, and some answer in words instead."""
    if not isinstance(message, AIMessage):
        return _read_text(message)
    arguments = [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls]
    arguments = arguments or [call["args"] or "" for call in message.invalid_tool_calls]
    return "\n".join(arguments) or _read_text(message)


def _appended(message: SystemMessage, text: str) -> SystemMessage:
    content: Any
    if isinstance(message.content, str):
        content = f"{message.content}\n\n{text}"
    else:
        content = [*message.content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": content})


METHODS = (
    Method("json_schema", _bind_json_schema, _read_text),
    Method("function_calling", _bind_function, _read_arguments),
    Method("json_mode", _bind_json_object, _read_text, schema_in_prompt=True),
)
"""Every method, the most exact first."""
