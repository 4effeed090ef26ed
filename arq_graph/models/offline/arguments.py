"""Finding the value of a tool's argument in a conversation.

A value is known by its type, its format, its choices, the shape of an example in its description ("like ORD-1001"),
or by the words before it ("the title is …"). What is not found so is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from arq_graph.models.offline.instance import Instances
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.stems import label, stems, words

_EXAMPLE = re.compile(r"\b(?:like|such as|for example|e\.g\.,?|example:) [\"'“]?([\w@./:+-]*\d[\w@./:+-]*\w)")
_FORMATS = {
    "date": r"\d{4}-\d\d-\d\d",
    "date-time": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?",
    "time": r"\d\d:\d\d(?::\d\d)?",
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "uri": r"https?://[^\s\"'<>]*[\w/]",
    "uuid": r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
}
_NUMBER = re.compile(r"(?<![\w.:/-])-?\d+(?:\.\d+)?(?![\w:/-]|\.\d)")
_MARKS = '"“”'
_QUOTED = r"[\"“][^\"“”]+[\"”]"
_NAMED = r"[A-Z][\w'’-]*(?: (?:of |the |and |in )*[A-Z0-9][\w'’-]*)*"
_LEADING = re.compile(
    r"^(?:it is|it['’]s|this is|that is|that['’]s|i am|i['’]m|(?:my|the) [\w ]{1,30} is) ", re.IGNORECASE
)
_LONGEST_ANSWER = 12  # words of a message that may as a whole be the value that was asked for


class Found(NamedTuple):
    """A value, the id of the line or variable that tells it, and whether it was the customer who said it."""

    value: Any
    source: str
    is_said: bool


class Argument:
    """One argument of a tool: its entry in the prompt, and the schema of its value among `kinds`."""

    def __init__(self, entry: Mapping[str, Any], schema: Any, prompt: Prompt, kinds: Instances) -> None:
        self.name = str(entry.get("name"))
        self.key = str(entry.get("key") or self.name)
        self.label = label(self.name)
        self.description = str(entry.get("description") or "")
        self.is_required = bool(entry.get("required"))
        self.was_asked_for = "?" in prompt.answered and self.label in prompt.answered
        self._type = entry.get("type")
        self._schema = kinds.given(schema)
        self._prompt = prompt
        self._kinds = kinds

    @cached_property
    def found(self) -> Found | None:
        """The newest value; None where nobody told it."""
        return next((each for each in self._told() if self._kinds.takes(self._schema, each.value)), None)

    def _told(self) -> Iterator[Found]:
        """What may be the value, the newest first; of what was dealt with since, values of a clear shape alone."""
        is_settled = customer_spoke = False
        for line in reversed(self._prompt.lines):
            if line.speaker == "tool":
                is_settled = is_settled or customer_spoke
                told = {**(line.arguments if self._shape else {}), **line.told}
                if not line.failed and self.name in told:
                    yield Found(told[self.name], line.id, False)
            elif line.speaker == "customer":
                customer_spoke = True
                if self._shape or not is_settled:
                    is_answer = line is self._prompt.customer and self.was_asked_for
                    yield from (Found(value, line.id, True) for value in self._said_in(line.text, is_answer))
        for variable in self._prompt.entries("variables"):
            if variable.get("name") == self.name:
                yield Found(variable.get("value"), str(variable.get("id")), False)

    def _said_in(self, text: str, is_answer: bool) -> Iterator[Any]:
        kind = self._schema.get("type")
        items = self._kinds.resolved(self._schema.get("items", {}))
        if choices := self._schema.get("enum") or items.get("enum"):
            said = stems(text) | set(words(text))
            chosen = [each for each in choices if (stems(str(each)) or set(words(str(each)))) <= said]
            yield from [chosen] if kind == "array" and chosen else chosen
        elif kind == "boolean":
            if is_answer or stems(self.name) & stems(text):
                yield not {"no", "not", "without"} & set(words(text))
        elif kind in ("integer", "number"):
            yield from self._numbers(text, is_answer)
        elif kind == "array":
            yield from (re.split(r",\s*|\s+and\s+", each) for each in self._texts(text, is_answer))
        elif self._type not in ("object", "any"):  # these are asked as a text of JSON
            yield from self._texts(text, is_answer)

    def _numbers(self, text: str, is_answer: bool) -> Iterator[float]:
        about = stems(f"{self.label} {self.description}")
        for match in _NUMBER.finditer(text):
            beside = [*text[: match.start()].split()[-2:], *text[match.end() :].split()[:1]]
            if is_answer or about & stems(" ".join(beside)):
                yield float(match[0]) if "." in match[0] else int(match[0])

    def _texts(self, text: str, is_answer: bool) -> Iterator[str]:
        if shape := self._shape:
            found = (match[0] for match in shape.finditer(text))
            yield from (each.upper() if self._example.isupper() else each for each in found)
            return
        # A value may stand behind each word of the name and of the description that says something.
        about = words(f"{self.name} {self.description}")
        before = [self.label, *filter(stems, about), *(["called"] if "name" in about else [])]
        either = "|".join(map(re.escape, before))
        named = re.finditer(rf"\b(?i:{either})\b(?: is| called|:)? ({_NAMED}|{_QUOTED})", text)
        yield from (match[1].strip(_MARKS) for match in named)
        yield from (quoted.strip(_MARKS) for quoted in re.findall(_QUOTED, text))
        if is_answer and len(text.split()) <= _LONGEST_ANSWER and not {"yes", "no", "not"} & set(words(text)):
            yield _LEADING.sub("", text.strip()).strip(" .!?")

    @cached_property
    def _example(self) -> str:
        found = _EXAMPLE.search(self.description)
        return found[1] if found else ""

    @cached_property
    def _shape(self) -> re.Pattern[str] | None:
        known = (self._schema.get("format"), self._type, self.label.rpartition(" ")[2])
        wanted = next((_FORMATS[each] for each in known if each in _FORMATS), "")
        wanted = wanted or "".join(map(_like, re.findall(r"[A-Za-z]+|\d+|.", self._example)))
        return re.compile(rf"(?<![\w-]){wanted}(?![\w-])", re.IGNORECASE) if wanted else None


def asked_for(name: str, description: str) -> str:
    """What the customer is asked for: an argument's name in words, with what its description says."""
    said = description.strip().rstrip(".")
    told = f" ({said[:1].lower()}{said[1:]})" if said and said.casefold() != label(name) else ""
    return f"the {label(name)}{told}"


def _like(part: str) -> str:
    if part.isdigit():
        return r"\d+"
    return rf"[A-Za-z]{{{len(part)}}}" if part.isalpha() else re.escape(part)
