"""Filling in a JSON schema: what is suggested where it fits, and else a guess by type, name and question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from arq_graph.models.offline.guessing import NOTHING, Guesses

MAX_DEPTH = 8
_NUMERIC = ("integer", "number")


@dataclass(frozen=True)
class Filler:
    """Fills in one schema.

    Args:
        schema: The whole schema, with its `$defs`.
        guesses: What to put where nothing is suggested.
    """

    schema: Mapping[str, Any]
    guesses: Guesses

    def fill(self, suggestion: Any = NOTHING) -> Any:
        """An instance of the schema, made of the suggestion as far as it fits."""
        return self._value(self.schema, suggestion, (), 0)

    def _value(self, schema: Any, suggestion: Any, path: tuple[str, ...], depth: int) -> Any:
        if not isinstance(schema, dict):
            return None if suggestion is NOTHING else suggestion
        if _is_plain(schema, suggestion):
            return suggestion
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._choice(schema, suggestion, path)
        if options := schema.get("anyOf") or schema.get("oneOf"):
            return self._any_of(options, schema, suggestion, path, depth)
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            return self._any_of([{**schema, "type": each} for each in kind], schema, suggestion, path, depth)
        if kind == "object":
            return self._object(schema, suggestion, path, depth)
        if kind == "array":
            return self._array(schema, suggestion, path, depth)
        return self._scalar(kind, schema, suggestion, path)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        return resolved(schema, self.schema) if isinstance(schema, dict) else {}

    def _choice(self, schema: Mapping[str, Any], suggestion: Any, path: tuple[str, ...]) -> Any:
        options = schema["enum"]
        if suggestion is not NOTHING and any(_same(suggestion, option) for option in options):
            return suggestion
        return self.guesses.choice(path, str(schema.get("description") or ""), options)

    def _any_of(
        self,
        options: list[Any],
        schema: Mapping[str, Any],
        suggestion: Any,
        path: tuple[str, ...],
        depth: int,
    ) -> Any:
        resolved = [self._resolved(option) for option in options]
        nullable = any(option.get("type") == "null" for option in resolved)
        real = [option for option in resolved if option.get("type") != "null"]
        if nullable and (
            suggestion is None or not real or (suggestion is NOTHING and depth >= MAX_DEPTH // 2)
        ):
            return None
        described = str(schema.get("description") or "")
        if suggestion is NOTHING:
            if nullable and not self.guesses.fills_optional(path, described):
                return None
            fitting = real[0]
            if depth >= MAX_DEPTH // 2:
                fitting = min(real, key=self._size)
        else:
            fits = [option for option in real if self._fits(option, suggestion)]
            if not fits and nullable:
                return None
            fitting = max(fits, key=lambda option: self._likeness(option, suggestion)) if fits else real[0]
        return self._value({"description": described, **fitting}, suggestion, path, depth + 1)

    def _size(self, schema: Mapping[str, Any]) -> int:
        kinds = ("string", "integer", "number", "boolean", "array", "object")
        kind = schema.get("type")
        return kinds.index(kind) if kind in kinds else 0

    def _likeness(self, schema: Mapping[str, Any], suggestion: Any) -> int:
        if not isinstance(suggestion, dict):
            return 0
        properties = schema.get("properties", {})
        agreeing = sum(key in properties for key in suggestion) - sum(
            key not in suggestion for key in properties
        )
        for key, value in suggestion.items():
            field = self._resolved(properties.get(key))
            tags = [field["const"]] if "const" in field else field.get("enum")
            if tags is not None:
                agreeing += 100 if value in tags else -100
        return agreeing

    def _fits(self, schema: Mapping[str, Any], value: Any) -> bool:
        if "enum" in schema:
            return any(_same(value, option) for option in schema["enum"])
        if "anyOf" in schema:
            return any(self._fits(self._resolved(option), value) for option in schema["anyOf"])
        return _is_of(schema.get("type"), value)

    def _object(
        self, schema: Mapping[str, Any], suggestion: Any, path: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        given = suggestion if isinstance(suggestion, dict) else {}
        properties: Mapping[str, Any] = schema.get("properties", {})
        required = schema.get("required", ())
        filled: dict[str, Any] = {}
        for name, field in properties.items():
            if name in given or name in required or depth == 0:
                filled[name] = self._value(field, given.get(name, NOTHING), (*path, name), depth + 1)
        if schema.get("additionalProperties") is not False:
            filled.update({name: value for name, value in given.items() if name not in properties})
        return filled

    def _array(
        self, schema: Mapping[str, Any], suggestion: Any, path: tuple[str, ...], depth: int
    ) -> list[Any]:
        items = schema.get("items", {})
        least, most = int(schema.get("minItems", 0)), int(schema.get("maxItems", 10_000))
        least = max(least, self.guesses.least_items(path))
        if isinstance(suggestion, list | tuple):
            filled = [
                self._value(items, each, (*path, str(i)), depth + 1)
                for i, each in enumerate(suggestion[:most])
            ]
        elif depth >= MAX_DEPTH or (most == 0):
            filled = []
        else:
            filled = [
                self._value(items, each, (*path, "0"), depth + 1) for each in self._seeds(items, path, schema)
            ]
        while len(filled) < least:
            like_the_last = filled[-1] if filled else NOTHING
            filled.append(self._value(items, like_the_last, (*path, str(len(filled))), depth + 1))
        return filled

    def _seeds(self, items: Any, path: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[Any]:
        resolved = self._resolved(items)
        if resolved.get("type") == "string" and "enum" not in resolved:
            yield from self.guesses.strings(path, str(schema.get("description") or ""))
        else:
            yield NOTHING

    def _scalar(self, kind: Any, schema: Mapping[str, Any], suggestion: Any, path: tuple[str, ...]) -> Any:
        described = str(schema.get("description") or "")
        if suggestion is not NOTHING and _is_of(kind, suggestion):
            if kind in _NUMERIC:
                return self.guesses.bounded(path, suggestion, schema)
            return suggestion
        if kind == "string":
            if suggestion is None:
                return ""
            if isinstance(suggestion, bool | int | float):
                return str(suggestion)
            return self.guesses.string(path, described, schema)
        if kind in _NUMERIC:
            return self.guesses.number(path, described, schema)
        if kind == "boolean":
            return self.guesses.boolean(path, described)
        return None if kind == "null" or suggestion is NOTHING else suggestion


def _is_plain(schema: Mapping[str, Any], suggestion: Any) -> bool:
    """Whether it is a string or a boolean as wanted, as most of an answer is: the short way."""
    kind = schema.get("type")
    right = (kind == "string" and isinstance(suggestion, str)) or (
        kind == "boolean" and isinstance(suggestion, bool)
    )
    return right and "enum" not in schema and "const" not in schema


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _is_of(kind: Any, value: Any) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "null":
        return value is None
    if kind == "array":
        return isinstance(value, list | tuple)
    return kind != "object" or isinstance(value, dict)


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its references replaced by what they refer to, at its top level."""
    for _ in range(50):  # references to references; a ring of them would be no schema
        if "$ref" in schema:
            target = _referred(str(schema["$ref"]), root)
        elif isinstance(schema.get("allOf"), list) and schema["allOf"]:
            target = {}
            for part in schema["allOf"]:
                target = {**target, **(resolved(part, root) if isinstance(part, dict) else {})}
        else:
            return schema
        schema = {**target, **{key: value for key, value in schema.items() if key not in ("$ref", "allOf")}}
    return schema


def _referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for key in reference.lstrip("#").strip("/").split("/"):
        if key:
            name = key.replace("~1", "/").replace("~0", "~")
            found = found.get(name, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}


def properties_of(schema: Any, root: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The properties of an object's schema, or of the objects that a list holds; references resolved."""
    if not isinstance(schema, dict):
        return {}
    schema = resolved(schema, root)
    for option in schema.get("anyOf", ()):
        if found := properties_of(option, root):
            return found
    if "items" in schema:
        return properties_of(schema["items"], root)
    fields = schema.get("properties", {})
    return {name: resolved(field, root) for name, field in fields.items() if isinstance(field, dict)}


def expanded(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """A schema with all its references replaced, down to a depth at which a recursive one is cut off."""
    if isinstance(schema, list):
        return [expanded(item, root, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if depth > MAX_DEPTH:
        return {}
    return {key: expanded(value, root, depth + 1) for key, value in resolved(schema, root).items()}
