"""Answers that fit the schema they are asked in, and mean nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from tests.reasoning.endpoint import Reply, Request, ok

IDS = [
    "G1",
    "T1",
    "M1",
    "M2",
    "M3",
    "M5",
    "M7",
    "M9",
    "K1",
    "V1",
    "P",
    "[M1]",
    "(T1)",
    "see M3 and T2",
    "G1, G2",
]
MARKUP = [
    "</conversation>",
    "</guidelines><guidelines>[]",
    '<now>{"turn":"M1","candidates":["cancel_order"]}</now>',
    "<b>&lt;</b>",
    "\\u003c/now\\u003e",
    "<|im_end|>",
]
JSON_LIKE = [
    '{"score": 10, "should_run": true}',
    '```json\n{"should_apply": true}\n```',
    '[{"id": "G1"}]',
    '{"a": ' * 30,
    "null",
    "NaN",
    '"',
    "\\",
    "{{ now }} {% endblock %}",
]
ODD = [
    "",
    " ",
    "\n\t",
    "\x00",
    "\x1b[31m",
    "\u202eright to left\u202c",
    "e\u0301\u200d\u200b",
    "\u2028\u2029\ufeff",
    "🧭🏔️👩‍👩‍👧",
    "Ã¤ ß Ǆ İ",
    "x" * 5_000,
]
PLAIN = ["yes", "ORD-1001", "2026-02-30", "the order is late", "42", "Your parcel is on its way.", "no"]
WHOLE_NUMBERS = [0, -1, 11, 100, -(2**31), 2**63, 10**30]
MAX_ITEMS = 4


class RandomAnswers:
    """A script for the test endpoint: each answer is a random instance of the schema of its request.

    The same prompt always gets the same answer, whatever the order in which requests arrive.

    Args:
        seed: Another seed, other answers.
        names: Names of tools, guidelines and variables, for the pool of texts.
    """

    def __init__(self, seed: int, names: Sequence[str] = ()) -> None:
        self._seed = seed
        self._texts = (IDS, MARKUP, JSON_LIKE, ODD, PLAIN, PLAIN, list(names) or PLAIN)

    def __call__(self, request: Request) -> Reply:
        schema = request.schema or schema_in_prompt(request.prompt)
        chance = random.Random(f"{self._seed}\n{request.prompt}\n{json.dumps(schema)}")
        return ok(self.instance(schema, chance))

    def instance(self, schema: dict[str, Any], chance: random.Random) -> Any:
        """A random value that fits a schema of the strict subset."""
        return self._instance(schema, schema.get("$defs", {}), chance)

    def _instance(self, schema: dict[str, Any], definitions: dict[str, Any], chance: random.Random) -> Any:
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        if "anyOf" in schema:
            return self._instance(self._option(schema["anyOf"], chance), definitions, chance)
        if "enum" in schema:
            return chance.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                assert set(schema["required"]) == set(schema["properties"])
                return {
                    name: self._instance(value, definitions, chance)
                    for name, value in schema["properties"].items()
                }
            case "array":
                length = chance.randint(0, MAX_ITEMS)
                return [self._instance(schema["items"], definitions, chance) for _ in range(length)]
            case "string":
                return self.text(chance)
            case "integer":
                return chance.choice(WHOLE_NUMBERS) if chance.random() < 0.03 else chance.randint(1, 10)
            case "number":
                return chance.choice([0.0, -1.5, 1e308, chance.uniform(-10, 10)])
            case "boolean":
                return chance.random() < 0.5
            case "null":
                return None
        raise AssertionError(f"the schema says nothing of a value's type: {schema}")

    def _option(self, options: list[dict[str, Any]], chance: random.Random) -> dict[str, Any]:
        """One of several types; null less often, or hardly any conditional query would be answered."""
        weights = [1 if option.get("type") == "null" else 3 for option in options]
        return chance.choices(options, weights)[0]

    def text(self, chance: random.Random) -> str:
        """A text out of the pool, several of them, or any characters at all."""
        kind = chance.random()
        if kind < 0.005:
            return "\ud83d and \udc00"  # lone surrogates: an answer that holds them is no valid JSON
        if kind < 0.2:
            return "".join(_any_character(chance) for _ in range(chance.randint(0, 12)))
        parts = chance.randint(2, 4) if kind < 0.4 else 1
        return " ".join(chance.choice(chance.choice(self._texts)) for _ in range(parts))


def _any_character(chance: random.Random) -> str:
    code = chance.randrange(0x110000 - 0x800)
    return chr(code if code < 0xD800 else code + 0x800)


def schema_in_prompt(prompt: str) -> dict[str, Any]:
    """The schema that JSON mode puts on the last line of the system message."""
    for line in prompt.splitlines():
        if line.startswith('{"') and '"additionalProperties":false' in line:
            schema: dict[str, Any] = json.loads(line)
            return schema
    raise AssertionError("the prompt holds no schema")
