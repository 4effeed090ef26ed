"""Filling any schema with a valid instance that has the suggested values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator

from arq_graph.errors import InputError
from arq_graph.models.offline.answers import NOT_UNDERSTOOD
from arq_graph.models.offline.prompt import Prompt


class SchemaFiller:
    """Makes valid instances of a schema in OpenAI's strict subset.

    Args:
        root: The schema.
        prompt: The prompt that asks for an instance.
        must_fit: Raise an `InputError` if a suggested value doesn't fit, instead of putting a plain one in its place.
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
            if suggestion and not items:
                self._refuse(suggestion, "a list")
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
