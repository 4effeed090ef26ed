"""A valid instance of a JSON schema, from what is suggested and the plainest values for the rest."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

import rstr
from jsonschema import Draft202012Validator

UNSAID: Any = object()  # nothing is suggested

_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "email": "nobody@example.com",
    "ipv4": "192.0.2.1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_DEEPEST = 8  # of a schema that refers to itself


class Instances:
    """Fills one schema, in OpenAI's strict subset or near it; ranges, lengths, patterns and formats are kept, too.

    `text` stands where any text may stand; the yes or no of a property named in `confirmed` is yes.
    """

    def __init__(self, schema: Mapping[str, Any], text: str = "-", confirmed: Collection[str] = ()) -> None:
        self._root = schema
        self._text = text
        self._confirmed = confirmed

    def of(self, suggested: Any = UNSAID) -> Any:
        """An instance; a suggestion counts wherever the schema takes it."""
        return self._fill(self._root, suggested, "", 0)

    def takes(self, schema: Any, value: Any) -> bool:
        """Whether a value is an instance of a schema within this one."""
        definitions = {"$defs": self._root.get("$defs", {})}
        return Draft202012Validator({**definitions, **self.resolved(schema)}).is_valid(value)

    def resolved(self, schema: Any) -> Mapping[str, Any]:
        """A schema in place of the reference to it, or of a choice that has no other option."""
        while isinstance(schema, Mapping):
            choice = schema.get("anyOf", ())
            if "$ref" in schema:
                schema = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
            elif len(choice) == 1:
                schema = choice[0]
            else:
                return schema
        return {}

    def given(self, schema: Any) -> Mapping[str, Any]:
        """A schema without the null that stands for what is not given."""
        resolved = self.resolved(schema)
        options = [each for each in resolved.get("anyOf", ()) if self.resolved(each).get("type") != "null"]
        return self.resolved(options[0]) if len(options) == 1 else resolved

    def asked(self, schema: Any) -> Mapping[str, Any]:
        """What an object is asked, by property."""
        return self.given(schema).get("properties") or {}

    def _fill(self, schema: Any, suggested: Any, name: str, depth: int) -> Any:
        schema = self.resolved(schema)
        if choices := [schema["const"]] if "const" in schema else schema.get("enum"):
            return suggested if suggested is not UNSAID and self.takes(schema, suggested) else choices[0]
        if options := schema.get("anyOf") or _options_of(schema):
            return self._fill(self._option(options, suggested, depth), suggested, name, depth)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if kind == "object":
            return self._object(schema, suggested, depth)
        if kind == "array":
            return self._array(schema, suggested, depth)
        if suggested is not UNSAID and self.takes(schema, suggested):
            return suggested
        if kind == "boolean":
            return name in self._confirmed
        if kind in ("integer", "number"):
            return _number(schema, whole=kind == "integer")
        return None if kind == "null" else self._string(schema)

    def _option(self, options: list[Any], suggested: Any, depth: int) -> Any:
        """The option that a suggestion fits best; without one null where that is an option, else the first."""
        resolved = [self.resolved(option) for option in options]
        if suggested is UNSAID:
            plain = [option for option in resolved if self.takes(option, None)]
            if depth > _DEEPEST:
                plain += [option for option in resolved if "properties" not in option]
            return (plain or resolved)[0]
        given = suggested.keys() if isinstance(suggested, Mapping) else ()

        def fit(option: Mapping[str, Any]) -> tuple[bool, int, bool]:
            shared = len(option.get("properties", {}).keys() & given)
            is_list = isinstance(suggested, list) and option.get("type") == "array"
            return self.takes(option, suggested), shared, is_list

        return max(resolved, key=fit)

    def _object(self, schema: Mapping[str, Any], suggested: Any, depth: int) -> dict[str, Any]:
        given = suggested if isinstance(suggested, Mapping) else {}
        return {
            name: self._fill(property, given.get(name, UNSAID), name, depth + 1)
            for name, property in schema.get("properties", {}).items()
            if name in schema.get("required", ()) or name in given
        }

    def _array(self, schema: Mapping[str, Any], suggested: Any, depth: int) -> list[Any]:
        given = suggested if isinstance(suggested, list) else []
        given = [*given[: schema.get("maxItems")], *[UNSAID] * (schema.get("minItems", 0) - len(given))]
        return [self._fill(schema.get("items", {}), each, "", depth + 1) for each in given]

    def _string(self, schema: Mapping[str, Any]) -> str:
        if pattern := schema.get("pattern"):
            made = (rstr.Rstr(Random(seed)).xeger(pattern) for seed in range(50))
            return next((text for text in made if self.takes(schema, text)), "")
        text = _FORMATS.get(schema.get("format", ""), self._text)
        return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def _options_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    kinds = schema.get("type")
    return [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else []


def _number(schema: Mapping[str, Any], *, whole: bool) -> Any:
    """1 where that is within the bounds, else the bound that is nearest to it."""
    low = max(
        schema.get("minimum", -math.inf), math.nextafter(schema.get("exclusiveMinimum", -math.inf), math.inf)
    )
    high = min(
        schema.get("maximum", math.inf), math.nextafter(schema.get("exclusiveMaximum", math.inf), -math.inf)
    )
    if low > 1:
        return math.ceil(low) if whole else low
    return 1 if high >= 1 else math.floor(high) if whole else high
