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
ODD = ["", " \n\t", "\x00\x1b[31m", "\u202eright to left\u202c", "e\u0301\u200d \u2028\ufeff 🧭", "x" * 5_000]
ODD += ["{{ now }} {% endblock %}", "<|im_end|>", "\ud83d and \udc00"]
PLAIN = ["yes", "ORD-1", "2026-02-30", "the order is late", "42", "Your parcel is on its way.", "no"]
WHOLE_NUMBERS = [0, -1, 11, -(2**31), 2**63, 10**30]


def random_instance(schema: dict[str, Any], names: Sequence[str], chance: random.Random) -> Any:
    """A random value that fits a schema of the strict subset; texts also come out of `names`, of tools and rules."""
    pools = (IDS, MARKUP, JSON_LIKE, ODD, PLAIN, PLAIN, names)

    def fill(part: dict[str, Any]) -> Any:
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].rsplit("/", 1)[-1]]
        if "anyOf" in part:
            # Null less often, or hardly any conditional query would be answered.
            weights = [1 if option.get("type") == "null" else 3 for option in part["anyOf"]]
            [option] = chance.choices(part["anyOf"], weights)
            return fill(option)
        if "enum" in part:
            return chance.choice(part["enum"])
        match part["type"]:
            case "object":
                return {name: fill(value) for name, value in part["properties"].items()}
            case "array":
                return [fill(part["items"]) for _ in range(chance.randint(0, 4))]
            case "string":
                parts = chance.choice([1, 1, 1, 2, 3])
                return " ".join(chance.choice(chance.choice(pools)) for _ in range(parts))
            case "integer":
                return chance.choice(WHOLE_NUMBERS) if chance.random() < 0.03 else chance.randint(1, 10)
            case "number":
                return chance.choice([0.0, -1.5, 1e308, chance.uniform(-10, 10)])
            case "boolean":
                return chance.random() < 0.5
        return None

    return fill(schema)
