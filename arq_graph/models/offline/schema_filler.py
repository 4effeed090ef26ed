"""Valid instances of JSON schemas, made from suggestions and, for the rest, from the plainest values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator


class SchemaFiller:
    """Fills one schema in OpenAI's strict subset.

    Args:
        schema: The schema.
        text: The value of every text that isn't suggested.
        confirmed: Names of the properties whose boolean is true.
    """

    def __init__(self, schema: Mapping[str, Any], text: str, confirmed: Collection[str]) -> None:
        self._root = schema
        self._text = text
        self._confirmed = confirmed

    def fill(self, suggestion: Any) -> Any:
        """Return an instance of the schema that has the suggested values wherever the schema accepts them."""
        return self._fill(self._root, suggestion, "")

    def _fill(self, schema: Mapping[str, Any], suggestion: Any, name: str) -> Any:
        if "$ref" in schema:
            definition = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
            return self._fill(definition, suggestion, name)
        if "anyOf" in schema:
            return self._fill(self._choose_option(schema["anyOf"], suggestion), suggestion, name)
        if properties := schema.get("properties"):
            values = suggestion if isinstance(suggestion, Mapping) else {}
            return {key: self._fill(part, values.get(key), key) for key, part in properties.items()}
        if "items" in schema:
            items = suggestion if isinstance(suggestion, list) else []
            return [self._fill(schema["items"], item, "") for item in items]
        if self._accepts(schema, suggestion):
            return suggestion
        return self._make_plain(schema, name)

    def _choose_option(self, options: Sequence[Any], suggestion: Any) -> Any:
        """Return the first option that accepts a suggestion, or else the one that shares most keys with it."""
        for option in options:
            if self._accepts(option, suggestion):
                return option
        keys = suggestion.keys() if isinstance(suggestion, Mapping) else set()
        best = [option for option in options if option.get("type") != "null"] or options
        return max(best, key=lambda option: len(self._get_keys(option) & keys))

    def _get_keys(self, schema: Mapping[str, Any]) -> set[str]:
        if "$ref" in schema:
            schema = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
        return set(schema.get("properties") or ())

    def _accepts(self, schema: Mapping[str, Any], value: Any) -> bool:
        with_definitions = {"$defs": self._root.get("$defs", {}), **schema}
        return Draft202012Validator(with_definitions).is_valid(value)

    def _make_plain(self, schema: Mapping[str, Any], name: str) -> Any:
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "string")
        if kind == "boolean":
            return name in self._confirmed
        return {"null": None, "object": {}, "integer": 1, "number": 1}.get(kind, self._text)
