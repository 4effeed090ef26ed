"""Finding the arguments of a tool in a conversation.

A value is known by its choices, by the shape of an example in its description ("like ORD-1001"), by quotes, by a word
of its name beside it ("order 17", "3 weeks"), or because the agent asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.schema_filler import SchemaFiller
from arq_graph.models.offline.words import find_common, split_words, to_phrase

_EXAMPLE = re.compile(r"\b(?:like|such as) ([\w@./:+-]*\d(?:[\w@./:+-]*\w)?)")
_QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")
_NUMBER = re.compile(r"(?<![\w.:/-])\d+(?![\w:/-]|\.\d)")


class Value(NamedTuple):
    """The value of an argument, the id of the line or variable it comes from, and the basis that a planner names."""

    value: Any
    source: str
    basis: str = "known"


class Argument:
    """An argument of a tool: its entry in the prompt, and the schema of its value."""

    def __init__(self, entry: Mapping[str, Any], schema: Any, prompt: Prompt, filler: SchemaFiller) -> None:
        self.name = str(entry["name"])
        self.key = str(entry.get("key") or self.name)
        self.is_required = bool(entry.get("required"))
        self.description = describe_argument(self.name, entry.get("description") or "")
        self.was_asked_for = self.description in prompt.last_reply
        self._shape = _find_shape(str(entry.get("description")))
        self._schema = filler.resolve(schema)
        self._prompt = prompt
        self._filler = filler

    @cached_property
    def found(self) -> Value | None:
        """The newest value in the conversation, or else a variable."""
        for candidate in self._list_candidates():
            if self._filler.accepts(self._schema, candidate.value):
                return candidate
        return None

    def _list_candidates(self) -> Iterator[Value]:
        for line in reversed(self._prompt.lines):
            if line.speaker == "customer":
                is_answer = self.was_asked_for and line.id == self._prompt.request_id
                for value in self._find_in_text(line.text, is_answer):
                    yield Value(value, line.id, basis="this_request")
            elif line.speaker == "tool" and not line.failed:
                fields = {**line.arguments, **line.fields}
                if self.name in fields:
                    yield Value(fields[self.name], line.id)
        for variable in self._prompt.get_entries("variables"):
            if variable.get("name") == self.name:
                yield Value(variable.get("value"), str(variable.get("id")))

    def _find_in_text(self, text: str, is_answer: bool) -> Iterator[Any]:
        kind = self._schema.get("type")
        words = set(split_words(text))
        for choice in self._schema.get("enum", ()):
            if set(split_words(str(choice))) <= words:
                yield choice
        if kind == "boolean" and (is_answer or find_common(self.name, text)):
            yield not {"no", "not", "without"} & words
        elif kind in ("integer", "number"):
            for match in _NUMBER.finditer(text):
                following = text[match.end() :].split()[:2]
                if is_answer or find_common(self.name, " ".join(following)):
                    yield int(match[0])
        elif self._shape:
            for match in self._shape.finditer(text):
                yield match[0].upper()
        elif kind == "string":
            yield from self._find_texts(text, is_answer)

    def _find_texts(self, text: str, is_answer: bool) -> Iterator[str]:
        yield from _QUOTED.findall(text)
        names = "|".join(split_words(self.name))
        yield from re.findall(rf"(?i)\b(?:{names}) ([\w-]*\d[\w-]*)", text)
        if is_answer and not self._prompt.says_no:
            yield text.rpartition(f"{to_phrase(self.name)} is ")[2].strip(" .!?")


def describe_argument(name: str, description: str) -> str:
    """Return what the customer is asked for: an argument's name in words, with its description."""
    text = description.strip().rstrip(".")
    if not text or text.casefold() == to_phrase(name):
        return f"the {to_phrase(name)}"
    return f"the {to_phrase(name)} ({text[:1].lower()}{text[1:]})"


def _find_shape(description: str) -> re.Pattern[str] | None:
    """Return a pattern for values that look like the example in a description."""
    example = _EXAMPLE.search(description)
    if not example:
        return None
    digits_replaced = re.sub(r"\d+", "0", re.escape(example[1]))
    shape = re.sub(r"[A-Za-z]+", "[A-Za-z]+", digits_replaced).replace("0", r"\d+")
    return re.compile(rf"(?<![\w-]){shape}(?![\w-])")
