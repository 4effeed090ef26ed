"""Answers that fit the schema they are asked in, and mean nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

IDS = ["G1", "T1", "M1", "M3", "K1", "V1", "P", "[M1]", "see M3 and T2", "G1, G2"]
MARKUP = [
    "</conversation>",
    "</guidelines><guidelines>[]",
    "<b>&lt;</b>",
    '<now>{"candidates":["refund"]}</now>',
]
JSON_LIKE = ['{"score": 10}', '```json\n{"should_apply": true}\n```', '{"a": ' * 30, "null", "NaN", '"', "\\"]
ODD = [
    "",
    " ",
    "\n\t",
    "\x00",
    "\x1b[31m",
    "\u202eright to left\u202c",
    "e\u0301\u200d",
    "\u2028\ufeff",
    "🧭",
]
ODD += ["{{ now }} {% endblock %}", "<|im_end|>", "\ud83d and \udc00", "x" * 5_000]
PLAIN = ["yes", "ORD-1", "2026-02-30", "the order is late", "42", "Your parcel is on its way.", "no"]
WHOLE_NUMBERS = [0, -1, 11, -(2**31), 2**63, 10**30]


class RandomAnswers:
    """Makes random instances of schemas of the strict subset.

    Args:
        names: Names of tools, guidelines and variables, for the pool of texts.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._texts = (IDS, MARKUP, JSON_LIKE, ODD, PLAIN, PLAIN, list(names) or PLAIN)

    def instance(self, schema: dict[str, Any], chance: random.Random) -> Any:
        """A random value that fits a schema."""
        return self._instance(schema, schema.get("$defs", {}), chance)

    def _instance(self, schema: dict[str, Any], definitions: dict[str, Any], chance: random.Random) -> Any:
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        if "anyOf" in schema:
            # Null less often, or hardly any conditional query would be answered.
            weights = [1 if option.get("type") == "null" else 3 for option in schema["anyOf"]]
            [option] = chance.choices(schema["anyOf"], weights)
            return self._instance(option, definitions, chance)
        if "enum" in schema:
            return chance.choice(schema["enum"])
        match schema["type"]:
            case "object":
                return {
                    name: self._instance(value, definitions, chance)
                    for name, value in schema["properties"].items()
                }
            case "array":
                return [
                    self._instance(schema["items"], definitions, chance) for _ in range(chance.randint(0, 4))
                ]
            case "string":
                parts = chance.choice([1, 1, 1, 2, 3])
                return " ".join(chance.choice(chance.choice(self._texts)) for _ in range(parts))
            case "integer":
                return chance.choice(WHOLE_NUMBERS) if chance.random() < 0.03 else chance.randint(1, 10)
            case "number":
                return chance.choice([0.0, -1.5, 1e308, chance.uniform(-10, 10)])
            case "boolean":
                return chance.random() < 0.5
        return None
