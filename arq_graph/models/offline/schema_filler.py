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

    def __init__(self, schema: Mapping[str, Any], text: str, confirmed: Collection[str] = ()) -> None:
        self._root = schema
        self._text = text
        self._confirmed = confirmed

    def fill(self, suggestion: Any) -> Any:
        """Return an instance of the schema that has the suggested values wherever the schema accepts them."""
        return self._fill(self._root, suggestion, "")

    def accepts(self, schema: Any, value: Any) -> bool:
        """Return True if a value is an instance of a part of the schema."""
        definitions = {"$defs": self._root.get("$defs", {})}
        return Draft202012Validator({**definitions, **self.resolve(schema)}).is_valid(value)

    def resolve(self, schema: Any) -> Mapping[str, Any]:
        """Return the schema that a reference, or a choice with one option besides null, stands for."""
        while isinstance(schema, Mapping):
            options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
            if "$ref" in schema:
                schema = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
            elif len(options) == 1:
                schema = options[0]
            else:
                return schema
        return {}

    @property
    def properties(self) -> Mapping[str, Any]:
        """The properties of the whole schema."""
        return self.get_properties(self._root)

    def get_properties(self, schema: Any) -> Mapping[str, Any]:
        """Return the properties of an object, {} if the schema is None."""
        return self.resolve(schema).get("properties") or {}

    def _fill(self, schema: Mapping[str, Any], suggestion: Any, name: str) -> Any:
        options = schema.get("anyOf", ())
        is_nullable = any(option.get("type") == "null" for option in options)
        schema = self.resolve(schema)
        if suggestion is None and (is_nullable or self.accepts(schema, None)):
            return None
        if "anyOf" in schema:
            return self._fill(self._choose_option(schema["anyOf"], suggestion), suggestion, name)
        if properties := schema.get("properties"):
            values = suggestion if isinstance(suggestion, Mapping) else {}
            return {key: self._fill(part, values.get(key), key) for key, part in properties.items()}
        if "items" in schema:
            items = suggestion if isinstance(suggestion, list) else []
            return [self._fill(schema["items"], item, "") for item in items]
        if self.accepts(schema, suggestion):
            return suggestion
        return self._make_plain(schema, name)

    def _make_plain(self, schema: Mapping[str, Any], name: str) -> Any:
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "string")
        if kind == "boolean":
            return name in self._confirmed
        return {"null": None, "object": {}, "integer": 1, "number": 1}.get(kind, self._text)

    def _choose_option(self, options: Sequence[Any], suggestion: Any) -> Any:
        """Return the first option that accepts a suggestion, or else the one that shares most keys with it."""
        for option in options:
            if self.accepts(option, suggestion):
                return option
        keys = suggestion.keys() if isinstance(suggestion, Mapping) else set()
        return max(options, key=lambda option: len(self.get_properties(option).keys() & keys))
