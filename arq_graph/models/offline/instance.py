"""A valid instance of a JSON schema, from what is suggested and the plainest values for the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from jsonschema import Draft202012Validator

UNSAID: Any = object()  # nothing is suggested


class Instances:
    """Fills one schema, in OpenAI's strict subset.

    `text` stands where any text may stand; the yes or no of a property named in `confirmed` is yes.
    """

    def __init__(self, schema: Mapping[str, Any], text: str = "-", confirmed: Collection[str] = ()) -> None:
        self._root = schema
        self._text = text
        self._confirmed = confirmed

    def of(self, suggested: Any = UNSAID) -> Any:
        """An instance; a suggestion counts wherever the schema takes it."""
        return self._fill(self._root, suggested, "")

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

    def _fill(self, schema: Any, suggested: Any, name: str) -> Any:
        schema = self.resolved(schema)
        if options := schema.get("anyOf"):
            return self._fill(self._option(options, suggested), suggested, name)
        if properties := schema.get("properties"):
            given = suggested if isinstance(suggested, Mapping) else {}
            return {key: self._fill(value, given.get(key, UNSAID), key) for key, value in properties.items()}
        if "items" in schema:
            items = suggested if isinstance(suggested, list) else []
            return [self._fill(schema["items"], each, "") for each in items]
        if suggested is not UNSAID and self.takes(schema, suggested):
            return suggested
        if choices := [schema["const"]] if "const" in schema else schema.get("enum"):
            return choices[0]
        kind = schema.get("type", "string")
        if kind in ("integer", "number", "boolean"):
            return name in self._confirmed if kind == "boolean" else 1
        return {"null": None, "object": {}}.get(kind, self._text)

    def _option(self, options: list[Any], suggested: Any) -> Any:
        """The option that a suggestion fits best; without one the plainest: null if it can be, at best no object."""
        resolved = [self.resolved(option) for option in options]
        given = suggested.keys() if isinstance(suggested, Mapping) else ()

        def fit(option: Mapping[str, Any]) -> tuple[bool, int, bool]:
            if suggested is UNSAID:
                return self.takes(option, None), 0, "properties" not in option
            shared = len(option.get("properties", {}).keys() & given)
            is_list = isinstance(suggested, list) and option.get("type") == "array"
            return self.takes(option, suggested), shared, is_list

        return max(resolved, key=fit)
