"""The offline chat model: deterministic, without state, from nothing but the messages and the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from langchain_core.language_models import ModelProfile
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from arq_graph.errors import InputError
from arq_graph.models.in_process import (
    InProcessChatModel,
    get_forced_tool,
    get_requested_schema,
    make_message,
)
from arq_graph.models.offline.answers import NOT_UNDERSTOOD, suggest_answers, write_reply
from arq_graph.models.offline.prompt import Prompt


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


class SchemaFiller:
    """Makes valid instances of a schema in OpenAI's strict subset.

    With `must_fit`, a suggested value that doesn't fit is an `InputError`; otherwise a plain one takes its place.
    """

    def __init__(self, root: Mapping[str, Any], prompt: Prompt, *, must_fit: bool = False) -> None:
        self._must_fit = must_fit
        self._definitions = root.get("$defs", {})
        self._text = "-" if prompt.sections else NOT_UNDERSTOOD
        # A verification that didn't have the answer that it must have is named by a complaint.
        self._confirmed = {place.rpartition(".")[2] for place in prompt.complaints}

    def fill(self, schema: Mapping[str, Any], suggestion: Any, name: str = "") -> Any:
        """Return an instance with the suggested values wherever the schema accepts them, plain ones elsewhere."""
        schema = self._follow_reference(schema)
        if "anyOf" in schema:
            return self.fill(self._choose_option(schema["anyOf"], suggestion), suggestion, name)
        if properties := schema.get("properties"):
            values = suggestion if isinstance(suggestion, Mapping) else {}
            return {key: self.fill(part, values.get(key), key) for key, part in properties.items()}
        if "items" in schema:
            items = suggestion if isinstance(suggestion, list) else []
            return [self.fill(schema["items"], item) for item in items]
        if self._accepts(schema, suggestion):
            return suggestion
        if suggestion is not None:
            self._refuse(suggestion, schema.get("enum", schema.get("type")))
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "string")
        if kind == "boolean":
            return name in self._confirmed
        return {"null": None, "object": {}, "integer": 1, "number": 1}.get(kind, self._text)

    def _follow_reference(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" not in schema:
            return schema
        definition: Mapping[str, Any] = self._definitions[schema["$ref"].rpartition("/")[2]]
        return definition

    def _choose_option(self, options: Sequence[Any], suggestion: Any) -> Any:
        """Return the first option that accepts a suggestion or has one of its keys, or else the first but null."""
        keys = set(suggestion) if isinstance(suggestion, Mapping) else set()
        for option in options:
            properties = self._follow_reference(option).get("properties") or {}
            if keys & properties.keys() or self._accepts(option, suggestion):
                return option
        if keys:
            self._refuse(suggestion, "an object with other keys")
        not_null = [option for option in options if option.get("type") != "null"]
        return (not_null or options)[0]

    def _accepts(self, schema: Mapping[str, Any], value: Any) -> bool:
        return Draft202012Validator({"$defs": self._definitions} | dict(schema)).is_valid(value)

    def _refuse(self, value: Any, expected: Any) -> None:
        if self._must_fit:
            raise InputError(f"{value!r:.200} is not what is asked for there: {expected}")
